"""The names that environments may use: modules, builtins, dunders. Data only, no behaviour.

Every module is listed by explicit names, never by `__all__` or `dir`, so that `random._os`,
`enum.sys` or a loader that a later release adds does not come along. `spade_runtime.views` builds
what stands here; names that need a deterministic or a guarded form are replaced there.
"""

from __future__ import annotations


def words(text: str) -> tuple[str, ...]:
    """The words of a table's row.

    >>> words("choice  shuffle")
    ('choice', 'shuffle')
    """
    return tuple(text.split())


# What the static policy calls an allowed import, and the names that the import gives.
MODULES: dict[str, str] = {
    "__future__": "annotations division absolute_import print_function generator_stop "
    "unicode_literals with_statement nested_scopes generators",
    "abc": "ABC abstractclassmethod abstractmethod abstractproperty abstractstaticmethod",
    "array": "ArrayType array typecodes",
    "ast": "AST Add And AnnAssign Assert Assign Attribute AugAssign BinOp BitAnd BitOr BitXor "
    "BoolOp Break Call ClassDef Compare Constant Continue Del Delete Dict DictComp Div Eq "
    "ExceptHandler Expr Expression FloorDiv For FormattedValue FunctionDef GeneratorExp Global Gt "
    "GtE If IfExp Import ImportFrom In Invert Is IsNot JoinedStr LShift Lambda List ListComp Load "
    "Lt LtE MatMult Match MatchAs MatchClass MatchMapping MatchOr MatchSequence MatchSingleton "
    "MatchStar MatchValue Mod Module Mult Name NamedExpr NodeTransformer NodeVisitor Nonlocal Not "
    "NotEq NotIn Num Or Pass Pow RShift Raise Return Set SetComp Slice Starred Store Sub Subscript "
    "Try Tuple UAdd USub UnaryOp While With Yield YieldFrom alias arg arguments boolop cmpop "
    "comprehension copy_location dump expr fix_missing_locations get_docstring "
    "get_source_segment increment_lineno iter_child_nodes keyword literal_eval mod operator parse "
    "stmt Str unaryop unparse walk withitem",
    "base64": "a85decode a85encode b16decode b16encode b32decode b32encode b32hexdecode "
    "b32hexencode b64decode b64encode b85decode b85encode decodebytes encodebytes "
    "standard_b64decode standard_b64encode urlsafe_b64decode urlsafe_b64encode z85decode z85encode",
    "bisect": "bisect bisect_left bisect_right insort insort_left insort_right",
    "calendar": "Calendar EPOCH FRIDAY HTMLCalendar IllegalMonthError IllegalWeekdayError MONDAY "
    "SATURDAY SUNDAY THURSDAY TUESDAY TextCalendar WEDNESDAY JANUARY FEBRUARY MARCH APRIL MAY JUNE "
    "JULY AUGUST SEPTEMBER OCTOBER NOVEMBER DECEMBER Day Month calendar day_abbr day_name "
    "firstweekday isleap leapdays mdays month month_abbr month_name monthcalendar monthrange prcal "
    "prmonth setfirstweekday timegm week weekday weekheader",
    "cmath": "acos acosh asin asinh atan atanh cos cosh e exp inf infj isclose isfinite isinf "
    "isnan log log10 nan nanj phase pi polar rect sin sinh sqrt tan tanh tau",
    "collections": "ChainMap Counter OrderedDict UserDict UserList defaultdict deque namedtuple",
    "collections.abc": "ByteString Callable Collection Container Generator Hashable ItemsView "
    "Iterable Iterator KeysView Mapping MappingView MutableMapping MutableSequence MutableSet "
    "Reversible Sequence Set Sized ValuesView Buffer",
    "contextlib": "AbstractContextManager ContextDecorator ExitStack closing contextmanager "
    "nullcontext suppress",
    "copy": "Error copy deepcopy error replace",
    "dataclasses": "Field FrozenInstanceError InitVar KW_ONLY MISSING asdict astuple dataclass "
    "field fields is_dataclass replace",
    "datetime": "MAXYEAR MINYEAR UTC date datetime time timedelta timezone tzinfo",
    "decimal": "BasicContext Clamped Context ConversionSyntax Decimal DecimalException "
    "DecimalTuple DefaultContext DivisionByZero DivisionImpossible DivisionUndefined "
    "ExtendedContext FloatOperation Inexact InvalidContext InvalidOperation MAX_EMAX MAX_PREC "
    "MIN_EMIN MIN_ETINY Overflow ROUND_05UP ROUND_CEILING ROUND_DOWN ROUND_FLOOR ROUND_HALF_DOWN "
    "ROUND_HALF_EVEN ROUND_HALF_UP ROUND_UP Rounded Subnormal Underflow getcontext localcontext "
    "setcontext",
    "difflib": "Differ IS_CHARACTER_JUNK IS_LINE_JUNK Match SequenceMatcher context_diff "
    "diff_bytes get_close_matches ndiff restore unified_diff",
    "enum": "CONFORM CONTINUOUS EJECT Enum EnumCheck Flag FlagBoundary IntEnum IntFlag KEEP "
    "NAMED_FLAGS STRICT StrEnum UNIQUE auto member nonmember property show_flag_values unique "
    "verify",
    "fractions": "Fraction",
    "functools": "Placeholder cache cached_property cmp_to_key lru_cache partial partialmethod "
    "reduce total_ordering wraps",
    "hashlib": "algorithms_available algorithms_guaranteed blake2b blake2s md5 new pbkdf2_hmac "
    "sha1 sha224 sha256 sha384 sha3_224 sha3_256 sha3_384 sha3_512 sha512 shake_128 shake_256",
    "heapq": "heapify heapify_max heappop heappop_max heappush heappush_max heappushpop "
    "heappushpop_max heapreplace heapreplace_max merge nlargest nsmallest",
    "inspect": "signature",
    "io": "StringIO",
    "itertools": "accumulate batched chain combinations combinations_with_replacement compress "
    "count cycle dropwhile filterfalse groupby islice pairwise permutations product repeat starmap "
    "takewhile tee zip_longest",
    "json": "JSONDecodeError JSONDecoder JSONEncoder dump dumps load loads",
    "math": "acos acosh asin asinh atan atan2 atanh cbrt ceil comb copysign cos cosh degrees dist "
    "e erf erfc exp exp2 expm1 fabs factorial floor fma fmod frexp fsum gamma gcd hypot inf "
    "isclose isfinite isinf isnan isqrt lcm ldexp lgamma log log10 log1p log2 modf nan nextafter "
    "perm pi pow prod radians remainder sin sinh sqrt sumprod tan tanh tau trunc ulp",
    "numbers": "Complex Integral Number Rational Real",
    "operator": "abs add and_ attrgetter concat contains countOf delitem eq floordiv ge getitem "
    "gt iadd iand iconcat ifloordiv ilshift imatmul imod imul index indexOf inv invert ior ipow "
    "irshift is_ is_none is_not is_not_none isub itemgetter itruediv ixor le length_hint lshift lt "
    "matmul methodcaller mod mul ne neg not_ or_ pos pow rshift setitem sub truediv truth xor",
    "pprint": "PrettyPrinter isreadable isrecursive pformat pp pprint saferepr",
    "queue": "Empty Full LifoQueue PriorityQueue Queue SimpleQueue",
    "random": "Random SystemRandom betavariate binomialvariate choice choices expovariate "
    "gammavariate gauss getrandbits getstate lognormvariate normalvariate paretovariate randbytes "
    "randint random randrange sample seed setstate shuffle triangular uniform vonmisesvariate "
    "weibullvariate",
    "re": "A ASCII DEBUG DOTALL I IGNORECASE L LOCALE M MULTILINE Match NOFLAG Pattern "
    "PatternError RegexFlag S U UNICODE VERBOSE X compile error escape findall finditer fullmatch "
    "match purge search split sub subn",
    "statistics": "LinearRegression NormalDist StatisticsError correlation covariance fmean "
    "geometric_mean harmonic_mean linear_regression mean median median_grouped median_high "
    "median_low mode multimode pstdev pvariance quantiles stdev variance",
    "string": "Formatter Template ascii_letters ascii_lowercase ascii_uppercase capwords digits "
    "hexdigits octdigits printable punctuation whitespace",
    "textwrap": "TextWrapper dedent fill indent shorten wrap",
    "time": "altzone asctime ctime daylight gmtime localtime mktime monotonic monotonic_ns "
    "perf_counter perf_counter_ns process_time process_time_ns sleep strftime strptime struct_time "
    "thread_time thread_time_ns time time_ns timezone tzname",
    "types": "BuiltinFunctionType FunctionType GeneratorType GenericAlias LambdaType "
    "MappingProxyType MethodType NoneType SimpleNamespace UnionType",
    "typing": "AbstractSet Annotated Any AnyStr ByteString Callable ChainMap ClassVar Collection "
    "Concatenate Container ContextManager Counter DefaultDict Deque Dict Final FrozenSet Generator "
    "Generic Hashable IO ItemsView Iterable Iterator KeysView List Literal LiteralString Mapping "
    "MappingView Match MutableMapping MutableSequence MutableSet NamedTuple Never NewType NoReturn "
    "NotRequired Optional OrderedDict ParamSpec Pattern Protocol ReadOnly Required Reversible Self "
    "Sequence Set Sized SupportsAbs SupportsBytes SupportsComplex SupportsFloat SupportsIndex "
    "SupportsInt SupportsRound TYPE_CHECKING Text TextIO Tuple Type TypeAlias TypeAliasType "
    "TypeGuard TypeIs TypeVar TypeVarTuple TypedDict Union Unpack ValuesView assert_never "
    "assert_type cast final get_origin is_typeddict no_type_check overload override reveal_type "
    "runtime_checkable",
    "uuid": "NAMESPACE_DNS NAMESPACE_OID NAMESPACE_URL NAMESPACE_X500 UUID getnode uuid1 uuid3 "
    "uuid4 uuid5",
    "zlib": "DEFLATED MAX_WBITS Z_BEST_COMPRESSION Z_BEST_SPEED Z_DEFAULT_COMPRESSION adler32 "
    "compress compressobj crc32 decompress decompressobj error",
    "spade_runtime": "authoring",
    "spade_runtime.authoring": "TextEnv ToolEnv Turn answers_match boxed call tool",
    "gem": "core utils Env",
    "gem.core": "ActType Env ObsType",
    "gem.utils": "constants parsing seeding",
    "gem.utils.constants": "TERMINAL_STATE LanguageGameReward",
    "gem.utils.parsing": "extract_code_from_model extract_last_boxed_answer "
    "extract_last_tagged_answer last_boxed_only_string remove_boxed",
    "gem.utils.seeding": "set_seed",
    "tool_use_base_env": "ToolUseBaseEnv",
}

# Modules of the list that are the contract's own: no package of that name is ever imported.
VIRTUAL_ROOTS = ("gem", "tool_use_base_env")

# Offered only where the zygote preloaded them: no loaders, no evaluators, no foreign memory.
OPTIONAL_MODULES: dict[str, str] = {
    "numpy": "False_ True_ abs absolute add all allclose amax amin angle any append "
    "apply_along_axis apply_over_axes arange arccos arccosh arcsin arcsinh arctan arctan2 arctanh "
    "argmax argmin argpartition argsort argwhere around array array2string array_equal array_equiv "
    "array_repr array_split array_str asanyarray asarray ascontiguousarray astype atleast_1d "
    "atleast_2d atleast_3d average base_repr binary_repr bincount bitwise_and bitwise_count "
    "bitwise_not bitwise_or bitwise_xor block bool bool_ broadcast_arrays broadcast_shapes "
    "broadcast_to byte bytes_ c_ cbrt ceil character choose clip column_stack complex128 complex64 "
    "complexfloating compress concat concatenate conj conjugate convolve copy copysign copyto "
    "corrcoef correlate cos cosh count_nonzero cov cross cumprod cumsum deg2rad degrees delete "
    "diag diag_indices diag_indices_from diagflat diagonal diff digitize divide divmod dot double "
    "dsplit dstack dtype e ediff1d einsum empty empty_like equal errstate euler_gamma exp exp2 "
    "expand_dims expm1 extract eye fabs fill_diagonal finfo fix flatnonzero flexible flip fliplr "
    "flipud float16 float32 float64 float_power floating floor floor_divide fmax fmin fmod "
    "format_float_positional format_float_scientific frexp frombuffer fromfunction fromiter "
    "fromstring full full_like gcd generic geomspace gradient greater greater_equal heaviside "
    "histogram histogram2d histogram_bin_edges histogramdd hsplit hstack hypot identity iinfo imag "
    "index_exp indices inexact inf inner insert int16 int32 int64 int8 int_ intc integer interp "
    "intersect1d intp invert isclose iscomplex iscomplexobj isfinite isin isinf isnan isneginf "
    "isposinf isreal isrealobj isscalar issubdtype iterable ix_ kron lcm left_shift less "
    "less_equal lexsort linspace log log10 log1p log2 logaddexp logical_and logical_not logical_or "
    "logical_xor logspace long longlong mask_indices matmul matrix max maximum mean median "
    "meshgrid mgrid min minimum mod modf moveaxis multiply nan nan_to_num nanargmax nanargmin "
    "nancumprod nancumsum nanmax nanmean nanmedian nanmin nanpercentile nanprod nanquantile nanstd "
    "nansum nanvar ndarray ndenumerate ndim ndindex negative newaxis nonzero not_equal number "
    "object_ ogrid ones ones_like outer packbits pad partition percentile permute_dims pi "
    "piecewise place poly poly1d polyadd polyder polyfit polyint polymul polysub polyval positive "
    "pow power printoptions prod promote_types ptp put put_along_axis putmask quantile r_ rad2deg "
    "radians ravel ravel_multi_index real real_if_close reciprocal remainder repeat reshape resize "
    "result_type right_shift rint roll rollaxis roots rot90 round row_stack s_ searchsorted select "
    "set_printoptions setdiff1d seterr setxor1d shape short sign signbit signedinteger sin sinc "
    "single sinh size sort split sqrt square squeeze stack std str_ subtract sum swapaxes take "
    "take_along_axis tan tanh tensordot tile trace transpose trapezoid tri tril tril_indices "
    "tril_indices_from trim_zeros triu triu_indices triu_indices_from true_divide trunc ubyte "
    "ufunc uint uint16 uint32 uint64 uint8 uintc uintp ulong ulonglong union1d unique unpackbits "
    "unravel_index unsignedinteger unwrap ushort vander var vdot vectorize void vsplit vstack "
    "where zeros zeros_like",
    "numpy.random": "Generator MT19937 PCG64 Philox RandomState SFC64 SeedSequence beta binomial "
    "bytes chisquare choice default_rng dirichlet exponential f gamma geometric get_state gumbel "
    "hypergeometric laplace logistic lognormal logseries multinomial multivariate_normal "
    "negative_binomial noncentral_chisquare noncentral_f normal pareto permutation poisson power "
    "rand randint randn random random_integers random_sample ranf rayleigh sample seed set_state "
    "shuffle standard_cauchy standard_exponential standard_gamma standard_normal standard_t "
    "triangular uniform vonmises wald weibull zipf",
    "numpy.linalg": "LinAlgError cholesky cond cross det diagonal eig eigh eigvals eigvalsh inv "
    "lstsq matmul matrix_norm matrix_power matrix_rank matrix_transpose multi_dot norm outer pinv "
    "qr slogdet solve svd svdvals tensordot tensorinv tensorsolve trace vecdot vector_norm",
    "numpy.fft": "fft fft2 fftfreq fftn fftshift ifft ifft2 ifftn ifftshift irfft irfft2 rfft "
    "rfft2 rfftfreq",
    "numpy.typing": "ArrayLike DTypeLike NDArray",
    "networkx": "DiGraph Graph MultiDiGraph MultiGraph HasACycle NetworkXAlgorithmError "
    "NetworkXError NetworkXException NetworkXNoCycle NetworkXNoPath NetworkXNotImplemented "
    "NetworkXPointlessConcept NetworkXUnbounded NetworkXUnfeasible NodeNotFound NotATree add_cycle "
    "add_path add_star adjacency_matrix all_neighbors all_pairs_bellman_ford_path_length "
    "all_pairs_dijkstra all_pairs_dijkstra_path all_pairs_dijkstra_path_length "
    "all_pairs_shortest_path all_pairs_shortest_path_length all_shortest_paths "
    "all_simple_edge_paths all_simple_paths all_topological_sorts ancestors articulation_points "
    "astar_path astar_path_length average_clustering average_shortest_path_length balanced_tree "
    "barabasi_albert_graph barbell_graph bellman_ford_path bellman_ford_path_length "
    "betweenness_centrality bfs_edges bfs_layers bfs_predecessors bfs_successors bfs_tree "
    "biconnected_components bidirectional_dijkstra bidirectional_shortest_path binomial_tree "
    "bridges bull_graph cartesian_product caveman_graph center check_planarity "
    "chordless_cycles chvatal_graph circulant_graph circular_ladder_graph closeness_centrality "
    "clustering common_neighbors complement complete_bipartite_graph complete_graph "
    "complete_multipartite_graph compose compose_all condensation connected_components "
    "connected_watts_strogatz_graph contracted_edge contracted_nodes "
    "convert_node_labels_to_integers core_number cost_of_flow could_be_isomorphic "
    "create_empty_copy cubical_graph cut_size cycle_basis cycle_graph dag_longest_path "
    "dag_longest_path_length degree degree_centrality degree_histogram dense_gnm_random_graph "
    "density desargues_graph descendants descendants_at_distance dfs_edges dfs_postorder_nodes "
    "dfs_predecessors dfs_preorder_nodes dfs_successors dfs_tree diameter diamond_graph difference "
    "dijkstra_path dijkstra_path_length dijkstra_predecessor_and_distance disjoint_union "
    "disjoint_union_all dodecahedral_graph dominating_set eccentricity edge_betweenness_centrality "
    "edge_connectivity edge_dfs edge_disjoint_paths edges edge_subgraph ego_graph "
    "eigenvector_centrality empty_graph enumerate_all_cliques erdos_renyi_graph eulerian_circuit "
    "eulerian_path eulerize fast_gnp_random_graph find_cliques find_cycle find_negative_cycle "
    "floyd_warshall floyd_warshall_predecessor_and_distance freeze from_dict_of_dicts "
    "from_dict_of_lists from_edgelist from_numpy_array from_prufer_sequence frucht_graph "
    "full_rary_tree generic_bfs_edges get_edge_attributes get_node_attributes girth gn_graph "
    "gnm_random_graph gnp_random_graph gomory_hu_tree greedy_color grid_2d_graph grid_graph "
    "has_bridges has_eulerian_path has_path heawood_graph hits house_graph hypercube_graph "
    "icosahedral_graph immediate_dominators in_degree_centrality induced_subgraph intersection "
    "is_arborescence is_biconnected is_bipartite is_chordal is_connected is_directed "
    "is_directed_acyclic_graph is_dominating_set is_edge_cover is_empty is_eulerian is_forest "
    "is_graphical is_isolate is_isomorphic is_k_edge_connected is_k_regular is_matching "
    "is_maximal_matching is_negatively_weighted is_path is_perfect_matching is_planar is_regular "
    "is_semieulerian is_simple_path is_strongly_connected is_tournament is_tree "
    "is_weakly_connected is_weighted isolates k_core karate_club_graph krackhardt_kite_graph "
    "ladder_graph laplacian_matrix lexicographical_topological_sort line_graph lollipop_graph "
    "lowest_common_ancestor max_flow_min_cost max_weight_clique max_weight_matching "
    "maximal_independent_set maximal_matching maximum_flow maximum_flow_value "
    "maximum_spanning_edges maximum_spanning_tree min_cost_flow min_cost_flow_cost min_edge_cover "
    "min_weight_matching minimum_cut minimum_cut_value minimum_cycle_basis minimum_edge_cut "
    "minimum_node_cut minimum_spanning_edges minimum_spanning_tree multi_source_dijkstra "
    "multi_source_dijkstra_path multi_source_dijkstra_path_length negative_edge_cycle neighbors "
    "network_simplex newman_watts_strogatz_graph node_connectivity node_disjoint_paths nodes "
    "nodes_with_selfloops non_edges non_neighbors null_graph number_connected_components "
    "number_of_edges number_of_isolates number_of_nodes number_of_selfloops "
    "number_of_spanning_trees number_strongly_connected_components "
    "number_weakly_connected_components octahedral_graph "
    "out_degree_centrality pagerank path_graph path_weight periphery petersen_graph "
    "powerlaw_cluster_graph predecessor prefix_tree quotient_graph radius random_geometric_graph "
    "random_labeled_tree random_regular_graph random_spanning_tree random_unlabeled_tree "
    "reconstruct_path relabel_nodes relaxed_caveman_graph reverse ring_of_cliques "
    "selfloop_edges set_edge_attributes set_node_attributes shortest_path shortest_path_length "
    "shortest_simple_paths simple_cycles single_source_bellman_ford "
    "single_source_bellman_ford_path single_source_bellman_ford_path_length single_source_dijkstra "
    "single_source_dijkstra_path single_source_dijkstra_path_length single_source_shortest_path "
    "single_source_shortest_path_length single_target_shortest_path star_graph stoer_wagner "
    "strongly_connected_components subgraph sudoku_graph symmetric_difference tadpole_graph "
    "to_dict_of_dicts to_dict_of_lists to_directed to_edgelist to_numpy_array to_prufer_sequence "
    "to_undirected topological_generations topological_sort transitive_closure "
    "transitive_reduction transitivity triangles trivial_graph turan_graph union union_all "
    "watts_strogatz_graph weakly_connected_components wheel_graph wiener_index windmill_graph",
    "networkx.algorithms": "approximation bipartite community flow isomorphism",
    "networkx.algorithms.approximation": "christofides clique_removal diameter greedy_tsp "
    "large_clique_size max_clique maximum_independent_set metric_closure min_edge_dominating_set "
    "min_maximal_matching min_weighted_dominating_set min_weighted_vertex_cover node_connectivity "
    "simulated_annealing_tsp steiner_tree threshold_accepting_tsp traveling_salesman_problem",
    "networkx.algorithms.bipartite": "average_clustering biadjacency_matrix clustering color "
    "complete_bipartite_graph configuration_model degrees density eppstein_matching "
    "gnmk_random_graph hopcroft_karp_matching is_bipartite is_bipartite_node_set maximum_matching "
    "min_edge_cover minimum_weight_full_matching projected_graph random_graph sets "
    "to_vertex_cover weighted_projected_graph",
    "networkx.algorithms.community": "girvan_newman greedy_modularity_communities is_partition "
    "k_clique_communities kernighan_lin_bisection label_propagation_communities "
    "louvain_communities modularity partition_quality",
    "networkx.algorithms.flow": "build_residual_network capacity_scaling cost_of_flow dinitz "
    "edmonds_karp max_flow_min_cost maximum_flow maximum_flow_value min_cost_flow "
    "min_cost_flow_cost minimum_cut minimum_cut_value network_simplex preflow_push "
    "shortest_augmenting_path",
    "networkx.algorithms.isomorphism": "DiGraphMatcher GraphMatcher could_be_isomorphic "
    "fast_could_be_isomorphic faster_could_be_isomorphic is_isomorphic numerical_edge_match "
    "numerical_node_match rooted_tree_isomorphism tree_isomorphism vf2pp_isomorphism "
    "vf2pp_is_isomorphic",
}

# Modules that stand in an environment's namespace without an import (contract.md section 1).
STANDING_MODULES = words(
    "random math re json string itertools functools collections copy heapq bisect operator "
    "statistics datetime"
)
# Names that stand there: module -> names.
STANDING_NAMES: dict[str, str] = {
    "spade_runtime.authoring": "TextEnv ToolEnv tool Turn call answers_match",
    "dataclasses": "dataclass",
    "enum": "Enum",
    "typing": "AbstractSet Annotated Any AnyStr Callable ChainMap ClassVar Collection Container "
    "ContextManager Counter DefaultDict Deque Dict Final FrozenSet Generator Generic Hashable "
    "Iterable Iterator List Literal Mapping Match MutableMapping MutableSequence MutableSet "
    "NamedTuple Never NewType NoReturn NotRequired Optional OrderedDict Pattern Protocol Required "
    "Self Sequence Set Sized Text Tuple Type TypeAlias TypeVar TypedDict Union cast final overload",
}
# What the publicly released environment pools use without importing it, beyond the above.
PUBLISHED_NAMES: dict[str, str] = {
    "tool_use_base_env": "ToolUseBaseEnv",
    "": "time uuid hashlib textwrap decimal fractions calendar base64 enum dataclasses typing abc "
    "array ast cmath contextlib difflib io numbers pprint queue zlib types",
    "abc": "ABC abstractmethod",
    "collections": "ChainMap Counter OrderedDict defaultdict deque namedtuple",
    "copy": "deepcopy",
    "dataclasses": "dataclass field asdict",
    "datetime": "timedelta timezone date",
    "decimal": "Decimal",
    "enum": "Enum IntEnum Flag auto",
    "fractions": "Fraction",
    "functools": "lru_cache partial reduce wraps cached_property",
    "heapq": "heapify heappop heappush heapreplace nlargest nsmallest",
    "bisect": "bisect_left bisect_right insort",
    "itertools": "accumulate chain combinations count cycle groupby islice permutations product "
    "zip_longest",
    "math": "ceil floor sqrt gcd comb factorial inf pi isqrt log",
    "random": "choice choices randint sample shuffle uniform",
    "statistics": "mean median",
    "string": "ascii_letters ascii_lowercase ascii_uppercase digits",
}

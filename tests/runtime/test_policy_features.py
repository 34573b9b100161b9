"""What ordinary environment code uses passes the policy, compiles, and runs among the views."""

# Snippets of code stand on one line each.
# ruff: noqa: E501

import sys
import textwrap

import pytest

from spade_runtime.entropy import Entropy
from spade_runtime.policy import check
from spade_runtime.views import namespace

# name -> source; each defines `result`, and the value it must have.
FEATURES = {
    "underscore attributes": ("class A:\n  def __init__(self): self._x = 3\nresult = A()._x", 3),
    "private attributes": (
        "class A:\n  def __init__(self): self.__x = 4\n  def get(self): return self.__x\nresult = A().get()",
        4,
    ),
    "underscore names": ("_K = 2\ndef _f(_a): return _a + _K\nfor _ in range(2): pass\nresult = _f(1)", 3),
    "augmented": ("d = {'a': [1]}\nd['a'][0] += 4\nd['a'] += [2]\nresult = d['a']", [5, 2]),
    "annotated": ("class A:\n  n: int = 3\n  m: str\na: int = 2\nresult = A.n + a", 5),
    "super": (
        "class A:\n  def __init__(self, n): self.n = n\nclass B(A):\n"
        "  def __init__(self): super().__init__(n=3)\nresult = B().n",
        3,
    ),
    "super with arguments": (
        "class A:\n  def f(self): return 1\nclass B(A):\n  def f(self): return super(B, self).f() + 1\n"
        "result = B().f()",
        2,
    ),
    "dunder methods": (
        "class V:\n  def __init__(self, x): self.x = x\n  def __add__(self, o): return V(self.x + o.x)\n"
        "  def __radd__(self, o): return self\n  def __eq__(self, o): return self.x == o.x\n"
        "  def __hash__(self): return hash(self.x)\n  def __lt__(self, o): return self.x < o.x\n"
        "  def __repr__(self): return f'V({self.x})'\n  __str__ = __repr__\n  def __len__(self): return 3\n"
        "  def __getitem__(self, i): return i\n  def __iter__(self): return iter([1])\n"
        "  def __call__(self): return 9\n  def __bool__(self): return True\n  def __contains__(self, k): return k == 1\n"
        "  def __enter__(self): return self\n  def __exit__(self, *a): return False\n"
        "with V(1) as v: pass\nresult = (repr(v + V(2)), len(v), v[5], list(v), v(), 1 in v, sorted([V(2), v])[0].x)",
        ("V(3)", 3, 5, [1], 9, True, 1),
    ),
    "iterator": (
        "class C:\n  def __init__(self): self.n = 0\n  def __iter__(self): return self\n"
        "  def __next__(self):\n    self.n += 1\n    if self.n > 3: raise StopIteration\n    return self.n\nresult = list(C())",
        [1, 2, 3],
    ),
    "dataclass": (
        "from dataclasses import dataclass, field, asdict, replace\n@dataclass(order=True)\nclass P:\n  x: int\n"
        "  tags: list = field(default_factory=list)\n  def __post_init__(self): self.x += 1\n"
        "result = (asdict(P(1)), P(1) < P(2), repr(replace(P(1), x=5)))",
        ({"x": 2, "tags": []}, True, "P(x=6, tags=[])"),
    ),
    "frozen slots dataclass": (
        "@dataclass(frozen=True, slots=True)\nclass P:\n  x: int = 2\ntry:\n  P().x = 3\nexcept Exception as e:\n"
        "  result = type(e).__name__",
        "FrozenInstanceError",
    ),
    "dataclass inheritance": (
        "@dataclass\nclass A:\n  x: int = 1\n@dataclass\nclass B(A):\n  y: int = 2\nresult = B(3)",
        "B(x=3, y=2)",
    ),
    "dataclass with future annotations": (
        "from __future__ import annotations\nfrom dataclasses import dataclass\nfrom typing import ClassVar\n"
        "@dataclass\nclass P:\n  x: int = 1\n  k: ClassVar[int] = 2\nresult = P()",
        "P(x=1)",
    ),
    "enum": (
        "from enum import Enum, IntEnum, auto\nclass C(Enum):\n  RED = 'r'\n  BLUE = 'b'\n  @property\n"
        "  def low(self): return self.value\nclass N(IntEnum):\n  A = auto()\n  B = auto()\n"
        "result = (C('r').name, C['BLUE'].low, [c.value for c in C], N.B + 1, len(C), C.RED in C)",
        ("RED", "b", ["r", "b"], 3, 2, True),
    ),
    "mixed enums": (
        "import enum\nclass C(str, Enum):\n  R = 'r'\nclass N(enum.IntEnum):\n  A = 1\n  B = 2\n"
        "class S(enum.StrEnum):\n  X = enum.auto()\n@enum.unique\nclass D(Enum):\n  UP = (0, 1)\n  DOWN = (0, -1)\n"
        "  def __init__(self, dx, dy): self.dx = dx; self.dy = dy\n  @classmethod\n  def _missing_(cls, v): return cls.UP\n"
        "result = (C.R == 'r', str(N.A), f'{N.B}', sorted([N.B, N.A])[0], json.dumps(N.B), str(S.X), D.DOWN.dy, D('?').name,"
        " copy.deepcopy(D.UP) is D.UP, repr(C.R), isinstance(C.R, Enum), {C.R: 1}[C.R], list(D.__members__))",
        (True, "1", "2", 1, "2", "x", -1, "UP", True, "<C.R: 'r'>", True, 1, ["UP", "DOWN"]),
    ),
    "functional enum": ("E = Enum('E', 'a b')\nresult = E.b.value", 2),
    "flag": ("from enum import Flag, auto\nclass F(Flag):\n  A = auto()\n  B = auto()\nresult = (F.A | F.B).value", 3),
    "namedtuple": (
        "from typing import NamedTuple\nclass P(NamedTuple):\n  x: int\n  y: int = 2\nQ = collections.namedtuple('Q', 'a b')\n"
        "result = (P(1)._replace(y=3), Q(1, 2)._asdict())",
        ((1, 3), {"a": 1, "b": 2}),
    ),
    "match": (
        "def f(x):\n  match x:\n    case 0: return 'zero'\n    case [a, *rest]: return len(rest)\n"
        "    case {'k': v, **more}: return (v, more)\n    case str() as s if s: return s.upper()\n"
        "    case int(n) | float(n): return n\n    case None | True: return 'none'\n    case _: return 'else'\n"
        "result = [f(x) for x in (0, [1, 2], {'k': 1, 'z': 2}, 'go', 2.5, None, b'')]",
        ["zero", 1, (1, {"z": 2}), "GO", 2.5, "none", "else"],
    ),
    "match on a dataclass": (
        "@dataclass\nclass P:\n  x: int\n  y: int\nmatch P(1, 2):\n  case P(1, y=q): result = q", 2
    ),
    "match on names that have guards": (
        "class K(Enum):\n  format = 1\n  obj = 2\nclass N:\n  class format:\n    x = 3\n"
        "match K.obj:\n  case K.format: result = 1\n  case K.obj: result = 2\n"
        "match N.format():\n  case N.format(x=3): result += 5",
        7,
    ),
    "match on guarded names by condition": (
        "class K(Enum):\n  format = 1\n  obj = 2\ndef f(k, ok):\n  match k:\n"
        "    case K.format if ok: return 'f'\n    case K.obj: return k.obj.name\n    case _: return 0\n"
        "result = [f(K.format, True), f(K.format, False), f(K.obj, False)]", ["f", 0, "obj"]
    ),
    "a method of one's own that evaluates": (
        "class A:\n  def _evaluate(self, x): return x + 1\n  def evaluate(self, x): return self._evaluate(x)\n"
        "a = A()\nf = a._evaluate\nresult = [a.evaluate(1), f(2), getattr(a, '_evaluate')(3), A._evaluate(a, 4)]",
        [2, 3, 4, 5]
    ),
    "augmented assignment of guarded names": (
        "class A:\n  obj = 1\n  format = [1]\na = A()\na.obj += 2\na.obj **= 2\nb = a.format\na.format += [2]\n"
        "result = [a.obj, a.format, b is a.format, A.obj]", [9, [1, 2], True, 1]
    ),
    "a field named format": (
        "import dataclasses\n@dataclass\nclass A:\n  format: str = 'pdf'\nclass S(str): pass\n"
        "result = [dataclasses.asdict(A()), S('{}').format(1), A('png').format]", [{"format": "pdf"}, "1", "png"]
    ),
    "walrus": ("result = [y for x in range(4) if (y := x * x) > 3]", [4, 9]),
    "lambda": ("f = lambda x, *a, k=2, **kw: x + k\nresult = f(1)", 3),
    "nonlocal and global": (
        "n = 0\ndef f():\n  global n\n  n = 2\n  m = 1\n  def g():\n    nonlocal m\n    m += n\n  g()\n  return m\nresult = f()",
        3,
    ),
    "generators": ("def g():\n  x = yield 1\n  yield from (2, 3)\nresult = list(g())", [1, 2, 3]),
    "comprehensions": (
        "result = ([i for i in range(3) if i], {i: j for i, j in [(1, 2)]}, {1, 1}, sum(i for i in (1, 2)))",
        ([1, 2], {1: 2}, {1}, 3),
    ),
    "unpacking": ("a, (b, *c) = 1, (2, 3, 4)\ndef f(*a, **k): return (a, k)\nresult = f(*c, **{'z': b})", ((3, 4), {"z": 2})),
    "try": (
        "def f():\n  try:\n    return [][1]\n  except (IndexError, KeyError) as e:\n    return str(e)\n"
        "  except Exception:\n    raise\n  else:\n    pass\n  finally:\n    pass\nresult = f()",
        "list index out of range",
    ),
    "bare except": ("try:\n  1 / 0\nexcept:\n  result = 1", 1),
    "raise from": (
        "class Oops(ValueError): pass\ntry:\n  try:\n    int('x')\n  except ValueError as e:\n    raise Oops('bad') from e\n"
        "except Oops as o:\n  result = o.args",
        ("bad",),
    ),
    "assert and del": ("x = [1, 2]\ndel x[0]\nassert x == [2], 'no'\nresult = x", [2]),
    "while true": ("n = 0\nwhile True:\n  n += 1\n  if n > 5: break\nelse:\n  n = 0\nresult = n", 6),
    "properties": (
        "class A:\n  def __init__(self): self._n = 1\n  @property\n  def n(self): return self._n\n"
        "  @n.setter\n  def n(self, v): self._n = v\n  @staticmethod\n  def s(x): return x\n"
        "  @classmethod\n  def make(cls): return cls()\na = A.make()\na.n = 5\nresult = a.n + A.s(1)",
        6,
    ),
    "computed attributes": (
        "class A: pass\na = A()\nfor k, v in {'x': 1, '_y': 2}.items(): setattr(a, k, v)\n"
        "result = (getattr(a, 'x'), getattr(a, '_y'), getattr(a, 'z', 7), hasattr(a, 'q'), hasattr(a, '__len__'))",
        (1, 2, 7, False, False),
    ),
    "getattr of a method": (
        "class A:\n  def do_go(self): return 'went'\nresult = getattr(A(), 'do_' + 'go')()", "went"
    ),
    "type": (
        "class A: pass\nresult = (type(A()).__name__, type(3) is int, type('a') == str, isinstance(A, type), A.__name__)",
        ("A", True, True, True, "A"),
    ),
    "type everywhere": (
        "class A:\n  def twin(self): return type(self)()\nx = A().twin()\n"
        "result = (isinstance(x, A), type(x) is A, type(3) in (int, float), list(map(type, (1, 'a'))) == [int, str],"
        " {type(1): 'n'}[int], issubclass(type(x), A), isinstance(type, type), callable(type), (type | None) is not None)",
        (True, True, True, True, "n", True, True, True, True),
    ),
    "type in annotations": ("def f(k: type[int], t: type = int) -> type: return k\nresult = f(int)(3)", 3),
    "str.format": (
        "t = '{0} {name:>4} {d[k]} {o.x}'\nclass O: x = 1\n"
        "result = (t.format(1, name='a', d={'k': 2}, o=O()), '{:.2f}|{:{w}}'.format(1.5, 'a', w=3), '{a}'.format_map({'a': 1}),"
        " list(map('{}'.format, [1])), str.format('{}', 2))",
        ("1    a 2 1", "1.50|a  ", "1", ["1"], "2"),
    ),
    "own format method": (
        "class Card:\n  def format(self, n): return n + 1\n  obj = 4\nresult = (Card().format(1), Card().obj)",
        (2, 4),
    ),
    "f-strings": ("x = 3.14159\nw = 8\nresult = f'{x:{w}.2f}|{x!r}|{x=:.1f}|{\"a\" if x else 1}'", "    3.14|3.14159|x=3.1|a"),
    "percent": ("result = '%s %03d %(a)s' % {'a': 1} if 0 else '%s %03d' % ('a', 7)", "a 007"),
    "global random": (
        "random.seed(5)\na = random.randint(1, 10**6)\nrandom.seed(5)\nresult = random.randint(1, 10**6) == a",
        True,
    ),
    "own random": ("rng = random.Random(7)\nresult = rng.random() == random.Random(7).random()", True),
    "imports": (
        "import abc, array, base64, bisect, calendar, cmath, decimal, difflib, fractions, hashlib, heapq, numbers\n"
        "import collections.abc, pprint, queue, statistics, string, textwrap, types, zlib, contextlib, io, copy as cp\n"
        "from inspect import signature\nfrom typing import Optional, List\n"
        "result = (len(hashlib.sha256(b'').hexdigest()), calendar.monthrange(2024, 2)[1], io.StringIO('a').read(),"
        " list(signature(lambda a, b=1: 0).parameters), isinstance([], collections.abc.Sequence),"
        " base64.b64encode(b'a').decode(), cp.deepcopy([1]), array.array('i', [1])[0])",
        (64, 29, "a", ["a", "b"], True, "YQ==", [1], 1),
    ),
    "names without import": (
        "result = (deque_type.__name__, math.gcd(4, 6), re.sub('a', 'b', 'aa'), json.dumps({'a': 1}), Optional[int] is not None)"
        .replace("deque_type", "collections.deque"),
        ("deque", 2, "bb", '{"a": 1}', True),
    ),
    "explicit authoring import": (
        "from spade_runtime.authoring import TextEnv as Base, ToolEnv, tool, Turn, call\nimport spade_runtime.authoring as sa\n"
        "result = (issubclass(ToolEnv, object), sa.TextEnv is Base, Base is TextEnv)",
        (True, True, True),
    ),
    "functools": (
        "@functools.lru_cache(maxsize=None)\ndef f(n): return n if n < 2 else f(n - 1) + f(n - 2)\n"
        "def deco(g):\n  @functools.wraps(g)\n  def inner(*a): return g(*a) + 1\n  return inner\n"
        "@deco\ndef h(x): 'doc'; return x\nresult = (f(20), h(1), h.__name__, h.__doc__, functools.reduce(operator.add, [1, 2]))",
        (6765, 2, "h", "doc", 3),
    ),
    "operator": (
        "class A:\n  def __init__(self, n): self.n = n\n  def add(self, k): return self.n + k\n"
        "xs = [A(2), A(1)]\nresult = (sorted(xs, key=operator.attrgetter('n'))[0].n, operator.itemgetter(1)([1, 2]),"
        " operator.methodcaller('add', 4)(xs[0]))",
        (1, 2, 6),
    ),
    "abc": (
        "from abc import ABC, abstractmethod\nclass A(ABC):\n  @abstractmethod\n  def f(self): ...\n"
        "class B(A):\n  def f(self): return 1\ntry:\n  A()\nexcept TypeError:\n  result = B().f()",
        1,
    ),
    "protocol and generic": (
        "T = TypeVar('T')\nclass S(Generic[T]):\n  def __init__(self): self.items: List[T] = []\nresult = S[int]().items", []
    ),
    "literal_eval": ("import ast\nresult = ast.literal_eval('[1, (2, 3)]')", [1, (2, 3)]),
    "ast calculator": (
        "import ast\ndef ev(n):\n  if isinstance(n, ast.BinOp): return ev(n.left) + ev(n.right)\n  return n.value\n"
        "result = ev(ast.parse('1 + 2', mode='eval').body)",
        3,
    ),
    "context manager": (
        "from contextlib import contextmanager, suppress\n@contextmanager\ndef c():\n  yield 3\n"
        "with c() as x, suppress(KeyError): {}['a']\nresult = x",
        3,
    ),
    "descriptors": (
        "class D:\n  def __set_name__(self, owner, name): self.k = '_' + name\n"
        "  def __get__(self, o, t=None): return getattr(o, self.k)\n  def __set__(self, o, v): setattr(o, self.k, v)\n"
        "class A:\n  x = D()\na = A()\na.x = 3\nresult = a.x",
        3,
    ),
    "slots": ("class A:\n  __slots__ = ('x',)\na = A()\na.x = 1\nresult = (A.__slots__, a.x)", (("x",), 1)),
    "module dunders": ("__all__ = ['X']\n__version__ = '1'\n__author__ = 'me'\nresult = (__name__, __file__)", ("environment", "environment.py")),
    "main guard": (
        "import sys\ndef helper(): return input('?')\ndef main():\n  print(helper()); sys.exit(0)\n"
        "result = 1\nif __name__ == '__main__':\n  import os\n  os.system('x'); main()",
        1,
    ),
    "type checking block": (
        "from __future__ import annotations\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n  from pathlib import Path\n"
        "def f(p: Path) -> int: return 1\nresult = f(0)",
        1,
    ),
    "shadowed builtins": (
        "def f(input, open=2):\n  return input + open\nclass A:\n  def compile(self): return 1\n"
        "vars = {'a': 1}\nresult = (f(1), A().compile(), vars['a'])",
        (3, 1, 1),
    ),
    "re.compile": ("result = re.compile('a+').findall('aab')", ["aa"]),
    "non-ascii": ("größe = 'naïve – ✓'\nresult = größe", "naïve – ✓"),
    "bytes": ("result = (bytes([65]).decode(), bytearray(b'a')[0], 'é'.encode('utf-8'))", ("A", 97, b"\xc3\xa9")),
    "singleton": (
        "class S:\n  _one = None\n  def __new__(cls):\n    if cls._one is None: cls._one = super().__new__(cls)\n    return cls._one\n"
        "result = S() is S()",
        True,
    ),
    "enum with __new__": (
        "class P(Enum):\n  A = (1, 'x')\n  def __new__(cls, n, label):\n    o = object.__new__(cls)\n    o._value_ = n\n"
        "    o.label = label\n    return o\nresult = P.A.label",
        "x",
    ),
    "init_subclass": (
        "class B:\n  kinds = []\n  def __init_subclass__(cls, **k): super().__init_subclass__(**k); B.kinds.append(cls.__name__)\n"
        "class C(B): pass\nresult = B.kinds",
        ["C"],
    ),
    "simple namespace": ("import types\nn = types.SimpleNamespace(a=1)\nn.b = 2\nresult = (n.a + n.b, repr(n))", (3, "namespace(a=1, b=2)")),
    "sort with key": ("result = sorted({'a': 2, 'b': 1}.items(), key=lambda kv: kv[1])", [("b", 1), ("a", 2)]),
    "typed dict": ("class T(TypedDict, total=False):\n  a: int\nresult = T(a=1)", {"a": 1}),
    "decimal and fraction": (
        "from decimal import Decimal, getcontext, ROUND_HALF_UP\nfrom fractions import Fraction\n"
        "result = (str(Decimal('1.005').quantize(Decimal('.01'), ROUND_HALF_UP)), str(Fraction(3, 6)))",
        ("1.01", "1/2"),
    ),
    "imports of C code": (
        "import time, datetime as dt\nfrom decimal import Decimal\n"
        "result = (dt.datetime.strptime('2024-02-03', '%Y-%m-%d').day, time.strptime('12:30', '%H:%M').tm_min,"
        " dt.date(2024, 1, 5).strftime('%a'), hash(Decimal('1.5')) == hash(1.5), copy.copy(iter([1])).__next__())",
        (3, 30, "Fri", True, 1),
    ),
    "own attributes with guarded names": (
        "class A:\n  def __init__(self): self.obj = 1; self.format = 'x'\na = A()\na.obj += 1\na.format, b = 'y', 2\n"
        "del a.obj\nresult = (a.format, hasattr(a, 'obj'), getattr(a, 'format'))",
        ("y", False, "y"),
    ),
    "print": ("print('x', end='')\nresult = 1", 1),
}  # fmt: skip


@pytest.mark.parametrize("name", FEATURES)
def test_feature_passes_and_runs(name):
    source, expected = FEATURES[name]
    result = check(source)
    assert [f for f in result.findings if f.code != "SPD105"] == []
    assert result.code is not None
    found = namespace(Entropy(), policy=True)
    exec(result.code, found)
    value = found["result"]
    assert (
        repr(value) if isinstance(expected, str) and not isinstance(value, str) else value
    ) == expected


@pytest.mark.skipif(sys.version_info < (3, 12), reason="syntax of Python 3.12")
def test_type_parameters():
    source = (
        "type A[T] = list[T]\nclass S[T]:\n  x: T\ndef f[K](a: K) -> K: return a\nresult = f(2)"
    )
    result = check(source)
    assert result.findings == []
    found = namespace(Entropy(), policy=True)
    exec(result.code, found)
    assert found["result"] == 2


def test_plain_namespace_runs_the_same_and_hides_nothing():
    found = namespace(Entropy(), policy=False)
    exec("import os, sys\nresult = (os.sep, random.Random(3).random())", found)
    assert found["result"][0] == "/"


def test_numpy_and_networkx_run_in_the_guarded_namespace():
    pytest.importorskip("numpy")
    pytest.importorskip("networkx")
    source = (
        "import numpy as np\nimport networkx as nx\nfrom numpy.linalg import det\n"
        "from networkx.algorithms import bipartite\n"
        "grid = np.arange(9).reshape(3, 3)\ng = nx.path_graph(5)\n"
        "result = (int(grid.sum()), float(grid.mean()), int(grid.max()), np.argwhere(grid > 7).tolist(),"
        " round(float(det(np.eye(2)))), nx.shortest_path(g, 0, 4), nx.is_connected(g),"
        " str(np.array([1.5, 2])), np.zeros((2, 2)).any(), np.clip(5, 0, 3).item(),"
        " np.unique([1, 1, 2]).tolist(), list(nx.topological_sort(nx.DiGraph([(1, 2)]))),"
        " bipartite.is_bipartite(g), nx.algorithms.isomorphism.is_isomorphic(g, g))"
    )
    result = check(source)
    assert result.findings == [] and result.uses == {"numpy", "networkx"}
    found = namespace(Entropy(real_generators=True), policy=True)
    exec(result.code, found)
    assert found["result"] == (
        36, 4.0, 8, [[2, 2]], 1, [0, 1, 2, 3, 4], True, "[1.5 2. ]", False, 3, [1, 2], [1, 2], True, True,
    )  # fmt: skip


def test_a_whole_environment_runs():
    source = textwrap.dedent(
        '''
        class CountEnv(TextEnv):
            """Add two numbers."""

            skill = "mathematical_reasoning"

            def reset(self, seed=None):
                self.rng = random.Random(seed)
                self.pair = [self.rng.randint(1, 99) for _ in range(2)]
                return "Add {} and {}.".format(*self.pair), {}

            def step(self, action):
                good = answers_match(action, sum(self.pair))
                return "Right." if good else "Wrong.", float(good), True, False, {}
        '''
    )
    result = check(source)
    found = namespace(Entropy(), policy=True)
    exec(result.code, found)
    env = found["CountEnv"]()
    first, info = env.reset(seed=4)
    assert first.startswith("Add ") and info == {}
    assert env.step(str(sum(env.pair)))[1] == 1.0

# ruff: noqa: E501, SIM905
"""The curated modules: what they hold, what they hide, and how they are imported."""

import importlib
import subprocess
import sys
import types
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spade_runtime.curated import (
    MODULES,
    OPTIONAL_MODULES,
    STANDING_MODULES,
    STANDING_NAMES,
    VIRTUAL_ROOTS,
)
from spade_runtime.entropy import Entropy
from spade_runtime.guards import PolicyViolation
from spade_runtime.policy import check
from spade_runtime.views import MODULE_NAME, exists_but_hidden, names_of, namespace, offered

REAL = [name for name in MODULES if name.partition(".")[0] not in VIRTUAL_ROOTS]
# Names of the tables that only some of the supported Python versions have.
VERSIONED = set(
    "Buffer Day JANUARY FEBRUARY MARCH APRIL MAY JUNE JULY AUGUST SEPTEMBER OCTOBER NOVEMBER "
    "DECEMBER Month Placeholder PatternError ReadOnly TypeAliasType TypeIs UTC batched "
    "binomialvariate fma heapify_max heappop_max heappush_max heappushpop_max heapreplace_max "
    "is_none is_not_none override replace sumprod z85decode z85encode Num Str ByteString Text "
    "abstractclassmethod abstractproperty abstractstaticmethod no_type_check".split()
)


def view(name, *, policy=True):
    found = namespace(Entropy(), policy=policy)
    return found["__builtins__"]["__import__"](name, None, None, ("x",), 0)


@pytest.mark.parametrize("name", REAL)
def test_every_listed_name_exists(name):
    real = importlib.import_module(name)
    made = view(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        missing = {item for item in names_of(name) if not hasattr(real, item)}
    assert missing <= VERSIONED
    # Without the filter: what a view gives, it gives without a warning.
    assert all(hasattr(made, item) for item in names_of(name) - missing)


@pytest.mark.parametrize("name", MODULES)
def test_a_view_is_no_real_module(name):
    made = view(name)
    assert isinstance(made, types.ModuleType)
    assert made is not sys.modules.get(name)
    assert made.__name__ == name
    assert not hasattr(made, "__file__") and made.__spec__ is None and made.__loader__ is None


@pytest.mark.parametrize("name", [name for name in MODULES if name not in VIRTUAL_ROOTS])
def test_views_of_two_namespaces_are_apart(name):
    assert view(name) is not view(name)


def test_a_name_that_the_code_deletes_stays_away():
    made = view("operator")
    del made.attrgetter
    with pytest.raises(AttributeError, match="no attribute 'attrgetter'"):
        assert made.attrgetter


def test_hidden_names_are_refused_and_unknown_ones_are_mistakes():
    module = view("random")
    with pytest.raises(PolicyViolation, match=r"random\._os"):
        assert module._os
    with pytest.raises(AttributeError, match="no attribute 'randbetween'"):
        assert module.randbetween
    assert exists_but_hidden("functools", "update_wrapper")
    assert not exists_but_hidden("functools", "wraps")
    assert not exists_but_hidden("functools", "nothing_of_that_name")
    assert not exists_but_hidden("collections", "abc")
    assert exists_but_hidden("numpy", "load")
    assert not exists_but_hidden("numpy", "random")


@pytest.mark.parametrize("name", ["os", "sys", "os.path", "json.tool", "spade_runtime.policy", ""])
def test_other_modules_are_refused(name):
    assert not offered(name)
    with pytest.raises((PolicyViolation, ValueError)):
        view(name)


def test_relative_imports_are_refused():
    found = namespace(Entropy(), policy=True)
    with pytest.raises(PolicyViolation):
        found["__builtins__"]["__import__"]("random", None, None, ("x",), 1)


def test_an_optional_module_that_is_not_loaded_is_missing():
    script = (
        "from spade_runtime.views import namespace, offered\n"
        "from spade_runtime.entropy import Entropy\n"
        "assert not offered('numpy')\n"
        "n = namespace(Entropy(), policy=True, dialect='published')\n"
        "assert 'np' not in n\n"
        "exec('try:\\n  import numpy\\nexcept ImportError as e:\\n  r = e.name', n)\n"
        "assert n['r'] == 'numpy'\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_the_child_needs_neither_numpy_nor_pydantic():
    script = (
        "import sys\n"
        "import spade_runtime.policy, spade_runtime.contract, spade_runtime.dialects\n"
        "import spade_runtime.views\n"
        "from spade_runtime.entropy import Entropy\n"
        "spade_runtime.views.namespace(Entropy(), policy=True)\n"
        "print(sorted({'numpy', 'pydantic', 'gymnasium', 'msgspec'} & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("policy", [True, False])
def test_what_stands_in_the_namespace(policy):
    found = namespace(Entropy(), policy=policy)
    for name in STANDING_MODULES:
        assert isinstance(found[name], types.ModuleType)
    for names in STANDING_NAMES.values():
        for name in names.split():
            assert name in found
    assert found["__name__"] == MODULE_NAME
    assert sys.modules[MODULE_NAME].__dict__ is found


def test_the_published_namespace_holds_more():
    plain = namespace(Entropy(), policy=True)
    found = namespace(Entropy(), policy=True, dialect="published")
    more = "deque defaultdict namedtuple combinations permutations product lru_cache deepcopy"
    for name in (*more.split(), "heappush", "heappop", "reduce", "ToolUseBaseEnv", "accumulate"):
        assert name in found and name not in plain
    assert len(set(found) - set(plain)) > 50


def test_importing_what_stands_gives_the_same_module():
    found = namespace(Entropy(), policy=True)
    exec(
        "import random as r, collections.abc\nfrom spade_runtime.authoring import ToolEnv as T",
        found,
    )
    assert found["r"] is found["random"] and found["T"] is found["ToolEnv"]


def test_optional_modules_hold_no_loaders():
    listed = " ".join(OPTIONAL_MODULES.values()).split()
    for name in ("load", "loadtxt", "fromfile", "memmap", "save", "genfromtxt", "DataSource", "lib",
                 "ctypeslib", "f2py", "test", "read_gml", "write_gml", "draw", "fromregex"):  # fmt: skip
        assert name not in listed


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=200))
def test_any_text_gets_an_answer(text):
    result = check(text)
    assert (result.code is None) == bool(result.errors)


PIECES = ["x", "(", ")", "[", "]", "{", "}", ":", "\n", "  ", "def f", "class A", "=", ".", ",", "'", '"',
          "import ", "from ", "os", "random", "__class__", "lambda ", "match ", "case ", "async ", "await ",
          "except* ", "try", "*", "**", "f'{", "}'", "_spade_stub", "eval", "if __name__ == '__main__':", "@",
          ":=", "global ", "del ", "\\", "#", "\t", "0", "1e999", "é"]  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_any_pieces_of_python_get_an_answer(text):
    result = check(text)
    assert (result.code is None) == bool(result.errors)
    for finding in result.findings:
        assert "\n" not in finding.message

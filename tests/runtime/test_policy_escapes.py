"""Ways out of the language that are known: each is refused by the policy or by a run-time guard."""

# Snippets of code stand on one line each.
# ruff: noqa: E501

import builtins
import contextlib
import types

import pytest

from spade_runtime.curated import MODULES
from spade_runtime.entropy import Entropy
from spade_runtime.guards import PolicyViolation, refused_attribute
from spade_runtime.policy import check, compile_checked
from spade_runtime.views import namespace

# Refused before anything runs: name -> (source, code).
STATIC = {
    "class": ("x = ().__class__", "SPD103"),
    "subclasses": ("x = int.__subclasses__()", "SPD103"),
    "bases": ("x = int.__bases__", "SPD103"),
    "mro": ("x = int.mro()", "SPD103"),
    "globals attribute": ("def f(): pass\nx = f.__globals__", "SPD103"),
    "code": ("x = (lambda: 0).__code__", "SPD103"),
    "closure": ("x = (lambda: 0).__closure__", "SPD103"),
    "defaults": ("x = (lambda: 0).__defaults__", "SPD103"),
    "dict": ("class A: pass\nx = A.__dict__", "SPD103"),
    "builtins name": ("x = __builtins__", "SPD103"),
    "loader": ("x = __loader__", "SPD103"),
    "spec": ("x = __spec__", "SPD103"),
    "class cell": ("class A:\n  def f(self): return __class__", "SPD103"),
    "module of a class": ("class A: pass\nx = A.__module__", "SPD103"),
    "generator frame": ("g = (i for i in ())\nx = g.gi_frame", "SPD103"),
    "generator code": ("g = (i for i in ())\nx = g.gi_code", "SPD103"),
    "traceback": ("try:\n  1/0\nexcept Exception as e:\n  x = e.__traceback__", "SPD103"),
    "frame attributes": ("def f(t): return t.tb_frame.f_back.f_globals", "SPD103"),
    "coroutine frame": ("def f(c): return c.cr_frame", "SPD103"),
    "async generator frame": ("def f(c): return c.ag_frame", "SPD103"),
    "wrapped": ("x = functools.lru_cache(len).__wrapped__", "SPD103"),
    "func": ("class A:\n  def f(self): pass\nx = A().f.__func__", "SPD103"),
    "self of a builtin": ("x = print.__self__", "SPD103"),
    "reduce": ("x = [].__reduce_ex__(2)", "SPD103"),
    "getattribute": ("x = object.__getattribute__", "SPD103"),
    "setattr method": ("class A: pass\nobject.__setattr__(A(), 'x', 1)", "SPD103"),
    "import name": ("x = __import__('os')", "SPD102"),
    "eval": ("x = eval('1')", "SPD102"),
    "eval alias": ("e = eval\nx = e('1')", "SPD102"),
    "exec": ("exec('1')", "SPD102"),
    "compile": ("compile('1', '', 'eval')", "SPD102"),
    "open": ("open('x')", "SPD102"),
    "input": ("input()", "SPD102"),
    "globals": ("globals()", "SPD102"),
    "locals": ("locals()", "SPD102"),
    "vars": ("vars()", "SPD102"),
    "breakpoint": ("breakpoint()", "SPD102"),
    "memoryview": ("memoryview(b'')", "SPD102"),
    "exit": ("exit()", "SPD102"),
    "help": ("help()", "SPD102"),
    "os": ("import os\nos.getcwd()", "SPD101"),
    "os as": ("import os as random\nrandom.getcwd()", "SPD101"),
    "os.path": ("import os.path\nos.getcwd()", "SPD101"),
    "from os": ("from os import getcwd\ngetcwd()", "SPD101"),
    "sys": ("import sys\nsys.modules", "SPD101"),
    "importlib": ("import importlib\nimportlib.import_module('os')", "SPD101"),
    "builtins": ("import builtins\nbuiltins.eval('1')", "SPD101"),
    "gc": ("import gc\ngc.get_objects()", "SPD101"),
    "ctypes": ("from ctypes import CDLL\nCDLL(None)", "SPD101"),
    "submodule": ("import json.tool\njson.tool", "SPD101"),
    "encoder module": ("from json import encoder\nencoder", "SPD101"),
    "relative": ("from . import x\nx", "SPD101"),
    "hidden in a view": ("from random import _os\n_os", "SPD101"),
    "runtime internals": ("from spade_runtime import policy\npolicy", "SPD101"),
    "sandbox": ("import spade_runtime.sandbox\nspade_runtime.sandbox", "SPD101"),
    "star": ("from math import *", "SPD104"),
    "random._os": ("x = random._os", "SPD103"),
    "enum.sys": ("import enum\nx = enum.sys", "SPD103"),
    "re.enum": ("x = re.enum", "SPD103"),
    "update_wrapper": (
        "import functools\nfunctools.update_wrapper(len, len, updated=('__globals__',))",
        "SPD103",
    ),
    "update_wrapper standing": ("functools.update_wrapper(len, len)", "SPD103"),
    "update_wrapper from": ("from functools import update_wrapper\nupdate_wrapper(len, len)", "SPD101"),
    "singledispatch": ("x = functools.singledispatch", "SPD103"),
    "get_type_hints": ("import typing\nx = typing.get_type_hints", "SPD103"),
    "get_args": ("from typing import get_args\nx = get_args(List['y'])", "SPD101"),
    "forward reference": ("from typing import ForwardRef\nx = ForwardRef('1')", "SPD101"),
    "enum converts a module": ("import enum\nenum.IntEnum._convert_('X', 'sys', lambda n: True)", "SPD103"),
    "make_dataclass": ("from dataclasses import make_dataclass\nmake_dataclass('A', [])", "SPD101"),
    "abcmeta": ("from abc import ABCMeta\nclass A(metaclass=ABCMeta): pass", "SPD101"),
    "metaclass": ("class M: pass\nclass A(metaclass=M): pass", "SPD104"),
    "type as base": ("class M(type): pass", "SPD104"),
    "three-argument type": ("x = type('A', (), {})", "SPD104"),
    "formatter helper": ("from string import _string\n_string", "SPD101"),
    "user string": ("from collections import UserString\nUserString('')", "SPD101"),
    "redirect_stdout": ("from contextlib import redirect_stdout\nredirect_stdout(1)", "SPD101"),
    "iter_fields": ("from ast import iter_fields\niter_fields(len)", "SPD101"),
    "inspect": ("import inspect\ninspect.currentframe()", "SPD103"),
    "signature evaluation": ("from inspect import signature\nsignature(len).from_callable", "SPD103"),
    "io.open": ("import io\nio.open('x')", "SPD103"),
    "io.FileIO": ("from io import FileIO\nFileIO('x')", "SPD101"),
    "function type": ("import types\ntypes.CodeType", "SPD103"),
    "new_class": ("from types import new_class\nnew_class('A')", "SPD101"),
    "del method": ("class A:\n  def __del__(self): pass", "SPD103"),
    "getattr method": ("class A:\n  def __getattr__(self, n): return 1", "SPD103"),
    "getattribute method": ("class A:\n  def __getattribute__(self, n): return 1", "SPD103"),
    "setattr definition": ("class A:\n  def __setattr__(self, n, v): pass", "SPD103"),
    "reduce method": ("class A:\n  def __reduce__(self): return (len, ())", "SPD103"),
    "class property": ("class A:\n  @property\n  def __class__(self): return int", "SPD103"),
    "module getattr": ("def __getattr__(name): return 1", "SPD103"),
    "match_args": ("class A:\n  __match_args__ = ('format',)", "SPD103"),
    "annotations name": ("class A:\n  __annotations__['x) or y('] = int", "SPD103"),
    "builtins store": ("__builtins__ = {}", "SPD103"),
    "builtins del": ("del __builtins__", "SPD103"),
    "global builtins": ("def f():\n  global __builtins__\n  __builtins__ = 1", "SPD103"),
    "attribute store": ("def f(): pass\nf.__code__ = 1", "SPD103"),
    "attribute delete": ("def f(): pass\ndel f.__globals__", "SPD103"),
    "attribute augmented": ("def f(): pass\nf.__defaults__ += (1,)", "SPD103"),
    "attribute in a loop target": ("class A: pass\nfor A.__class__ in (): pass", "SPD103"),
    "attribute in with": ("def f(c, o):\n  with c as o.__class__: pass", "SPD103"),
    "literal getattr": ("x = getattr(1, '__class__')", "SPD103"),
    "literal attrgetter": ("x = operator.attrgetter('a.__class__')", "SPD103"),
    "literal methodcaller": ("x = operator.methodcaller('__reduce__')", "SPD103"),
    "format field": ("x = '{0.__class__}'.format(1)", "SPD103"),
    "format nested": ("x = '{0:{1.__class__}}'.format(1, 2)", "SPD103"),
    "format index then attribute": ("x = '{0[a].__class__}'.format({'a': 1})", "SPD103"),
    "f-string": ("x = f'{(1).__class__}'", "SPD103"),
    "f-string nested": ("x = f'{1:{(2).__class__}}'", "SPD103"),
    "match keyword": ("match 1:\n  case int(__class__=c): pass", "SPD103"),
    "match format": ("match 'a':\n  case str(format=f): pass", "SPD103"),
    "match format_map": ("match 'a':\n  case str(format_map=f): pass", "SPD103"),
    "match obj": ("match 'a':\n  case AttributeError(obj=f): pass", "SPD103"),
    "match value": ("match 1:\n  case [t.format]: pass", "SPD103"),
    "match key": ("match 1:\n  case {t.format: x}: pass", "SPD103"),
    "match either value": ("match 1:\n  case t.format | 1: pass", "SPD103"),
    "match frame": ("match (i for i in ()):\n  case object(gi_frame=f): pass", "SPD103"),
    "match positional field": (
        "@dataclass(init=False)\nclass S(str):\n  format: object\nmatch S('a'):\n  case S(f): pass",
        "SPD103",
    ),
    "match registered field": ("@dataclass\nclass G:\n  gi_frame: object = None", "SPD103"),
    "except star": ("try:\n  pass\nexcept* ValueError:\n  pass", "SPD104"),
    "async def": ("async def f(): pass", "SPD104"),
    "async comprehension": ("async def f(): return [i async for i in g()]", "SPD104"),
    "keyword dunder": ("import types\ntypes.SimpleNamespace(__class__=int)", "SPD103"),
    "full-width letters": ("x = ().__ｃlass__", "SPD103"),
    "numpy load": ("import numpy as np\nx = np.load('f')", "SPD103"),
    "numpy ctypes": ("import numpy as np\nx = np.zeros(1).ctypes", "SPD103"),
    "numpy tofile": ("import numpy as np\nnp.zeros(1).tofile('f')", "SPD103"),
    "numpy f2py": ("import numpy.f2py\nnumpy.f2py", "SPD101"),
    "numpy format": ("from numpy.lib import format\nformat", "SPD101"),
    # A hook's name, bound in every way that Python has.
    "hook assign": ("_spade_special = 1", "SPD103"),
    "hook call": ("_spade_special('a', 'format')", "SPD103"),
    "hook positional-only": ("def f(_spade_special, /): pass", "SPD103"),
    "hook argument": ("def f(_spade_special=1): pass", "SPD103"),
    "hook keyword-only": ("def f(*, _spade_special): pass", "SPD103"),
    "hook rest": ("def f(*_spade_special): pass", "SPD103"),
    "hook keywords": ("def f(**_spade_special): pass", "SPD103"),
    "hook lambda": ("f = lambda _spade_special: 1", "SPD103"),
    "hook walrus": ("(_spade_special := 1)", "SPD103"),
    "hook except": ("try:\n  pass\nexcept Exception as _spade_special:\n  pass", "SPD103"),
    "hook match": ("match 1:\n  case _spade_special: pass", "SPD103"),
    "hook match as": ("match 1:\n  case int() as _spade_special: pass", "SPD103"),
    "hook match star": ("match []:\n  case [*_spade_special]: pass", "SPD103"),
    "hook match rest": ("match {}:\n  case {**_spade_special}: pass", "SPD103"),
    "hook import": ("import math as _spade_special", "SPD103"),
    "hook from import": ("from math import pi as _spade_special", "SPD103"),
    "hook def": ("def _spade_special(o, n): return getattr(o, n)", "SPD103"),
    "hook class": ("class _spade_special: pass", "SPD103"),
    "hook global": ("def f():\n  global _spade_special\n  _spade_special = 1", "SPD103"),
    "hook loop": ("for _spade_special in (): pass", "SPD103"),
    "hook comprehension": ("[1 for _spade_special in ()]", "SPD103"),
    "hook with": ("def f(c):\n  with c as _spade_special: pass", "SPD103"),
    "hook annotated": ("_spade_special: int = 1", "SPD103"),
    "hook augmented": ("_spade_special += 1", "SPD103"),
    "hook delete": ("del _spade_special", "SPD103"),
    "hook attribute": ("class A: pass\nA._spade_special = 1", "SPD103"),
}  # fmt: skip

# Passes the static policy, and is refused when it runs; `u` is two underscores.
# A typing alias that has a parameter left gives its arguments away, forward references included.
REFERENCE = (
    "import typing\nr = typing.Dict['1', typing.TypeVar('T')]._determine_new_args((int,))[0]\n"
)
RUNTIME = {
    "built getattr": "x = getattr(1, u + 'class' + u)",
    "getattr default": "x = getattr(1, u + 'class' + u, None)",
    "getattr alias": "g = getattr\nx = g(1, u + 'class' + u)",
    "getattr through map": "x = list(map(getattr, [1], [u + 'class' + u]))",
    "getattr through partial": "x = functools.partial(getattr, 1)(u + 'class' + u)",
    "getattr through reduce": "x = functools.reduce(getattr, [1, u + 'class' + u])",
    "getattr str subclass": (
        "class S(str):\n  def startswith(self, *a): return False\n  def __eq__(self, o): return False\n"
        "  def __hash__(self): return 1\nx = getattr(1, S(u + 'class' + u))"
    ),
    "enum conversion built": "x = getattr(Enum, '_con' + 'vert_')('X', 'sys', lambda n: True)",
    "getattr internal": "g = (i for i in ())\nx = getattr(g, 'gi_' + 'frame')",
    "hasattr": "x = hasattr(1, u + 'class' + u)",
    "setattr": "class A: pass\nsetattr(A(), u + 'class' + u, int)",
    "setattr of a method": "class A: pass\nsetattr(A, u + 'getattr' + u, len)",
    "delattr": "class A: pass\ndelattr(A(), u + 'dict' + u)",
    "format built": "x = ('{0.' + u + 'class' + u + '}').format(1)",
    "format index": "x = ('{0[0].' + u + 'class' + u + '}').format([1])",
    "format nested": "x = ('{0:{1.' + u + 'class' + u + '}}').format(1, 2)",
    "format keyword": "x = ('{a.' + u + 'class' + u + '}').format(a=1)",
    "format internal": "x = ('{0.gi_' + 'frame}').format(i for i in ())",
    "format_map": "x = ('{a.' + u + 'class' + u + '}').format_map({'a': 1})",
    "format unbound": "x = str.format('{0.' + u + 'class' + u + '}', 1)",
    "format_map unbound": "x = str.format_map('{a.' + u + 'class' + u + '}', {'a': 1})",
    "format alias": "f = ('{0.' + u + 'class' + u + '}').format\nx = f(1)",
    "format by getattr": "x = getattr('{0.' + u + 'class' + u + '}', 'for' + 'mat')(1)",
    "format by attrgetter": "x = operator.attrgetter('format')('{0.' + u + 'class' + u + '}')(1)",
    "format by methodcaller": "x = operator.methodcaller('format', 1)('{0.' + u + 'class' + u + '}')",
    "format mapped": "x = list(map(('{0.' + u + 'class' + u + '}').format, [1]))",
    "format of a subclass": "class S(str): pass\nx = S('{0.' + u + 'class' + u + '}').format(1)",
    "format inherited": (
        "class S(str):\n  def go(self, *a): return super().format(*a)\nx = S('{0.' + u + 'class' + u + '}').go(1)"
    ),
    "format unbound subclass": "class S(str): pass\nx = S.format(S('{0.' + u + 'class' + u + '}'), 1)",
    "format by type": "x = type('').format('{0.' + u + 'class' + u + '}', 1)",
    "attrgetter": "x = operator.attrgetter(u + 'class' + u)(1)",
    "attrgetter dotted": "x = operator.attrgetter('real.' + u + 'class' + u)(1)",
    "attrgetter several": "x = operator.attrgetter('real', u + 'class' + u)(1)",
    "methodcaller": "x = operator.methodcaller(u + 'reduce_ex' + u, 2)([])",
    "formatter": "x = string.Formatter().format('{0.' + u + 'class' + u + '}', 1)",
    "formatter vformat": "x = string.Formatter().vformat('{0.' + u + 'class' + u + '}', (1,), {})",
    "formatter str subclass": (
        "class S(str):\n  def __contains__(self, x): return False\n"
        "x = string.Formatter().format(S('{0.' + u + 'class' + u + '}'), 1)"
    ),
    "error obj": "try:\n  (1).nothing\nexcept AttributeError as e:\n  x = e.obj",
    "error obj alias": "try:\n  (1).nothing\nexcept AttributeError as e:\n  y = e\nx = y.obj",
    "error obj by getattr": "try:\n  (1).nothing\nexcept AttributeError as e:\n  x = getattr(e, 'ob' + 'j')",
    "type makes a class": "t = type\nx = t('A', (), {})",
    "type of a class": "m = type(Enum)\nx = m('A', (), {})",
    "type of abc": "from abc import ABC\nx = type(ABC)('A', (), {})",
    "type as a base": "t = type\nclass M(t): pass",
    "enum with dunders": "x = Enum('E', {u + 'getattribute' + u: 1})",
    "enum call": "import enum\nx = enum.IntEnum('E', [(u + 'init' + u + '', 1)])",
    "namespace with dunders": "import types\nx = types.SimpleNamespace(**{u + 'reduce_ex' + u: len})",
    "dataclass injection": (
        "import dataclasses\n@dataclass\nclass A:\n  x: int = 0\n"
        "dataclasses.fields(A)[0].name = 'y, z=print(1)'\n@dataclass\nclass B(A):\n  w: int = 0"
    ),
    "function constructor": "import types\nx = types.FunctionType(1, {})",
    "lambda constructor": "import types\nx = type(lambda: 0)(1, {}) if 0 else types.LambdaType(1, {})",
    "evaluate": REFERENCE + "x = r._evaluate({}, {}, frozenset())",
    "evaluate by getattr": REFERENCE + "x = getattr(r, '_evalu' + 'ate')",
    "evaluate by a caller": REFERENCE + "x = operator.methodcaller('_evaluate', {}, {}, frozenset())(r)",
    "evaluate unbound": REFERENCE + "x = type(r)._evaluate",
    "match value keeps the method": (
        "class C:\n  def __eq__(self, other): self.f = other\n"
        "c, t = C(), '{0.' + u + 'class' + u + '}'\n"
        "match c:\n  case t.format: pass\nx = c.f(1)"
    ),
    "augmented assignment keeps the method": (
        "class C:\n  def __radd__(self, other): self.f = other\n"
        "c, t = C(), '{0.' + u + 'class' + u + '}'\n"
        "try: t.format += c\nexcept AttributeError: pass\nx = c.f(1)"
    ),
    "dataclass gives the method": (
        "import dataclasses\n@dataclass(init=False)\nclass S(str):\n  format: object\n"
        "x = dataclasses.asdict(S('{0.' + u + 'class' + u + '}'))['format'](1)"
    ),
    "dataclass compares the method": (
        "@dataclass(init=False)\nclass A:\n  format_map: object\nclass S(A, str): pass\n"
        "x = S('{0.' + u + 'class' + u + '}') == S('')"
    ),
    "hidden name": "x = getattr(random, 'os' and '_os')",
    "hidden wrapper": "x = getattr(functools, 'update_' + 'wrapper')",
    "forbidden by a view": "import io\nx = getattr(io, 'op' + 'en')",
}  # fmt: skip


@pytest.mark.parametrize("name", STATIC)
def test_static_refusal(name):
    source, code = STATIC[name]
    result = check(source)
    assert code in [f.code for f in result.errors], result.findings
    assert result.code is None
    first = result.errors[0]
    assert first.line is not None and first.column is not None
    assert "\n" not in first.message and len(first.message) < 300
    with pytest.raises(PolicyViolation):
        compile_checked(source, policy=True)


@pytest.mark.parametrize("name", RUNTIME)
def test_run_time_refusal(name):
    source = "u = '_' * 2\n" + RUNTIME[name]
    result = check(source)
    assert result.errors == []
    entropy = Entropy()
    found = namespace(entropy, policy=True)
    with pytest.raises(PolicyViolation) as refused:
        exec(result.code, found)
    assert "x" not in found
    assert entropy.violations == [refused.value]


@pytest.mark.parametrize("handler", ["except Exception", "except", "except BaseException"])
def test_a_swallowed_refusal_is_recorded(handler):
    source = f"try:\n  getattr(1, '_' * 2 + 'class' + '_' * 2)\n{handler}:\n  pass"
    entropy = Entropy()
    found = namespace(entropy, policy=True)
    code = compile_checked(source, policy=True)
    if handler == "except Exception":
        with pytest.raises(PolicyViolation):
            exec(code, found)
    else:
        exec(code, found)
    assert [v.code for v in entropy.violations] == ["SPD103"]


def test_builtins_hold_no_evaluator_and_no_importer():
    found = namespace(Entropy(), policy=True)
    for name in ("eval", "exec", "open", "compile", "globals", "vars"):
        with pytest.raises(PolicyViolation) as refused:
            found["__builtins__"][name]("1")
        assert refused.value.code == "SPD102"
    with pytest.raises(PolicyViolation) as refused:
        found["__builtins__"]["__import__"]("os")
    assert refused.value.code == "SPD101"


def children(value):
    """What a value's contents and permitted attributes lead to, and an instance of a class."""
    if isinstance(value, dict):
        yield from [(f"[{k!r:.20}]", v) for k, v in list(value.items())[:40]]
    elif isinstance(value, list | tuple | set | frozenset):
        yield from [(f"[{i}]", v) for i, v in enumerate(list(value)[:40])]
    names = vars(value) if isinstance(value, types.ModuleType) else dir(value)
    extra = dir(type(value)) if isinstance(value, type) else ()
    for name in {*names, *extra}:
        if not refused_attribute(name) and not name.startswith("__"):
            with contextlib.suppress(Exception):
                yield f".{name}", getattr(value, name)
    if isinstance(value, type) and not issubclass(value, BaseException):
        with contextlib.suppress(Exception, PolicyViolation):
            yield "()", value()


def test_no_attribute_leads_out_of_the_views():
    """Walk from every view and builtin along permitted attributes, seven steps deep."""
    found = namespace(Entropy(), policy=True)["__builtins__"]
    views = [found["__import__"](name, None, None, ("x",), 0) for name in MODULES]
    forbidden = {
        id(getattr(builtins, name)) for name in ("eval", "exec", "open", "getattr", "type")
    }
    inner = types.FrameType | types.CodeType | types.TracebackType
    waiting = [(view.__name__, view) for view in views]
    waiting += [(name, value) for name, value in found.items() if not name.startswith("_")]
    kept = {id(value): value for _, value in waiting}
    while waiting:
        path, value = waiting.pop()
        assert id(value) not in forbidden and not isinstance(value, inner), path
        assert not (isinstance(value, dict) and "__builtins__" in value), path
        assert not isinstance(value, types.ModuleType) or value in views, path
        if path.count(".") > 6:
            continue
        for step, child in children(value):
            if id(child) not in kept and not isinstance(child, str | int | float | bytes):
                # Kept, so that no other object gets the same id.
                kept[id(child)] = child
                waiting.append((path + step, child))
    assert len(kept) > 3000

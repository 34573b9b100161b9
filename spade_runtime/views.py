"""The curated modules and the namespace in which an environment's code runs.

A view is a fresh module object that holds the names of `spade_runtime.curated` and nothing else;
the real module is never handed out. `random`, `time`, `datetime`, `uuid` and `numpy.random` are
replaced by forms that draw from the current instance's state (`spade_runtime.entropy`), functions
that reach attributes by name by their guarded forms (`spade_runtime.guards`).
"""

from __future__ import annotations

import builtins
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

from spade_runtime import foreign_library, guarded_library, seeded_library
from spade_runtime.curated import (
    MODULES,
    OPTIONAL_MODULES,
    PUBLISHED_NAMES,
    STANDING_MODULES,
    STANDING_NAMES,
    VIRTUAL_ROOTS,
    words,
)
from spade_runtime.entropy import Entropy
from spade_runtime.guards import Guards, PolicyViolation

__all__ = [
    "FORBIDDEN_BUILTINS",
    "MODULE_NAME",
    "PolicyViolation",
    "Views",
    "names_of",
    "namespace",
    "offered",
]

# The name under which an environment's code runs.
MODULE_NAME = "environment"
HOOK_PREFIX = "_spade_"

FORBIDDEN_BUILTINS = frozenset(
    words(
        "exec eval compile open input __import__ globals locals vars breakpoint memoryview exit "
        "quit help copyright credits license"
    )
)
_SUBMODULES: dict[str, tuple[str, ...]] = {
    "collections": ("abc",),
    "gem": ("core", "utils"),
    "gem.utils": ("constants", "parsing", "seeding"),
    "networkx": ("algorithms",),
    "networkx.algorithms": ("approximation", "bipartite", "community", "flow", "isomorphism"),
    "numpy": ("random", "linalg", "fft", "typing"),
    "spade_runtime": ("authoring",),
}
_BUILTINS = words(
    "ArithmeticError AssertionError AttributeError BaseException BaseExceptionGroup "
    "BlockingIOError BrokenPipeError BufferError BytesWarning ChildProcessError "
    "ConnectionAbortedError ConnectionError ConnectionRefusedError ConnectionResetError "
    "DeprecationWarning EOFError Ellipsis EnvironmentError Exception ExceptionGroup False "
    "FileExistsError FileNotFoundError FloatingPointError FutureWarning GeneratorExit IOError "
    "ImportError ImportWarning IndentationError IndexError InterruptedError IsADirectoryError "
    "KeyError KeyboardInterrupt LookupError MemoryError ModuleNotFoundError NameError None "
    "NotADirectoryError NotImplemented NotImplementedError OSError OverflowError PermissionError "
    "ProcessLookupError RecursionError ReferenceError ResourceWarning RuntimeError RuntimeWarning "
    "StopAsyncIteration StopIteration SyntaxError SyntaxWarning SystemError SystemExit TabError "
    "TimeoutError True TypeError UnboundLocalError UnicodeDecodeError UnicodeEncodeError "
    "UnicodeError UnicodeTranslateError UnicodeWarning UserWarning ValueError Warning "
    "ZeroDivisionError PythonFinalizationError EncodingWarning __build_class__ abs all any ascii "
    "bin bool bytearray bytes callable chr classmethod complex dict dir divmod enumerate filter "
    "float format frozenset hash hex id int isinstance issubclass iter len list map max min next "
    "object oct ord pow print property range repr reversed round set slice sorted staticmethod "
    "str sum super tuple zip"
)


def offered(module: str) -> bool:
    """Whether an environment may import this module here.

    >>> offered("random"), offered("collections.abc"), offered("os")
    (True, True, False)
    """
    return module in MODULES or (module in OPTIONAL_MODULES and module.split(".")[0] in sys.modules)


def names_of(module: str) -> frozenset[str]:
    """The names that the view of an offered module lists."""
    return frozenset((MODULES.get(module) or OPTIONAL_MODULES[module]).split())


def exists_but_hidden(module: str, name: str) -> bool:
    """Whether the real module has this name, and its view does not.

    A name that the real module lacks too is an ordinary mistake, which fails when the code runs.
    An optional module need not be loaded where a source is checked, so there only the list counts.
    """
    full = f"{module}.{name}"
    if name in names_of(module) or full in MODULES or full in OPTIONAL_MODULES:
        return False
    if module in OPTIONAL_MODULES:
        return True
    real = sys.modules.get(module)
    if real is None and module in MODULES and module.partition(".")[0] not in VIRTUAL_ROOTS:
        real = import_module(module)
    # Not `hasattr`: a module's own `__getattr__` may warn of a deprecated name.
    return real is not None and name in vars(real)


class Views:
    """The curated modules of one namespace, built when they are first imported.

    Args:
        entropy: where chance, clock and identity come from.
        guards: the guarded functions.
        policy: with False only the seeded modules are curated; everything else is the real module.
    """

    def __init__(self, entropy: Entropy, guards: Guards, *, policy: bool) -> None:
        self._policy = policy
        self._guards = guards
        self._modules: dict[str, ModuleType] = {}
        self._replaced = {
            **seeded_library.replacements(entropy),
            **foreign_library.replacements(entropy),
        }
        if policy:
            self._replaced.update(guarded_library.replacements(guards))

    def module(self, name: str) -> ModuleType:
        """The view of an offered module.

        Raises:
            PolicyViolation: the module is outside the list (SPD101).
        """
        if name not in self._modules:
            if name in OPTIONAL_MODULES and not offered(name):
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
            if self._policy and not offered(name):
                raise self._guards.refuse(f"the module {name!r} can't be imported here", "SPD101")
            self._build(name)
        return self._modules[name]

    def _build(self, name: str) -> ModuleType:
        view = ModuleType(name, f"The part of {name!r} that environments may use.")
        found = vars(view)
        real = {} if name.partition(".")[0] in VIRTUAL_ROOTS else vars(import_module(name))
        if self._policy:
            found.update((item, real[item]) for item in names_of(name) if item in real)
            found["__getattr__"] = self._missing(name, names_of(name) - real.keys())
            if "__version__" in real:
                found["__version__"] = real["__version__"]
        else:
            found.update(real)
        if name in self._replaced:
            found.update(self._replaced[name]())
        # Registered before its children, which look their parent up.
        self._modules[name] = view
        for child in _SUBMODULES.get(name, ()):
            if offered(f"{name}.{child}") and (self._policy or self._seeded(f"{name}.{child}")):
                found[child] = self.module(f"{name}.{child}")
        return view

    def _missing(self, module: str, absent: frozenset[str]) -> Callable[[str], Any]:
        # Only what the real module did not hold: what the code deletes from a view stays away.
        late = frozenset() if module.partition(".")[0] in VIRTUAL_ROOTS else absent

        def __getattr__(name: str) -> Any:
            if name in late:
                return _made_on_demand(module, name)
            if not name.startswith("__") and exists_but_hidden(module, name):
                raise self._guards.refuse(f"{module}.{name} is not available to environments")
            raise AttributeError(f"module {module!r} has no attribute {name!r}")

        return __getattr__

    def curated_import(
        self,
        name: str,
        globals: Any = None,
        locals: Any = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """What `import` statements call, with the signature of `__import__`."""
        if type(fromlist) is list:
            # No statement: C code of a library imports through the caller's builtins, passes a
            # list, and takes its module from `sys.modules` whatever comes back.
            builtins.__import__(name, {}, {}, (), level)
            return ModuleType(name)
        if level:
            raise self._guards.refuse("relative imports are not available here", "SPD101")
        if not self._policy and not self._seeded(name):
            return builtins.__import__(name, globals, locals, fromlist or (), level)
        view = self.module(name)
        return view if fromlist else self.module(name.partition(".")[0])

    def _seeded(self, name: str) -> bool:
        root = name.partition(".")[0]
        if root == "numpy":
            return name in ("numpy", "numpy.random") and offered(name)
        return name in self._replaced or root in VIRTUAL_ROOTS


def _made_on_demand(module: str, name: str) -> Any:
    """A listed name that the real module makes when it is asked for: `typing.ContextManager`."""
    with warnings.catch_warnings():
        # A deprecated name warns, and whether environments may use it is the list's to say.
        warnings.simplefilter("ignore")
        return getattr(import_module(module), name)


def _guarded_builtins(views: Views, guards: Guards) -> dict[str, Any]:
    found = {name: getattr(builtins, name) for name in _BUILTINS if hasattr(builtins, name)}
    for name in FORBIDDEN_BUILTINS:
        found[name] = _forbidden(guards, name)
    for name in ("getattr", "setattr", "delattr", "hasattr"):
        found[name] = guards.functions[name]
    found["type"] = guarded_library.guarded_type(guards)
    found["__import__"] = views.curated_import
    found["__debug__"] = True
    found["__build_class__"] = guarded_library.class_builder(guards)
    found[f"{HOOK_PREFIX}special"] = guards.special
    found[f"{HOOK_PREFIX}augment"] = guards.augment
    found[f"{HOOK_PREFIX}stub"] = lambda name: guarded_library.Stub(name, guards)
    return found


def _forbidden(guards: Guards, name: str) -> Callable[..., Any]:
    def refused(*args: Any, **values: Any) -> Any:
        raise guards.refuse(f"{name}() is not available to environments", "SPD102")

    return refused


def namespace(entropy: Entropy, *, policy: bool, dialect: str = "contract") -> dict[str, Any]:
    """Build the globals in which an environment's module is executed.

    The dictionary is that of a module registered as `sys.modules["environment"]`: dataclasses and
    typing look the module of a class up there.

    Args:
        entropy: the states of the instances; also records what the guards refuse.
        policy: with False the builtins and modules are the real ones, and only chance, clock and
            identity are curated. Nothing but the sandbox holds the code then.
        dialect: `published` adds the names that such files use without importing them, `gem` and
            `published` their base classes.
    """
    guards = Guards(entropy)
    views = Views(entropy, guards, policy=policy)
    module = ModuleType(MODULE_NAME)
    found = vars(module)
    if policy:
        found["__builtins__"] = _guarded_builtins(views, guards)
    else:
        real = dict(vars(builtins))
        real["__import__"] = views.curated_import
        found["__builtins__"] = real
    found["__name__"] = MODULE_NAME
    found["__file__"] = f"{MODULE_NAME}.py"
    _stand(found, views, STANDING_NAMES)
    for name in STANDING_MODULES:
        found[name] = views.module(name) if policy else views.curated_import(name)
    if dialect == "published":
        _stand(found, views, PUBLISHED_NAMES)
        if offered("numpy"):
            found["np"] = found["numpy"] = views.module("numpy")
    sys.modules[MODULE_NAME] = module
    return found


def _stand(found: dict[str, Any], views: Views, names: Mapping[str, str]) -> None:
    for module, wanted in names.items():
        for name in wanted.split():
            if module:
                found[name] = getattr(views.module(module), name)
            else:
                found[name] = views.module(name)

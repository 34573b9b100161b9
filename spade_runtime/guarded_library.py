"""Library functions in the form that environments get them.

Replaced is what reaches attributes by name, evaluates text, or makes classes with methods that the
static policy would refuse.
"""

from __future__ import annotations

import builtins
import dataclasses
import enum
import inspect
import string
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from spade_runtime.guards import TEMPLATE_METHODS, Guards, is_dunder, refusal


def replacements(guards: Guards) -> dict[str, Callable[[], Mapping[str, Any]]]:
    """What replaces names of the real modules, by module, made when it is asked for."""
    return {
        "operator": lambda: {k: guards.functions[k] for k in ("attrgetter", "methodcaller")},
        "functools": lambda: {"wraps": wraps},
        "enum": lambda: enum_names(guards),
        "dataclasses": lambda: dataclass_names(guards),
        "inspect": lambda: {"signature": signature},
        "types": lambda: type_names(guards),
        "string": lambda: {"Formatter": formatter(guards)},
    }


class Stub:
    """Stands for a module outside the list that is imported but not used (SPD105).

    Only code that the static policy could not see uses it after all, and is refused.
    """

    __slots__ = ("_guards", "_name")

    def __init__(self, name: str, guards: Guards) -> None:
        self._name = name
        self._guards = guards

    def __getattr__(self, name: str) -> Any:
        raise self._guards.refuse(f"{self._name}.{name} is not available to environments", "SPD101")

    def __repr__(self) -> str:
        return f"<stub of {self._name!r}>"


def guarded_type(guards: Guards) -> type:
    """`type` with one argument: it tells a class, but makes none and leads to no metaclass."""

    class Meta(type):
        def __instancecheck__(cls, obj: Any) -> bool:
            return isinstance(obj, type)

        def __subclasscheck__(cls, other: Any) -> bool:
            return issubclass(other, type)

        def __call__(cls, *args: Any, **values: Any) -> Any:
            if len(args) != 1 or values:
                raise guards.refuse("type() makes no classes here; use a class statement", "SPD104")
            return cls if isinstance(args[0], type) else type(args[0])

        def __getitem__(cls, item: Any) -> Any:
            return types.GenericAlias(type, item)

        def __eq__(cls, other: Any) -> bool:
            return other is cls or other is type

        def __hash__(cls) -> int:
            return hash(type)

    class Type(metaclass=Meta):
        def __init_subclass__(cls, **values: Any) -> None:
            raise guards.refuse("metaclasses are not available to environments", "SPD104")

    Type.__name__ = Type.__qualname__ = "type"
    return Type


def class_builder(guards: Guards) -> Callable[..., Any]:
    """What class statements call: a text may not have a field that its own method stands for.

    `dataclasses` reads fields past the guards, and would hand `str.format` out as a field's value.
    """

    def build(*args: Any, **values: Any) -> Any:
        cls = builtins.__build_class__(*args, **values)
        if isinstance(cls, type) and issubclass(cls, str):
            for base in cls.__mro__:
                for name in TEMPLATE_METHODS & _annotations(base).keys():
                    raise guards.refuse(f"a subclass of str may not have a field {name!r}")
        return cls

    return build


def wraps(wrapped: Any, *args: Any, **values: Any) -> Callable[[Any], Any]:
    """`functools.wraps` that copies name and docstring, and nothing that a caller chooses."""

    def decorate(wrapper: Any) -> Any:
        for name in ("__name__", "__qualname__", "__doc__"):
            if hasattr(wrapped, name):
                setattr(wrapper, name, getattr(wrapped, name))
        wrapper.__wrapped__ = wrapped
        return wrapper

    return decorate


def signature(callable: Any) -> inspect.Signature:
    """`inspect.signature` without the evaluation of annotations."""
    return inspect.signature(callable)


def enum_names(guards: Guards) -> dict[str, Any]:
    """The bases of enumerations; the functional form makes no dunder attributes."""

    class GuardedEnum(enum.EnumMeta):
        def __call__(cls, value: Any, names: Any = None, *args: Any, **values: Any) -> Any:
            if names is None and not args and not values:
                return super().__call__(value)
            words = names.replace(",", " ").split() if isinstance(names, str) else names
            for item in words or ():
                key = item if isinstance(item, str) else item[0]
                if is_dunder(str(key)):
                    raise guards.refuse(refusal(str(key)))
            return super().__call__(value, words, *args, **values)

    found: dict[str, Any] = {}
    for name in ("Enum", "IntEnum", "StrEnum", "Flag", "IntFlag"):
        base = getattr(enum, name)
        body = GuardedEnum.__prepare__(name, (base,))
        body["__module__"] = "enum"
        body["__doc__"] = base.__doc__
        found[name] = GuardedEnum(name, (base,), body)
    return found


def _annotations(cls: Any) -> Mapping[str, Any]:
    """What a class annotates itself, as `dataclasses` reads it."""
    if sys.version_info >= (3, 14):
        # A class no longer holds its annotations but the function that makes them.
        import annotationlib

        return annotationlib.get_annotations(cls, format=annotationlib.Format.FORWARDREF)
    found: Mapping[str, Any] = vars(cls).get("__annotations__", {})
    return found


def dataclass_names(guards: Guards) -> dict[str, Any]:
    """`dataclasses`: the generated methods are text, so every field's name is checked first."""

    def check(cls: Any) -> None:
        for base in cls.__mro__[1:]:
            for key, spec in vars(base).get("__dataclass_fields__", {}).items():
                if spec.name != key or not key.isidentifier():
                    raise guards.refuse(f"the dataclass field {spec.name!r} was renamed")
        for key in _annotations(cls):
            if not str(key).isidentifier() or is_dunder(str(key)):
                raise guards.refuse(refusal(str(key)))

    def dataclass(cls: Any = None, /, **options: Any) -> Any:
        def decorate(target: Any) -> Any:
            check(target)
            return dataclasses.dataclass(**options)(target)

        return decorate if cls is None else decorate(cls)

    return {"dataclass": dataclass}


def formatter(guards: Guards) -> type:
    """`string.Formatter` with guarded fields; it has no unguarded base that `super` would find."""

    class Formatter:
        def format(self, template: str, /, *args: Any, **values: Any) -> str:
            return self.vformat(template, args, values)

        def vformat(self, template: str, args: Sequence[Any], values: Mapping[str, Any]) -> str:
            # A subclass of str may lie about its own text.
            exact = str.__str__(template)
            guards.check_format(exact)
            return string.Formatter().vformat(exact, args, values)

        def parse(self, template: str) -> Iterator[Any]:
            return iter(string.Formatter().parse(template))

    return Formatter


def type_names(guards: Guards) -> dict[str, Any]:
    """`types`: what tests need, without the constructors of functions and code."""

    class InstanceOnly(type):
        def __instancecheck__(cls, obj: Any) -> bool:
            return isinstance(obj, getattr(types, cls.__name__))

        def __call__(cls, *args: Any, **values: Any) -> Any:
            raise guards.refuse(f"types.{cls.__name__} can't be called here")

    class SimpleNamespace:
        def __init__(self, **values: Any) -> None:
            for key, value in values.items():
                guards.functions["setattr"](self, key, value)

        def __repr__(self) -> str:
            inside = ", ".join(f"{k}={v!r}" for k, v in vars(self).items())
            return f"namespace({inside})"

        def __eq__(self, other: object) -> bool:
            if not isinstance(other, SimpleNamespace):
                return NotImplemented
            return vars(self) == vars(other)

        __hash__ = None  # type: ignore[assignment]

    found: dict[str, Any] = {"SimpleNamespace": SimpleNamespace}
    for name in ("FunctionType", "LambdaType", "BuiltinFunctionType", "GeneratorType"):
        found[name] = InstanceOnly(name, (), {})
    return found

"""What stands in for the builtins and library functions that reach an attribute by name.

The static policy sees the names that are written in a source. Names that are put together while
the code runs (`getattr`, format strings, `attrgetter`) are checked here. A refusal is a
`PolicyViolation`; it is recorded as well as raised, since generated code catches a lot.
"""

from __future__ import annotations

import operator
from _string import formatter_field_name_split, formatter_parser  # type: ignore[import-not-found]
from collections.abc import Callable, Iterator
from types import BuiltinMethodType, MethodDescriptorType
from typing import Any, ForwardRef

from spade_runtime.curated import words
from spade_runtime.entropy import Entropy

# Attributes of frames, code, generators, coroutines and tracebacks, and methods of library classes
# that evaluate text, reach memory, or read another module's names (`Enum._convert_`).
INTERNAL_ATTRIBUTES = frozenset(
    words(
        "tb_frame tb_next tb_lasti f_back f_builtins f_code f_generator f_globals f_locals "
        "f_trace f_lasti gi_frame gi_code gi_yieldfrom gi_running gi_suspended cr_await cr_frame "
        "cr_code cr_origin ag_await ag_frame ag_code co_code co_consts co_names co_filename "
        "co_varnames co_freevars co_cellvars func_globals func_code mro from_callable "
        "tofile ctypes _convert_ _create_ _find_new_ _find_data_type_ _find_data_repr_ "
        "_get_mixins_ _check_for_existing_members_"
    )
)
# What evaluates the text of an annotation. Environments name methods of their own so.
_EVALUATORS = {n: vars(ForwardRef)[n] for n in ("_evaluate", "evaluate") if n in vars(ForwardRef)}
TEMPLATE_METHODS = frozenset({"format", "format_map"})
# Attributes whose meaning depends on the object, so that reading them goes through a guard.
GUARDED_ATTRIBUTES = TEMPLATE_METHODS | {"obj", *_EVALUATORS}
_IN_PLACE: dict[str, Callable[[Any, Any], Any]] = {
    "Add": operator.iadd, "Sub": operator.isub, "Mult": operator.imul, "Div": operator.itruediv,
    "FloorDiv": operator.ifloordiv, "Mod": operator.imod, "Pow": operator.ipow,
    "MatMult": operator.imatmul, "LShift": operator.ilshift, "RShift": operator.irshift,
    "BitAnd": operator.iand, "BitOr": operator.ior, "BitXor": operator.ixor,
}  # fmt: skip
# Methods that a class may define, and that may be called by name (`super().__init__()`).
CLASS_METHODS = frozenset(
    words(
        "__init__ __new__ __repr__ __str__ __len__ __iter__ __next__ __reversed__ __getitem__ "
        "__setitem__ __delitem__ __missing__ __contains__ __call__ __hash__ __bool__ __enter__ "
        "__exit__ __post_init__ __lt__ __le__ __eq__ __ne__ __gt__ __ge__ __add__ __sub__ __mul__ "
        "__matmul__ __truediv__ __floordiv__ __mod__ __divmod__ __pow__ __lshift__ __rshift__ "
        "__and__ __xor__ __or__ __radd__ __rsub__ __rmul__ __rmatmul__ __rtruediv__ __rfloordiv__ "
        "__rmod__ __rdivmod__ __rpow__ __rlshift__ __rrshift__ __rand__ __rxor__ __ror__ __iadd__ "
        "__isub__ __imul__ __imatmul__ __itruediv__ __ifloordiv__ __imod__ __ipow__ __ilshift__ "
        "__irshift__ __iand__ __ixor__ __ior__ __neg__ __pos__ __abs__ __invert__ __complex__ "
        "__int__ __float__ __index__ __round__ __trunc__ __floor__ __ceil__ __format__ __bytes__ "
        "__copy__ __deepcopy__ __length_hint__ __init_subclass__ __class_getitem__ __set_name__ "
        "__get__ __set__ __delete__ __fspath__ __sizeof__ __dir__ __replace__"
    )
)
# Dunder attributes that may be read: strings, and the methods above except descriptors' hooks.
READABLE = (
    CLASS_METHODS - frozenset(("__get__", "__set__", "__delete__", "__set_name__", "__dir__"))
) | {
    "__name__",
    "__qualname__",
    "__doc__",
    "__file__",
    "__slots__",
    "__version__",
    "__members__",
}

_HINTS = {
    "__class__": "use type(x).__name__ for a class's name and isinstance for a test",
    "__dict__": "name the attributes that you need, or keep the data in a dict of your own",
    "__code__": "environments have no access to code objects",
    "__globals__": "environments have no access to another scope's names",
    "obj": "use the exception's text instead",
    "from_callable": "use inspect.signature",
    "mro": "use isinstance or issubclass",
}


class PolicyViolation(BaseException):
    """A run-time guard refused what the code tried.

    It derives from `BaseException` so that `except Exception` in generated code does not swallow
    it, and every one is recorded in `Entropy.violations` for code that catches even that.

    Attributes:
        code: the finding code that the validator reports.
    """

    def __init__(self, message: str, code: str = "SPD103") -> None:
        super().__init__(message)
        self.code = code


def is_dunder(name: str) -> bool:
    """Whether a name has the form `__name__`.

    >>> is_dunder("__class__"), is_dunder("__private"), is_dunder("____")
    (True, False, False)
    """
    return len(name) > 4 and name.startswith("__") and name.endswith("__")


def refusal(name: str) -> str:
    """The message for an attribute that environments can't have."""
    hint = _HINTS.get(name, "write the environment without reflection")
    return f"the attribute {name!r} is interpreter-internal and not available here; {hint}"


def refused_attribute(name: str) -> bool:
    """Whether reading an attribute of this name is refused wherever it is written."""
    return name in INTERNAL_ATTRIBUTES or (is_dunder(name) and name not in READABLE)


def static_format_check(template: str) -> None:
    """Check a literal format string; a malformed one fails when it runs, as in ordinary Python.

    Raises:
        PolicyViolation: a field reads an interpreter-internal attribute.
    """
    try:
        names = list(_format_attributes(template))
    except ValueError:
        return
    for name in names:
        if refused_attribute(name):
            raise PolicyViolation(refusal(name))


def _format_attributes(template: str, depth: int = 0) -> Iterator[str]:
    """The attribute names that a format string reads, those of nested specifications too."""
    for _, field, spec, _ in formatter_parser(template):
        if field and "." in field:
            for is_attribute, key in formatter_field_name_split(field)[1]:
                if is_attribute:
                    yield key
        if spec and "{" in spec and depth < 3:
            yield from _format_attributes(spec, depth + 1)


class Guards:
    """The guarded functions of one namespace.

    Args:
        entropy: where refusals are recorded.
    """

    def __init__(self, entropy: Entropy) -> None:
        self._record = entropy.violations.append
        self.functions: dict[str, Callable[..., Any]] = _functions(self)

    def refuse(self, message: str, code: str = "SPD103") -> PolicyViolation:
        """Record a refusal and return it, to be raised."""
        violation = PolicyViolation(message, code)
        self._record(violation)
        return violation

    def attribute_name(self, name: Any, *, write: bool = False) -> str:
        """Check the name of a computed attribute.

        Raises:
            PolicyViolation: the name is interpreter-internal.
            TypeError: it is no string, as Python's own functions have it.
        """
        if type(name) is not str:
            if not isinstance(name, str):
                raise TypeError("attribute name must be string")
            # A subclass may lie about its own text, so take the text itself.
            name = str.__str__(name)
        checked: str = name
        if checked.startswith("__") and (write or checked not in READABLE):
            raise self.refuse(refusal(checked))
        if checked in INTERNAL_ATTRIBUTES:
            raise self.refuse(refusal(checked))
        return checked

    def check_format(self, template: str) -> None:
        """Check the fields of a format string.

        Raises:
            PolicyViolation: a field reads an interpreter-internal attribute.
        """
        if "." in template:
            for name in _format_attributes(template):
                self.attribute_name(name)

    def special(self, obj: Any, name: str) -> Any:
        """Read an attribute whose meaning depends on the object (`GUARDED_ATTRIBUTES`)."""
        if type(obj) is str and "." not in obj:
            # Without a dot no field reads an attribute.
            return getattr(obj, name)
        if name == "obj" and isinstance(obj, (AttributeError, NameError, ImportError)):
            raise self.refuse(refusal(name))
        # Looking at what was found, not at the object, also covers `super()` and subclasses.
        found = getattr(obj, name)
        kind = type(found)
        if kind is BuiltinMethodType and isinstance(found.__self__, str):
            return self._format(str.__str__(found.__self__), found)
        if kind is MethodDescriptorType and found.__objclass__ is str:
            return self._unbound_format(found)
        if name in _EVALUATORS and getattr(found, "__func__", found) is _EVALUATORS[name]:
            raise self.refuse(refusal(name))
        return found

    def augment(self, obj: Any, name: str, operation: str, value: Any) -> None:
        """What `obj.name += value` does, for an attribute that is read by its guard."""
        setattr(obj, name, _IN_PLACE[operation](self.special(obj, name), value))

    def _format(self, template: str, method: Callable[..., str]) -> Callable[..., str]:
        def format(*args: Any, **values: Any) -> str:
            self.check_format(template)
            return method(*args, **values)

        return format

    def _unbound_format(self, method: Callable[..., str]) -> Callable[..., str]:
        def format(text: str, /, *args: Any, **values: Any) -> str:
            if isinstance(text, str):
                self.check_format(str.__str__(text))
            return method(text, *args, **values)

        return format

    def read(self, obj: Any, name: str) -> Any:
        """Read a checked attribute."""
        if name in GUARDED_ATTRIBUTES:
            return self.special(obj, name)
        return getattr(obj, name)


def _functions(guards: Guards) -> dict[str, Callable[..., Any]]:
    missing = object()

    def guarded_getattr(obj: Any, name: str, default: Any = missing, /) -> Any:
        """Read an attribute by a computed name, dunder and internal ones excepted."""
        checked = guards.attribute_name(name)
        try:
            return guards.read(obj, checked)
        except AttributeError:
            if default is missing:
                raise
            return default

    def guarded_setattr(obj: Any, name: str, value: Any, /) -> None:
        """Write an attribute by a computed name, dunder and internal ones excepted."""
        setattr(obj, guards.attribute_name(name, write=True), value)

    def guarded_delattr(obj: Any, name: str, /) -> None:
        """Delete an attribute by a computed name, dunder and internal ones excepted."""
        delattr(obj, guards.attribute_name(name, write=True))

    def guarded_hasattr(obj: Any, name: str, /) -> bool:
        """Whether an attribute of a computed name exists."""
        return hasattr(obj, guards.attribute_name(name))

    def walk(obj: Any, path: list[str]) -> Any:
        for part in path:
            obj = guards.read(obj, part)
        return obj

    def attrgetter(*names: str) -> Callable[[Any], Any]:
        """`operator.attrgetter` with checked names."""
        if not names:
            raise TypeError("attrgetter expected at least 1 argument, got 0")
        paths = []
        for name in names:
            if not isinstance(name, str):
                raise TypeError("attribute name must be a string")
            paths.append([guards.attribute_name(part) for part in str.__str__(name).split(".")])
        if len(paths) == 1:
            return lambda obj: walk(obj, paths[0])
        return lambda obj: tuple(walk(obj, path) for path in paths)

    def methodcaller(name: str, /, *args: Any, **values: Any) -> Callable[[Any], Any]:
        """`operator.methodcaller` with a checked name."""
        checked = guards.attribute_name(name)
        return lambda obj: guards.read(obj, checked)(*args, **values)

    return {
        "getattr": guarded_getattr,
        "setattr": guarded_setattr,
        "delattr": guarded_delattr,
        "hasattr": guarded_hasattr,
        "attrgetter": attrgetter,
        "methodcaller": methodcaller,
    }

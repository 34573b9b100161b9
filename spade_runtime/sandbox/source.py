"""One source inside a child: read by the static gates in one, run in others.

The seam between the child's loop and the language layer (`policy`, `contract`, `views`,
`entropy`, `authoring`, `toolspec`).
"""

from __future__ import annotations

import ast
import json
import marshal
import sys
from collections.abc import Callable
from types import CodeType, ModuleType
from typing import Any, NamedTuple

from spade_runtime import authoring, contract, dialects, policy, toolspec, views
from spade_runtime.entropy import Entropy
from spade_runtime.sandbox import claims
from spade_runtime.sandbox.wire import (
    Bad,
    Inspect,
    Inspection,
    Load,
    RawFinding,
    RawSolution,
    Reading,
)

_DIALECTS = ("contract", "published", "gem")
_FINDINGS_MAX = 200
_ACTIONS_MAX = 4096
_TURNS_MAX = 64
_CALLS_MAX = 256


class Room(NamedTuple):
    """Where a module is going to run: its sources of chance, its module and its globals."""

    entropy: Entropy
    module: ModuleType
    namespace: dict[str, Any]


class Rooms:
    """Rooms made before the fork: to make one takes a child longer than all else about loading.

    A room holds nothing of a source but whether its policy is on, and its dialect. Each is given
    out once, as it was made.

    Attributes:
        filling: kept for the places that it takes.
    """

    def __init__(self) -> None:
        self._ready: dict[tuple[bool, str], Room] = {}
        self.filling: list[Any] = []

    def make_ready(self) -> None:
        """Make those that children may need."""
        for dialect in _DIALECTS:
            for guarded in (True, False):
                self._ready[guarded, dialect] = _room(guarded, dialect)
        sys.modules.pop(views.MODULE_NAME, None)

    def take(self, *, guarded: bool, dialect: str) -> Room:
        """Give one out, made now where there is none."""
        room = self._ready.pop((guarded, dialect), None) or _room(guarded, dialect)
        # Dataclasses and typing look a class's module up there.
        sys.modules[views.MODULE_NAME] = room.module
        return room


ROOMS = Rooms()
"""A child's own copy of what its zygote made."""


def _room(guarded: bool, dialect: str) -> Room:
    entropy = Entropy()
    namespace = views.namespace(entropy, policy=guarded, dialect=dialect)
    return Room(entropy, sys.modules[views.MODULE_NAME], namespace)


def read(request: Inspect) -> Reading:
    """Run the static gates; nothing of the source runs."""
    text, filename = request.source, claims.SOURCE_NAME
    result = policy.check(text, filename=filename) if request.policy else None
    found: list[Any] = list(result.findings) if result else []
    tree: ast.Module | None = None
    code: CodeType | None = None
    seen = Inspection()
    if result is not None:
        tree, code = result.tree, result.code
        seen.imports = sorted(result.uses)
    else:
        try:
            code = policy.compile_checked(text, policy=False)
            tree = ast.parse(text.removeprefix("\ufeff"), filename)
            seen.imports = _imported(tree)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            # The policy words it, and finds nothing else in a source that has no tree.
            found = list(policy.check(text, filename=filename).findings)
    if tree is not None:
        reading = contract.read(tree)
        found += reading.findings
        seen.kind, seen.dialect = reading.kind, reading.dialect
        seen.class_name, seen.title = reading.class_name, reading.title
        seen.skill, seen.max_turns = reading.skill or "", reading.max_turns
        seen.version, seen.docstring = reading.version, reading.docstring or ""
        seen.has_solution = reading.has_solution
    seen.findings = [
        RawFinding(one.code, claims.clean(one.message, 500), one.line, one.column)
        for one in found[:_FINDINGS_MAX]
    ]
    return Reading(seen, _packed(code, request.reply_bytes // 2))


def _packed(code: CodeType | None, most: int) -> bytes | None:
    if code is None:
        return None
    data = marshal.dumps(code)
    return data if len(data) <= most else None


class Program:
    """A module that runs here.

    Args:
        request: what it is.
    """

    def __init__(self, request: Load) -> None:
        self.is_tool_use = request.tool_use
        self.entropy = Entropy()
        self._request = request
        self._class: Any = None
        self._make: Callable[[], Any] | None = None

    def load(self) -> None:
        """Run the module and find its class; what it raises goes through."""
        asked = self._request
        code = None if asked.code is None else marshal.loads(asked.code)
        if code is None:
            filename = claims.SOURCE_NAME
            code = policy.compile_checked(asked.source, policy=asked.policy, filename=filename)
        room = ROOMS.take(guarded=asked.policy, dialect=asked.dialect)
        self.entropy = room.entropy
        self.entropy.real_generators = asked.real_generators
        exec(code, room.namespace)
        self._class = room.namespace[asked.class_name]
        kind = "tool_use" if self.is_tool_use else "game"
        self._make = dialects.adapt(self._class, dialect=asked.dialect, kind=kind)

    def tools(self) -> tuple[bytes, list[tuple[str, str]]]:
        """The tools' schemas as a JSON list, and what is wrong with them."""
        if not self.is_tool_use:
            return b"[]", []
        published = self._request.dialect == "published"
        derive = dialects.tools if published else toolspec.derive
        schemas, problems = derive(self._class)
        return json.dumps(schemas).encode(), list(problems)

    def seeded(self, seed: int) -> Any:
        """Make the sources of chance of one episode and bring them in force."""
        return self.entropy.new(seed)

    def activate(self, state: Any) -> None:
        """Bring an instance's own sources of chance in force."""
        self.entropy.activate(state)

    def construct(self) -> Any:
        """Make an instance, behind the contract's interface."""
        if self._make is None:
            raise RuntimeError("no class was loaded yet")
        return self._make()


def _imported(tree: ast.Module) -> list[str]:
    roots: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            roots.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            roots.add(node.module.partition(".")[0])
    return sorted(roots)


def instructions(instance: Any) -> tuple[list[str] | None, Bad | None]:
    """The user's instructions that `reset` left: the texts, or the first that is none."""
    texts = []
    for value in authoring.instructions(instance)[:_TURNS_MAX]:
        text = claims.text(value)
        if isinstance(text, Bad):
            return None, text
        texts.append(text)
    return texts, None


def criterion_holds(instance: Any, turn: int) -> bool:
    """Ask whether a user turn is done now."""
    return authoring.criterion_holds(instance, turn)


def call_tool(instance: Any, name: str, arguments: dict[str, Any]) -> Any:
    """Run one declared tool and render its result.

    Raises:
        LookupError: the class declares no tool of that name.
    """
    if isinstance(instance, dialects.PublishedTools):
        return instance.call(name, arguments)
    if name not in authoring.declared_tools(type(instance)):
        raise LookupError(f"there is no tool {name!r}")
    return authoring.rendered(getattr(instance, name)(**arguments))


def solution(instance: Any, *, tool_use: bool) -> RawSolution:
    """Ask for the reference solution of the state that `reset` left."""
    method = getattr(instance, "solution", None)
    if not callable(method):
        return RawSolution()
    steps = method()
    if steps is None:
        return RawSolution()
    if type(steps) not in (list, tuple):
        return RawSolution(bad=claims.bad(steps, "a list is expected"))
    return _calls(steps) if tool_use else _actions(steps)


def _actions(steps: Any) -> RawSolution:
    if len(steps) > _ACTIONS_MAX:
        return RawSolution(bad=Bad("list", "", f"more than {_ACTIONS_MAX} actions"))
    actions = []
    for step in steps:
        action = claims.text(step)
        if isinstance(action, Bad):
            return RawSolution(bad=action)
        actions.append(action)
    return RawSolution(actions=actions)


def _calls(turns: Any) -> RawSolution:
    if len(turns) > _TURNS_MAX:
        return RawSolution(bad=Bad("list", "", f"calls for more than {_TURNS_MAX} turns"))
    found: list[list[tuple[str, bytes]]] = []
    for turn in turns:
        if type(turn) not in (list, tuple) or len(turn) > _CALLS_MAX:
            return RawSolution(bad=claims.bad(turn, "a list of calls is expected for each turn"))
        calls: list[tuple[str, bytes]] = []
        for one in turn:
            if not isinstance(one, authoring.Call) or type(one.name) is not str:
                return RawSolution(bad=claims.bad(one, "write call(name, argument=value)"))
            arguments = claims.mapping(one.arguments)
            if isinstance(arguments, Bad):
                return RawSolution(bad=arguments)
            calls.append((one.name, arguments))
        found.append(calls)
    return RawSolution(calls=found)

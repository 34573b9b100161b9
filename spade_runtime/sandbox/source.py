"""One source inside the child: inspected by the static gates, then run.

The seam between the child's loop and the language layer (`policy`, `contract`, `views`,
`entropy`, `authoring`, `toolspec`).
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Callable
from types import CodeType, ModuleType
from typing import Any, NamedTuple

from spade_runtime import authoring, contract, dialects, policy, toolspec, views
from spade_runtime.entropy import Entropy
from spade_runtime.sandbox import claims
from spade_runtime.sandbox.wire import Bad, Inspection, RawFinding, RawSolution

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


class Program:
    """A source, and what was made of it.

    Args:
        source: the text of the file.
        policy: hold it to the static policy and run it in the guarded namespace.
    """

    def __init__(self, source: str, *, policy: bool) -> None:
        self.source = source
        self.policy = policy
        self.is_tool_use = False
        self._class: Any = None
        self._make: Callable[[], Any] | None = None
        self._code: CodeType | None = None
        self._class_name = ""
        self.dialect = "contract"
        self.entropy = Entropy()

    def inspection(self) -> Inspection:
        """Run the static gates; nothing of the source runs."""
        result = policy.check(self.source, filename=claims.SOURCE_NAME) if self.policy else None
        found: list[Any] = list(result.findings) if result else []
        tree: ast.Module | None = None
        reply = Inspection()
        if result is not None:
            tree, self._code = result.tree, result.code
            reply.imports = sorted(result.uses)
        else:
            try:
                self._code = policy.compile_checked(self.source, policy=False)
                tree = ast.parse(self.source.removeprefix("\ufeff"), claims.SOURCE_NAME)
                reply.imports = _imported(tree)
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                # The policy words it, and finds nothing else in a source that has no tree.
                found = list(policy.check(self.source, filename=claims.SOURCE_NAME).findings)
        if tree is not None:
            reading = contract.read(tree)
            found += reading.findings
            self._class_name = reading.class_name or ""
            self.is_tool_use = reading.kind == "tool_use"
            self.dialect = reading.dialect or "contract"
            reply.kind, reply.dialect = reading.kind, reading.dialect
            reply.class_name, reply.title = reading.class_name, reading.title
            reply.skill, reply.max_turns = reading.skill or "", reading.max_turns
            reply.version, reply.docstring = reading.version, reading.docstring or ""
            reply.has_solution = reading.has_solution
        reply.findings = [
            RawFinding(one.code, claims.clean(one.message, 500), one.line, one.column)
            for one in found[:_FINDINGS_MAX]
        ]
        return reply

    def load(self) -> None:
        """Run the module and find its class; what it raises goes through."""
        code = self._code
        if code is None:
            filename = claims.SOURCE_NAME
            code = policy.compile_checked(self.source, policy=self.policy, filename=filename)
        room = ROOMS.take(guarded=self.policy, dialect=self.dialect)
        self.entropy = room.entropy
        self.entropy.real_generators = "networkx" in self.source
        exec(code, room.namespace)
        self._class = room.namespace[self._class_name]
        kind = "tool_use" if self.is_tool_use else "game"
        self._make = dialects.adapt(self._class, dialect=self.dialect, kind=kind)

    def tools(self) -> tuple[bytes, list[tuple[str, str]]]:
        """The tools' schemas as a JSON list, and what is wrong with them."""
        if not self.is_tool_use:
            return b"[]", []
        published = self.dialect == "published"
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

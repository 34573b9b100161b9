"""Plays: many environments and turns in flight, both arms through one code path.

Plays advance turn by turn in waves. While the policy answers one wave, threads take in the replies
of the others and let the sandbox step them, so neither waits for the other for long. Waves are
fixed before the first turn: what is batched together never depends on timing, and a resumed run
repeats the unbroken one.

Each environment is stepped by a call of its own. One call for a whole wave would save some three
microseconds a turn, and would void the wave where the machine fails one child.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol, TypeVar

from spade_runtime.errors import EnvFault, HostError, InvalidEnvironment, SpadeError
from spade_runtime.messages import split_results, with_hint
from spade_runtime.spec import EnvSpec, Kind
from spade_train.errors import PolicyUnavailable
from spade_train.ledger import Ledger
from spade_train.plays import Group, Play
from spade_train.policies.base import Generation, Message, Policy, Sampling
from spade_train.prompts import Style, agent_messages
from spade_train.seeds import derive
from spade_train.tokens import Dialogue, check_sample

_T = TypeVar("_T")
# A wave's plays take the policy about this much longer than their children take to open.
GROWTH = 1.6


class Session(Protocol):
    """The part of `spade_runtime.sandbox.EnvSession` that a rollout uses."""

    spec: EnvSpec

    def reset(
        self,
        seeds: Sequence[int],
        *,
        slots: Sequence[int] | None = None,
        max_turns: int | None = None,
    ) -> Sequence[Any]:
        """Begin an episode in each slot."""
        ...

    def step(self, messages: Sequence[Any], *, slots: Sequence[int] | None = None) -> Sequence[Any]:
        """Take one message in each slot."""
        ...

    def close(self) -> None:
        """End the child."""
        ...


class Sandbox(Protocol):
    """The part of `spade_runtime.sandbox.SandboxPool` that a rollout uses."""

    def open(self, source: Any, *, instances: int = 1) -> Any:
        """Return a session of a fresh child."""
        ...


@dataclass(frozen=True, slots=True)
class RolloutSettings:
    """Limits and manner of plays.

    Attributes:
        style: of the agent's prompt.
        sampling: of its replies; `max_tokens` is a turn's limit.
        max_turns: turns of an episode at most.
        context_tokens: a conversation that leaves no room below this is cut.
        threads: sandbox calls in flight.
        waves: parts of the plays that take turns between policy and sandbox. More of them begin
            sooner and wait less, but make smaller batches.
    """

    style: Style
    sampling: Sampling
    max_turns: int
    context_tokens: int
    threads: int = 8
    waves: int = 4


@dataclass(slots=True)
class _Running:
    """The plays of one group beside the child that they run in."""

    place: int
    group: Group
    plays: list[Play]
    session: Session | None = None

    def open_slots(self) -> list[int]:
        return [slot for slot, play in enumerate(self.plays) if not play.over]

    def close(self) -> None:
        """End the child; may be called twice."""
        if self.session is not None:
            self.session.close()

    def void(self, error: SpadeError) -> None:
        """Void what has not ended: the child is gone, or the host failed it."""
        code = getattr(error, "code", None)
        if isinstance(error, InvalidEnvironment):
            code = next((f.code for f in error.findings if f.severity == "error"), None)
        fault = {"kind": type(error).__name__, "code": code, "message": str(error)[:500]}
        if isinstance(error, HostError):
            fault["host"] = True
        for slot in self.open_slots():
            self.plays[slot].fault = dict(fault)


class Rollout:
    """Plays groups of environments with a policy.

    Args:
        sandbox: gives a fresh child for each group.
        policy: the agent.
        settings: limits and manner.
        ledger: charged for tokens and executions.
        role: the ledger's account.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        policy: Policy,
        settings: RolloutSettings,
        ledger: Ledger,
        role: str = "agent",
    ) -> None:
        self.sandbox = sandbox
        self.policy = policy
        self.settings = settings
        self.ledger = ledger
        self.role = role

    def play(self, groups: Sequence[Group], *labels: object) -> list[list[Play]]:
        """Play every group to its end.

        Args:
            groups: in any order; the order in which their children start is secret.
            labels: name the random streams (the run's seed, the step).

        Returns:
            For each group the plays of its seeds, in order.

        Raises:
            PolicyUnavailable: the policy gave up. Plays that had ended are in its `plays`.
            TokenInvariantError: a sample that would train is not sound.
        """
        running = [
            _Running(
                place, group, [Play(group, seed, policy=self.policy.name) for seed in group.seeds]
            )
            for place, group in enumerate(groups)
        ]
        # Which arm's child starts first must tell an environment nothing.
        order = list(running)
        random.Random(derive("secret-order", *labels)).shuffle(order)
        waves = in_waves(order, self.settings.waves)
        # What the policy kept of other plays was read with other weights.
        self.policy.forget()
        with ThreadPoolExecutor(self.settings.threads) as threads:
            try:
                self._play(waves, threads, labels)
            except PolicyUnavailable as error:
                threads.shutdown(cancel_futures=True)
                error.plays = [p for r in running for p in r.plays if p.over]
                raise
            finally:
                # No child may begin after its session was closed.
                threads.shutdown(cancel_futures=True)
                for one in running:
                    one.close()
        self.policy.forget()
        self.ledger.executed(self.role, sum(len(r.plays) for r in running))
        for play in (play for one in running for play in one.plays):
            self._check(play)
        return [r.plays for r in running]

    def _play(
        self, waves: Sequence[Sequence[_Running]], threads: ThreadPoolExecutor, labels: Any
    ) -> None:
        pending: list[list[Future[None]]] = [
            [threads.submit(self._begin, r) for r in wave] for wave in waves
        ]
        turn = 0
        while any(pending):
            for number, wave in enumerate(waves):
                self._wait(pending[number])
                answered = self._answer(wave, turn, labels)
                pending[number] = [threads.submit(self._go_on, *one) for one in answered]
            turn += 1

    def _wait(self, jobs: Sequence[Future[None]]) -> None:
        for job in jobs:
            job.result()

    def _begin(self, running: _Running) -> None:
        """Open the child, reset it, and put the first observations into prompts."""
        group = running.group
        try:
            running.session = self.sandbox.open(group.source, instances=len(group.seeds))
            for play in running.plays:
                play.id = running.session.spec.id
            results = running.session.reset(group.seeds, max_turns=self.settings.max_turns)
        except (EnvFault, HostError, InvalidEnvironment) as error:
            running.void(error)
            return
        for play, result in zip(running.plays, results, strict=True):
            note = result.info["spade"]
            if note.get("fault"):
                play.fault = dict(note["fault"])
                continue
            play.observations.append(result.observation)
            text = with_hint(result.observation, group.hint)
            messages = agent_messages(self.settings.style, text, kind=group.kind)
            tools = [_tool(tool) for tool in note.get("tools") or ()]
            play.dialogue = Dialogue(self.policy, messages, tools or None)

    def _answer(
        self, wave: Iterable[_Running], turn: int, labels: Any
    ) -> list[tuple[_Running, dict[int, Generation]]]:
        """Let the policy answer all open plays of a wave in one batch; what it says, by group."""
        asked: list[tuple[_Running, int, Dialogue]] = []
        room = min(self.settings.context_tokens, self.policy.context_tokens or 1 << 30)
        for running in wave:
            for slot in running.open_slots():
                dialogue = running.plays[slot].dialogue
                assert dialogue is not None  # an open play has been reset
                if len(dialogue.prompt) >= room:
                    running.plays[slot].cut = running.plays[slot].truncated = True
                else:
                    asked.append((running, slot, dialogue))
        if not asked:
            return []
        seeds = [
            derive("agent", *labels, r.group.name, r.group.arm, slot, turn) for r, slot, _ in asked
        ]
        prompts = [dialogue.prompt for _, _, dialogue in asked]
        with self.ledger.timed(self.role):
            names = [(running.place, slot) for running, slot, _ in asked]
            replies = self.policy.converse(prompts, self.settings.sampling, seeds, names)
        self.ledger.generated(
            self.role,
            tokens_in=sum(map(len, prompts)),
            tokens_out=sum(len(reply.token_ids) for reply in replies),
            known=sum(reply.known for reply in replies),
            generations=len(replies),
        )
        answered: dict[int, tuple[_Running, dict[int, Generation]]] = {}
        for (running, slot, _), reply in zip(asked, replies, strict=True):
            answered.setdefault(running.place, (running, {}))[1][slot] = reply
        return list(answered.values())

    def _go_on(self, running: _Running, replies: Mapping[int, Generation]) -> None:
        """Take a group's replies in, step its child with them, and end what is over."""
        said = {}
        for slot in sorted(replies):
            text = self._take(running.plays[slot], replies[slot])
            if text is not None:
                said[slot] = text
        if said:
            self._step(running, said)
        for slot in replies:
            if running.plays[slot].over:
                self._check(running.plays[slot])
        if not running.open_slots():
            running.close()

    def _check(self, play: Play) -> None:
        """Assert that an episode's samples are sound, once."""
        if self.policy.trainable and not play.checked:
            for sample in play.samples:
                check_sample(sample, self.policy)
            play.checked = True

    def _take(self, play: Play, reply: Generation) -> str | None:
        """Take a reply in; None where it was cut, which ends the episode unseen."""
        assert play.dialogue is not None  # an open play has been reset
        text = play.dialogue.reply(reply)
        play.replies.append(text)
        if reply.finish == "length":
            play.rewards.append(0.0)
            play.cut = play.truncated = True
            return None
        return text

    def _step(self, running: _Running, said: Mapping[int, str]) -> None:
        """Give a group's messages to its child and take the results in."""
        slots = list(said)
        assert running.session is not None
        try:
            results = running.session.step([said[slot] for slot in slots], slots=slots)
        except (EnvFault, HostError) as error:
            running.void(error)
            return
        for slot, result in zip(slots, results, strict=True):
            play = running.plays[slot]
            note = result.info["spade"]
            play.actions.append(note.get("action"))
            play.rewards.append(float(result.reward))
            play.observations.append(result.observation)
            if note.get("fault"):
                play.fault = dict(note["fault"])
                continue
            play.terminated, play.truncated = result.terminated, result.truncated
            play.solved = bool(note.get("solved"))
            play.credit = note.get("credit", play.credit)
            if not play.over and play.dialogue is not None:
                play.dialogue.answer(_said(running.group.kind, result.observation, note))


def in_waves(items: Sequence[_T], waves: int) -> list[Sequence[_T]]:
    """Part items into waves, each larger than the one before.

    The policy waits for the first wave's children and begins; while it answers, those of the next
    ones open, the more of them the longer it takes.

    >>> [len(wave) for wave in in_waves(range(48), 4)]
    [5, 8, 14, 21]
    """
    shares = [GROWTH**number for number in range(waves)]
    edges = [round(len(items) * sum(shares[:n]) / sum(shares)) for n in range(waves + 1)]
    parts = [items[start:end] for start, end in pairwise(edges)]
    return [part for part in parts if part]


def _said(kind: Kind, observation: str, note: Mapping[str, Any]) -> list[Message]:
    """Return what the environment said as messages: one a tool result, in the tool's role.

    A message without any call was answered by a reminder, which no tool said.
    """
    calls = note.get("action") or ()
    if kind == "game" or not calls:
        return [{"role": "user", "content": observation}]
    return [{"role": "tool", "content": text} for text in split_results(observation, len(calls))]


def _tool(tool: Any) -> Mapping[str, Any]:
    """Return a tool schema as plain JSON, without the function wrapper."""
    plain: Mapping[str, Any] = tool if isinstance(tool, Mapping) else tool.model_dump()
    return plain.get("function", plain) if plain.get("type") == "function" else plain

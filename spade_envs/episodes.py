"""Recorded episodes: JSON Lines, one episode a line, complete enough to be played again.

An episode holds what decides it (source hash, seed, turn limit, the agent's actions) and what came
of it (observations, rewards, how it ended), so that a replay can say where the first difference
is (`spade_envs.replay`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from spade_envs.manifest import parsed, require_contract
from spade_runtime.errors import SpadeError, UsageError
from spade_runtime.messages import split_results, with_hint
from spade_runtime.sandbox.session import ResetResult, StepResult
from spade_runtime.spec import CONTRACT_VERSION, EnvSpec, Sha256
from spade_runtime.validation.text import visible


class Fault(BaseModel):
    """What ended an episode before its time.

    Attributes:
        kind: type of the fault.
        code: finding code of an environment's fault; None where the machine was at fault.
        host: the machine, not the environment, was at fault.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: str
    code: str | None = None
    message: str = ""
    host: bool = False


class Episode(BaseModel):
    """One episode, in the form of `schemas/episode.schema.json`.

    Attributes:
        sha256: hash of the source.
        max_turns: the limit it was played under, in agent messages.
        hint: the hint that the first observation carried; `observations` are without it.
        policy: who played.
        step: training step, in the files of a training run, as are the next three.
        name: of the design: the step that made it and its slot in the pool.
        arm: of the pair, without the hint or with it.
        episode_return: what it was worth to the run, by its return mode; None where it is void.
        observations: the first observation and the one after each action: one more than actions.
        actions: what the runtime made of each message of the agent; a replay sends these.
        rewards: one an action.
        messages: the conversation in OpenAI's form, as the agent saw and continued it.
        token_ids: the ids that the agent sampled, one list a message.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    contract_version: int = CONTRACT_VERSION
    id: str | None = None
    sha256: Sha256
    seed: int = Field(ge=0, lt=2**31)
    max_turns: int | None = Field(default=None, ge=1, le=100)
    hint: str | None = None
    policy: str | None = None
    step: int | None = None
    name: str | None = None
    arm: Literal["unhinted", "hinted"] | None = None
    episode_return: float | None = None
    observations: list[str]
    actions: list[Any]
    rewards: list[float]
    messages: list[dict[str, Any]] = Field(default_factory=list)
    terminated: bool = False
    truncated: bool = False
    solved: bool = False
    fault: Fault | None = None
    token_ids: list[list[int]] | None = None

    @model_validator(mode="after")
    def _lengths(self) -> Episode:
        turns = len(self.rewards)
        if len(self.actions) != turns:
            raise ValueError(f"{turns} rewards for {len(self.actions)} actions, not one for each")
        if len(self.observations) != turns + 1:
            raise ValueError(
                f"{len(self.observations)} observations for {turns} actions, not one more"
            )
        return self

    @property
    def turns(self) -> int:
        """Number of actions."""
        return len(self.rewards)

    @property
    def total(self) -> float:
        """Sum of the rewards."""
        return float(sum(self.rewards))


class Recording:
    """Collects one episode while it is played.

    Args:
        spec: the environment.
        seed: the seed of its reset.
        start: what the reset gave.
        max_turns: the limit it is played under.
        hint: the hint that the agent sees besides the first observation.
        policy: who plays.

    Attributes:
        messages: the conversation so far, as the agent sees it.
    """

    def __init__(
        self,
        spec: EnvSpec,
        seed: int,
        start: ResetResult,
        *,
        max_turns: int | None = None,
        hint: str | None = None,
        policy: str | None = None,
    ) -> None:
        self.spec = spec
        self.seed = seed
        self.max_turns = max_turns
        self.hint = hint
        self.policy = policy
        self.observations = [start.observation]
        self.messages = [{"role": "user", "content": with_hint(start.observation, hint)}]
        self.actions: list[Any] = []
        self.rewards: list[float] = []
        self.last: StepResult | None = None
        self.fault = _fault(start.info)

    @property
    def over(self) -> bool:
        """Whether the episode has ended."""
        ended = self.last is not None and (self.last.terminated or self.last.truncated)
        return ended or self.fault is not None

    def add(self, message: Any, result: StepResult) -> None:
        """Add one message of the agent and what came of it."""
        said = result.info.get("spade", {})
        self.messages += as_chat(message, result.observation)
        self.actions.append(said.get("action", message))
        self.rewards.append(float(result.reward))
        self.observations.append(result.observation)
        self.fault = _fault(result.info)
        self.last = result

    def episode(self) -> Episode:
        """The episode as far as it was played."""
        last = self.last
        return Episode(
            id=self.spec.id,
            sha256=self.spec.sha256,
            seed=self.seed,
            max_turns=self.max_turns,
            hint=self.hint,
            policy=self.policy,
            observations=self.observations,
            actions=self.actions,
            rewards=self.rewards,
            messages=self.messages,
            terminated=last is not None and last.terminated,
            truncated=last is not None and last.truncated,
            solved=last is not None and bool(last.info.get("spade", {}).get("solved")),
            fault=self.fault,
        )


def as_chat(message: Any, observation: str) -> list[dict[str, Any]]:
    """A message of the agent and the observation that answers it, in OpenAI's form.

    Structured calls are answered by a tool message each, as servers demand.
    """
    calls = message.get("tool_calls") if isinstance(message, dict) else message
    if not isinstance(calls, list) or not calls:
        text = message.get("content") or "" if isinstance(message, dict) else str(message)
        answer = {"role": "user", "content": observation}
        return [{"role": "assistant", "content": text}, answer]
    named = [
        call if "function" in call else {"type": "function", "function": call} for call in calls
    ]
    named = [{"id": f"call_{place}", **call} for place, call in enumerate(named)]
    answers = split_results(observation, len(named))
    answers += [""] * (len(named) - len(answers))
    text = message.get("content") or "" if isinstance(message, dict) else ""
    return [
        {"role": "assistant", "content": text, "tool_calls": named},
        *(
            {"role": "tool", "tool_call_id": call["id"], "content": answer}
            for call, answer in zip(named, answers, strict=True)
        ),
    ]


def _fault(info: dict[str, Any]) -> Fault | None:
    said = info.get("spade", {}).get("fault")
    if not said:
        return None
    return Fault(kind=said["kind"], code=said["code"], message=said.get("message", ""))


def json_line(value: Any) -> str:
    r"""A value as one line of JSON that UTF-8 can hold.

    A server's reply may hold half of a surrogate pair: then whatever is not ASCII is escaped.

    >>> print(json_line(["naïve"]), json_line(["\udcff"]))
    ["naïve"] ["\udcff"]
    """
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(value)
    return text


def to_line(episode: Episode) -> str:
    """One episode as a line of JSON; values that are None are left out."""
    try:
        values = episode.model_dump(mode="json", exclude_none=True)
    except ValueError:  # half a surrogate pair in a key, or more than 255 lists in lists
        values = episode.model_dump(exclude_none=True)
    return json_line(values)


def write_episodes(path: Path, episodes: Iterable[Episode], *, append: bool = False) -> int:
    """Write episodes as they come, each line flushed, so that a stopped run keeps what it had.

    Returns:
        How many were written.

    Raises:
        SpadeError: the file can't be written.
    """
    count = 0
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a" if append else "w", encoding="utf-8") as file:
            for episode in episodes:
                file.write(to_line(episode) + "\n")
                file.flush()
                count += 1
    except OSError as error:
        raise SpadeError(
            f"can't write episodes to {path}: {error.strerror}; written before that: {count}. "
            f"Make room or give permission"
        ) from error
    return count


def drop_cut_line(path: Path) -> bool:
    """Remove a last line that a killed run left without its end; says whether there was one.

    Raises:
        SpadeError: the file can't be changed.
    """
    try:
        data = path.read_bytes()
        if not data or data.endswith(b"\n"):
            return False
        with path.open("r+b") as file:
            file.truncate(data.rfind(b"\n") + 1)
    except OSError as error:
        raise SpadeError(f"can't mend {path}: {error.strerror}") from error
    return True


def read_episodes(path: Path) -> Iterator[Episode]:
    """Read a file of episodes, one at a time.

    Raises:
        UsageError: no such file, or a line that is no episode; the message names the line.
    """
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield _parse(line, f"{path}, line {number}")
    except OSError as error:
        raise UsageError(f"can't read episodes from {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text: {error.reason}") from error


def _parse(line: str, where: str) -> Episode:
    try:
        raw = parsed(line)
    except ValueError as error:
        raise UsageError(f"{where}: not JSON, or a line that was cut off: {error}") from error
    if not isinstance(raw, dict):
        raise UsageError(f"{where}: a JSON {type(raw).__name__}, expected an object")
    require_contract(raw.get("contract_version", CONTRACT_VERSION), where)
    try:
        return Episode.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        place = visible(".".join(map(str, first["loc"])), 120) or "the episode"
        raise UsageError(f"{where}: {place}: {first['msg']}") from error

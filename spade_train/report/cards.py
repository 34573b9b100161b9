"""One card an environment: what was designed, joined with how it was played."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from spade_train.analysis.levers import levers
from spade_train.analysis.played import Played, group_by_design
from spade_train.report.records import Row, RunRecords, rounded
from spade_train.report.rules import Rule, rule_of

TEXT_LIMIT = 6000
# The lever that stands in no attribute of a source: how far its hidden rule goes.
REACH = "rule_reach"


@dataclass(slots=True)
class Card:
    """A try of the designer, and the plays of it where it was accepted.

    Attributes:
        design: the record of `designs.jsonl`.
        played: what its episodes say, None where it has none.
        levers: the numbers that set its difficulty.
        rule: its hidden rule, where its source is one of the embedded policy's world.
        children: positions of the cards in whose prompt it stood.
        parents: positions of the cards that stood in its prompt.
    """

    design: Row
    played: Played | None = None
    levers: dict[str, float] = field(default_factory=dict)
    rule: Rule | None = None
    children: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)

    @property
    def accepted(self) -> bool:
        """Whether the validator accepted it."""
        return self.design.get("verdict") == "accepted"

    @property
    def source(self) -> str:
        """Its code, empty where the designer wrote none."""
        return self.design.get("source") or ""

    @property
    def step(self) -> int:
        """The step that made it."""
        return int(self.design["step"])

    @property
    def win_rate(self) -> float | None:
        """Share of unhinted plays that solved it."""
        return self.played.win_rate if self.played else None

    @property
    def regret(self) -> float | None:
        """Its hint regret."""
        return self.played.regret.value if self.played and self.played.regret else None


def build_cards(records: RunRecords) -> list[Card]:
    """Return the run's cards in the order of its designs.

    An episode's name gives the step and the slot that made its environment. Where it has none,
    slots that wrote the very same source in one step share their plays.
    """
    cards = [_card(design) for design in records.designs]
    made = _makers(cards)
    named = {
        f"{card.step:06d}-{int(card.design.get('slot') or 0):03d}": place
        for place, card in enumerate(cards)
        if card.accepted
    }
    pairing = records.config.get("seed_pairing", "paired")
    for step, episodes in records.episodes():
        for (sha256, name), group in group_by_design(episodes).items():
            twins = _twins(made.get(sha256, ()), step)
            if named.get(name) in twins:
                twins = [named[name]]
            if twins:
                played = cards[twins[0]].played or Played()
                played.take(step, group, pairing)
                for index in twins:
                    cards[index].played = played
    _link(cards, made)
    return cards


def _card(design: Row) -> Card:
    source = design.get("source") or ""
    rule = rule_of(source)
    found = levers(source)
    if rule is not None and rule.reach is not None:
        found[REACH] = rule.reach
    return Card(design, levers=found, rule=rule)


Makers = dict[str, list[tuple[int, list[int]]]]


def _makers(cards: Sequence[Card]) -> Makers:
    """Return for each accepted source the steps that made it, in order, with their cards."""
    made: Makers = {}
    for place, card in enumerate(cards):
        if card.accepted and card.design.get("sha256"):
            steps = made.setdefault(str(card.design["sha256"]), [])
            if not steps or steps[-1][0] != card.step:
                steps.append((card.step, []))
            steps[-1][1].append(place)
    return made


def _twins(steps: Sequence[tuple[int, list[int]]], step: int) -> list[int]:
    """Return the cards whose pool was being played at a step: the newest made until then."""
    place = bisect_right(steps, step, key=lambda made: made[0])
    return steps[place - 1][1] if place else []


def _link(cards: list[Card], made: Makers) -> None:
    for index, card in enumerate(cards):
        for sha256 in card.design.get("exemplars") or ():
            for parent in _twins(made.get(str(sha256), ()), card.step - 1)[-1:]:
                card.parents.append(parent)
                cards[parent].children.append(index)


def shown_episode(episode: Row | Any, hint: str = "") -> Row:
    """Return an episode in the short form that the page draws.

    Args:
        episode: a line of an episodes file.
        hint: the environment's; an episode that tells its own doesn't need it.
    """
    texts = [_text(o) for o in episode.get("observations") or ()]
    hint = (_text(episode.get("hint")) or hint) if episode["arm"] == "hinted" else ""
    if texts and hint:
        texts[0] = texts[0].removesuffix(f"\n\nHint: {hint}")
    observations = [_cut(text) for text in texts]
    messages = _agent_messages(episode.get("messages") or ())
    actions = [_text(a) for a in episode.get("actions") or ()]
    rewards = [rounded(reward) for reward in episode.get("rewards") or ()]
    turns = []
    for turn in range(max(len(actions), len(messages), len(observations) - 1, 0)):
        action = actions[turn] if turn < len(actions) else ""
        message = messages[turn] if turn < len(messages) else ""
        turns.append(
            {
                "a": _cut(action),
                "m": _cut(message) if message.strip() != action.strip() else "",
                "r": rewards[turn] if turn < len(rewards) else None,
                "o": observations[turn + 1] if turn + 1 < len(observations) else "",
            }
        )
    ended = "terminated" if episode.get("terminated") else "truncated"
    return {
        "arm": episode["arm"],
        "seed": episode["seed"],
        "step": episode.get("step"),
        "solved": bool(episode.get("solved")),
        "ret": rounded(episode.get("return")),
        "sum": rounded(sum(reward for reward in rewards if reward is not None)),
        "end": ended,
        "fault": _text(episode["fault"]) if episode.get("fault") else "",
        "first": observations[0] if observations else "",
        "hint": _cut(hint),
        "turns": turns,
    }


def _agent_messages(messages: Sequence[Any]) -> list[str]:
    """Return the agent's messages as text; of a whole chat only the assistant's count."""
    chat = all(isinstance(m, dict) and "role" in m for m in messages)
    own = [m for m in messages if not chat or m["role"] == "assistant"]
    return [_text(message) for message in own]


def _text(value: Any) -> str:
    """Return a message, an action or a fault as text: calls as `name(argument=value)`."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, dict):
        if "function" in value and isinstance(value["function"], dict):
            return _text(value["function"])
        if "name" in value:
            return f"{value['name']}({_arguments(value.get('arguments'))})"
        if "content" in value or "tool_calls" in value:
            parts = [_text(value.get("content")), _text(value.get("tool_calls"))]
            return "\n".join(part for part in parts if part)
        if "code" in value or "kind" in value:
            return " ".join(str(value[k]) for k in ("code", "kind", "message") if value.get(k))
    if isinstance(value, list | tuple):
        return "\n".join(_text(item) for item in value)
    return str(value)


def _arguments(arguments: Any) -> str:
    if isinstance(arguments, dict):
        return ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    return _text(arguments)


def _cut(text: str, limit: int = TEXT_LIMIT) -> str:
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n… {len(text) - limit:,} more characters"

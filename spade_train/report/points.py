"""What a run came to, in plain sentences, made from its figures and true whatever these are.

A newcomer meets four terms here (agent, designer with its learnable band, hint regret, levers), and
each is explained in one line where it occurs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spade_train.report.cards import REACH, Card
from spade_train.report.phases import (
    Estimate,
    direction,
    estimate,
    interval,
    quarters,
    third_of,
)
from spade_train.report.records import Row, rounded
from spade_train.report.series import lever_series
from spade_train.told import fixed, share

Columns = dict[str, list[Any]]
SHOWN_LEVERS = 3
NARROW = "\u00a0"
# In one piece: at a line's end the sign would stand apart from what it means.
_MEANING = "(± one standard error)".replace(" ", NARROW)


def points(columns: Columns, cards: Sequence[Card], *, paired: bool = True) -> list[Row]:
    """Return the points of the story in order, those that the run's figures can make.

    Args:
        columns: the metrics over the steps.
        cards: everything that was designed.
        paired: whether both arms were played on the same seeds.
    """
    found = (_agent(columns), _designer(columns, cards), _hints(columns, paired), _levers(cards))
    return [point for point in found if point is not None]


def percent(value: float) -> str:
    """Return a share as a reader expects it."""
    return f"{share(value)}{NARROW}%"


def _agent(columns: Columns) -> Row | None:
    ends = quarters(columns.get("agent/win_rate", []))
    if ends is None:
        return None
    return {
        "id": "agent",
        "heading": "The agent",
        "text": [
            f"In the environments that were written for it, it won {percent(ends[0].mean)} of its "
            f"plays {_when(ends[0], 'first')} and {percent(ends[1].mean)} {_when(ends[1], 'last')}:"
            f" {judged(*ends)}.",
            "Those environments change on the way, so this figure rises when the agent learns and "
            "also when its tasks get easier. " + _apart(columns),
        ],
        "terms": [
            [
                "Agent",
                "the model as it plays: it reads what an environment says, answers, and learns "
                "from plays that went better than others.",
            ],
        ],
    }


def _apart(columns: Columns) -> str:
    measured = [v for v in columns.get("heldout/win_rate", []) if v is not None]
    if len(measured) > 1:
        return "The environments of the headline never change: they tell the two apart."
    return "This run measured no environments that never change, so nothing tells the two apart."


def _designer(columns: Columns, cards: Sequence[Card]) -> Row | None:
    if not cards:
        return None
    accepted = sum(card.accepted for card in cards)
    text = [f"Of {len(cards):,} designs that it wrote, {percent(accepted / len(cards))} passed"]
    ends = quarters(columns.get("designer/acceptance", []))
    if ends is None:
        text[0] += " the checks."
    else:
        worst = min(v for v in columns["designer/acceptance"] if v is not None)
        text[0] += (
            f" the checks: {percent(ends[0].mean)} {_when(ends[0], 'first')}, "
            f"{percent(ends[1].mean)} {_when(ends[1], 'last')}, {percent(worst)} in the worst step."
        )
    band = quarters(columns.get("designer/band_share", []))
    if band is not None:
        text.append(
            f"Of its environments {percent(band[0].mean)} lay in the learnable band "
            f"{_when(band[0], 'first')} and {percent(band[1].mean)} {_when(band[1], 'last')}: "
            f"{judged(*band)}."
        )
    return {
        "id": "designer",
        "heading": "The designer",
        "text": text,
        "terms": [
            [
                "Designer",
                "the same model as it writes environments: short Python programs with a hint, "
                "checked in a sandbox before anyone plays them.",
            ],
            [
                "Learnable band",
                "environments that the agent wins in 20 to 80 % of plays: neither mastered "
                "nor out of reach, so that there is something to learn.",
            ],
        ],
    }


def _hints(columns: Columns, paired: bool) -> Row | None:
    ends = quarters(columns.get("designer/regret", []), columns.get("designer/regret_se"))
    if ends is None:
        return None
    text = [
        f"A hint changed the return of a play by {_signed(ends[0])} {_when(ends[0], 'first')} and "
        f"by {_signed(ends[1])} {_when(ends[1], 'last')} {_MEANING}: "
        f"{judged(*ends, points=False)}."
    ]
    hinted = quarters(columns.get("agent/win_rate_hinted", []))
    own = quarters(columns.get("agent/win_rate", []))
    if hinted and own:
        text.append(
            f"Plays with the hint won {percent(hinted[0].mean)} and then "
            f"{percent(hinted[1].mean)}; {_why(direction(*ends), direction(*hinted))}"
        )
    seeds = "on the same seeds" if paired else "on other seeds"
    return {
        "id": "hints",
        "heading": "The hints",
        "text": text,
        "terms": [
            [
                "Hint regret",
                f"the return of plays with the hint minus that of plays without it, {seeds}. High: "
                "the hint says what the agent does not know yet. Near zero: it knows, or the hint "
                "is no help.",
            ]
        ],
    }


def _why(regret: str, hinted: str) -> str:
    """Say how the two arms moved the regret: it falls too where hints get worse."""
    if regret == "down" and hinted == "down":
        return "hints came to help less, and that is part of the fall."
    if regret == "down":
        return "they did not get measurably worse, so the plays without a hint caught up."
    if regret == "up" and hinted == "up":
        return "the hints came to help more."
    if regret == "unknown":
        return "more steps would tell whether that is a change."
    return "what a hint is worth has not measurably shrunk."


def _levers(cards: Sequence[Card]) -> Row | None:
    rows = lever_thirds(cards)
    if not rows:
        return None
    known = any(row["name"] == REACH for row in rows)
    text = [
        f"From the first third of the run to the middle one, {_moves(rows, 0)}; from the middle "
        f"one to the last, {_moves(rows, 1)}."
    ]
    return {
        "id": "levers",
        "heading": "The levers",
        "text": text,
        "terms": [
            [
                "Levers",
                "numbers in the source that set how hard an environment is. "
                + (
                    "More rounds, more options and a rule that reaches further are harder."
                    if known
                    else "What more of one means depends on the environment."
                ),
            ]
        ],
        "levers": [
            {
                "name": row["name"],
                "thirds": [[rounded(e.mean), rounded(e.error)] for e in row["thirds"]],
            }
            for row in rows
        ],
    }


def lever_thirds(cards: Sequence[Card]) -> list[Row]:
    """Return the main levers' means over the designs of the run's three thirds.

    A mean is taken over the pools of a third, so its error holds what differs from pool to pool.
    """
    series = sorted(lever_series(cards), key=lambda row: row["name"] == "max_turns")
    found: list[Row] = []
    for row in series[:SHOWN_LEVERS]:
        parts: list[list[float]] = [[], [], []]
        for step, mean in zip(row["steps"], row["mean"], strict=True):
            parts[third_of(step, row["steps"])].append(mean)
        if all(parts):
            found.append({"name": row["name"], "thirds": [estimate(part) for part in parts]})
    return found


def _moves(rows: Sequence[Row], place: int) -> str:
    """Say which levers rose and which fell from one third to the next."""
    went: dict[str, list[str]] = {}
    for row in rows:
        way = direction(row["thirds"][place], row["thirds"][place + 1])
        went.setdefault(way, []).append(str(row["name"]).replace("_", " "))
    said = [
        f"{_listed(went[way])} {verb}"
        for way, verb in (("up", "rose"), ("down", "fell"))
        if way in went
    ]
    if not said and set(went) == {"unknown"}:
        return "there is too little to tell"
    return " and ".join(said) if said else "none of them changed measurably"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def judged(first: Estimate, last: Estimate, *, points: bool = True) -> str:
    """Say in words what a change came to, and how sure that is.

    Args:
        first: the figure at the start.
        last: the figure at the end.
        points: whether the figures are shares, to be told in percentage points.
    """
    edges = interval(first, last)
    if edges is None:
        return "one step each, too few to call it a change"
    factor, digits = (100, 0) if points else (1, 2)
    low, high = (factor * edge for edge in edges)
    unit = " points" if points else ""
    way = direction(first, last)
    if way == "level":
        span = f"{plus(low, digits)} to {plus(high, digits)}{unit}"
        return f"no measurable change (95{NARROW}% interval {span})"
    change = abs(factor * (last.mean - first.mean))
    low, high = sorted((abs(low), abs(high)))
    word = "a rise" if way == "up" else "a fall"
    span = f"{low:.{digits}f} to {high:.{digits}f}"
    return f"{word} of {change:.{digits}f}{unit} (95{NARROW}% interval {span})"


def plus(value: float, digits: int) -> str:
    """Return a change with its sign."""
    text = fixed(abs(value), digits)
    return ("−" if value < 0 and float(text) else "+") + text


def _signed(part: Estimate) -> str:
    error = "" if part.error is None else f"{NARROW}±{NARROW}{fixed(part.error)}"
    return f"{plus(part.mean, 2)}{error}"


def _when(part: Estimate, which: str) -> str:
    if part.count == 1:
        return "in the first step" if which == "first" else "in the last"
    return "in the first quarter of the run" if which == "first" else "in the last"

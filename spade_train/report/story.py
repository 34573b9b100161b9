"""The head of a run's story, for someone who never read the paper: a headline and key figures."""

from __future__ import annotations

from math import hypot
from typing import Any

from spade_train.report.phases import NORMAL, quarters
from spade_train.report.points import percent, plus
from spade_train.report.records import Row, rounded
from spade_train.report.series import present


def headline(columns: dict[str, list[Any]]) -> Row:
    """Return what the run shows, in one sentence, with its uncertainty in a second one."""
    held = _first_and_last(columns, "heldout/win_rate")
    if held:
        (first, last), errors = held
        change = last - first
        spread = NORMAL * hypot(*errors) if None not in errors else None
        title = _verdict(first, last, spread)
        detail = f"The change is {plus(100 * change, 0)} points"
        if spread is not None:
            detail += f", ± {100 * spread:.0f} (95 % interval)"
        detail += f": the same {_environments(columns)} and seeds, {_when(columns)}."
        return {"title": title, "detail": detail}
    own = quarters(columns.get("agent/win_rate", []))
    if own:
        return {
            "title": f"The agent won {percent(own[1].mean)} of its plays at the end of this run",
            "detail": (
                f"It began at {percent(own[0].mean)}. Its environments changed on the way, so the "
                "two figures are not about the same tasks; held-out environments were not measured "
                "at both ends."
            ),
        }
    once = present(columns.get("agent/win_rate", []))
    if once:
        return {
            "title": f"The agent won {percent(once[0])} of its plays",
            "detail": "Only one step of this run had plays, so there is no change to speak of.",
        }
    if "step" in columns:
        return {
            "title": "In this run no environment was played",
            "detail": "The validator’s findings below say why designs were refused.",
        }
    return {
        "title": "This run has no finished step yet",
        "detail": "What was designed so far is shown below.",
    }


def _verdict(first: float, last: float, spread: float | None) -> str:
    if spread is not None and abs(last - first) <= spread:
        return (
            f"On environments it never saw, the agent wins {percent(last)} of plays: "
            "no measurable change"
        )
    if last > first:
        return (
            f"On environments it never saw, the agent went from {percent(first)} to "
            f"{percent(last)} of plays won"
        )
    return (
        f"On environments it never saw, the agent fell from {percent(first)} to "
        f"{percent(last)} of plays won"
    )


def _environments(columns: dict[str, list[Any]]) -> str:
    counts = present(columns.get("heldout/environments", []))
    return f"{counts[-1]:.0f} environments" if counts else "environments"


def _when(columns: dict[str, list[Any]]) -> str:
    """Say when the first and the last measurement were."""
    values, steps = columns["heldout/win_rate"], columns.get("step", [])
    measured = [steps[i] for i, value in enumerate(values) if value is not None and i < len(steps)]
    if not measured:
        return "at the first measurement and the last"
    first = "before training" if measured[0] == 0 else f"after step {measured[0]}"
    return f"{first} and after step {measured[-1]}"


def _first_and_last(
    columns: dict[str, list[Any]], key: str
) -> tuple[tuple[float, float], tuple[Any, Any]] | None:
    values = columns.get(key, [])
    places = [i for i, value in enumerate(values) if value is not None]
    if len(places) < 2:
        return None
    errors = columns.get(f"{key}_se", [None] * len(values))
    first, last = places[0], places[-1]
    return (values[first], values[last]), (errors[first], errors[last])


def figures(columns: dict[str, list[Any]]) -> list[Row]:
    """Return the key figures: first and last quarter of the run, or first and last measurement."""
    wanted = (
        ("heldout/win_rate", "Held-out win rate", "percent", "of plays on unseen environments"),
        ("agent/win_rate", "Win rate without hint", "percent", "in the designer's environments"),
        ("designer/regret", "Hint regret", "signed", "what a hint still adds to the return"),
        ("designer/band_share", "In the learnable band", "percent", "won in 20 to 80 % of plays"),
        ("designer/acceptance", "Designs accepted", "percent", "of the designer's tries"),
    )
    found = []
    for key, label, form, note in wanted:
        pair: tuple[float, float] | None = None
        error = None
        if key.startswith("heldout"):
            if held := _first_and_last(columns, key):
                pair, error = held[0], held[1][1]
        elif ends := quarters(columns.get(key, []), columns.get(f"{key}_se")):
            pair, error = (ends[0].mean, ends[1].mean), ends[1].error
        if pair:
            found.append(
                {
                    "label": label,
                    "first": rounded(pair[0]),
                    "last": rounded(pair[1]),
                    "se": rounded(error),
                    "form": form,
                    "note": note,
                }
            )
    return found

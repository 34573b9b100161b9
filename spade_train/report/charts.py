"""Which curves the report draws, and what each is about, in words."""

from __future__ import annotations

from typing import Any

from spade_train.report.phases import quarter_places, spans
from spade_train.report.records import Row

# Colours are roles: the page's style decides what they look like in light and dark.
MAIN: tuple[Row, ...] = (
    {
        "id": "wins",
        "title": "The agent’s win rate",
        "note": "Share of plays that solve the task. The hinted plays are a measurement: the "
        "agent is never trained on them.",
        "form": "percent",
        "range": [0, 1],
        "series": [
            {"key": "agent/win_rate", "label": "without hint", "colour": "agent"},
            {"key": "agent/win_rate_hinted", "label": "with hint", "colour": "hint"},
            {
                "key": "heldout/win_rate",
                "label": "held out",
                "colour": "held",
                "se": "heldout/win_rate_se",
                "marks": True,
            },
        ],
    },
    {
        "id": "regret",
        "title": "Hint regret",
        "note": "Return with the hint minus return without it, on the same seeds. It falls as "
        "what the hint says becomes the agent’s own, or as hints get worse. The band is one "
        "standard error.",
        "form": "signed",
        "zero": True,
        "series": [
            {
                "key": "designer/regret",
                "label": "regret",
                "colour": "hint",
                "se": "designer/regret_se",
            }
        ],
    },
    {
        "id": "designs",
        "title": "The designer’s environments",
        "note": "Accepted: what the validator lets through, of all tries. In the learnable band: "
        "won in 20 to 80 % of plays, neither mastered nor out of reach.",
        "form": "percent",
        "range": [0, 1],
        "series": [
            {"key": "designer/acceptance", "label": "accepted", "colour": "designer"},
            {"key": "designer/band_share", "label": "in the band", "colour": "held"},
        ],
    },
)

_DRAWN = {s[k] for chart in MAIN for s in chart["series"] for k in ("key", "se") if k in s}
_SKIPPED = {"step", "version"}


def main_charts(columns: dict[str, list[Any]]) -> list[Row]:
    """Return the charts that have at least one of their series."""
    found = []
    for chart in MAIN:
        series = [_with_quarters(s, columns) for s in chart["series"] if s["key"] in columns]
        if series:
            found.append({**chart, "series": series})
    return found


def _with_quarters(series: Row, columns: dict[str, list[Any]]) -> Row:
    """Add the means of the run's first and last quarter, the figures that the story tells."""
    values = columns[series["key"]]
    parts = quarter_places(values)
    steps = columns.get("step")
    if series.get("marks") or parts is None or steps is None:
        return series
    return {**series, "spans": spans(steps, values, parts)}


def other_metrics(columns: dict[str, list[Any]]) -> list[str]:
    """Return the metrics that no main chart draws, for the reader to choose from."""
    return sorted(key for key in columns if key not in _DRAWN and key not in _SKIPPED)

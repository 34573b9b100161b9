"""Line charts with bands as SVG, readable in light and dark; no library draws them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import floor, isfinite, log10

WIDTH = 760
_PANEL_HEIGHT = 190
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 14, 30, 40
_HEAD = 52
_LETTER = 6.3  # width of a letter at 11 px, for the legend's places
_TICKS = 4
COLOURS = ("agent", "hint", "held", "designer", "bad", "soft")

# The card has a ground of its own: where a page's theme is not the system's, it stays readable.
_STYLE = """
svg{--paper:#fff;--ink:#1c1e22;--soft:#5b6068;--line:#e2dfd7;--agent:#2b6a9b;--hint:#8f5a0a;
--held:#2c7a55;--designer:#7447a0;--bad:#ad3a31}
@media (prefers-color-scheme:dark){svg{--paper:#14161a;--ink:#e7e5df;--soft:#a0a6b0;--line:#2b2f37;
--agent:#74b3e2;--hint:#e0ac5e;--held:#6ec79c;--designer:#bb9ae0;--bad:#e6887f}}
text{font:11px system-ui,"Segoe UI","Liberation Sans",Arial,sans-serif;fill:var(--soft)}
.title{font-size:14px;font-weight:600;fill:var(--ink)}.panel{font-weight:600;fill:var(--ink)}
.paper{fill:var(--paper);stroke:var(--line)}.grid{stroke:var(--line);fill:none}
.curve{fill:none;stroke-width:2;stroke-linejoin:round}.band{opacity:.18;stroke:none}
.thin{fill:none;stroke-width:1;opacity:.55;stroke-dasharray:3 3}
"""


@dataclass(frozen=True, slots=True)
class Point:
    """One point of a curve, with its interval where one is known."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Series:
    """One curve.

    Attributes:
        label: in the legend; curves of one label share an entry, an empty one has none.
        colour: one of COLOURS.
        points: by rising x.
        thin: drawn thin and broken: a single seed.
    """

    label: str
    colour: str
    points: Sequence[Point]
    thin: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes.

    Attributes:
        title: above it.
        series: drawn in this order.
        x_label: below the axis.
        percent: y runs from 0 to 1 and is labelled in percent.
    """

    title: str
    series: Sequence[Series]
    x_label: str = "step"
    percent: bool = True


def figure(title: str, panels: Sequence[Panel], columns: int = 2) -> str:
    """Return a figure of panels in rows.

    Args:
        title: of the figure; also what a screen reader is told.
        panels: in reading order.
        columns: panels in a row at most.
    """
    columns = max(1, min(columns, len(panels)))
    legend, head = _legend(panels)
    rows = -(-len(panels) // columns)
    height = head + rows * (_TOP + _PANEL_HEIGHT + _BOTTOM) + 6
    width = WIDTH / columns
    drawn = [
        _panel(
            panel,
            (index % columns) * width,
            head + (index // columns) * (_TOP + _PANEL_HEIGHT + _BOTTOM),
            width,
        )
        for index, panel in enumerate(panels)
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" role="img" aria-label="{escape(title, quote=True)}">'
        f"<style>{_STYLE}</style>"
        f'<rect class="paper" x=".5" y=".5" width="{WIDTH - 1}" height="{height - 1}" rx="6"/>'
        f'<text class="title" x="16" y="25">{escape(title)}</text>'
        + legend
        + "\n".join(drawn)
        + "</svg>\n"
    )


def _legend(panels: Sequence[Panel]) -> tuple[str, int]:
    """Return the legend and the height down to the first panel."""
    entries: dict[str, Series] = {}
    for panel in panels:
        for series in panel.series:
            if series.label:
                entries.setdefault(series.label, series)
    x, y, parts = 16.0, 42.0, []
    for label, series in entries.items():
        room = 34 + _LETTER * len(label)
        if x + room > WIDTH:
            x, y = 16.0, y + 17
        style = "thin" if series.thin else "curve"
        parts.append(
            f'<path class="{style}" stroke="var(--{series.colour})" d="M{x:.0f} {y}h18"/>'
            f'<text x="{x + 23:.0f}" y="{y + 4}">{escape(label)}</text>'
        )
        x += room
    return "".join(parts), round(y - 42) + _HEAD


def _panel(panel: Panel, x: float, y: float, width: float) -> str:
    left, right = x + _LEFT, x + width - _RIGHT
    top, bottom = y + _TOP, y + _TOP + _PANEL_HEIGHT
    parts = [f'<text class="panel" x="{left:.0f}" y="{y + 18:.0f}">{escape(panel.title)}</text>']
    points = [p for series in panel.series for p in series.points]
    if not points:
        middle = (left + right) / 2, (top + bottom) / 2
        parts.append(
            f'<text x="{middle[0]:.0f}" y="{middle[1]:.0f}" text-anchor="middle">nothing measured'
            "</text>"
        )
        return "".join(parts)
    x_ticks = ticks(0.0, max(p.x for p in points) or 1.0)
    y_ticks = _y_ticks(panel, points)
    across = _scale(x_ticks[0], max(x_ticks[-1], max(p.x for p in points)), left, right)
    up = _scale(y_ticks[0], y_ticks[-1], bottom, top)
    for value in y_ticks:
        label = f"{100 * value:.0f} %" if panel.percent else f"{value:g}"
        parts.append(
            f'<path class="grid" d="M{left:.0f} {up(value):.1f}H{right:.0f}"/>'
            f'<text x="{left - 6:.0f}" y="{up(value) + 4:.1f}" text-anchor="end">{label}</text>'
        )
    for value in x_ticks:
        # The last one would run out of the card.
        anchor = "end" if across(value) > right - 8 else "middle"
        parts.append(
            f'<text x="{across(value):.1f}" y="{bottom + 16:.0f}" text-anchor="{anchor}">'
            f"{value:g}</text>"
        )
    parts.append(
        f'<text x="{(left + right) / 2:.0f}" y="{bottom + 31:.0f}" text-anchor="middle">'
        f"{escape(panel.x_label)}</text>"
    )
    for series in panel.series:
        parts.append(_curve(series, across, up, (y_ticks[0], y_ticks[-1])))
    return "".join(parts)


class _scale:  # noqa: N801  (used like a function)
    """Maps [low, high] onto [start, end]."""

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        self.low, self.span = low, (high - low) or 1.0
        self.start, self.length = start, end - start

    def __call__(self, value: float) -> float:
        return self.start + self.length * (value - self.low) / self.span


def _curve(series: Series, across: _scale, up: _scale, limits: tuple[float, float]) -> str:
    def held(value: float) -> float:
        return min(max(value, limits[0]), limits[1])

    colour = f"var(--{series.colour})"
    parts = []
    sure = [p for p in series.points if p.low is not None and p.high is not None]
    if len(sure) > 1:
        edge = [f"{across(p.x):.1f} {up(held(p.high or 0.0)):.1f}" for p in sure]
        edge += [f"{across(p.x):.1f} {up(held(p.low or 0.0)):.1f}" for p in reversed(sure)]
        parts.append(f'<path class="band" fill="{colour}" d="M{"L".join(edge)}Z"/>')
    line = [f"{across(p.x):.1f} {up(held(p.y)):.1f}" for p in series.points]
    if len(line) > 1:
        style = "thin" if series.thin else "curve"
        parts.append(f'<path class="{style}" stroke="{colour}" d="M{"L".join(line)}"/>')
    elif line:
        x, y = line[0].split()
        parts.append(f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>')
    return "".join(parts)


def _y_ticks(panel: Panel, points: Sequence[Point]) -> list[float]:
    if panel.percent:
        return [0.0, 0.25, 0.5, 0.75, 1.0]
    # Wide bands of three seeds must not flatten the curves: the curves set the range.
    values = [p.y for p in points]
    return ticks(min(0.0, *values), max(0.0, *values) or 1.0)


def ticks(low: float, high: float) -> list[float]:
    """Return round numbers that span [low, high].

    >>> ticks(0, 60), ticks(-0.1, 0.25)
    ([0.0, 20.0, 40.0, 60.0], [-0.1, 0.0, 0.1, 0.2, 0.3])
    """
    if not (isfinite(low) and isfinite(high)) or high <= low:
        high = low + 1.0
    rough = (high - low) / _TICKS
    unit = 10.0 ** floor(log10(rough))
    step = next(m * unit for m in (1, 2, 5, 10) if m * unit >= rough * (1 - 1e-9))
    first, last = floor(low / step + 1e-9), -floor(-high / step + 1e-9)
    return [round(step * number, 12) for number in range(first, last + 1)]

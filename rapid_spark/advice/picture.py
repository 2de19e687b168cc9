"""Pictures of steps: the rate that remains against the information that is lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#5f6368"
MOST_NUMBERED = 15
NEAR = 0.022  # of the axes: labels closer than this to a point or to each other would overlap
OFFSETS = ((0.016, 0.016), (0.016, -0.034), (-0.036, 0.016), (-0.036, -0.034), (0.0, 0.028), (0.0, -0.046), (0.03, -0.008))


def draw_steps(rows: Sequence[Mapping[str, Any]], limit: float | None = None) -> Figure:
    """Rate against loss of information; the numbers are the ranks, the line is the front.

    Args:
        rows: as `Advice.rows`, the release as it is first.
        limit: of the rate, drawn as a line.
    """
    figure = Figure(figsize=(6.4, 4.6), layout="constrained")
    axes = figure.add_subplot()
    before, *steps = [r for r in rows if r["rapid"] is not None]
    front = sorted((r["information_lost"], r["rapid"]) for r in steps if r["on_front"])
    others = [(r["information_lost"], r["rapid"]) for r in steps if not r["on_front"]]
    for points, style, colour, label in ((others, "o", GREY, "step"), (front, "o-", BLUE, "step on the front")):
        if points:
            x, y = zip(*points, strict=True)
            axes.plot(x, y, style, color=colour, markersize=6, linewidth=1.1, label=label, clip_on=False)
    axes.plot([0], [before["rapid"]], "D", color=ORANGE, markersize=8, label="the release as it is", clip_on=False)
    if limit is not None:
        axes.axhline(limit, color=ORANGE, linestyle="--", linewidth=1.0, label=f"limit {limit:.0%}")
    right = max([0.05, *(r["information_lost"] for r in steps)]) * 1.08
    top = min(1.0, max([before["rapid"], limit or 0.0, *(r["rapid"] for r in steps)]) * 1.15 + 0.01)
    axes.set_xlim(-0.01 * right, right)
    axes.set_ylim(0, top)
    _number(axes, steps, right, top, (0.0, before["rapid"]))
    axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0 if right > 0.2 else 1))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.set_xlabel("information lost (share of the columns' entropy)")
    axes.set_ylabel("RAPID, largest over attributes and attackers")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25, linewidth=0.6)
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    return figure


def _number(axes: Any, steps: Sequence[Mapping[str, Any]], right: float, top: float, start: tuple[float, float]) -> None:
    """Ranks beside their points, as far as there is room; the front first."""
    points = [(r["information_lost"] / right, r["rapid"] / top) for r in steps] + [(start[0] / right, start[1] / top)]
    placed: list[tuple[float, float]] = []
    for row in sorted(steps, key=lambda r: (not r["on_front"], r["rank"]))[:MOST_NUMBERED]:
        x, y = row["information_lost"] / right, row["rapid"] / top
        for dx, dy in OFFSETS:
            left, bottom = x + dx, y + dy
            width = 0.014 * len(str(row["rank"]))
            middle = (left + width / 2, bottom + 0.012)
            crowded = any(abs(middle[0] - a) < NEAR and abs(middle[1] - b) < NEAR for a, b in points) or any(
                abs(middle[0] - a) < 1.6 * NEAR and abs(middle[1] - b) < 1.6 * NEAR for a, b in placed
            )
            if not crowded and 0 <= bottom < 0.97 and 0 <= left < 0.98:
                placed.append(middle)
                axes.text(left, bottom, str(row["rank"]), transform=axes.transAxes, fontsize=9, va="bottom", ha="left")
                break


def save(figure: Figure, path: Path) -> None:
    """Write a picture as PNG."""
    figure.savefig(path, dpi=150)

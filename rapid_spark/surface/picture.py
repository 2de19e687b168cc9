"""The heat map of a search: which column tells of which attribute."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from .figures import Rate, heat

MOST = 40  # rows and columns shown
NUMBERS_UP_TO = 16  # rows and columns; above it the colours alone are legible
LONGEST = 22
REST = "all others"


def draw_heat(rates: Sequence[Rate]) -> Figure:
    """Attributes (rows, the worst on top) against columns known; last, all others together, where they were tried.

    Each cell is `beyond_chance` of the attribute when the column is known: 0 is chance, 1 is certainty. Cells without a
    figure are hatched, never shown as 0; below chance, where there is no scale (a common value that is right by chance
    for nearly all), only that is said.
    """
    targets, known, cells = heat(rates)
    rest = {r.target: r.beyond_chance for r in rates if r.kind == "rest" and r.beyond_chance is not None}
    if rest:
        known = [*known, REST]
        cells = np.column_stack([cells, [np.nan if (b := rest.get(t)) is None else b for t in targets]])
    top = np.array([np.nanmax(row) if np.isfinite(row).any() else -np.inf for row in cells])
    order = np.argsort(-top, kind="stable")[:MOST]
    targets, cells = [targets[i] for i in order], cells[order][:, -MOST:]
    known = known[-MOST:]
    figure = Figure(figsize=(2.6 + 0.46 * max(4, len(known)), 1.7 + 0.36 * max(3, len(targets))), layout="constrained")
    axes = figure.add_subplot()
    axes.patch.set(facecolor="#f2f2f2", hatch="////", edgecolor="#d0d0d0")
    image = axes.imshow(np.clip(cells, 0, 1), cmap="Blues", vmin=0, vmax=1, aspect="auto")
    axes.set_xticks(range(len(known)), [_short(c) for c in known], rotation=50, ha="right", rotation_mode="anchor",
                    parse_math=False)  # fmt: skip
    axes.set_yticks(range(len(targets)), [_short(t) for t in targets], parse_math=False)
    axes.set_xlabel("column known")
    axes.set_ylabel("attribute guessed")
    axes.tick_params(length=0, labelsize=9)
    if rest:
        axes.axvline(len(known) - 1.5, color="white", linewidth=3)
    if len(targets) <= NUMBERS_UP_TO and len(known) <= NUMBERS_UP_TO:
        for (i, j), value in np.ndenumerate(cells):
            if np.isfinite(value):
                colour = "white" if value > 0.55 else "black"
                axes.text(j, i, _percent(value), ha="center", va="center", fontsize=8, color=colour)
    bar = figure.colorbar(image, ax=axes, shrink=0.8, pad=0.02)
    bar.ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    bar.set_label("RAPID beyond chance\n(0 %: chance, 100 %: certainty)", fontsize=9)
    return figure


def _percent(value: float) -> str:
    return "< 0" if value <= -0.005 else f"{abs(100 * value):.0f}"


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def save(figure: Figure, path: Path) -> None:
    """Write a picture as PNG."""
    figure.savefig(path, dpi=150)

"""The risk-utility map as a picture: utility against risk, one mark per release, the Pareto front as a line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from .figures import pareto, safe

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")  # Okabe and Ito (2008)
LEAST = 0.02  # of the risk's axis above and below no risk
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
RISKS = {
    "rapid_excess": ("RAPID less chance (largest over attackers and attributes)", 0.0),
    "membership_auc": ("AUC of membership on records (0.5: none)", 0.5),
}


def draw(rows: Sequence[dict[str, Any]], dataset: str) -> Figure:
    """One panel per risk that was measured; marks are labelled by epsilon, without labels that cover each other.

    Args:
        rows: of the map, with mechanism, epsilon, utility and the risks.
        dataset: named in the title.
    """
    shown = [risk for risk in RISKS if any(safe(r.get(risk)) for r in rows)]
    figure = Figure(figsize=(6.0 * max(1, len(shown)), 4.6), layout="constrained")
    axes = figure.subplots(1, max(1, len(shown)), squeeze=False)[0]
    mechanisms = list(dict.fromkeys(r["mechanism"] for r in rows))
    for axis, risk in zip(axes, shown, strict=False):
        points = [r for r in rows if safe(r.get("utility")) and safe(r.get(risk))]
        for i, mechanism in enumerate(mechanisms):
            mine = sorted((r for r in points if r["mechanism"] == mechanism), key=lambda r: r["epsilon"] or 0.0)
            if not mine:
                continue
            x, y = [r["utility"] for r in mine], [r[risk] for r in mine]
            axis.plot(x, y, color=COLOURS[i % len(COLOURS)], linewidth=0.8, alpha=0.5)
            axis.scatter(
                x, y, color=COLOURS[i % len(COLOURS)], marker=MARKERS[i % len(MARKERS)], s=34, zorder=3, label=mechanism
            )
        front = pareto([(r["utility"], r[risk]) for r in points])
        best = sorted((r for r, is_best in zip(points, front, strict=True) if is_best), key=lambda r: r["utility"])
        axis.step([r["utility"] for r in best], [r[risk] for r in best], where="pre", color="#000000", linestyle="--",
                  linewidth=1.0, label="Pareto front")  # fmt: skip
        words, nothing = RISKS[risk]
        axis.axhline(nothing, color="#5f6368", linewidth=0.8, linestyle=":")
        axis.set_xlabel("utility: 1 - (mean total variation + mean association error) / 2")
        axis.set_ylabel(words)
        axis.margins(0.12)
        low, high = axis.get_ylim()
        axis.set_ylim(min(low, nothing - LEAST), max(high, nothing + LEAST))  # noise is not drawn as a mountain
        _label(figure, axis, points, risk)
        for side in ("top", "right"):
            axis.spines[side].set_visible(False)
    if len(axes) and shown:
        handles, names = axes[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=min(5, len(names)), frameon=False, fontsize=9)
    figure.suptitle(f"Risk and utility of releases of {dataset}; labels are epsilon", fontsize=11)
    return figure


def _label(figure: Figure, axis: Any, points: list[dict[str, Any]], risk: str) -> None:
    """Epsilon beside each mark, on the first of several sides where it covers no other label or mark."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    taken = [axis.transData.transform((r["utility"], r[risk])) for r in points]
    boxes = [(x - 4, y - 4, x + 4, y + 4) for x, y in taken]
    for r, (x, y) in zip(points, taken, strict=True):
        if r["epsilon"] is None:
            continue
        text = f"{r['epsilon']:g}"
        width, height = 6.2 * len(text) + 3, 11
        for dx, dy in ((7, 4), (-7 - width, 4), (7, -14), (-7 - width, -14), (-width / 2, 9), (-width / 2, -20)):
            box = (x + dx, y + dy, x + dx + width, y + dy + height)
            if not any(box[0] < b[2] and b[0] < box[2] and box[1] < b[3] and b[1] < box[3] for b in boxes):
                boxes.append(box)
                place = axis.transData.inverted().transform((x + dx, y + dy))
                axis.annotate(text, (r["utility"], r[risk]), xytext=place, textcoords="data", fontsize=8)
                break

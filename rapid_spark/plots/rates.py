"""Figures of rates: threshold curves, attackers side by side, people in the data and not in it."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from ..wording import POOLED, Finding, name, number, percent
from .basics import (
    COLOURS,
    GREY,
    MARKERS,
    MOST_ROWS,
    PERCENT,
    STYLES,
    Drawing,
    Evaluation,
    highest,
    legend,
    new_figure,
    numeric,
    row_figure,
    rows_about,
    short,
    thinned,
    threshold_label,
)

MOST_LINES = 6
_REFERENCES = (
    ("rapid", "in the data", "o", 0), ("holdout_rate", "not in the data", "s", 1),
    ("population_reference", "population reference", "^", 2), ("copy_ceiling", "copy of the original", "D", 3),
)


def draw_curve(evaluation: Evaluation, finding: Finding, pooled: bool = False) -> Drawing | None:
    """Share at risk against the threshold, a line per attacker with its interval as a band.

    Over replicates the line is the mean, and the band reaches from the lowest to the highest end of an interval.

    Args:
        evaluation: result tables.
        finding: which attribute, set and measure.
        pooled: the attackers who train on all copies together, in place of those of each copy.
    """
    rows = rows_about(evaluation.curve, finding.key)
    rows = rows[(rows["replicate"] == POOLED) == pooled] if len(rows) else rows
    rows = numeric(rows, ("threshold", "rapid", "ci_low", "ci_high", "baseline_rate"))
    rows = rows.dropna(subset=["threshold", "rapid"])
    if not len(rows):
        return None
    threshold = float(finding.row["threshold"])
    over = {
        "rapid": ("rapid", "mean"), "low": ("ci_low", "min"), "high": ("ci_high", "max"),
        "chance": ("baseline_rate", "mean"),
    }
    parts = rows.groupby("attacker", sort=False)
    lines = {str(attacker): part.groupby("threshold").agg(**over) for attacker, part in parts}
    at = {a: float(np.interp(threshold, line.index, line["rapid"])) for a, line in lines.items()}
    shown = sorted(lines, key=lambda a: (-at[a], a))[:MOST_LINES]
    figure, axes = new_figure(3.5)
    chance = lines[shown[0]]["chance"].dropna()
    if len(chance):
        chance = thinned(chance.to_frame(), threshold)["chance"]
        axes.plot(chance.index, chance, linestyle=(0, (1, 2)), color=GREY, label=f"chance ({short(shown[0])})")
    for i, attacker in enumerate(shown):
        line = thinned(lines[attacker], threshold)
        axes.fill_between(line.index, line["low"], line["high"], color=COLOURS[i], alpha=0.18, linewidth=0)
        axes.plot(line.index, line["rapid"], linestyle=STYLES[i], color=COLOURS[i], marker=MARKERS[i],
                  markersize=3.5, markevery=max(1, len(line) // 10), label=short(attacker))
    axes.axvline(threshold, color=GREY, linewidth=0.8)
    axes.set_ylim(0, 1)
    axes.yaxis.set_major_formatter(PERCENT)
    axes.set_ylabel("people at risk")
    axes.set_xlabel(threshold_label(finding.row))
    axes.grid(alpha=0.25, linewidth=0.6)
    legend(figure, axes)
    copies = rows["replicate"].nunique()
    whose = f", mean of {copies} copies" if copies > 1 else (", all copies together" if pooled else "")
    listed = ", ".join(f"{name(a)} {percent(at[a])}" for a in shown)
    return Drawing(
        figure, f"Threshold curve: {name(finding.key['sensitive_attribute'])}{whose}",
        f"Share of people at risk against the threshold. At the threshold in use, {threshold:g}: {listed}.",
        f"The grey vertical line is the threshold in use, {threshold:g}.{highest(shown, lines, 'attackers')}",
    )


def draw_attackers(evaluation: Evaluation, finding: Finding) -> Drawing | None:
    """The attackers of a suite side by side: each copy, all copies together, and what chance gives."""
    rows = rows_about(evaluation.summary, finding.key, status="ok")
    rows = numeric(rows, ("rapid", "ci_low", "ci_high", "baseline_rate")).dropna(subset=["rapid"])
    if rows["attacker"].nunique() < 2 and len(rows) < 2:
        return None
    order = rows.groupby("attacker")["rapid"].max().sort_values(ascending=False, kind="stable")
    shown = [str(a) for a in order.index[:MOST_ROWS]]
    figure, axes = row_figure(shown, extra=0.35)
    for i, attacker in enumerate(shown):
        part = rows[rows["attacker"] == attacker].sort_values("replicate")
        each, pooled = part[part["replicate"] != POOLED], part[part["replicate"] == POOLED]
        spread = np.linspace(-0.22, 0.22, len(each)) if len(each) > 1 else np.zeros(len(each))
        label = "each copy" if len(pooled) or len(each) > 1 else "at risk"
        whiskers(axes, each, i + spread, "o", COLOURS[0], label)
        whiskers(axes, pooled, np.full(len(pooled), i + 0.36), "D", COLOURS[1], "all copies together")
        axes.plot(part["baseline_rate"], np.full(len(part), i), "|", color=GREY, markersize=11, label="chance")
    axes.set_xlabel("people at risk")
    legend(figure, axes)
    listed = "; ".join(f"{name(a)} up to {percent(order[a])}" for a in shown)
    return Drawing(
        figure, f"Attackers compared: {name(finding.key['sensitive_attribute'])}",
        f"Share of people at risk by attacker: {listed}.", f"Bars are intervals.{highest(shown, order, 'attackers')}",
    )


def draw_holdout(evaluation: Evaluation, finding: Finding) -> Drawing | None:
    """Each attacker on people in the data and not in it, with the two references; the mean over copies."""
    names = [column for column, *_ in _REFERENCES]
    rows = numeric(rows_about(evaluation.summary, finding.key, status="ok"), names)
    rows = rows[rows[names[1:]].notna().any(axis=1)] if len(rows) else rows
    if not len(rows):
        return None
    pooled = bool((rows["replicate"] == POOLED).all())
    rows = rows if pooled else rows[rows["replicate"] != POOLED]
    means = rows.groupby("attacker", sort=False)[names].mean()
    means = means.sort_values("rapid", ascending=False, kind="stable").head(MOST_ROWS)
    figure, axes = row_figure([str(a) for a in means.index], extra=0.5)
    for column, label, marker, colour in _REFERENCES:
        part = means[column].dropna()
        at = [list(means.index).index(a) for a in part.index]
        if len(part):
            axes.plot(part, at, marker, color=COLOURS[colour], markersize=6, fillstyle="none",
                      markeredgewidth=1.4, label=label, clip_on=False)
    axes.set_xlabel("people at risk")
    legend(figure, axes)
    texts = []
    for attacker, row in means.iterrows():
        shares = [f"{label} {percent(row[c])}" for c, label, *_ in _REFERENCES if number(row[c]) is not None]
        texts.append(f"{name(attacker)}: {', '.join(shares)}")
    listed = "; ".join(texts)
    return Drawing(figure, f"Holdout against members: {name(finding.key['sensitive_attribute'])}",
                   f"Share at risk of people in the data and not in it. {listed}.", "Means over the copies.")


def whiskers(axes: Axes, part: pd.DataFrame, y: np.ndarray, marker: str, colour: str, label: str) -> None:
    x = part["rapid"].to_numpy()
    error = np.array([x - part["ci_low"].to_numpy(), part["ci_high"].to_numpy() - x])
    if len(x):
        axes.errorbar(x, y, xerr=np.clip(np.nan_to_num(error), 0, None), fmt=marker, color=colour,
                      markersize=4, linewidth=1.0, label=label, clip_on=False)

"""Figures by class of the attribute: shares at risk, histograms of the score, calibration."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ..suite import rows_of
from ..wording import Finding, count, name, percent, plain
from .basics import (
    COLOURS,
    GREY,
    LABEL,
    MARKERS,
    MOST_ROWS,
    PERCENT,
    SIZE,
    STYLES,
    WIDTH,
    Drawing,
    Evaluation,
    bars,
    cut,
    left_out,
    legend,
    new_figure,
    numeric,
    rows_behind,
    short,
    table,
    tidy,
    whose,
)

MOST_CLASSES = 6  # of one figure
SCORES_SHOWN = {"normalized_gain": (-1.0, 1.0), "rcs_conditional": (0.0, 4.0), "nce": (-0.1, 1.0)}
EDGE = 0.05  # width of a bar that stands for what lies outside


def draw_classes(evaluation: Evaluation, finding: Finding) -> Drawing | None:
    """Share at risk of each class of a categorical attribute, most frequent class first."""
    rows = numeric(rows_behind(evaluation.classes, finding), ("rapid", "n", "class_rank", "prevalence"))
    rows = rows.dropna(subset=["rapid"]).sort_values("class_rank") if len(rows) else rows
    if not len(rows):
        return None
    shown = rows.head(MOST_ROWS)
    labels = [f"{name(r['class_label'])} ({percent(r['prevalence'])})" for r in rows_of(shown)]
    return bars(
        shown, labels, "people of the class at risk", f"By class: {name(finding.key['sensitive_attribute'])}",
        "Share at risk by class", whose(finding) + left_out(len(rows) - len(shown), "classes"),
    )


def draw_gain(evaluation: Evaluation, finding: Finding) -> Drawing | None:
    """Histogram of the score by true class, as the share of the class per unit of the score; from risk_distributions."""
    rows = _distribution(evaluation, finding, "score", ("bin_low", "bin_high", "n"))
    if not len(rows) or rows["n"].sum() <= 0:
        return None
    totals = rows.groupby("class_label", sort=False)["n"].sum()
    shown = [label for label in totals.index[:MOST_CLASSES] if totals[label] > 0]
    figure = Figure(figsize=(WIDTH, 0.8 + 0.85 * len(shown)), layout="constrained")
    threshold, measure = float(finding.row["threshold"]), str(finding.row["measure"])
    left, right = SCORES_SHOWN.get(measure, (float(rows["bin_low"].min()), float(rows["bin_high"].max())))
    panels = figure.subplots(len(shown), 1, sharex=True, squeeze=False)[:, 0]
    for axes, label in zip(panels, shown, strict=True):
        part = rows[rows["class_label"] == label]
        low, high = (part[c].to_numpy() for c in ("bin_low", "bin_high"))
        # what lies outside is drawn as one narrow bar at the edge
        low, high = np.maximum(low, left), np.minimum(np.maximum(high, left + EDGE), right)
        low = np.minimum(low, high - EDGE)
        share = part["n"].to_numpy() / totals[label]
        density = share / (high - low)
        risky = part["bin_low"].to_numpy() >= threshold - 1e-12
        for mask, colour, hatch in ((~risky, COLOURS[4], None), (risky, COLOURS[1], "////")):
            axes.bar(low[mask], density[mask], (high - low)[mask], align="edge", color=colour, hatch=hatch,
                     edgecolor="white", linewidth=0.4)
        axes.axvline(threshold, color=GREY, linewidth=0.8)
        tidy(axes)
        axes.set_ylim(0, float(density.max()) * 1.12)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        heading = f"{cut(plain(label), 2 * LABEL)} ({count(totals[label])}, {percent(share[risky].sum())} at risk)"
        axes.set_title(heading, fontsize=SIZE, loc="left", parse_math=False)
    panels[-1].set_xlim(left - 0.02, right + 0.02)
    panels[-1].set_xlabel({"normalized_gain": "normalised gain"}.get(measure, measure), fontsize=SIZE)
    outside = " Scores beyond the ends of the axis are counted in the outermost bars." if measure in SCORES_SHOWN else ""
    return Drawing(
        figure, f"Score by true class: {name(finding.key['sensitive_attribute'])}",
        f"Histograms of the score, one per true class; those above the threshold {threshold:g} are at risk.",
        f"{whose(finding)} Area is people; hatched: above the threshold.{outside}"
        + left_out(len(totals) - len(shown), "classes"),
    )


def draw_calibration(evaluation: Evaluation, finding: Finding) -> Drawing | None:
    """Calibration curve by class: the probability that the attacker gives to it, against the share that has it."""
    rows = _distribution(evaluation, finding, "calibration", ("mean_prob", "observed", "n"))
    rows = rows.dropna(subset=["mean_prob", "observed"]) if len(rows) else rows
    if not len(rows):
        return None
    labels = list(dict.fromkeys(map(str, rows["class_label"])))
    # of two classes one tells all: the probabilities of the other are its complement
    shown = labels[-1:] if len(labels) == 2 else labels[:MOST_CLASSES]
    figure, axes = new_figure(3.4)
    axes.plot([0, 1], [0, 1], linestyle=(0, (1, 2)), color=GREY, label="as often as said")
    listed = []
    for i, label in enumerate(shown):
        part = rows[rows["class_label"] == label].sort_values("mean_prob")
        axes.plot(part["mean_prob"], part["observed"], linestyle=STYLES[i], color=COLOURS[i], marker=MARKERS[i],
                  markersize=4, label=short(label), clip_on=False)
        said = (f"{percent(r['mean_prob'])}: {percent(r['observed'])}" for r in rows_of(part))
        listed.append(f"{name(label)} {', '.join(said)}")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(PERCENT)
    axes.set_xlabel("probability that the attacker gives")
    axes.set_ylabel("people whose answer it is")
    axes.grid(alpha=0.25, linewidth=0.6)
    legend(figure, axes)
    return Drawing(
        figure, f"Calibration: {name(finding.key['sensitive_attribute'])}",
        f"Probability given to a class, and share of people who have it. {'; '.join(listed)}.",
        f"{whose(finding)} Above the dotted line the attacker says less than is true, below it more."
        + left_out(len(labels) - len(shown) if len(labels) > 2 else 0, "classes"),
    )


def _distribution(evaluation: Evaluation, finding: Finding, kind: str, columns: tuple[str, ...]) -> pd.DataFrame:
    rows = rows_behind(table(evaluation, "distributions"), finding)
    return numeric(rows[rows["kind"] == kind], columns) if len(rows) else rows

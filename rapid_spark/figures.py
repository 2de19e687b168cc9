"""Figures from result tables alone, drawn without a display."""

from __future__ import annotations

from typing import Any

import pandas as pd

# Distinguishable with the common forms of colour blindness (Okabe and Ito 2008); line styles vary as well.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
STYLES = ("-", "--", ":", "-.")
MOST_LINES = 12
_LINE = ["replicate", "qi_set", "sensitive_attribute", "attacker", "measure"]


def threshold_curves(curve: pd.DataFrame, summary: pd.DataFrame) -> Any:
    """RAPID against the threshold: a panel per measure, a line per combination, with its interval as a band.

    Args:
        curve: rows of `risk_curve`.
        summary: rows of `risk_summary`, for the thresholds in use (a vertical line).

    Returns:
        A matplotlib Figure. Of many combinations the highest are drawn, and the title says how many.
    """
    from matplotlib.figure import Figure

    measures = list(dict.fromkeys(curve["measure"]))
    figure = Figure(figsize=(7.0 * max(1, len(measures)), 4.8), layout="constrained")
    for place, measure in enumerate(measures):
        axes = figure.add_subplot(1, len(measures), place + 1)
        _panel(axes, curve[curve["measure"] == measure], _LINE)
        for threshold in summary.loc[summary["measure"] == measure, "threshold"].unique():
            axes.axvline(float(threshold), color="grey", linewidth=0.8)
        axes.set(xlabel=f"threshold ({measure})", ylabel="share of records at risk", ylim=(0, 1))
    return figure


def _panel(axes: Any, part: pd.DataFrame, line: list[str]) -> None:
    part = part.astype({"threshold": float, "rapid": float, "ci_low": float, "ci_high": float})
    groups = list(part.groupby(line, sort=False))
    shown = sorted(groups, key=lambda group: -group[1]["rapid"].mean())[:MOST_LINES]
    varying = [i for i, name in enumerate(line) if part[name].nunique() > 1 and name != "measure"] or [3]
    for i, (key, points) in enumerate(shown):
        colour, style = COLOURS[i % len(COLOURS)], STYLES[i // len(COLOURS) % len(STYLES)]
        label = ", ".join("pooled" if line[k] == "replicate" and key[k] == 0 else str(key[k]) for k in varying)
        axes.plot(points["threshold"], points["rapid"], style, color=colour, label=label)
        axes.fill_between(points["threshold"], points["ci_low"], points["ci_high"], color=colour, alpha=0.15, linewidth=0)
    axes.legend(fontsize="small", frameon=False)
    if len(shown) < len(groups):
        axes.set_title(f"the {len(shown)} highest of {len(groups)} combinations", fontsize="medium")

"""Figures of the drivers: subgroups, regression, each quasi-identifier alone and left out."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..wording import Finding, count, name, number, percent, plain, points
from .basics import (
    COLOURS,
    GREY,
    MOST_ROWS,
    Drawing,
    Evaluation,
    bars,
    left_out,
    legend,
    numeric,
    row_figure,
    rows_behind,
    table,
    whose,
)


def subgroup_columns(evaluation: Evaluation, finding: Finding) -> list[str]:
    """Quasi-identifiers with subgroup figures, those whose shown levels differ most first."""
    rows = numeric(single_columns(rows_behind(table(evaluation, "subgroups"), finding)), ("rapid",))
    if not len(rows):
        return []
    spread = rows.groupby("column")["rapid"].agg(lambda r: (r.max() - r.min()) if r.notna().any() else -1.0)
    return [str(c) for c in spread.sort_values(ascending=False, kind="stable").index]


def draw_subgroups(
    evaluation: Evaluation, finding: Finding, column: str, ordered: bool = False
) -> Drawing | None:
    """Share at risk by level of one quasi-identifier, with intervals; withheld cells are marked as such.

    Args:
        evaluation: result tables.
        finding: which combination.
        column: quasi-identifier.
        ordered: keep the order of the table (bins of a numeric one) in place of the highest rate first.
    """
    rows = single_columns(rows_behind(table(evaluation, "subgroups"), finding))
    rows = numeric(rows, ("rapid", "ci_low", "ci_high", "n")) if len(rows) else rows
    rows = rows[rows["column"] == column] if len(rows) else rows
    if not len(rows):
        return None
    shown = rows if ordered else rows.sort_values("rapid", ascending=False, na_position="last", kind="stable")
    shown = shown.head(MOST_ROWS)
    sizes = [f" ({count(n)})" if number(n) is not None else "" for n in shown["n"]]
    labels = [f"{plain(level)}{size}" for level, size in zip(shown["single"], sizes, strict=True)]
    withheld = int(rows["suppressed"].isin([True]).sum())
    note = whose(finding) + (f" {withheld} of {len(rows)} levels are withheld." if withheld else "")
    note += left_out(len(rows) - len(shown), "levels")
    what = f"{name(column)}: {name(finding.key['sensitive_attribute'])}"
    return bars(shown, labels, "people of the group at risk", f"By {what}", f"Share at risk by {what}", note)


def draw_attribution(evaluation: Evaluation, finding: Finding, kind: str = "marginal_effect") -> Drawing | None:
    """Marginal effects (percentage points) or coefficients (log odds) of the regression of at_risk, largest first."""
    rows = numeric(rows_behind(table(evaluation, "attribution"), finding), ("estimate", "ci_low", "ci_high"))
    rows = rows[rows["kind"] == kind].dropna(subset=["estimate"]) if len(rows) else rows
    rows = rows[rows["term"] != "intercept"] if len(rows) else rows
    if not len(rows):
        return None
    shown = rows.iloc[np.argsort(-rows["estimate"].abs().to_numpy(), kind="stable")[:MOST_ROWS]]
    figure, axes = row_figure([plain(t) for t in shown["term"]], shares=False)
    scale = 100.0 if kind == "marginal_effect" else 1.0
    x, y = shown["estimate"].to_numpy() * scale, np.arange(len(shown))
    error = np.abs(np.array([x - shown["ci_low"] * scale, shown["ci_high"] * scale - x]))
    axes.errorbar(x, y, xerr=np.nan_to_num(error), fmt="o", color=COLOURS[0], markersize=4, linewidth=1.1)
    axes.axvline(0, color=GREY, linewidth=0.8)
    axes.set_xlabel("change in the share at risk, percentage points" if scale > 1 else "coefficient (log odds)")
    first = shown.iloc[0]
    size = f"{points(first['estimate'])} points" if scale > 1 else f"{first['estimate']:+.2f}"
    return Drawing(
        figure, f"Drivers: {name(finding.key['sensitive_attribute'])}",
        f"Terms of a logistic regression of being at risk; the largest is {plain(first['term'], 80)}, {size}.",
        whose(finding) + left_out(len(rows) - len(shown), "terms"),
    )


def draw_refits(evaluation: Evaluation, finding: Finding) -> Drawing | None:
    """Share at risk with each quasi-identifier alone, and with each left out, beside that with all."""
    rows = numeric(rows_behind(table(evaluation, "attribution"), finding), ("estimate", "ci_low", "ci_high"))
    rows = rows[rows["kind"].isin(("alone", "left_out"))].dropna(subset=["estimate"]) if len(rows) else rows
    if not len(rows):
        return None
    alone = rows[rows["kind"] == "alone"].set_index("term")["estimate"]
    without = rows[rows["kind"] == "left_out"].set_index("term")["estimate"]
    terms = {*alone.index, *without.index}
    shown = sorted(terms, key=lambda t: (-alone.get(t, 0.0), without.get(t, 1.0), str(t)))[:MOST_ROWS]
    figure, axes = row_figure([plain(t) for t in shown], extra=0.35)
    series = (("alone", alone, "o", COLOURS[0]), ("left out", without, "s", COLOURS[1]))
    for kind, part, marker, colour in series:
        at = [(part[t], i) for i, t in enumerate(shown) if t in part.index]
        axes.plot([x for x, _ in at], [y for _, y in at], marker, color=colour, markersize=5, label=kind,
                  clip_on=False)
    rate = number(finding.row["rapid"])
    if rate is not None:
        axes.axvline(rate, color=GREY, linewidth=0.9, linestyle="--", label="with all")
    axes.set_xlabel("people at risk")
    legend(figure, axes)
    texts = (f"{name(t)} alone {percent(alone.get(t))}, left out {percent(without.get(t))}" for t in shown)
    listed = "; ".join(texts)
    return Drawing(figure, f"Alone and left out: {name(finding.key['sensitive_attribute'])}",
                   f"Share at risk with each quasi-identifier alone and with each left out: {listed}.",
                   whose(finding) + left_out(len(terms) - len(shown), "quasi-identifiers"))


def single_columns(frame: pd.DataFrame) -> pd.DataFrame:
    """Subgroups by one quasi-identifier, with its name as `column` and the level as `single`."""
    if not len(frame):
        return frame
    one = frame[[len(columns) == 1 for columns in frame["columns"]]]
    names, levels = ([str(cell[0]) for cell in one[c]] for c in ("columns", "level"))
    return one.assign(column=names, single=levels)

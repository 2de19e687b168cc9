"""Sections: other thresholds, attackers compared, which answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from .. import plots, wording
from ..suite import suite
from ..wording import Finding, count, name, number, percent, plain, points
from .cells import LONGEST_CELL, Columns, any_of, claims, decimal, rate
from .markup import Html, fold, join, note
from .page import Page, behind, title, usable

_QUALITY: dict[str, Columns] = {
    "categorical": {
        "accuracy": lambda r: percent(r.get("accuracy")),
        "always the most frequent": lambda r: percent(r.get("majority_rate")),
        "macro F1": decimal("macro_f1"), "AUC": decimal("auc"), "log loss": decimal("log_loss"),
    },
    "continuous": {
        "MAE": decimal("mae"), "RMSE": decimal("rmse"), "relative MAE": decimal("relative_mae"),
        "R²": decimal("r2"),
        "close": lambda r: percent(r.get("rapid")), "close by one guess for all": lambda r: percent(r.get("baseline_rate")),
    },
}


def thresholds(page: Page) -> Html | None:
    curve = behind(page, page.data.curve)
    if not len(curve):
        return None
    each = [(f, pooled) for f in page.told for pooled in (False, True)]
    drawn = page.figures(plots.draw_curve(page.data, f, pooled) for f, pooled in each)
    said = [_data_driven(f, title(f, page)) for f in page.told]
    figures = page.table("Threshold curves", curve, {
        "threshold": decimal("threshold"), "at risk [interval]": rate,
        "chance": lambda r: percent(r.get("baseline_rate")),
    })
    label = "Figures of the curves, for the attacker behind each finding"
    return join([drawn, note(f"Bands are intervals. {wording.INTERVAL_MEANING}"), *said, fold(label, figures)])


def _data_driven(finding: Finding, title: str) -> Html | None:
    row = finding.row
    chosen, pointwise = (number(row.get(f"{kind}_threshold")) for kind in ("data_driven", "exploratory"))
    if chosen is None and pointwise is None:
        return None
    direction = "up to" if row["target_type"] == "categorical" else "down to"
    if chosen is None:
        found = "at no threshold by the fixed sequence, which errs in 5 % over the whole grid"
    else:
        found = f"{direction} threshold {chosen:g} (fixed sequence, 5 % over the whole grid)"
    more = "" if pointwise in (None, chosen) else (
        f" Exploratory: taken one by one, thresholds {direction} {pointwise:g} exceed it; of many some do by chance."
    )
    return note(f"{title}: for attacker {name(row['attacker'])} the rate exceeds what chance gives {found}.{more}")


def attackers(page: Page) -> Html | None:
    ok = usable(page)
    if not len(ok):
        return None
    drawn = page.figures(plots.draw_attackers(page.data, f) for f in page.told)
    unweighted = ok[ok["weighting"].isin(["none"]) | ok["weighting"].isna()]
    groups = pd.concat([
        suite(part).assign(registry=part["registry"].iloc[0], release_id=part["release_id"].iloc[0])
        for _, part in unweighted.groupby(["registry", "release_id"], sort=False)
    ])
    strongest = groups["worst_attacker"]
    groups["attacker"] = strongest.where(strongest.notna(), groups["pooled_attacker"])
    columns: dict[str, Callable[[dict[str, Any]], str]] = {
        "attackers": lambda r: count(r["attackers"]), "copies": lambda r: count(r["replicates"]),
        "largest [interval]": lambda r: rate(r, "max_low", "max_high", "rapid_max"),
        "mean": lambda r: percent(r["rapid_mean"]),
    }
    if any_of(groups, "rapid_sd"):
        columns["sd over copies, points"] = lambda r: points(r["rapid_sd"], signed=False)
    if any_of(groups, "rapid_pooled"):
        columns["all copies together"] = lambda r: percent(r["rapid_pooled"])
    tables = [page.table("Over attackers and copies; the attacker named is the strongest", groups, columns)]
    for kind, quality in _QUALITY.items():
        rows = ok[ok["target_type"] == kind]
        if len(rows):
            tables.append(page.table(f"How good the attackers are: {kind} attributes", rows, quality))
    return join([drawn, note(f"Bars are intervals. {wording.INTERVAL_MEANING}"), *tables])


def classes(page: Page) -> Html | None:
    rows = behind(page, page.data.classes)
    if not len(rows):
        return None
    each = [(draw, f) for f in page.told for draw in (plots.draw_classes, plots.draw_gain, plots.draw_calibration)]
    drawn = page.figures(draw(page.data, f) for draw, f in each)
    table = page.table("By class of the attribute, for the attacker behind each finding", rows, {
        "class": lambda r: plain(r["class_label"], LONGEST_CELL), "share": lambda r: percent(r["prevalence"]),
        "people": lambda r: count(r["n"]), "at risk": lambda r: percent(r["rapid"]),
        "mean probability of the truth": lambda r: percent(r.get("mean_true_prob")), "claims right": claims,
    }, texts=1)
    return join([drawn, table])

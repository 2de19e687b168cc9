"""A suite of attackers in one line: the maximum and the mean, over replicates too, from rows of risk_summary."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

from . import intervals

GROUP = ("qi_set", "sensitive_attribute", "measure")
COLUMNS = (
    *GROUP,
    "target_type",
    "threshold",
    "attackers",
    "replicates",
    "rapid_max",
    "worst_attacker",
    "max_low",
    "max_high",
    "rapid_mean",
    "rapid_sd",
    "rapid_pooled",
    "pooled_attacker",
)


def rows_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a result table as mappings."""
    return [dict(zip(map(str, frame.columns), row, strict=True)) for row in frame.itertuples(index=False, name=None)]


def suite(summary: pd.DataFrame) -> pd.DataFrame:
    """Suite figures per quasi-identifier set, attribute and measure.

    Only rows with status 'ok', scored on the original and without survey weights, count. Source: arXiv:2602.09235, "RAPID
    max"; over replicates the mean of each attacker comes first, then the largest of them; view `release_risk` says the
    same. The attacker who trains on all copies together (replicate 0) stands apart.

    Args:
        summary: rows of `risk_summary` of one release.

    Returns:
        One row per group: `attackers` and `replicates` (numbers that entered), `rapid_max` with `worst_attacker`,
        `max_low` and `max_high` (its interval, see `interval_of_max`), `rapid_mean` over attackers, `rapid_sd` of that
        mean over the replicates (divisor m - 1; null for one), `rapid_pooled` (largest over attackers) with
        `pooled_attacker`; shares. Groups without an 'ok' row are absent.
    """
    usable = summary[(summary["status"] == "ok") & (summary["scored_on"] == "original") & summary["rapid"].notna()]
    if "weighting" in usable:
        usable = usable[usable["weighting"] != "survey"]
    rows = [dict(zip(GROUP, key, strict=True)) | _figures(part) for key, part in usable.groupby(list(GROUP), sort=False)]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _figures(part: pd.DataFrame) -> dict[str, object]:
    each = part[part["replicate"] != 0]
    pooled = part[part["replicate"] == 0]
    figures: dict[str, object] = {
        "target_type": part["target_type"].iloc[0],
        "threshold": float(part["threshold"].iloc[0]),
        "attackers": int(part["attacker"].nunique()),
        "replicates": int(each["replicate"].nunique()),
    }
    if len(each):
        rates = each.assign(rapid=each["rapid"].astype(float)).groupby("attacker", sort=False)["rapid"]
        worst = str(rates.mean().idxmax())
        spread = float(each["rapid"].astype(float).groupby(each["replicate"]).mean().std(ddof=1))
        figures |= {
            "rapid_max": float(rates.mean().max()),
            "worst_attacker": worst,
            **dict(zip(("max_low", "max_high"), interval_of_max(rows_of(each)), strict=True)),
            "rapid_mean": float(rates.mean().mean()),
            "rapid_sd": spread if spread == spread else None,
        }
    if len(pooled):
        top = max(rows_of(pooled), key=lambda row: float(row["rapid"]))
        figures |= {"rapid_pooled": float(top["rapid"]), "pooled_attacker": str(top["attacker"])}
    return figures


def interval_of_max(rows: Sequence[dict[str, Any]]) -> tuple[float | None, float | None]:
    """Interval of the largest of several attackers, each the mean over its replicates.

    The upper end is the largest of the attackers' upper ends. The lower end is the largest of their lower ends at alpha
    divided by the number of attackers, as the largest was chosen by looking. With one replicate an attacker's interval is
    Wilson's with its effective size (how the rate would vary over samples of people); with m of them it is
    mean +- t_{m-1} sd / sqrt m (over releases made in the same way).

    Args:
        rows: of risk_summary, with a figure, of one attribute, set and measure; no pooled ones.

    Returns:
        Lower and upper end; None where an attacker's cannot be computed.
    """
    parts: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        parts.setdefault(str(row["attacker"]), []).append(row)
    ends = []
    for part in parts.values():
        confidence = _number(part[0].get("confidence")) or 0.95
        stricter = 1.0 - (1.0 - confidence) / len(parts)
        ends.append((_interval(part, stricter)[0], _interval(part, confidence)[1]))
    low, high = ([e[i] for e in ends] for i in (0, 1))
    return (
        max(x for x in low if x is not None) if None not in low else None,
        max(x for x in high if x is not None) if None not in high else None,
    )


def over_replicates(rates: Sequence[float], confidence: float) -> tuple[float | None, float | None]:
    """mean +- t_{m-1} sd / sqrt m, within 0 and 1: for "this synthesizer on this original". None for one replicate."""
    if len(rates) < 2:
        return None, None
    from scipy.stats import t

    series = pd.Series(rates, dtype=float)
    half = float(t.ppf(0.5 + confidence / 2.0, len(rates) - 1)) * float(series.std(ddof=1)) / math.sqrt(len(rates))
    return max(0.0, float(series.mean()) - half), min(1.0, float(series.mean()) + half)


def _interval(part: Sequence[dict[str, Any]], confidence: float) -> tuple[float | None, float | None]:
    """Of one attacker."""
    if len(part) > 1:
        return over_replicates([float(row["rapid"]) for row in part], confidence)
    rate, n = _number(part[0].get("rapid")), _number(part[0].get("n_effective")) or _number(part[0].get("n"))
    if rate is None or n is None:
        return None, None
    return intervals.proportion(rate * n, n, confidence, "wilson")


def _number(value: Any) -> float | None:
    return None if value is None or value != value else float(value)

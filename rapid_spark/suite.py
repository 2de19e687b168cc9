"""A suite of attackers in one line: the maximum and the mean, over replicates too, from rows of risk_summary."""

from __future__ import annotations

from typing import Any

import pandas as pd

GROUP = ("qi_set", "sensitive_attribute", "measure")
COLUMNS = (
    *GROUP,
    "target_type",
    "threshold",
    "attackers",
    "replicates",
    "rapid_max",
    "worst_attacker",
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
        `rapid_mean` over attackers, `rapid_sd` of that mean over the replicates (divisor m - 1; null for one),
        `rapid_pooled` (largest over attackers) with `pooled_attacker`; shares. Groups without an 'ok' row are absent.
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
            "rapid_mean": float(rates.mean().mean()),
            "rapid_sd": spread if spread == spread else None,
        }
    if len(pooled):
        top = max(rows_of(pooled), key=lambda row: float(row["rapid"]))
        figures |= {"rapid_pooled": float(top["rapid"]), "pooled_attacker": str(top["attacker"])}
    return figures

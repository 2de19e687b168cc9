"""The report: one file that holds everything it shows, escapes what it is given, and hides nothing undefined."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rapid_spark import plots, report
from rapid_spark.wording import findings

NASTY = "<script>alert('x')</script> & \"quoted\" – Ärzte $x_1$ 医師"
COUNTRIES = [f"Country number {i} with a rather long name, also known as {NASTY if i == 3 else 'other'}" for i in range(41)]
COLUMNS = {
    "age": ["17 to 28", "28 to 37", "37 to 48", "48 to 90"], "capital_gain": ["0", "1 to 99,999"], "capital_loss": ["0"],
    "education_num": ["1 to 9", "9 to 10", "10 to 12", "12 to 16"], "hours_per_week": ["1 to 40", "40", "40 to 99"],
    "marital_status": ["Divorced", "Married-civ-spouse", "Never-married", "Widowed"], "native_country": COUNTRIES,
    "occupation": [f"Occupation {i}" for i in range(15)], "race": ["White", "Black", "Other"],
    "relationship": ["Husband", "Wife", "Own-child", "Unmarried"], "sex": ["Female", "Male"],
    "workclass": ["Private", "?", "State-gov", "Never-worked"],
}
ATTACKERS = {"rf": 2.1, "gbm": 2.2, "logit": 1.7, "cart": 1.5}
LABELS = ("<=50K", ">50K")
KEY = {"run_id": "20261130-120000-abcdef", "registry": "adult", "release_id": "2026-11", "scored_on": "original",
       "qi_set": "all", "sensitive_attribute": "income", "measure": "normalized_gain", "weighting": "none"}


def wilson(hits: float, n: float) -> tuple[float, float]:
    """Wilson's interval at 95 %."""
    p, z = hits / n, 1.959964
    middle, half = (p + z * z / 2 / n), z * np.sqrt(p * (1 - p) / n + z * z / 4 / n**2)
    return float((middle - half) / (1 + z * z / n)), float((middle + half) / (1 + z * z / n))


def adult_like(n: int = 32_561, seed: int = 1) -> report.ReportData:
    """Result tables shaped like the Adult case: three copies, all together, four attackers, a holdout."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.241).astype(int)
    b = np.where(y == 1, y.mean(), 1 - y.mean())
    people = {c: rng.integers(0, len(levels), n) for c, levels in COLUMNS.items()}
    tables: dict[str, list[dict[str, Any]]] = {
        t: [] for t in ("risk_summary", "risk_curve", "risk_classes", "risk_subgroups", "risk_attribution", "gain_histogram")
    }
    for attacker, skill in ATTACKERS.items():
        for copy in (1, 2, 3, 0):
            signal = skill * (2 * y - 1) + 0.4 * (people["marital_status"] == 1) - 0.9 + 1.6 * rng.standard_normal(n)
            p1 = 1 / (1 + np.exp(-signal))
            g = np.where(y == 1, p1, 1 - p1)
            _add(tables, {**KEY, "attacker": attacker, "replicate": copy}, y, g, b, p1, people)
    failed = {**KEY, "attacker": "lm", "replicate": 1, "status": "undefined", "target_type": "categorical",
              "threshold": 0.3, "reason": f"lm predicts numbers, income has classes {NASTY}"}
    tables["risk_summary"].append(failed)
    settings = {"registry": "adult", "quasi_identifiers": list(COLUMNS), "training": {"seed": 7}, "threshold": {"tau": {}},
                "sensitive_attributes": [{"name": "income", "type": "categorical", "missing": None}]}
    return report.ReportData(
        run_id=KEY["run_id"], tables={k: pd.DataFrame(v) for k, v in tables.items()}, settings=settings,
        warnings=(f"a level {NASTY} is in the original only",),
        inputs={"original": {"name": "adult.csv", "version": None, "rows": n}, "columns": {"age": "numeric"},
                "releases": {"1": {"name": "release_1.csv", "version": 3, "rows": n}}},
        versions={"python": "3.11", "rapid-spark": "0.1.0"}, command="evaluate", comparable=True,
    )


def _add(tables: dict[str, list[dict[str, Any]]], key: dict[str, Any], y: np.ndarray, g: np.ndarray, b: np.ndarray,
         p1: np.ndarray, people: dict[str, np.ndarray]) -> None:
    n, gain = len(y), (g - b) / (1 - b)
    for tau in np.arange(0, 1, 0.05).round(2):
        hits = int((g > b + tau * (1 - b)).sum())
        low, high = wilson(hits, n)
        chance = sum((y == k).mean() * ((p1 if k else 1 - p1) > c + tau * (1 - c)).mean()
                     for k, c in ((1, y.mean()), (0, 1 - y.mean())))
        point = {"threshold": tau, "n_at_risk": hits, "rapid": hits / n, "ci_low": low, "ci_high": high,
                 "baseline_rate": chance}
        tables["risk_curve"].append({**key, **point})
        if tau == 0.3:
            tables["risk_summary"].append({
                **key, **point, "target_type": "categorical", "n": n, "n_undefined": 0, "excess": hits / n - chance,
                "confidence": 0.95, "ci_method": "wilson_neff", "permutation_p": 0.005, "null_mean": chance,
                "null_sd": 0.002, "null_q95": chance + 0.003, "holdout_rate": hits / n - 0.01, "holdout_difference": 0.01,
                "holdout_difference_low": -0.002, "holdout_difference_high": 0.022, "n_confident_claims": int(0.8 * n),
                "claims_correct": 0.9, "accuracy": float((g > 0.5).mean()), "auc": 0.9, "macro_f1": 0.8, "log_loss": 0.4,
                "majority_rate": 0.759, "n_train": n, "n_dropped": 0, "n_unseen_level": 3, "n_unseen_class": 0, "seed": 7,
                "status": "ok", "reason": None, "fit_seconds": 12.3, "score_seconds": 1.2, "original_digest": "a" * 64,
                "release_digest": "b" * 64, "settings_digest": "c" * 64, "package_version": "0.1.0", "n_release": n,
                "quasi_identifiers": list(COLUMNS), "population_reference": hits / n - 0.012, "copy_ceiling": 0.93,
            })
    flags = g > b + 0.3 * (1 - b)
    for k, label in enumerate(LABELS):
        mine = flags[y == k]
        tables["risk_classes"].append({**key, "class_label": label, "class_rank": k + 1, "prevalence": (y == k).mean(),
                                       "n": len(mine), "n_at_risk": int(mine.sum()), "rapid": mine.mean(),
                                       "mean_true_prob": g[y == k].mean(), "n_confident_claims": 5, "claims_correct": 0.8})
        counts, edges = np.histogram(gain[y == k].clip(-3, 1), bins=np.arange(-3, 1.01, 0.1))
        tables["gain_histogram"] += [{**key, "class_label": label, "bin_low": lo, "bin_high": hi, "n": int(c)}
                                     for c, lo, hi in zip(counts, edges, edges[1:], strict=False)]
    for column, levels in COLUMNS.items():
        for i, level in enumerate(levels):
            mine = flags[people[column] == i]
            held = i == 5
            low, high = wilson(mine.sum(), len(mine))
            tables["risk_subgroups"].append({
                **key, "columns": [column], "level": [level], "suppressed": held, "n": None if held else len(mine),
                "n_at_risk": None if held else int(mine.sum()), "rapid": None if held else mine.mean(),
                "ci_low": None if held else low, "ci_high": None if held else high,
            })
            effect = float(np.sin(i + len(column))) / 10
            tables["risk_attribution"].append({
                **key, "term": f"{column}={level} (vs {levels[0]})", "kind": "marginal_effect", "estimate": effect,
                "std_error": 0.01, "ci_low": effect - 0.02, "ci_high": effect + 0.02})
        for kind, rate in (("alone", 0.1 * (len(column) % 7)), ("left_out", 0.7)):
            tables["risk_attribution"].append({**key, "term": column, "kind": kind, "estimate": rate, "std_error": None,
                                               "ci_low": None, "ci_high": None})

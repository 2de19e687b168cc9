"""Rows of a store written directly, a commit per table, for tests of what reads them."""

from __future__ import annotations

from datetime import UTC, datetime

import pandas as pd

KEYS = {"replicate": 1, "scored_on": "original", "qi_set": "all", "sensitive_attribute": "ill", "attacker": "rf",
        "measure": "normalized_gain", "weighting": "none"}  # fmt: skip
NOW = datetime(2026, 5, 1, tzinfo=UTC)


def run(run_id, config="{}", state="finished", command="evaluate"):
    """The row of an attempt that has ended."""
    return {"run_id": run_id, "attempt": 1, "state": state, "command": command, "config": config, "inputs": "{}",
            "settings_digest": "s", "package_versions": "{}", "started_at": NOW, "ended_at": NOW}  # fmt: skip


def combination(n, hits, **more):
    """A row of risk_summary."""
    return {**KEYS, "n": n, "n_undefined": 0, "n_at_risk": hits, "rapid": hits / n, "ci_low": max(0, hits / n - 0.02),
            "ci_high": hits / n + 0.02, "baseline_rate": 0.1, "excess": hits / n - 0.1, "status": "ok", "threshold": 0.3,
            "settings_digest": "s", "release_date": datetime(2025, 1, 1).date(), "evaluated_at": NOW, **more}  # fmt: skip


def record(key, score=None, at_risk=False):
    """A row of risk_records."""
    return {k: v for k, v in KEYS.items() if k != "weighting"} | {"record_id": key, "score": score, "at_risk": at_risk}


def fill(store, **tables):
    """Append rows to tables."""
    for table, rows in tables.items():
        store.append(table, pd.DataFrame(rows))

"""Classic Spark, Spark Connect and real executors give the same figures, each in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import json, sys
import pandas as pd
from rapid_spark import assess
from rapid_spark.simulate import registry
from rapid_spark import scoring
people, release = registry(400, 5, 1), registry(400, 5, 2)
people.loc[:5, "age"] = float("nan")
keep = ["sensitive_attribute", "attacker", "replicate", "n", "n_at_risk", "ci_low", "baseline_rate", "status"]
for again, limit in enumerate(sys.argv[2:]):
    scoring.CLOSURE_LIMIT = int(limit)
    found = assess(people, [release, registry(400, 5, 3)], {
        "quasi_identifiers": ["age", "gender", "education"], "sensitive_attributes": ["disease_status", "income"],
        "attackers": [{"name": "rf", "parameters": {"n_estimators": 10}}, "lm"], "training": {"fit_on": sys.argv[1]},
        "drivers": {"subgroups": not again, "attribution": not again},
    })
    records = found.records.toPandas().sort_values(["sensitive_attribute", "attacker", "replicate", "record_id"])
    print(json.dumps({
        "summary": json.loads(found.summary[keep].to_json(orient="records")),
        "records": json.loads(records[["record_id", "true_prob", "error", "at_risk"]].to_json(orient="values")),
    }))
    found.close()
"""


def figures(*closure_limits: int, fit_on: str = "driver", **environment: str) -> list[dict]:
    """Of an assessment in a process of its own, once per limit from which on attackers go as files."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, fit_on, *map(str, closure_limits)], capture_output=True, text=True, timeout=500,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent), **environment},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.strip().splitlines()[-len(closure_limits) :]]


@pytest.mark.slow
def test_connect_and_real_executors_equal_classic():
    (classic,) = figures(2**25)
    assert len(classic["summary"]) == 12 and len(classic["records"]) == 400 * 9
    assert figures(2**25, 100, SPARK_REMOTE="local[2]", SPARK_TESTING="1") == [classic, classic]
    # executors in processes of their own, and attackers fitted there
    assert figures(2**25, fit_on="executors", RAPID_SPARK_MASTER="local-cluster[2,1,1024]") == [classic]

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
scoring.CLOSURE_LIMIT = int(sys.argv[1])
people, release = registry(400, 5, 1), registry(400, 5, 2)
people.loc[:5, "age"] = float("nan")
found = assess(people, [release, registry(400, 5, 3)], {
    "quasi_identifiers": ["age", "gender", "education"], "sensitive_attributes": ["disease_status", "income"],
    "attackers": [{"name": "rf", "parameters": {"n_estimators": 10}}, "lm"], "training": {"fit_on": sys.argv[2]},
})
records = found.records.toPandas().sort_values(["sensitive_attribute", "attacker", "replicate", "record_id"])
keep = ["sensitive_attribute", "attacker", "replicate", "n", "n_at_risk", "ci_low", "baseline_rate", "status"]
print(json.dumps({
    "summary": json.loads(found.summary[keep].to_json(orient="records")),
    "records": json.loads(records[["record_id", "true_prob", "error", "at_risk"]].to_json(orient="values")),
}))
"""


def figures(closure_limit: int, fit_on: str = "driver", **environment: str) -> dict:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(closure_limit), fit_on], capture_output=True, text=True, timeout=500,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent), **environment},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.strip().splitlines()[-1])


@pytest.mark.slow
def test_connect_and_real_executors_equal_classic():
    classic = figures(2**25)
    assert len(classic["summary"]) == 12 and len(classic["records"]) == 400 * 9
    connect = {"SPARK_REMOTE": "local[2]", "SPARK_TESTING": "1"}
    assert figures(2**25, **connect) == classic
    assert figures(100, **connect) == classic
    # executors in processes of their own, and attackers fitted there
    assert figures(2**25, "executors", RAPID_SPARK_MASTER="local-cluster[2,1,1024]") == classic

"""The attack commands: what they print, store and return; the faults they name."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from rapid_spark.cli.entry import cli
from rapid_spark.cli.terminal import Terminal
from rapid_spark.config import ConfigError


def attacked(*words):
    return CliRunner().invoke(cli, ["attack", *words], obj=Terminal(), standalone_mode=False)


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["test-epsilon"], "--epsilon"),
        (["test-epsilon", "--epsilon", "-1"], "epsilon"),
        (["test-epsilon", "--epsilon", "1", "--mechanism", "laplase"], "'laplace'"),
        (["test-epsilon", "--epsilon", "1", "--mechanism", "gaussian"], "--delta"),
        (["test-epsilon", "--epsilon", "1", "--mechanism", "os:getcwd"], "--allow-code"),
        (["test-epsilon", "--epsilon", "1", "--counts", "1,x"], "--counts"),
        (["test-epsilon", "--epsilon", "1", "--adjacency", "replace", "--pair", "add_remove"], "says nothing"),
        (["membership"], "--epsilon"),
        (["linkage"], "--original"),
    ],
)
def test_faults_are_named_before_anything_starts(words, fault):
    found = attacked(*words).exception
    assert isinstance(found, ConfigError) and fault in str(found)


@pytest.mark.slow
def test_a_broken_claim_is_exit_code_1_and_stored(spark, tmp_path):
    words = ["--epsilon", "1", "--counts", "0,3,40", "--store", f"{tmp_path}/store", "--no-tracking", "--format", "json"]
    broken = attacked("test-epsilon", *words, "--mechanism", "half_noise", "--plays", "500", "--run-id", "b1")
    assert broken.return_value == 1, broken.exception
    document = json.loads(broken.stdout)
    assert document["verdict"] == "violated" and document["run_id"] == "b1" and document["least_plays"] > 10
    right = attacked("membership", *words, "--repetitions", "2", "--run-id", "b2")
    assert right.exception is None, right.exception
    rows = {r["attacker"]: r for r in json.loads(right.stdout)["results"]}
    assert set(rows) == {"summary_logistic", "histogram_forest", "likelihood_ratio", "nearest_reference"}
    assert rows["likelihood_ratio"]["accuracy"] == pytest.approx(rows["likelihood_ratio"]["optimum"], abs=0.04)
    from rapid_spark.store import Store

    stored = Store.open(spark, f"{tmp_path}/store", create=False).query("select run_id, attacker from risk_attacks").toPandas()
    assert set(stored["run_id"]) == {"b1", "b2"}

"""Tracking against a real SQLite store of MLflow, without Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from mlflow import MlflowClient

from rapid_spark import tracked, tracking
from rapid_spark.config import Config, ConfigError, parse
from rapid_spark.results import CURVE, SUMMARY, Assessment, frame

ROOT = Path(__file__).resolve().parent.parent


def assessment(statuses: tuple[str, ...] = ("ok", "ok")) -> Assessment:
    """Two attackers on one attribute, figures that are easy to recognise."""
    rows: list[dict[str, Any]] = []
    for i, status in enumerate(statuses):
        row = {
            "run_id": "run-1", "registry": "adult", "release_id": "r1", "replicate": 1, "scored_on": "original",
            "qi_set": "all", "sensitive_attribute": "income", "measure": "normalized_gain", "target_type": "categorical",
            "attacker": ("rf", "cart")[i], "threshold": 0.3, "status": status, "reason": None if status == "ok" else "broke",
            "quasi_identifiers": ["age", "sex"],
        }  # fmt: skip
        if status == "ok":
            row |= {"n": 100, "n_at_risk": 70 - i, "rapid": 0.7 - i / 100, "ci_low": 0.6, "ci_high": 0.8,
                    "accuracy": 0.9, "fit_seconds": 1.5, "excess": float("nan")}  # fmt: skip
        rows.append(row)
    keys = {k: rows[0][k] for k in ("run_id", "registry", "release_id", "replicate", "scored_on", "qi_set",
                                    "sensitive_attribute", "measure", "attacker")}  # fmt: skip
    points = [keys | {"threshold": t, "rapid": 1 - t, "ci_low": 0.9 - t, "ci_high": 1.0} for t in (0.0, 0.3, 0.6)]
    inputs = {
        "original": {"name": "o.csv", "version": None, "rows": 100, "digest": "d"},
        "releases": {"1": {"name": "r.csv", "version": 3, "rows": 90}},
        "release_digest": "e", "columns": {"age": "numeric", "sex": "categorical", "income": "categorical"},
    }  # fmt: skip
    return Assessment(
        "run-1", "adult", "r1", frame(rows, SUMMARY), frame(points, CURVE), frame([], ()), {}, None, [],
        {"fitting": 2.0}, inputs, datetime(2026, 1, 2),
    )  # fmt: skip


def settings(**tracking_settings: Any) -> Config:
    config: Config = parse({"registry": "adult", "release_id": "r1", "tracking": tracking_settings})
    return config


def tracked_run(
    folder: Path, config: Config, found: Assessment, run_id: str = "run-1", status: str = "FINISHED"
) -> tuple[MlflowClient, Any]:
    """Track an assessment; the client and the parent run."""
    where = tracking.place(config, folder)
    tracker = tracking.Tracker(where, config, run_id)
    tracker.start()
    tracker.log(found, {"risk_summary": 4})
    tracker.end(status)
    assert tracker.problem is None
    client = MlflowClient(tracking_uri=where.uri)
    return client, client.get_run(str(tracker.run_id))


def children(client: MlflowClient, parent: Any) -> list[Any]:
    query = f"tags.`mlflow.parentRunId` = '{parent.info.run_id}'"
    return list(client.search_runs([parent.info.experiment_id], query))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One store for all tests: making one takes seconds."""
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module")
def logged(folder: Path) -> tuple[MlflowClient, Any, Path]:
    return *tracked_run(folder, settings(), assessment()), folder


def test_the_parent_run_has_settings_tags_and_versions(logged: Any) -> None:
    _, parent, _ = logged
    assert parent.info.status == "FINISHED"
    assert parent.data.params["threshold.tolerance"] == "0.1"
    assert {k: parent.data.tags[k] for k in ("run_id", "registry", "release")} == {
        "run_id": "run-1", "registry": "adult", "release": "r1",
    }  # fmt: skip
    assert parent.data.tags["version.pandas"] == pd.__version__


def test_the_child_has_rates_with_intervals_quality_and_the_suite(logged: Any) -> None:
    client, parent, _ = logged
    (child,) = children(client, parent)
    metrics = child.data.metrics
    assert metrics["income/rf/rapid"] == 0.7 and metrics["income/cart/rapid"] == 0.69
    assert (metrics["income/rf/ci_low"], metrics["income/rf/ci_high"]) == (0.6, 0.8)
    assert (metrics["income/rf/accuracy"], metrics["income/rf/n"], metrics["income/rf/fit_seconds"]) == (0.9, 100, 1.5)
    assert metrics["income/rapid_max"] == 0.7
    assert "income/rf/excess" not in metrics  # NaN is no figure


def test_the_child_has_tables_and_figure_beside_the_store(logged: Any) -> None:
    client, parent, folder = logged
    (child,) = children(client, parent)
    names = {artifact.path for artifact in client.list_artifacts(child.info.run_id)}
    assert names >= {"combinations.json", "risk_curve.json", "table_versions.json"}
    figures = [artifact.path for artifact in client.list_artifacts(child.info.run_id, "figures")]
    assert "figures/risk_curve-income-all-normalized_gain.png" in figures
    (path,) = (folder / "mlflow" / "artifacts").rglob("combinations.json")
    table = json.loads(path.read_text())
    assert dict(zip(table["columns"], table["data"][0], strict=True))["rapid"] == 0.7


def test_datasets_have_names_columns_and_counts(logged: Any) -> None:
    client, parent, _ = logged
    (child,) = children(client, parent)
    inputs = {i.tags[0].value: i.dataset for i in child.inputs.dataset_inputs}
    assert set(inputs) == {"original", "release 1"}
    assert json.loads(inputs["original"].profile) == {"num_rows": 100}
    assert [c["name"] for c in json.loads(inputs["original"].schema)["mlflow_colspec"]] == ["age", "sex", "income"]
    assert json.loads(inputs["release 1"].source) == {"name": "r.csv", "version": 3}


def test_a_run_per_combination_on_request(folder: Path) -> None:
    client, parent = tracked_run(folder, settings(level="combination"), assessment(("ok", "failed")), "run-2")
    (release,) = children(client, parent)
    runs = {run.data.tags["attacker"]: run for run in children(client, release)}
    assert {name: run.info.status for name, run in runs.items()} == {"rf": "FINISHED", "cart": "FAILED"}
    assert runs["rf"].data.metrics["rapid"] == 0.7
    assert runs["cart"].data.tags["reason"] == "broke" and "rapid" not in runs["cart"].data.metrics


def test_stale_runs_of_the_same_evaluation_are_closed(folder: Path) -> None:
    config = settings()
    killed = tracking.Tracker(tracking.place(config, folder), config, "run-3")
    killed.start()
    assert killed.wait_for_run()
    client, again = tracked_run(folder, config, assessment(), "run-3", "FAILED")
    assert client.get_run(str(killed.run_id)).info.status == "KILLED"
    assert again.info.status == "FAILED"


def test_a_long_list_is_count_digest_and_artifact(folder: Path) -> None:
    names = [f"quasi_identifier_{i}" for i in range(400)]
    config = parse({"quasi_identifiers": names})
    short, long = tracked.parameters(config)
    assert short["quasi_identifiers"].startswith("400 values, sha256 ")
    assert max(map(len, short.values())) <= 500
    assert long == {"quasi_identifiers": names}
    client, parent = tracked_run(folder, config, assessment(), "run-4")
    assert [a.path for a in client.list_artifacts(parent.info.run_id, "parameters")] == ["parameters/quasi_identifiers.json"]


def test_a_schema_too_long_for_mlflow_is_count_and_digest() -> None:
    inputs = assessment().inputs | {"columns": {f"column_{i:04d}" * 5: "numeric" for i in range(1000)}}
    schema = json.loads(tracked.datasets(inputs)[0].dataset.schema)
    assert schema["columns"] == 1000 and len(schema["sha256"]) == 64


def test_a_store_that_does_not_answer_is_a_problem_and_no_error(tmp_path: Path) -> None:
    config = settings(uri="http://user:secret@127.0.0.1:9")
    tracker = tracking.Tracker(tracking.place(config, tmp_path), config, "run-1")
    tracker.start()
    tracker.log(assessment(), {})
    tracker.end("FINISHED")
    assert tracker.run_id is None
    assert "127.0.0.1:9" in str(tracker.problem) and "secret" not in str(tracker.problem)


def test_a_password_is_no_parameter() -> None:
    short, _ = tracked.parameters(settings(uri="https://user:secret@host/path"))
    assert short["tracking.uri"] == "https://host/path"


@pytest.mark.parametrize(
    ("environment", "directory", "expected"),
    [
        ({}, Path("/s"), ("sqlite:////s/mlflow/mlflow.db", "rapid-spark")),
        ({"MLFLOW_TRACKING_URI": "http://h"}, Path("/s"), ("http://h", "rapid-spark")),
        ({"DATABRICKS_RUNTIME_VERSION": "17.3"}, None, (None, "/Users/me@x.org/rapid-spark")),
    ],
)
def test_where_runs_go(
    environment: dict[str, str], directory: Path | None, expected: tuple[str | None, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_NAME", "MLFLOW_EXPERIMENT_ID", "DATABRICKS_RUNTIME_VERSION"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    where = tracking.place(settings(), directory, "me@x.org")
    assert (where.uri, where.experiment) == expected


def test_a_catalog_without_a_tracking_server_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    with pytest.raises(ConfigError, match="tracking.uri"):
        tracking.place(settings(), None)


@pytest.mark.slow
def test_two_first_uses_at_once_both_arrive(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from rapid_spark import tracking; from rapid_spark.config import Config\n"
        "c = Config(); t = tracking.Tracker(tracking.place(c, Path(sys.argv[1])), c, sys.argv[2])\n"
        "t.start(); t.end('FINISHED'); sys.exit(t.problem)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    started = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path), f"run-{i}"], env=environment) for i in range(2)]
    assert [process.wait(120) for process in started] == [0, 0]
    client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path}/mlflow/mlflow.db")
    (experiment,) = client.search_experiments(filter_string="name = 'rapid-spark'")
    assert {run.data.tags["run_id"] for run in client.search_runs([experiment.experiment_id])} == {"run-0", "run-1"}

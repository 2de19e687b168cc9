"""The runner end to end, through the command line: files in, Delta tables, an MLflow run and a document out."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pandas as pd
import pytest
from deltalake import DeltaTable
from mlflow import MlflowClient

from rapid_spark import models, run, training
from rapid_spark.cli import entry
from rapid_spark.config import parse

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parent.parent
QUICK = ("intervals.bootstrap=50", "intervals.permutations=0", "drivers.subgroups=false", "drivers.attribution=false",
         "drivers.patterns=0")  # fmt: skip
SLOW_ATTACKER = """
import time
from sklearn.dummy import DummyClassifier

class Sleeper(DummyClassifier):
    def predict_proba(self, X):
        time.sleep(300)
        return super().predict_proba(X)
"""


def people(n: int, seed: int) -> pd.DataFrame:
    """Rows whose attribute follows from the group, but for one in five."""
    rng = np.random.default_rng(seed)
    group = rng.choice(["a", "b", "c"], n)
    ill = np.where(rng.random(n) < 0.8, group == "a", rng.random(n) < 0.5)
    age = rng.integers(20, 40, n)
    return pd.DataFrame({"id": np.arange(n), "group": group, "age": age, "ill": np.where(ill, "yes", "no")})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tables and a place for the store."""
    folder = tmp_path_factory.mktemp("evaluation")
    people(90, 1).to_csv(folder / "original.csv", index=False)
    people(80, 2).drop(columns="id").to_csv(folder / "release.csv", index=False)
    return folder


def words(folder: Path, *more: str, command: str = "evaluate", attacker: str = "cart") -> list[str]:
    """A command line for the two tables; what is in `more` comes last."""
    tables = ["--original", str(folder / "original.csv"), "--release", str(folder / "release.csv"), "--key", "id"]
    roles = ["--quasi-identifiers", "group,age", "--sensitive-attribute", "ill", "--attacker", attacker]
    sets = [word for value in QUICK for word in ("--set", value)]
    return [command, *tables, *roles, *sets, "--store", str(folder / "store"), "--quiet", *more]


@pytest.fixture(scope="module")
def done(folder: Path, spark: Any) -> dict[str, Any]:
    """What `evaluate --format json` printed."""
    from click.testing import CliRunner  # a second standard output, as fixtures of a module have no capsys

    from rapid_spark.cli.terminal import Terminal

    found = CliRunner().invoke(entry.cli, words(folder, "--run-id", "run-1", "--format", "json"), obj=Terminal(),
                               standalone_mode=False)  # fmt: skip
    assert found.exception is None, found.exception
    document: dict[str, Any] = json.loads(found.stdout, parse_constant=lambda name: pytest.fail(f"{name} is no strict JSON"))
    return document


def rows(folder: Path, name: str, run_id: str) -> pd.DataFrame:
    """Rows of a table of the store, read without Spark."""
    table = DeltaTable(folder / "store" / name).to_pandas()
    return table[table["run_id"] == run_id]


def states(folder: Path, run_id: str) -> list[str]:
    return list(rows(folder, "runs", run_id).sort_values(["attempt", "ended_at"], na_position="first")["state"])


def mlflow_runs(folder: Path, run_id: str) -> list[Any]:
    """Parent runs of an evaluation, the newest first."""
    client = MlflowClient(tracking_uri=f"sqlite:///{folder}/store/mlflow/mlflow.db")
    experiments = [e.experiment_id for e in client.search_experiments()]
    found = client.search_runs(experiments, f"tags.run_id = '{run_id}'", order_by=["attributes.start_time DESC"])
    return [r for r in found if "mlflow.parentRunId" not in r.data.tags]


def test_the_document_says_what_was_found_and_where_it_is(done: dict[str, Any], folder: Path) -> None:
    assert set(done) == {"run_id", "status", "store", "mlflow_run_id", "results", "seconds", "warnings"}
    assert (done["run_id"], done["status"], done["store"]) == ("run-1", "ok", str(folder / "store"))
    (row,) = done["results"]
    assert (row["attacker"], row["status"], row["n"], row["n_train"]) == ("cart", "ok", 90, 80)
    assert {"starting Spark", "writing results"} <= set(done["seconds"])


def test_the_rate_is_the_share_of_records_at_risk_by_their_own_columns(done: dict[str, Any], folder: Path) -> None:
    records = rows(folder, "risk_records", "run-1")
    original = people(90, 1).set_index("id")["ill"]
    share = original.value_counts(normalize=True)
    truth = original.loc[records["record_id"].astype(int)].to_numpy()
    baseline = share[truth].to_numpy()
    at_risk = records["true_prob"].to_numpy() > baseline + 0.3 * (1 - baseline)
    assert sorted(records["record_id"].astype(int)) == list(range(90))
    np.testing.assert_allclose(records["baseline"], baseline)
    assert list(records["at_risk"]) == list(at_risk)
    assert done["results"][0]["rapid"] == pytest.approx(at_risk.mean())


def test_the_summary_in_the_store_is_the_printed_one(done: dict[str, Any], folder: Path) -> None:
    (stored,) = rows(folder, "risk_summary", "run-1").to_dict("records")
    printed = done["results"][0]
    assert {k: stored[k] for k in ("rapid", "ci_low", "n_at_risk", "settings_digest")} == {
        k: printed[k] for k in ("rapid", "ci_low", "n_at_risk", "settings_digest")
    }  # fmt: skip


def test_runs_tells_the_start_and_the_end_with_inputs_and_versions(done: dict[str, Any], folder: Path) -> None:
    assert states(folder, "run-1") == ["started", "finished"]
    last = rows(folder, "runs", "run-1").query("state == 'finished'").iloc[0]
    inputs, versions = json.loads(last["inputs"]), json.loads(last["table_versions"])
    assert (inputs["original"]["rows"], inputs["releases"]["1"]["rows"], last["n_release"]) == (90, 80, 80)
    assert versions["risk_summary"] >= 1 and last["mlflow_run_id"] == done["mlflow_run_id"]


def test_mlflow_has_the_finished_run_with_the_same_rate(done: dict[str, Any], folder: Path) -> None:
    (parent,) = mlflow_runs(folder, "run-1")
    assert (parent.info.status, parent.info.run_id) == ("FINISHED", done["mlflow_run_id"])
    client = MlflowClient(tracking_uri=f"sqlite:///{folder}/store/mlflow/mlflow.db")
    (child,) = client.search_runs(
        [parent.info.experiment_id], f"tags.`mlflow.parentRunId` = '{parent.info.run_id}'"
    )  # fmt: skip
    assert child.data.metrics["ill/cart/rapid"] == pytest.approx(done["results"][0]["rapid"])


def test_no_value_of_a_person_is_in_mlflow(done: dict[str, Any], folder: Path) -> None:
    """Keys, class labels and levels: none of them is in any artifact; words of ours that hold them as parts do not count."""
    texts = [p.read_text(errors="replace") for p in (folder / "store" / "mlflow" / "artifacts").rglob("*.json")]
    assert texts
    assert not [text for text in texts if '"yes"' in text or '"no"' in text or "record_id" in text]


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("json", '{"columns": ["attackers", "worst_attacker"], "rows": [{"attackers": 1, "worst_attacker": "cart"}]}\n'),
        ("csv", "attackers,worst_attacker\n1,cart\n"),
    ],
)
def test_query_reads_the_views(
    output: str, expected: str, done: dict[str, Any], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sql = "select attackers, worst_attacker from release_risk where run_id = 'run-1'"
    assert entry.run(["query", sql, "--store", str(folder / "store"), "--format", output]) == 0
    assert capsys.readouterr().out == expected


@pytest.mark.parametrize(
    ("sql", "said"), [("delete from runs", "may change"), ("select * from risk_sumary", "Did you mean 'risk_summary'")]
)
def test_query_refuses_what_changes_or_does_not_exist(
    sql: str, said: str, done: dict[str, Any], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert entry.run(["query", sql, "--store", str(folder / "store")]) == 2
    assert said in capsys.readouterr().err


def test_the_same_run_id_replaces_its_rows(done: dict[str, Any], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    again = words(folder, "--run-id", "run-2", attacker="logit")
    assert entry.run([*words(folder, "--run-id", "run-2")]) == 0
    assert entry.run(again) == 0
    assert list(rows(folder, "risk_summary", "run-2")["attacker"]) == ["logit"]
    assert len(rows(folder, "risk_records", "run-2")) == 90
    assert states(folder, "run-2") == ["started", "finished"] * 2
    assert "logit" in capsys.readouterr().out


def test_a_missing_file_leaves_nothing(done: dict[str, Any], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.run(words(folder, "--run-id", "run-3", "--release", str(folder / "relaese.csv"))) == 2
    assert "Did you mean 'release.csv'?" in capsys.readouterr().err
    assert states(folder, "run-3") == []


def test_a_fault_found_in_the_values_fails_the_run_without_results(
    done: dict[str, Any], folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    people(50, 3).assign(ill="").to_csv(tmp_path / "empty.csv", index=False)
    assert entry.run(words(folder, "--run-id", "run-4", "--original", str(tmp_path / "empty.csv"))) == 2
    shown = capsys.readouterr()
    assert "ill" in shown.err and shown.out == ""
    assert states(folder, "run-4") == ["started", "failed"]
    assert rows(folder, "risk_summary", "run-4").empty
    assert [r.info.status for r in mlflow_runs(folder, "run-4")] == ["FAILED"]


def test_tracking_that_fails_loses_no_results(
    done: dict[str, Any], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    again = words(folder, "--run-id", "run-5", "--tracking-uri", "http://127.0.0.1:9", "--format", "json")
    assert entry.run(again) == 3
    shown = capsys.readouterr()
    document = json.loads(shown.out)
    assert document["mlflow_run_id"] is None and document["status"] == "ok"
    assert "tracking is missing" in shown.err and "127.0.0.1:9" in document["warnings"][-1]
    assert "rapid-spark track --run run-5" in shown.err
    assert states(folder, "run-5") == ["started", "finished"] and len(rows(folder, "risk_records", "run-5")) == 90


def test_track_adds_the_missing_mlflow_run_with_the_same_figures(
    done: dict[str, Any], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """After the test above, whose tracking server did not answer."""
    store, local = folder / "store", f"sqlite:///{folder}/store/mlflow/mlflow.db"
    track = ["track", "--run", "run-5", "--store", str(store), "--format", "json"]
    assert entry.run(track) == 3  # the server still does not answer
    assert "127.0.0.1:9" in capsys.readouterr().err
    assert entry.run([*track, "--tracking-uri", local]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["status"] == "tracked"
    (parent,) = mlflow_runs(folder, "run-5")
    (usual,) = mlflow_runs(folder, "run-1")
    assert (parent.info.run_id, parent.info.status) == (found["mlflow_run_id"], "FINISHED")
    client = MlflowClient(tracking_uri=local)

    def child(run: Any) -> Any:
        query = f"tags.`mlflow.parentRunId` = '{run.info.run_id}'"
        (found,) = client.search_runs([run.info.experiment_id], query)
        return found

    repaired, tracked_at_once = child(parent), child(usual)
    timed = ("seconds",)  # of another run
    figures = [{k: v for k, v in c.data.metrics.items() if not k.endswith(timed)} for c in (repaired, tracked_at_once)]
    assert figures[0] == pytest.approx(figures[1]) and "ill/cart/rapid" in figures[0]
    artifacts = [{a.path for a in client.list_artifacts(c.info.run_id)} for c in (repaired, tracked_at_once)]
    assert artifacts[0] == artifacts[1]
    names = [sorted(d.dataset.name for d in c.inputs.dataset_inputs) for c in (repaired, tracked_at_once)]
    assert names[0] == names[1] != []
    end = rows(folder, "runs", "run-5").query("state == 'finished'")
    assert list(end["mlflow_run_id"]) == [found["mlflow_run_id"]] and states(folder, "run-5") == ["started", "finished"]
    assert entry.run([*track, "--tracking-uri", local]) == 0
    assert json.loads(capsys.readouterr().out)["status"] == "already tracked"
    assert len(mlflow_runs(folder, "run-5")) == 1
    assert entry.run(["track", "--run", "run-55", "--store", str(store)]) == 2
    assert "no such run" in capsys.readouterr().err


def test_one_class_is_an_undefined_row_and_done(
    done: dict[str, Any], folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    people(50, 3).assign(ill="yes").to_csv(tmp_path / "one.csv", index=False)
    more = ("--run-id", "run-6", "--original", str(tmp_path / "one.csv"), "--format", "json", "--no-tracking")
    assert entry.run(words(folder, *more)) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["status"] == "undefined"
    assert (document["results"][0]["rapid"], document["results"][0]["reason"]) == (None, "one class")


def test_every_combination_failed_is_exit_code_3_with_its_rows(
    done: dict[str, Any], folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise MemoryError

    monkeypatch.setattr("rapid_spark.attackers.fit", broken)
    assert entry.run(words(folder, "--run-id", "run-7", "--format", "json", "--no-tracking")) == 3
    assert json.loads(capsys.readouterr().out)["results"][0]["status"] == "failed"
    assert states(folder, "run-7") == ["started", "failed"]


def test_fitted_attackers_are_stored_on_request_and_predict_the_same(
    done: dict[str, Any], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[tuple[training.FitKey, Any]] = []
    keeper = models.keeper
    monkeypatch.setattr(models, "keeper", lambda folder: _both(keeper(folder), lambda *pair: kept.append(pair)))
    assert entry.run(words(folder, "--run-id", "run-8", "--set", "tracking.log_model=true")) == 0
    (path,) = (folder / "store" / "mlflow").rglob("*.skops")
    frame = pd.DataFrame({f.name: (["a", "b", None] if f.kind == "categorical" else [20.0, 31.0, np.nan])
                          for f in kept[0][1].features})  # fmt: skip
    np.testing.assert_array_equal(models.load(path).predict_proba(frame), kept[0][1].predict_proba(frame))


def _both(*functions: Callable[..., None]) -> Callable[..., None]:
    def call(*arguments: Any) -> None:
        for function in functions:
            function(*arguments)

    return call


def test_check_fits_nothing_and_says_what_columns_are_taken_for(
    spark: Any, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert entry.run(words(folder, "--store", str(tmp_path / "none"), "--format", "json", command="check")) == 0
    found = json.loads(capsys.readouterr().out)
    assert {c["column"]: (c["role"], c["kind"]) for c in found["columns"]} == {
        "age": ("quasi-identifier", "numeric"), "group": ("quasi-identifier", "categorical"),
        "ill": ("sensitive attribute", "categorical"),
    }  # fmt: skip
    assert [t["rows"] for t in found["tables"]] == [90, 80]
    assert [(c["attacker"], c["measure"]) for c in found["combinations"]] == [("cart", "normalized_gain")]
    assert not (tmp_path / "none").exists()


def test_check_tells_faults_of_settings_and_tables_at_once(
    spark: Any, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert entry.run(words(folder, "--quasi-identifiers", "gruop", "--attacker", "xyz", command="check")) == 2
    said = capsys.readouterr().err
    assert "'xyz'" in said and "'gruop'" in said


def test_init_db_makes_tables_and_views_and_names_them(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "new"
    assert entry.run(["query", "select 1", "--store", str(store)]) == 2
    assert "there is no store" in capsys.readouterr().err
    assert entry.run(["init-db", "--store", str(store), "--format", "json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert {"runs", "risk_records", "risk_summary", "latest_runs", "release_risk"} <= set(made["tables"])
    assert (store / "risk_summary" / "_delta_log").is_dir() and store.stat().st_mode & 0o077 == 0


def test_the_job_script_ends_with_the_commands_exit_code(tmp_path: Path) -> None:
    job = [sys.executable, str(ROOT / "jobs" / "evaluate_release.py")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(job, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 2 and "original: name a table" in ended.stderr


def test_the_demo_ends_with_finding_places_and_what_to_try_next(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "store"
    assert entry.run(["demo", "--store", str(store)]) == 0
    shown = capsys.readouterr()
    assert "Simulated data: 20,000 invented people" in shown.err and "100 trees" in shown.err
    for said in ("disease_status: maximum", "income: maximum", f"store   {store}", "MLflow  ", "To try next:", "R² "):
        assert said in shown.out
    assert shown.out.count("\n  rapid-spark ") == 3
    assert (store / "demo" / "report.html").stat().st_size > 10_000
    summary = DeltaTable(store / "risk_summary").to_pandas()
    assert dict(summary.groupby("status").size()) == {"ok": 8, "undefined": 2}
    assert set(summary["n"].dropna()) == {20_000}


def test_autologging_is_settled_before_the_tracking_thread_imports_mlflow(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []

    @contextlib.contextmanager
    def settled() -> Iterator[None]:
        order.append("autologging")
        yield

    def stop(*_: Any, **__: Any) -> None:
        raise RuntimeError("far enough")

    monkeypatch.setattr(run.tracking, "without_autologging", settled)
    monkeypatch.setattr(run._Run, "_begin_opening", lambda self: order.append("thread"))
    monkeypatch.setattr(run.evaluation, "evaluate", stop)
    clock = run.Clock(lambda _: None, {})
    with pytest.raises(RuntimeError, match="far enough"):
        run._Run(MagicMock(), parse({}), "run-o", "evaluate", MagicMock(explained=lambda e: e), clock).go()
    assert order == ["autologging", "thread"]


def test_a_password_in_the_tracking_uri_is_not_recorded() -> None:
    config = parse({"tracking": {"uri": "https://user:secret@host"}})
    assert run.recorded(config).tracking.uri == "https://host"


@pytest.fixture
def sleeping(folder: Path, tmp_path: Path) -> Callable[[str], subprocess.Popen[str]]:
    """Start an evaluation in a process of its own; it is returned when its Spark job for scoring sleeps."""
    (tmp_path / "sleeping_attacker.py").write_text(SLOW_ATTACKER)

    def start(run_id: str) -> subprocess.Popen[str]:
        more = ("--run-id", run_id, "--allow-code", "--log-json")
        line = words(folder, *more, attacker="sleeping_attacker.Sleeper")
        process = subprocess.Popen(
            [sys.executable, "-m", "rapid_spark", *line], stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"},
        )  # fmt: skip
        assert process.stderr is not None
        said = []
        for text in process.stderr:
            said.append(text)
            if text.startswith("{") and json.loads(text).get("stage", "").startswith("scoring"):
                break
        time.sleep(8)  # until the job is under way
        assert process.poll() is None, "".join(said)
        return process

    return start


def test_sigterm_ends_the_run_as_failed_everywhere(
    done: dict[str, Any], folder: Path, sleeping: Callable[[str], subprocess.Popen[str]]
) -> None:
    process = sleeping("run-t")
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 3 and "terminated" in said and "Traceback" not in said
    assert states(folder, "run-t") == ["started", "failed"]
    assert [r.info.status for r in mlflow_runs(folder, "run-t")] == ["FAILED"]


def test_a_killed_run_shows_nothing_and_can_be_run_again(
    done: dict[str, Any], folder: Path, sleeping: Callable[[str], subprocess.Popen[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    process = sleeping("run-k")
    process.kill()
    process.communicate(timeout=60)
    assert states(folder, "run-k") == ["started"]
    sql = "select count(*) as n from latest_runs where run_id = 'run-k'"
    assert entry.run(["query", sql, "--store", str(folder / "store"), "--format", "csv"]) == 0
    assert capsys.readouterr().out == "n\n0\n"
    assert entry.run(words(folder, "--run-id", "run-k")) == 0
    assert states(folder, "run-k") == ["started", "started", "finished"]
    assert [r.info.status for r in mlflow_runs(folder, "run-k")] == ["FINISHED", "KILLED"]

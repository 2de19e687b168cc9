"""The store: writing, rerunning, views over finished runs, constraints, and several processes at once."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import statistics
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pytest
from deltalake import DeltaTable

from rapid_spark.config import ConfigError
from rapid_spark.store import Store, StoreError, _never_in_log
from rapid_spark.tables import tables, views
from rapid_spark.warehouse import resolve

pytestmark = pytest.mark.slow
UNPARTITIONED = ("runs", "dp_ledger", "release_decisions", "exports")  # few rows, read as a whole


@pytest.fixture(scope="module")
def store(spark, tmp_path_factory):
    return Store.open(spark, str(tmp_path_factory.mktemp("store") / "s"))


def begin(store, run_id, **more):
    return store.begin(run_id, "evaluate", "{}", "d1", {"original": {"rows": 3}}, {"pandas": "2"}, **more)


def combination(**columns):
    usual = {
        "replicate": 1, "scored_on": "original", "qi_set": "all", "sensitive_attribute": "ill",
        "attacker": "rf", "measure": "normalized_gain", "weighting": "none", "status": "ok", "n": 10,
        "n_at_risk": 5, "rapid": 0.5, "settings_digest": "d1",
    }  # fmt: skip
    return {**usual, **columns}


def summary(*rows):
    return pd.DataFrame([combination(**row) for row in rows])


def finished(store, run_id, frame, registry="at", release_id="r1"):
    attempt = begin(store, run_id)
    version = store.write(attempt, "risk_summary", frame, registry, release_id)
    store.end(attempt, "finished", table_versions={"risk_summary": version})
    return version


def rows(store, sql):
    return [tuple(row) for row in store.query(sql).collect()]


@pytest.mark.parametrize(
    ("location", "schema"),
    [
        ("schema:risk", "`risk`"),
        ("schema:main.risk", "`main`.`risk`"),
        ("schema:a.b.c", None),
        ("schema:a`b", None),
        ("schema:", None),
        ("risk", None),
        ("s3://bucket/risk", None),
        ("dbfs:/risk", None),
        ("", None),
    ],
)
def test_location_of_a_schema(location, schema):
    if schema is None:
        with pytest.raises(ConfigError, match=r"\./rapid-store.*schema:\[catalog\.\]schema"):
            resolve(location)
    else:
        assert resolve(location) == (None, schema)


@pytest.mark.parametrize("location", ["./a", "a/", ".a", "../a", "/tmp/a", "~/a"])
def test_location_of_a_directory(location):
    directory, schema = resolve(location)
    assert directory == Path(location).expanduser().absolute().resolve()
    assert resolve(str(directory)) == (directory, schema)


def test_store_that_cannot_be_made_is_refused_first(tmp_path):
    (tmp_path / "file").touch()
    for place in (tmp_path / "file", tmp_path / "file" / "s", Path("/proc/rapid-store")):
        with pytest.raises(ConfigError, match="cannot be made"):
            Store.open(None, str(place))
    with pytest.raises(ConfigError, match="no store at"):
        Store.open(None, str(tmp_path / "none"), create=False)


def test_a_log_tells_of_no_run_only_while_it_is_whole(tmp_path):
    for version in range(2):
        (tmp_path / f"{version:020}.json").write_text(f'{{"add":{{"run_id":"run-{version}"}}}}')
    (tmp_path / f"{0:020}.{1:020}.compacted.json").write_text("{}")
    assert _never_in_log(tmp_path, "run-2") and not _never_in_log(tmp_path, "run-1")
    (tmp_path / f"{0:020}.json").unlink()  # cleaned away, as Delta does after a checkpoint
    assert not _never_in_log(tmp_path, "run-2")


def test_tables_are_as_declared(store):
    assert set(store.names()) < {*tables(), *views()}  # the rest comes with the first command that needs it
    assert store.init() == sorted([*tables(), *views()])
    for name, table in tables().items():
        made = store.query(f"select * from {name}").schema
        assert [(f.name, f.nullable) for f in made] == [(k, c.nullable) for k, c in table.columns.items()]
        assert [f.metadata.get("comment") for f in made] == [c.comment for c in table.columns.values()]
        metadata = DeltaTable(store.directory / name).metadata()
        assert metadata.description and metadata.configuration["rapid.schema_version"] == "1"
        assert metadata.partition_columns == ([] if name in UNPARTITIONED else ["run_id"])
        for key in table.constraints:
            assert f"delta.constraints.{key}" in metadata.configuration
    assert store.names() == sorted([*tables(), *views()])


def test_written_rows_come_back(store):
    frame = pd.DataFrame(
        [
            combination(quasi_identifiers=["age"], evaluated_at=datetime(2026, 5, 1, 12, tzinfo=UTC)),
            combination(replicate=2, rapid=float("nan"), n=None, status="undefined", reason="one class"),
        ]
    )
    version = finished(store, "back", frame.sample(frac=1, axis=1, random_state=1))
    assert rows(store, "select replicate, n, rapid, quasi_identifiers, string(evaluated_at), registry, status "
                       "from risk_summary where run_id = 'back' order by replicate") == [
        (1, 10, 0.5, ["age"], "2026-05-01 12:00:00", "at", "ok"),
        (2, None, None, None, None, "at", "undefined"),
    ]  # fmt: skip
    entry = [h for h in DeltaTable(store.directory / "risk_summary").history() if h["version"] == version]
    assert entry[0]["userMetadata"] == "run_id=back; registry=at; release_id=r1; attempt=1"


def test_events_of_an_attempt_carry_what_it_began_with(store):
    finished(store, "events", summary({}))
    events = rows(store, "select state, attempt, command, inputs, table_versions, ended_at is null from runs "
                         "where run_id = 'events' order by state desc")  # fmt: skip
    assert events[0] == ("started", 1, "evaluate", '{"original": {"rows": 3}}', None, True)
    assert events[1][:4] == ("finished", 1, "evaluate", '{"original": {"rows": 3}}')
    assert "risk_summary" in events[1][4] and not events[1][5]


def test_views_show_a_run_once_its_latest_attempt_is_finished(store):
    shown = "select rapid_max from release_risk where run_id = 'late'"
    attempt = begin(store, "late")
    store.write(attempt, "risk_summary", summary({}), "at", "r1")
    assert rows(store, shown) == []
    store.end(attempt, "failed")
    assert rows(store, shown) == []
    finished(store, "late", summary({"rapid": 0.6}))
    assert rows(store, shown) == [(0.6,)]
    attempt = begin(store, "late")
    assert attempt.number == 3
    assert rows(store, shown) == []
    store.end(attempt, "failed")
    assert rows(store, "select * from latest_runs where run_id = 'late'") == []


def test_rerun_replaces_only_its_own_rows(store):
    finished(store, "again", summary({"rapid": 0.1}, {"rapid": 0.2, "replicate": 2}))
    finished(store, "other", summary({"rapid": 0.3}))
    attempt = begin(store, "again")
    store.write(attempt, "risk_summary", summary({"rapid": 0.9}), "de", "r1")
    store.write(attempt, "risk_summary", summary({"rapid": 0.4}), "at", "r1")
    store.end(attempt, "finished")
    kept = "select run_id, registry, rapid from risk_summary where run_id in ('again', 'other') order by 1, 2"
    assert rows(store, kept) == [("again", "at", 0.4), ("again", "de", 0.9), ("other", "at", 0.3)]
    attempt = begin(store, "again")
    store.write(attempt, "risk_summary", summary({}).iloc[:0], "de", "r1")
    store.end(attempt, "finished")
    assert rows(store, kept) == [("again", "at", 0.4), ("other", "at", 0.3)]


def test_spark_rows_are_computed_once_also_on_a_rerun(spark, store):
    counter = spark.sparkContext.accumulator(0)

    def score(frames):
        for frame in frames:
            counter.add(len(frame))
            yield frame.assign(record_id=frame["id"].astype(str), true_prob=0.5)[["record_id", "true_prob"]]

    for times in (1, 2):
        scored = spark.range(6).mapInPandas(score, "record_id string, true_prob double")
        frame = scored.selectExpr(
            "1 as replicate", "'original' as scored_on", "'all' as qi_set", "'ill' as sensitive_attribute",
            "'rf' as attacker", "'normalized_gain' as measure", "*", "true_prob > 0.3 as at_risk",
        )  # fmt: skip
        attempt = begin(store, "records")
        store.write(attempt, "risk_records", frame, "at", "r1")
        store.end(attempt, "finished")
        assert counter.value == 6 * times
    counts = "select count(*), count(distinct record_id) from risk_records where run_id = 'records'"
    assert rows(store, counts) == [(6, 6)]


@pytest.mark.parametrize(
    ("table", "row", "rule"),
    [
        ("risk_summary", combination(rapid=41.5), "constraint rapid_is_a_share refused a row"),
        ("risk_summary", combination(n_at_risk=41), "constraint at_risk_within_n refused a row"),
        ("risk_summary", combination(qi_set=None), "NOT NULL of column qi_set refused a row"),
        ("risk_summary", combination(scored_on="elsewhere41"), "constraint known_scored_on refused a row"),
    ],
)
def test_constraints_refuse_and_do_not_tell_the_row(store, table, row, rule):
    attempt = begin(store, "refused")
    try:
        with pytest.raises(StoreError, match=rule) as error:
            store.write(attempt, table, pd.DataFrame([row]), "at", "r1")
        assert "41" not in str(error.value) and error.value.__suppress_context__
    finally:
        store.end(attempt, "failed")


def test_suppressed_cells_hold_no_figures(store):
    cell = {**combination(), "columns": ["age"], "level": ["[20, 30)"], "suppressed": True}
    keys = ["replicate", "scored_on", "qi_set", "sensitive_attribute", "attacker", "measure", "weighting"]
    frame = pd.DataFrame([cell])[[*keys, "columns", "level", "suppressed", "n", "rapid"]]
    attempt = begin(store, "cells")
    with pytest.raises(StoreError, match="suppressed_is_empty"):
        store.write(attempt, "risk_subgroups", frame, "at", "r1")
    store.write(attempt, "risk_subgroups", frame.assign(n=None, rapid=None), "at", "r1")
    store.end(attempt, "finished")


def test_conflicts_are_tried_again_and_other_errors_are_not(store, monkeypatch):
    monkeypatch.setattr("rapid_spark.warehouse.time.sleep", lambda seconds: None)
    calls = []

    def conflicting(times, message="[DELTA_CONCURRENT_APPEND] the row x"):
        calls.append(1)
        if len(calls) <= times:
            raise RuntimeError(message)
        return "done"

    assert store.warehouse.commit("t", lambda: conflicting(3)) == "done"
    assert len(calls) == 4
    calls.clear()
    with pytest.raises(StoreError, match="written by others 10 times") as error:
        store.warehouse.commit("t", lambda: conflicting(99))
    assert "row x" not in str(error.value)
    calls.clear()
    with pytest.raises(RuntimeError, match="disk full"):
        store.warehouse.commit("t", lambda: conflicting(99, "disk full"))
    assert len(calls) == 1


def test_live_attempt_of_the_same_run_is_refused(store):
    attempt = begin(store, "live")
    with pytest.raises(ConfigError, match="run live is at work"):
        begin(store, "live")
    store.end(attempt, "failed")
    store.end(begin(store, "live"), "finished")


@pytest.mark.parametrize("bad", ["a/b", "", "a b", "x" * 129, "a'b"])
def test_ids_are_checked(store, bad):
    with pytest.raises(ValueError, match="is not an id"):
        begin(store, bad)


def test_release_risk_equals_plain_python(store):
    figures = {"rf": [0.30, 0.40, 0.35], "logit": [0.50, 0.20, 0.26], "cart": [0.10, 0.11, 0.12]}
    pooled = {"rf": 0.45, "logit": 0.33, "cart": 0.2}
    frame = summary(
        *(
            {"attacker": attacker, "replicate": number, "rapid": rapid}
            for attacker, rapids in figures.items()
            for number, rapid in enumerate(rapids, 1)
        ),
        *({"attacker": a, "replicate": 0, "rapid": r} for a, r in pooled.items()),
        {"attacker": "gbm", "rapid": None, "n": None, "n_at_risk": None, "status": "failed"},
        {"attacker": "rf", "scored_on": "holdout", "rapid": 0.99},
        {"attacker": "rf", "weighting": "survey", "rapid": 0.99},
        {"attacker": "rf", "measure": "nce", "rapid": 0.8},
        {"attacker": "rf", "sensitive_attribute": "income", "rapid": None, "status": "undefined"},
    )
    finished(store, "suite", frame)
    found = rows(
        store,
        "select sensitive_attribute, measure, attackers, replicates, rapid_mean, rapid_sd, rapid_pooled, "
        "rapid_max, worst_attacker, rapid_decisive, not_ok from release_risk where run_id = 'suite' "
        "order by 1, 2",
    )
    means = {a: statistics.mean(rs) for a, rs in figures.items()}
    per_replicate = [statistics.mean(rs) for rs in zip(*figures.values(), strict=True)]
    assert found[0][:4] == ("ill", "nce", 1, 1)
    assert found[0][4:] == (0.8, None, None, 0.8, "rf", 0.8, 0)
    ill = found[1]
    assert ill[:4] == ("ill", "normalized_gain", 3, 3)
    mean, sd = statistics.mean(means.values()), statistics.stdev(per_replicate)
    assert ill[4:8] == pytest.approx((mean, sd, max(pooled.values()), max(means.values())))
    assert ill[8:] == (max(means, key=means.get), 0.45, 1)
    assert found[2] == ("income", "normalized_gain", 0, 0, None, None, None, None, None, None, 1)


def test_latest_runs(store):
    for run_id, digest in (("old", "d1"), ("new", "d1"), ("others", "d2")):
        finished(store, run_id, summary({"settings_digest": digest}), registry="fi")
    attempt = begin(store, "newest")
    store.write(attempt, "risk_summary", summary({}), "fi", "r1")
    found = rows(store, "select settings_digest, run_id from latest_runs where registry = 'fi' order by 1")
    assert found == [("d1", "new"), ("d2", "others")]
    store.end(attempt, "finished")
    found = rows(store, "select settings_digest, run_id from latest_runs where registry = 'fi' order by 1")
    assert found == [("d1", "newest"), ("d2", "others")]


def test_joint_risk(store):
    flags = {"ill": [True, True, False, None], "income": [True, False, False, None]}
    records = [
        combination(sensitive_attribute=a, record_id=str(i), at_risk=f)
        for a, fs in flags.items()
        for i, f in enumerate(fs)
    ]
    frame = pd.DataFrame(records)
    frame = frame[[c for c in frame.columns if c in tables()["risk_records"].columns]]
    figures = summary({"n": 3, "n_at_risk": 2}, {"sensitive_attribute": "income", "n": 3, "n_at_risk": 1})
    for run_id, kept in (("joint", frame), ("part", frame[frame["at_risk"].eq(True)])):
        attempt = begin(store, run_id)
        store.write(attempt, "risk_summary", figures, "at", "r1")
        store.write(attempt, "risk_records", kept, "at", "r1")
        store.end(attempt, "finished")
    wanted = "combinations, n_records, n_any, share_any, share_all, mean_count, complete"
    shown = f"select {wanted} from joint_risk"
    found = rows(store, f"{shown} where run_id = 'joint'")[0]
    assert found == pytest.approx((2, 3, 2, 2 / 3, 1 / 3, 1.0, True))
    assert rows(store, f"{shown} where run_id = 'part'") == [(2, 2, 2, None, None, None, False)]


def test_query_names_the_table_that_was_meant(store, capfd):
    with pytest.raises(ConfigError, match="no table risk_sumary. Did you mean 'risk_summary'"):
        store.query("select * from risk_sumary")
    with pytest.raises(ConfigError, match="may change something"):
        store.query("delete from runs")
    with pytest.raises(ConfigError, match="query: .*(?i:syntax)"):
        store.query("select (1")
    assert capfd.readouterr().err == ""
    store.query("delete from runs where run_id = 'nobody'", write=True)


def test_files_are_their_owner_s_only(store):
    assert stat.S_IMODE(store.directory.stat().st_mode) == 0o700
    written = [p for p in (store.directory / "risk_summary").rglob("*") if p.is_file()]
    assert written and not [p for p in written if stat.S_IMODE(p.stat().st_mode) & 0o077]


def test_store_of_an_earlier_version_gains_columns(spark, tmp_path):
    place = tmp_path / "s" / "risk_summary"
    added = ("auc", "copy_ceiling")
    columns = {key: c for key, c in tables()["risk_summary"].columns.items() if key not in added}
    listed = ", ".join(f"{key} {c.type}{'' if c.nullable else ' NOT NULL'}" for key, c in columns.items())
    spark.sql(f"create table old_summary ({listed}) using delta partitioned by (run_id) location '{place}'")
    spark.sql("drop table old_summary")
    store = Store.open(spark, str(tmp_path / "s"))
    finished(store, "a", summary({"auc": 0.7}))
    # What a program of the earlier version writes: by name, without the new columns.
    name = store.qualified("risk_summary")
    spark.table(name).drop(*added).writeTo(name).append()
    shown = rows(store, "select auc, copy_ceiling from risk_summary order by auc nulls last")
    assert shown == [(0.7, None), (None, None)]


def test_store_whose_directory_went_is_made_anew(spark, tmp_path):
    store = Store.open(spark, str(tmp_path / "s"))
    finished(store, "a", summary({}))
    shutil.rmtree(tmp_path / "s")
    store = Store.open(spark, str(tmp_path / "s"))
    assert rows(store, "select * from runs") == []
    finished(store, "b", summary({}))
    assert rows(store, "select run_id from latest_runs") == [("b",)]


def test_dropping_the_session_s_schema_leaves_the_results(spark, tmp_path):
    store = Store.open(spark, str(tmp_path / "s"))
    finished(store, "a", summary({}))
    spark.sql("use default")
    spark.sql(f"drop schema {store.warehouse.schema} cascade")
    store = Store.open(spark, str(tmp_path / "s"), create=False)
    assert rows(store, "select run_id from latest_runs") == [("a",)]


def test_schema_of_a_catalog_is_made_once_and_then_used_without_ddl(spark, tmp_path, monkeypatch):
    spark.sql(f"create schema risk_test location '{tmp_path}'")
    try:
        with pytest.raises(ConfigError, match="no store at schema:risk_test"):
            Store.open(spark, "schema:risk_test", create=False)
        finished(Store.open(spark, "schema:risk_test"), "a", summary({}))
        again = Store.open(spark, "schema:risk_test")
        monkeypatch.setattr(type(again.warehouse), "_run", lambda *a: pytest.fail("a statement that defines"))
        again = Store.open(spark, "schema:risk_test")
        assert rows(again, "select run_id, rapid_max from release_risk") == [("a", 0.5)]
        assert again.directory is None
        attempt = begin(again, "b")
        with pytest.raises(StoreError, match="rapid_is_a_share"):
            again.write(attempt, "risk_summary", summary({"rapid": 2.0}), "at", "r1")
    finally:
        spark.sql("drop schema risk_test cascade")


PROGRAM = """
import sys
import pandas as pd
from rapid_spark import session
from rapid_spark.store import Store
sys.path.insert(0, {tests!r})
from test_store import begin, finished, summary

spark = session.get()
print("ready", flush=True)
sys.stdin.readline()
store = Store.open(spark, {place!r})
"""


def start(place: Path, code: str, **environment: str) -> subprocess.Popen:
    program = PROGRAM.format(tests=str(Path(__file__).parent), place=str(place)) + code
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **environment}
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen([sys.executable, "-c", program], env=env, text=True, **pipes)


def test_two_processes_make_and_write_one_new_store_at_once(spark, tmp_path):
    code = """
for i in range(4):
    finished(store, f"{name}-{i % 2}", summary({"rapid": 0.1 * i}))
"""
    processes = [start(tmp_path / "s", f"name = {name!r}\n{code}") for name in "ab"]
    for process in processes:
        assert process.stdout.readline() == "ready\n", process.stderr.read()
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        assert process.wait(timeout=300) == 0, process.stderr.read()
    store = Store.open(spark, str(tmp_path / "s"), create=False)
    shown = rows(store, "select run_id, round(rapid_max, 1) from release_risk order by 1")
    assert shown == [("a-0", 0.2), ("a-1", 0.3), ("b-0", 0.2), ("b-1", 0.3)]


def test_process_killed_in_the_middle_leaves_nothing_that_a_view_shows(spark, tmp_path):
    code = """
attempt = begin(store, "a")
store.write(attempt, "risk_summary", summary({}), "at", "r1")
print("written", flush=True)
sys.stdin.readline()
"""
    process = start(tmp_path / "s", code)
    process.stdin.write("go\n")
    process.stdin.flush()
    assert [process.stdout.readline() for _ in range(2)] == ["ready\n", "written\n"]
    store = Store.open(spark, str(tmp_path / "s"))
    with pytest.raises(ConfigError, match="run a is at work"):
        begin(store, "a")
    process.send_signal(signal.SIGKILL)
    process.wait()
    time.sleep(0.1)
    assert rows(store, "select run_id from risk_summary") == [("a",)]
    counts = " union all ".join(f"select '{view}' as view, count(*) as n from {view}" for view in views())
    assert dict(rows(store, counts)) == dict.fromkeys(views(), 0)
    finished(store, "a", summary({"rapid": 0.7}))
    assert rows(store, "select rapid_max from release_risk") == [(0.7,)]


def test_spark_connect_writes_and_reads_the_same_store(spark, tmp_path):
    code = """
finished(store, "a", summary({"rapid": 0.1}))
finished(store, "a", summary({"rapid": 0.2}))
attempt = begin(store, "b")
frame = spark.sql("select 1 replicate, 'original' scored_on, 'all' qi_set, 'ill' sensitive_attribute, "
                  "'rf' attacker, 'nce' measure, '7' record_id, true at_risk")
print(store.write(attempt, "risk_records", frame, "at", "r1"))
try:
    store.write(attempt, "risk_summary", summary({"rapid": 41.0}), "at", "r1")
except Exception as error:
    print(type(error).__name__, error)
store.end(attempt, "finished")
print(store.query("select run_id, rapid_max from release_risk").collect())
"""
    process = start(tmp_path / "s", code, SPARK_REMOTE="local[2]", SPARK_TESTING="1")
    out, err = process.communicate("go\n", timeout=300)
    said = out.splitlines()
    assert said[:2] == ["ready", "1"], err
    assert said[2].startswith("StoreError") and "rapid_is_a_share" in said[2] and "41" not in said[2]
    assert said[3] == "[Row(run_id='a', rapid_max=0.2)]"
    store = Store.open(spark, str(tmp_path / "s"), create=False)
    assert rows(store, "select run_id, rapid_max from release_risk") == [("a", 0.2)]
    assert rows(store, "select record_id from risk_records") == [("7",)]

"""Retention, erasure and rights of a store."""

from __future__ import annotations

import json
import os
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from test_store import begin, combination, finished, rows, summary

from rapid_spark.cli import entry
from rapid_spark.config import ConfigError
from rapid_spark.locks import FileLock
from rapid_spark.store import Store
from rapid_spark.tables import tables, views
from rapid_spark.upkeep import erasure, files, grants
from rapid_spark.upkeep.retention import Rule, Run, choose, vacuum

NOW = datetime(2026, 6, 30, tzinfo=UTC)
A, B = ("at", "r1", "d1"), ("de", "r1", "d1")


def run(name, days, *subjects, finished=True, evidence=False):
    return Run(name, finished, NOW - timedelta(days=days), frozenset(subjects), evidence)


def gone(runs, days=None, last=None):
    return choose(runs, Rule(None if days is None else timedelta(days=days), last), NOW).going


RUNS = [run("a1", 400, A), run("a2", 300, A), run("a3", 200, A), run("b1", 500, B)]


@pytest.mark.parametrize(
    ("days", "last", "going"),
    [
        (100, None, ["a1", "a2"]),  # a3 and b1 are the latest of their subject, whatever their age
        (350, None, ["a1"]),
        (None, 1, ["a1", "a2"]),
        (None, 2, ["a1"]),
        (350, 1, ["a1"]),  # both must say so
        (250, 2, ["a1"]),
        (1000, 1, []),
        (None, 9, []),
        (0, None, ["a1", "a2"]),
    ],
)
def test_what_goes_by_age_and_number(days, last, going):
    assert gone(RUNS, days, last) == going


def test_a_run_about_several_releases_stays_while_it_is_the_latest_of_one():
    audit = run("audit", 300, A, B)
    assert gone([audit, run("a", 10, A)], 100) == []
    assert gone([audit, run("a", 10, A), run("b", 10, B)], 100) == ["audit"]


def test_a_newer_run_that_did_not_finish_protects_nothing_and_is_not_protected():
    kept = choose([run("ok", 300, A), run("broke", 200, A, finished=False), run("alive", 0.5, A, finished=False)],
                  Rule(keep_last=1), NOW)  # fmt: skip
    assert (kept.going, kept.latest) == (["broke"], [])
    kept = choose([run("ok", 300, A), run("broke", 200, A, finished=False)], Rule(timedelta(days=250)), NOW)
    assert (kept.going, kept.latest) == ([], ["ok"])


def test_evidence_of_a_decision_stays():
    kept = choose([run("decided", 300, A, evidence=True), run("new", 1, A)], Rule(timedelta(days=100)), NOW)
    assert (kept.going, kept.evidence) == ([], ["decided"])


@pytest.mark.parametrize(
    ("older", "last", "said"),
    [(None, None, "say what may go"), (None, 0, "1 is the least"), (timedelta(days=-1), None, "0 or more")],
)
def test_rules_without_sense_are_refused(older, last, said):
    with pytest.raises(ConfigError, match=said):
        Rule(older, last)


def test_a_key_of_several_columns_is_the_record_id_of_the_tables():
    assert erasure.record_id(["7"]) == "7"
    assert erasure.record_id(["AT", 'a"b']) == '["AT","a\\"b"]'
    for key in ([], [""], ["a", ""]):
        with pytest.raises(ConfigError, match="--key"):
            erasure.record_id(key)


def test_grants_name_every_table_and_keep_rows_about_persons_apart():
    made = grants.statements("schema:main.risk", "officers", "custodians")
    selects = [s for s in made if s.startswith("GRANT SELECT")]
    assert "GRANT USE CATALOG ON CATALOG `main` TO `officers`" in made
    assert {s.split("`")[-2] for s in selects if "`risk_records`" in s} == {"custodians"}
    for name in {*tables(), *views()} - {"risk_records"}:
        kind = "VIEW" if name in views() else "TABLE"
        assert f"GRANT SELECT ON {kind} `main`.`risk`.`{name}` TO `officers`" in selects
    assert not [s for s in grants.statements("schema:risk", "a`b") if "risk_records" in s or "CATALOG" in s]
    assert "TO `a``b`" in grants.statements("schema:risk", "a`b")[0]
    with pytest.raises(ConfigError, match="is a directory"):
        grants.statements("./store", "officers")


def test_grants_from_the_command_line_need_no_spark(capsys):
    assert entry.run(["init-db", "--print-grants", "officers", "--store", "schema:main.risk"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("GRANT USE CATALOG") and "risk_records" not in shown and shown.endswith(";\n")
    assert entry.run(["init-db", "--print-grants", "officers", "--store", "./s"]) == 2
    assert entry.run(["init-db", "--records-to", "officers", "--store", "schema:risk"]) == 2


def test_commands_without_what_they_need_are_refused_before_spark(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert entry.run(["vacuum"]) == 2
    assert "--older-than" in capsys.readouterr().err
    assert entry.run(["forget"]) == 2
    assert entry.run(["forget", "--key", ""]) == 2
    assert not list(tmp_path.iterdir())


def records(*keys):
    columns = [c for c in tables()["risk_records"].columns if c in combination()]
    return pd.DataFrame([{**{c: combination()[c] for c in columns}, "record_id": key, "at_risk": True} for key in keys])


def evaluated(store, run_id, *keys, **figures):
    attempt = begin(store, run_id)
    versions = {
        "risk_summary": store.write(attempt, "risk_summary", summary(figures), "at", "r1"),
        "risk_records": store.write(attempt, "risk_records", records(*keys), "at", "r1"),
    }
    store.end(attempt, "finished", table_versions=versions)
    return versions


def held(store):
    """record_ids in every data file of risk_records, also of old versions."""
    found = [pq.read_table(p, columns=["record_id"]) for p in (store.directory / "risk_records").rglob("*.parquet")
             if "_delta_log" not in p.parts]  # fmt: skip
    return {key for table in found for key in table["record_id"].to_pylist()}


def texts(store, word):
    """Files of a store that hold a word as it is."""
    return [p for p in store.directory.rglob("*") if p.is_file() and word.encode() in p.read_bytes()]


@pytest.fixture(scope="module")
def store(spark, tmp_path_factory):
    return Store.open(spark, str(tmp_path_factory.mktemp("upkeep") / "s"))


@pytest.mark.slow
@pytest.mark.long
def test_forget_erases_a_record_from_every_version_and_tells_nothing_of_it(store, capsys, monkeypatch):
    evaluated(store, "e1", "KEY4711", "b", "c")
    evaluated(store, "e2", "KEY4711", "b")
    place = store.qualified("risk_records")
    # as some platforms set it: a deleted row stays in its file and is only marked
    store.warehouse.spark.sql(f"ALTER TABLE {place} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    evaluated(store, "e3", "KEY4711", "d")
    store.query(f"DELETE FROM {place} WHERE run_id = 'e3' AND record_id = 'd'", write=True)
    assert "KEY4711" in held(store)
    orphan = store.directory / "risk_records" / "run_id=dead"
    orphan.mkdir()
    pq.write_table(pq.read_table(next((store.directory / "risk_records" / "run_id=e1").glob("*.parquet"))),
                   orphan / "part-of-a-killed-writer.parquet")  # fmt: skip
    alive = begin(store, "alive")
    command = ["forget", "--key", "-", "--store", str(store), "--format", "json"]
    monkeypatch.setattr("sys.stdin", open(os.devnull))  # noqa: SIM115
    assert entry.run(command) == 2  # no key
    with pytest.raises(ConfigError, match="run alive is at work"):
        erasure.forget(store, ["KEY4711"], "forget-0")
    assert "KEY4711" in held(store)
    store.end(alive, "failed")
    capsys.readouterr()
    assert entry.run(["forget", "--key", "KEY4711", "--store", str(store), "--format", "json"]) == 0
    shown = capsys.readouterr()
    found = json.loads(shown.out)
    assert (found["rows"], found["runs"]) == (3, 3) and found["files"] >= 3
    assert found["versions"] == {"readable": 0, "unreadable": 3}
    assert "KEY4711" not in shown.out + shown.err
    assert held(store) == {"b", "c"} and not texts(store, "KEY4711")
    left = "select run_id, record_id from risk_records order by 1, 2"
    assert rows(store, left) == [("e1", "b"), ("e1", "c"), ("e2", "b")]
    assert files.own_retention(store.warehouse, "risk_records") == timedelta(days=7)
    assert rows(store, "select rapid_max from release_risk where run_id = 'e1'") == [(0.5,)]
    again = erasure.forget(store, ["KEY4711"], "forget-2")
    assert (again["rows"], again["runs"]) == (0, 0)
    elsewhere = erasure.forget(store, ["b"], "forget-3", registry="fi")
    assert elsewhere["rows"] == 0 and held(store) == {"b", "c"}
    told = rows(store, f"select state, inputs from runs where run_id = '{found['run_id']}' order by state desc")
    assert [s for s, _ in told] == ["started", "finished"] and json.loads(told[1][1])["rows"] == 3


@pytest.mark.slow
@pytest.mark.long
def test_vacuum_keeps_what_must_stay_and_says_which_versions_can_be_read(spark, tmp_path, capsys):
    store = Store.open(spark, str(tmp_path / "s"))
    versions = {name: evaluated(store, name, f"of-{name}", rapid=r)["risk_records"] for name, r in
                [("v1", 0.1), ("v2", 0.2), ("v3", 0.3)]}  # fmt: skip
    of_other = finished(store, "other", summary({"settings_digest": "d2", "rapid": 0.9}))
    store.end(begin(store, "broke"), "failed")
    store.need("release_decisions")
    decided = pd.DataFrame([{"run_id": "v1", "registry": "at", "release_id": "r1", "outcome": "approve",
                             "decided_by": "me", "decided_at": datetime(2026, 1, 1, tzinfo=UTC)}])  # fmt: skip
    from rapid_spark.tables import arrow

    spark.createDataFrame(arrow(tables()["release_decisions"], decided)).writeTo(
        store.qualified("release_decisions")
    ).append()
    words = ["vacuum", "--older-than", "0", "--store", str(store), "--format", "json"]
    assert entry.run([*words, "--dry-run"]) == 0
    planned = json.loads(capsys.readouterr().out)
    assert sorted(planned["removed"]) == ["broke", "v2"] and planned["kept_evidence"] == ["v1"]
    assert sorted(planned["kept_latest"]) == ["other", "v3"] and planned["run_id"] is None
    assert {t["table"]: t["rows"] for t in planned["tables"] if t["rows"]} == {"runs": 4, "risk_records": 1, "risk_summary": 1}
    assert rows(store, "select count(*) from release_risk") == [(4,)]

    live = FileLock(store.directory / ".locks" / "run-v2")
    assert live.acquire(wait=False)
    with pytest.raises(ConfigError, match="run v2 is at work"):
        vacuum(store, Rule(timedelta(0)), "vacuum-0", keep_versions=timedelta(0))
    live.release()

    assert entry.run([*words, "--keep-versions", "0"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert sorted(found["removed"]) == ["broke", "v2", "vacuum-0"]
    assert rows(store, "select run_id from release_risk order by 1") == [("other",), ("v1",), ("v3",)]
    assert rows(store, "select run_id from release_decisions") == [("v1",)]
    assert held(store) == {"of-v1", "of-v3"}
    (of_records,) = [t for t in found["tables"] if t["table"] == "risk_records"]
    # v1 wrote before v2: all its files are still there; v3's version held v2's file
    assert (of_records["readable"], of_records["unreadable"]) == ([versions["v1"]], [versions["v3"]])
    at = f"select record_id from {store.qualified('risk_records')} version as of {{}}"
    assert [r[0] for r in spark.sql(at.format(versions["v1"])).collect()] == ["of-v1"]
    with pytest.raises(Exception, match="(?i)file"):
        spark.sql(at.format(versions["v3"])).collect()
    # and the next call still knows that, although files are now kept for a week
    (of_records,) = [t for t in vacuum(store, Rule(timedelta(days=99)), "vacuum-1")["tables"] if t["table"] == "risk_records"]
    assert (of_records["readable"], of_records["unreadable"]) == ([versions["v1"]], [versions["v3"]])
    # rows left behind by a call that was killed after `runs` go with the next one
    store.query("delete from runs where run_id = 'v3'", write=True)
    assert vacuum(store, Rule(timedelta(days=99)), "vacuum-2")["removed"] == []
    assert rows(store, "select distinct run_id from risk_records") == [("v1",)]
    # within the usual seven days old versions stay
    evaluated(store, "v4", "x")
    evaluated(store, "v5", "y")
    kept = vacuum(store, Rule(keep_last=1), "vacuum-3")
    assert kept["removed"] == ["vacuum-1", "v4"] and "x" in held(store)
    # what the first call made unreadable stays so: other's version of risk_summary held v2's file
    assert {t["table"]: t["unreadable"] for t in kept["tables"] if t["unreadable"]} == {"risk_summary": [of_other]}
    assert stat.S_IMODE(Path(store.directory).stat().st_mode) == 0o700

"""The DDL as the package reads it, rows made to fit it, and the guard of read-only queries."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime

import numpy as np
import pandas as pd
import pytest

from rapid_spark.locks import FileLock
from rapid_spark.readonly import fault
from rapid_spark.tables import ARROW, arrow, quoted, tables, views

COMBINATION = {"run_id", "registry", "release_id", "replicate", "scored_on", "qi_set", "sensitive_attribute",
               "measure", "attacker"}  # fmt: skip
KEYS = {
    "runs": {"run_id", "attempt", "state"},
    "risk_records": {*COMBINATION, "record_id"},
    "risk_summary": {*COMBINATION, "weighting"},
    "risk_curve": {*COMBINATION, "weighting", "threshold"},
    "risk_classes": {*COMBINATION, "weighting", "class_label"},
    "risk_subgroups": {*COMBINATION, "weighting", "columns", "level"},
    "risk_patterns": {*COMBINATION, "weighting", "columns", "level"},
    "risk_attribution": {*COMBINATION, "weighting", "term", "kind"},
    "risk_distributions": {*COMBINATION, "weighting", "kind", "class_label", "bin_low", "bin_high"},
    "risk_relations": {*COMBINATION, "weighting", "quasi_identifier", "level", "class_label"},
    "risk_joint": {"run_id", "registry", "release_id", "scored_on", "qi_set", "across"},
    "audit_verdicts": {"run_id", "registry", "release_id", "rule", "verdict"},
    "release_decisions": {"run_id", "registry", "release_id", "outcome", "decided_by", "decided_at"},
    "risk_attacks": {"run_id", "release_id", "attack", "attacker", "status"},
    "release_utility": {"run_id", "release_id", "measure"},
    "disclosure_measures": {"run_id", "release_id", "name", "status"},
    "audit_comparison": {"run_id", "registry", "release_id", "sensitive_attribute", "attacker"},
    "exports": {"run_id", "registry", "release_id", "exported_at"},
    "dp_ledger": {"entry_id", "dataset", "mechanism", "adjacency", "entered_at", "state"},
}


def test_every_line_of_the_ddl_is_read():
    for table in tables().values():
        body = table.create.split("(\n", 1)[1].split("\n) USING", 1)[0]
        assert len(table.columns) == len(body.splitlines())
        assert {c.type for c in table.columns.values()} <= set(ARROW)
        assert all(c.comment for c in table.columns.values())


def test_keys_are_not_null():
    assert set(tables()) == set(KEYS)
    for name, table in tables().items():
        assert KEYS[name] <= {c for c, column in table.columns.items() if not column.nullable}


def test_result_columns_are_those_of_the_tables():
    results = pytest.importorskip("rapid_spark.results")
    declared = {"risk_summary": results.SUMMARY, "risk_curve": results.CURVE, "risk_classes": results.CLASSES}
    joint, drivers = pytest.importorskip("rapid_spark.joint"), pytest.importorskip("rapid_spark.drivers")
    declared |= {"risk_distributions": results.DISTRIBUTIONS, "risk_joint": joint.COLUMNS, "risk_relations": drivers.RELATIONS}
    for name, columns in {**declared, "risk_records": results.RECORDS}.items():
        assert set(columns) == set(tables()[name].columns)


def test_views_come_in_an_order_in_which_each_finds_what_it_reads():
    known = set(tables())
    for name, statement in views().items():
        body = statement.split("\nAS\n", 1)[1]
        assert not [other for other in views() if other not in known and re.search(rf"\b{other}\b", body)]
        known.add(name)


def test_pandas_rows_fit_the_table():
    frame = pd.DataFrame(
        {
            "n": [3.0, np.nan],
            "rapid": [0.5, np.nan],
            "quasi_identifiers": [np.array(["age", "sex"]), None],
            "release_date": [date(2026, 1, 31), pd.NaT],
            "evaluated_at": [datetime(2026, 1, 31, 12), pd.Timestamp("2026-01-31 13:00", tz="Europe/Vienna")],
            "status": pd.array(["ok", pd.NA], dtype="string"),
            "seed": np.array([2**31, 7], dtype=np.uint32),
        }
    )
    rows = arrow(tables()["risk_summary"], frame).to_pylist()
    assert rows[0]["n"] == 3 and rows[1]["n"] is None and rows[1]["rapid"] is None
    assert [r["quasi_identifiers"] for r in rows] == [["age", "sex"], None]
    assert [r["release_date"] for r in rows] == [date(2026, 1, 31), None]
    assert {r["evaluated_at"] for r in rows} == {datetime(2026, 1, 31, 12, tzinfo=UTC)}
    assert [r["status"] for r in rows] == ["ok", None] and [r["seed"] for r in rows] == [2**31, 7]
    assert all(r["auc"] is None for r in rows)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("n", 2.5, "column n: float does not fit bigint"),
        ("n", True, "column n: bool does not fit bigint"),
        ("rapid", "secret", "column rapid: str does not fit double"),
        ("reason", 3, "column reason: int does not fit string"),
        ("replicate", 2**40, "column replicate: int does not fit int"),
        ("rapidd", 0.5, "has no column rapidd"),
    ],
)
def test_rows_that_do_not_fit_are_refused_without_their_value(column, value, message):
    with pytest.raises(ValueError, match=message) as error:
        arrow(tables()["risk_summary"], pd.DataFrame({column: pd.Series([value], dtype=object)}))
    assert "secret" not in str(error.value)


def test_text_is_quoted_for_sql():
    assert quoted("it's a \\") == r"'it\'s a \\'"


@pytest.mark.parametrize(
    "sql",
    [
        "select 1",
        "  -- all of them\n SELECT * FROM runs ; ",
        "WITH a AS (SELECT 1), b(x) AS (SELECT 'insert; into' AS `delete`) SELECT * FROM a, b",
        "with a as (select ')') select a.`;` from a /* ; */",
        "describe history runs",
        "SHOW TABLES",
        "explain select 1",
        "select transform(array(1), x -> x + 1) from a join b using (k)",
        "select reflect from a",
    ],
)
def test_reading_is_let_through(sql):
    assert fault(sql) is None


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("", "no statement"),
        ("-- select 1", "no statement"),
        ("drop table runs", "drop may change something"),
        ("select 1; drop table runs", "one statement"),
        ("select ';'; drop table runs", "one statement"),
        ("insert into runs select * from runs", "insert may change"),
        ("WITH a AS (SELECT 1) INSERT INTO runs SELECT * FROM a", "only lead to a SELECT"),
        ("with a as (select 1) from a insert into b select *", "only lead to a SELECT"),
        ("/* select */ delete from runs", "delete may change"),
        ("from runs insert into a select *", "from may change"),
        ("`select` 1", "may change"),
        ("set spark.sql.ansi.enabled=false", "set may change"),
        ("select reflect('java.lang.System', 'exit', 1)", "runs code"),
        ("select java_method ('a', 'b')", "runs code"),
        ("select `java_method`('a', 'b')", "runs code"),
        ("select transform(a) using 'rm -rf x' from t", "runs a program"),
    ],
)
def test_what_may_change_something_is_refused(sql, reason):
    assert reason in fault(sql)


def test_lock_is_exclusive_and_free_after_release(tmp_path):
    first, second = FileLock(tmp_path / "locks" / "a"), FileLock(tmp_path / "locks" / "a")
    assert first.acquire(wait=False)
    assert not second.acquire(wait=False)
    first.release()
    assert second.acquire(wait=False)
    second.release()
    assert list((tmp_path / "locks").iterdir()) == []

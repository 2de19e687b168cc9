"""Erase one record's results: its rows in `risk_records`, and the files of old versions that still hold them."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from .. import keyed
from ..config import ConfigError, check_identifier
from ..store import Store
from ..strictjson import dumps
from . import files, guard

TABLE = "risk_records"
VIEW = "rapid_spark_forgotten"
AT_ONCE = timedelta(0)
CONDITION = (
    "(t.record_id = f.record_id OR startswith(t.record_id, f.hidden)) AND t.registry = coalesce(f.registry, t.registry)"
)


def record_id(key: Sequence[str]) -> str:
    """The record_id of a key: its value, or of a key of several columns the JSON list of their texts."""
    if not key or any(not part for part in key):
        raise ConfigError("--key: give the record's key, one value for each column of columns.key, none of them empty")
    return key[0] if len(key) == 1 else json.dumps(list(key), ensure_ascii=False, separators=(",", ":"))


def wanted_rows(spark: SparkSession, wanted: str, registry: str | None) -> DataFrame:
    """One row that says which records are meant: by record id, and by what an HMAC of it begins with."""
    key = os.environ.get(keyed.VARIABLE)
    hidden = keyed.start_of(wanted, key) if key else None
    return spark.createDataFrame([(wanted, hidden, registry)], "record_id string, hidden string, registry string")


def same_record() -> Column:
    """Whether a stored row `t` is meant by a row `f` of `wanted_rows`."""
    return F.expr(CONDITION)


def forget(
    store: Store,
    key: Sequence[str],
    run_id: str,
    registry: str | None = None,
    force: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Erase the rows of one record from `risk_records`, from files too, and so from every old version.

    The key is matched through a view of one row: a condition that holds it would stand in the table's history for good.
    Old versions of `risk_records` cannot be read afterwards unless they hold the same files as the newest. Aggregates
    that once counted the record stay: they tell of no person. The call itself is a run of the command `forget`, with
    counts and without the key. Record ids under `columns.key_hmac` are found where the environment has their secret.

    Args:
        store: the store.
        key: the record's key, one value per column of `columns.key`.
        run_id: of the call.
        registry: erase in this registry only; in all when None.
        force: see `guard.alone`.
        say: called with the name of each stage.

    Returns:
        Counts: `rows` and `runs` the record stood in, `files` removed (local stores), and recorded `versions` of the table
        that stay `readable` or not.

    Raises:
        ConfigError: the key is empty, or another run is at work in the store.
        StoreError: conflicts with other writers did not end.
    """
    wanted = record_id(key)
    check_identifier(run_id)
    settings = dumps({"registry": registry})
    digest = hashlib.sha256(settings.encode()).hexdigest()
    attempt = store.begin(run_id, "forget", settings, digest, {}, {})
    found: dict[str, Any] = {"store": str(store), "run_id": run_id}
    try:
        with guard.alone(store, run_id, force):
            found |= _erase(store, wanted, registry, say)
    except BaseException:
        store.end(attempt, "failed")
        raise
    counts = dumps({k: v for k, v in found.items() if k not in ("store", "run_id")})
    store.end(replace(attempt, row={**attempt.row, "inputs": counts}), "finished")
    return found


def _erase(store: Store, wanted: str, registry: str | None, say: Callable[[str], None]) -> dict[str, Any]:
    warehouse, spark = store.warehouse, store.warehouse.spark
    name = store.qualified(TABLE)
    say("erasing rows")
    wanted_rows(spark, wanted, registry).createOrReplaceTempView(VIEW)
    try:
        hits = spark.table(name).alias("t").join(spark.table(VIEW).alias("f"), same_record(), "left_semi")
        counted = hits.agg(F.count(F.lit(1)).alias("rows"), F.count_distinct("run_id").alias("runs")).collect()[0]
        merge = f"MERGE INTO {name} AS t USING {VIEW} AS f ON {CONDITION} WHEN MATCHED THEN DELETE"
        if counted["rows"]:
            warehouse.commit(TABLE, lambda: spark.sql(merge))
    finally:
        spark.catalog.dropTempView(VIEW)
    say("removing old files")
    # Where rows were only marked as deleted (deletion vectors), the files are written anew without them.
    warehouse.commit(TABLE, lambda: spark.sql(f"REORG TABLE {name} APPLY (PURGE)"))
    before = _n_files(store)
    files.remove_files(warehouse, TABLE, AT_ONCE)
    after = _n_files(store)
    versions = _recorded(store)
    left = files.readable(warehouse, TABLE, versions, datetime.now(UTC))
    return {
        "rows": counted["rows"],
        "runs": counted["runs"],
        "files": None if before is None or after is None else before - after,
        "versions": {"readable": len(left), "unreadable": len(versions - left)},
    }


def _n_files(store: Store) -> int | None:
    if store.directory is None:
        return None
    return sum(1 for path in (store.directory / TABLE).rglob("*") if path.is_file() and "_delta_log" not in path.parts)


def _recorded(store: Store) -> set[int]:
    rows = store.warehouse.spark.table(store.qualified("runs")).select("table_versions").collect()
    found = (json.loads(row["table_versions"] or "{}").get(TABLE) for row in rows)
    return {int(version) for version in found if version is not None}

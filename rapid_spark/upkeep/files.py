"""Files of old versions of a table: removing them, and which versions can be read without them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from ..tables import Table, tables
from ..warehouse import Warehouse

RETENTION = "delta.deletedFileRetentionDuration"
DELETION_VECTORS = "delta.enableDeletionVectors"
DELTA_DEFAULT = timedelta(days=7)
HOURS = {"minute": 1 / 60, "hour": 1.0, "day": 24.0, "week": 168.0}
# Operations after which an older version may hold files that the newest does not.
ONLY_ADDS = ("WRITE", "CREATE TABLE", "ADD COLUMNS", "ADD CONSTRAINT", "SET TBLPROPERTIES", "UNSET TBLPROPERTIES",
             "VACUUM START", "VACUUM END")  # fmt: skip


def is_append_only(table: Table) -> bool:
    """Whether rows of a table are only ever added."""
    return "'delta.appendOnly' = 'true'" in table.create


def result_tables(warehouse: Warehouse) -> list[str]:
    """Tables of the store whose rows belong to a run and may go with it, `runs` apart."""
    there = warehouse.existing()
    return [
        name
        for name, table in tables().items()
        if name in there and name != "runs" and "run_id" in table.columns and not is_append_only(table)
    ]


def remove_files(warehouse: Warehouse, table: str, retention: timedelta | None) -> timedelta:
    """Remove files that no version younger than `retention` needs (VACUUM).

    Args:
        warehouse: the store's.
        table: name.
        retention: as long as versions stay, in whole hours; the table's own setting (7 days by default) when None.

    Returns:
        The retention that was applied.
    """
    name = warehouse.qualified(table)
    if retention is None:
        warehouse.spark.sql(f"VACUUM {name}")
        return own_retention(warehouse, table)
    hours = int(retention.total_seconds() // 3600)
    with _kept_for(warehouse, table, hours):
        warehouse.spark.sql(f"VACUUM {name} RETAIN {hours} HOURS")
    return retention


@contextmanager
def _kept_for(warehouse: Warehouse, table: str, hours: int) -> Iterator[None]:
    """Set a table's own retention for a while: serverless sessions refuse the setting that a shorter one else needs."""
    before = _properties(warehouse, table).get(RETENTION)
    _alter(warehouse, table, f"SET TBLPROPERTIES ('{RETENTION}' = 'interval {hours} hours')")
    try:
        yield
    finally:
        back = f"SET TBLPROPERTIES ('{RETENTION}' = '{before}')" if before else f"UNSET TBLPROPERTIES ('{RETENTION}')"
        _alter(warehouse, table, back)


def _alter(warehouse: Warehouse, table: str, change: str) -> None:
    warehouse.commit(table, lambda: warehouse.spark.sql(f"ALTER TABLE {warehouse.qualified(table)} {change}"))


def own_retention(warehouse: Warehouse, table: str) -> timedelta:
    """How long a table keeps the files of old versions."""
    found = re.search(r"(\d+)\s+(minute|hour|day|week)s?", _properties(warehouse, table).get(RETENTION, ""))
    return timedelta(hours=int(found[1]) * HOURS[found[2]]) if found else DELTA_DEFAULT


def _properties(warehouse: Warehouse, table: str) -> dict[str, str]:
    rows = warehouse.spark.sql(f"SHOW TBLPROPERTIES {warehouse.qualified(table)}").collect()
    return {row["key"]: row["value"] for row in rows}


def readable(warehouse: Warehouse, table: str, versions: Collection[int], since: datetime) -> set[int]:
    """Of these versions, those that can still be read once files that no version after `since` needs are removed.

    A version stays readable when it was the newest at some time after that, or when each of its files is still in the
    version that was the newest then. Nothing of the table's rows is read.

    Args:
        warehouse: the store's.
        table: name.
        versions: numbers of versions.
        since: time, UTC.
    """
    if not versions:
        return set()
    name = warehouse.qualified(table)
    columns = ("version", "unix_micros(timestamp) AS at", "operation", "operationParameters")
    history = warehouse.spark.sql(f"DESCRIBE HISTORY {name}").selectExpr(*columns).collect()
    # the newest at that time
    first = max((r["version"] for r in history if moment(r["at"]) <= since), default=0)
    listed = {r["version"] for r in history}
    found = {v for v in versions if v >= first and v in listed}
    older = sorted(v for v in versions if v < first)
    if not older:
        return found
    earlier = [r for r in history if r["version"] <= first]
    removals = [r["version"] for r in earlier if not _only_adds(r["operation"], r["operationParameters"])]
    if _properties(warehouse, table).get(DELETION_VECTORS) == "true":
        removals.append(first)  # a vector may be gone though its file is there
        older = [v for v in older if v > max(removals)]
    kept = _files(warehouse, name, first)
    for version in older if kept is not None else ():
        untouched = version >= max(removals, default=0)
        if untouched or _subset(_files(warehouse, name, version), kept):
            found.add(version)
    return found


def moment(micros: float) -> datetime:
    """The time so many microseconds after 1970; what Spark hands out as a time depends on the zones in use."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=int(micros))


def _only_adds(operation: str, parameters: Mapping[str, str] | None) -> bool:
    return operation in ONLY_ADDS and (parameters or {}).get("mode", "Append") == "Append"


def _subset(files: set[str] | None, kept: set[str] | None) -> bool:
    return files is not None and kept is not None and files <= kept


def _files(warehouse: Warehouse, name: str, version: int) -> set[str] | None:
    """Files of a version; None where the log no longer tells."""
    try:
        return set(warehouse.spark.sql(f"SELECT * FROM {name} VERSION AS OF {version}").inputFiles())
    except Exception:  # the log that far back is gone
        return None

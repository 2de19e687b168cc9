"""No run at work while files go at once: what a running writer has not committed yet looks like waste."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pyspark.sql import functions as F

from ..config import ConfigError
from ..locks import FileLock
from ..store import ALONE, Store

LONGEST_RUN = timedelta(days=1)  # in a catalog, a run without an end may be at work this long
REMEDY = "wait for its end"


@contextlib.contextmanager
def alone(store: Store, own: str, force: bool = False) -> Iterator[None]:
    """Hold a store for upkeep: no other run is at work in it, and none begins within the block.

    In a local store locks tell who is at work, and whoever begins waits. A catalog knows no locks: there the rows of
    `runs` tell which attempts have no end yet, and who begins later cannot be held back.

    Args:
        store: the store.
        own: run_id of the upkeep itself.
        force: in a catalog, go on although attempts have no end, because whoever calls knows that they died.

    Raises:
        ConfigError: another run is at work.
    """
    if store.directory is None:
        if not force:
            _refuse(_without_end(store, own), f"{REMEDY}, or say --force when it is known to have died")
        yield
        return
    lock = FileLock(store.directory / ".locks" / ALONE)
    if not lock.acquire(wait=False):
        raise ConfigError(f"{store}: another upkeep is at work in it: {REMEDY}")
    try:
        _refuse(at_work(store.directory, own), REMEDY)
        yield
    finally:
        lock.release()


def at_work(directory: Path, own: str = "") -> list[str]:
    """Runs of a local store whose lock is held."""
    found = []
    for path in sorted((directory / ".locks").glob("run-*")):
        run_id = path.name.removeprefix("run-")
        lock = FileLock(path)
        if run_id == own:
            continue
        if lock.acquire(wait=False):
            lock.release()
        else:
            found.append(run_id)
    return found


def _without_end(store: Store, own: str) -> list[str]:
    since = datetime.now(UTC) - LONGEST_RUN
    runs = store.warehouse.spark.table(store.qualified("runs")).where(F.col("run_id") != own)
    open_ = runs.where("state = 'started'").where(F.col("started_at") > F.lit(since))
    ended = runs.where("state != 'started'").select("run_id", "attempt")
    rows = open_.join(ended, ["run_id", "attempt"], "left_anti").select("run_id").distinct().collect()
    return sorted(row["run_id"] for row in rows)


def _refuse(running: list[str], remedy: str) -> None:
    if running:
        several = f" and {len(running) - 1} more" if len(running) > 1 else ""
        raise ConfigError(f"run {running[0]}{several} is at work in the store: {remedy}")

"""The store: results as Delta tables, in a directory or a schema of the catalog. The only writer of tables.

A run writes `started` into `runs`, then its tables, then `finished`. The views show finished runs only: a run
that ends in between leaves nothing that a view shows. SQL and DataFrame writers only, so that classic Spark,
Spark Connect and Databricks do the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import functions as F

from .config import ConfigError, check_identifier, suggest
from .kept import hold, let_go
from .locks import FileLock, held
from .readonly import fault
from .tables import OF_EVALUATIONS, Table, arrow, quoted, tables
from .warehouse import StoreError as StoreError
from .warehouse import Warehouse

ALONE = "alone"  # lock of whoever needs the store without any run at work


@dataclass(frozen=True)
class Attempt:
    """One attempt at a run, as `Store.begin` made it.

    Attributes:
        run_id: the run.
        number: of the attempt, from 1.
        row: its row in `runs`.
        lock: held while the attempt is alive, in a local store.
    """

    run_id: str
    number: int
    row: Mapping[str, Any] = field(repr=False)
    lock: FileLock | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Store:
    """A place for results; made by `Store.open`.

    Attributes:
        warehouse: its schema.

    Example:
        >>> from rapid_spark import Store, session
        >>> store = Store.open(session.get(), "./rapid-store")
        >>> "risk_summary" in store.names()
        True
        >>> store.query("SELECT count(*) AS runs FROM finished_runs").toPandas().columns.tolist()
        ['runs']
    """

    warehouse: Warehouse

    @classmethod
    def open(cls, spark: Any, location: str, create: bool = True) -> Store:
        """Open a store; with `create`, make what is missing of it. What exists is used without DDL.

        Args:
            spark: a session with Delta.
            location: a directory or `schema:[catalog.]schema`.
            create: whether a place without a store becomes one.

        Raises:
            ConfigError: the location has neither form, holds no store, or cannot be written.
        """
        warehouse = Warehouse.at(spark, location)
        warehouse.open(create)
        return cls(warehouse)

    def __str__(self) -> str:
        return self.warehouse.location

    @property
    def directory(self) -> Path | None:
        """The directory of a local store; None for a schema of the catalog."""
        return self.warehouse.directory

    def init(self) -> list[str]:
        """Make schema and tables, add columns of a newer version, make the views anew; names of all."""
        self.warehouse.open(create=True, wanted=tables())
        self.warehouse.make_views()
        return sorted(self.warehouse.existing())

    def names(self) -> list[str]:
        """Names of the tables and views, sorted."""
        if self.directory is not None:
            self.warehouse.make_views()
        return sorted(self.warehouse.existing())

    def need(self, *names: str) -> None:
        """Make tables that are not made with the store, such as `audit_verdicts`, where they are missing."""
        missing = set(names) - self.warehouse.existing()
        if missing:
            self.warehouse.open(create=True, wanted=missing)

    def qualified(self, name: str) -> str:
        """A table's name with its schema, quoted for SQL."""
        return self.warehouse.qualified(name)

    def begin(
        self,
        run_id: str,
        command: str,
        config_json: str,
        settings_digest: str,
        inputs: Mapping[str, Any],
        package_versions: Mapping[str, str],
        *,
        quasi_identifiers: Sequence[str] | None = None,
        release_date: date | None = None,
        n_release: int | None = None,
    ) -> Attempt:
        """Write `started` into `runs`: the first commit of a run.

        Raises:
            ConfigError: in a local store, another process or attempt is at work on this run.
        """
        lock = self._lock(run_id)
        try:
            row = {
                "run_id": run_id,
                "attempt": self._last_attempt(run_id) + 1,
                "state": "started",
                "command": command,
                "config": config_json,
                "settings_digest": settings_digest,
                "inputs": _json(inputs),
                "package_versions": _json(package_versions),
                "quasi_identifiers": None if quasi_identifiers is None else list(quasi_identifiers),
                "release_date": release_date,
                "n_release": n_release,
                "started_at": datetime.now(UTC),
            }
            self._append_event(row)
        except BaseException:
            if lock is not None:
                lock.release()
            raise
        return Attempt(run_id, int(str(row["attempt"])), row, lock)

    def write(
        self,
        attempt: Attempt,
        table: str,
        frame: Any,
        registry: str | None = None,
        release_id: str | None = None,
        append: bool = False,
    ) -> int | None:
        """Write rows into one table, in one commit, by name: of one registry and release, or of several at once.

        The first attempt at a run appends: Delta settles appends among each other and computes no row twice.
        A later attempt replaces what earlier ones left under the same run, and registry and release where they
        are given, also by an empty frame; its rows are kept meanwhile, so that a conflict does not compute them again.

        Args:
            attempt: from `begin`.
            table: name of a result table.
            frame: pandas or Spark frame with columns of the table, in any order; missing ones become null.
                The column run_id is set here, and so are the two below where they are given.
            registry: registry the rows are about; each row's own when left out.
            release_id: release the rows are about; each row's own when left out.
            append: add to what this attempt wrote before; what earlier attempts left was replaced then.

        Returns:
            The Delta version written; None where there was nothing to write.

        Raises:
            ValueError: a column is unknown or does not fit its type.
            StoreError: a constraint refused a row, or conflicts did not end.
        """
        places = {"run_id": attempt.run_id, "registry": registry, "release_id": release_id}
        keys = {k: v for k, v in places.items() if v is not None}
        for value in keys.values():
            check_identifier(value)
        replaces = attempt.number > 1 and not append
        if isinstance(frame, pd.DataFrame) and frame.empty and not replaces:
            return None
        if table not in OF_EVALUATIONS:
            self.need(table)
        rows = self._rows(tables()[table], frame, keys)
        note = "; ".join(f"{k}={v}" for k, v in {**keys, "attempt": attempt.number}.items())
        if not replaces:
            self.warehouse.commit(table, self._writer(table, rows, note).append)
        else:
            place = F.expr(" AND ".join(f"{key} = {quoted(value)}" for key, value in keys.items()))
            kept = hold(rows)
            try:
                self.warehouse.commit(table, lambda: self._writer(table, kept, note).overwrite(place))
            finally:
                let_go(kept)
        return self._version(table, note)

    def append(self, table: str, frame: pd.DataFrame) -> None:
        """Append rows to a table that is only appended to, such as `exports`; it is made at need.

        Raises:
            ValueError: a column is unknown or does not fit its type.
            StoreError: a constraint refused a row, or conflicts did not end.
        """
        self.need(table)
        rows = self.warehouse.spark.createDataFrame(arrow(tables()[table], frame)).coalesce(1)
        self.warehouse.commit(table, rows.writeTo(self.qualified(table)).append)

    def end(
        self,
        attempt: Attempt,
        state: str,
        mlflow_run_id: str | None = None,
        table_versions: Mapping[str, int | None] | None = None,
    ) -> None:
        """Write `finished` or `failed` into `runs`: the last commit of a run."""
        row = {
            **attempt.row,
            "state": state,
            "mlflow_run_id": mlflow_run_id,
            "table_versions": _json(table_versions or {}),
            "ended_at": datetime.now(UTC),
        }
        try:
            self._append_event(row)
        finally:
            if attempt.lock is not None:
                attempt.lock.release()

    def query(self, sql: str, write: bool = False) -> Any:
        """Run one statement of SQL, with the store's schema as the current one; a Spark frame.

        Args:
            sql: a SELECT, WITH ... SELECT, DESCRIBE, SHOW or EXPLAIN; anything with `write`.
            write: allow what may change the store.

        Raises:
            ConfigError: the statement is none of these, or Spark does not understand it.
        """
        reason = None if write else fault(sql)
        if reason:
            raise ConfigError(f"query: {reason}")
        # A local store's views live in the session alone; a schema keeps its own.
        if self.directory is not None:
            if re.match(r"\s*show\b", sql, re.IGNORECASE):
                self.warehouse.make_views()
            self.warehouse.show_views(sql)
        self.warehouse.use()
        try:
            frame = self.warehouse.spark.sql(sql)
            frame.schema  # noqa: B018  (Spark Connect looks at names only now)
        except (AnalysisException, ParseException) as error:
            raise ConfigError(f"query: {self._explained(str(error))}") from None
        return frame

    def _explained(self, message: str) -> str:
        unknown = re.search(r"TABLE_OR_VIEW_NOT_FOUND[^`]*((?:`[^`]+`\.?)+)", message)
        if unknown:
            name, names = unknown[1].split(".")[-1].strip("`"), self.names()
            return f"there is no table {name}.{suggest(name, names)} There are: {', '.join(names)}"
        return " ".join(message.split("SQLSTATE")[0].split())

    def _lock(self, run_id: str) -> FileLock | None:
        check_identifier(run_id)
        if self.directory is None:
            return None
        lock = FileLock(self.directory / ".locks" / f"run-{run_id}")
        if not lock.acquire(wait=False):
            raise ConfigError(f"run {run_id} is at work in {self} right now: wait for it, or use another id")
        with held(self.directory / ".locks" / ALONE):  # files are being removed: wait for the end of it
            return lock

    def _rows(self, table: Table, frame: Any, keys: Mapping[str, str]) -> Any:
        if isinstance(frame, pd.DataFrame):
            # Rows from the driver are few: one file. They have every column in its type already.
            return self.warehouse.spark.createDataFrame(arrow(table, frame.assign(**keys))).coalesce(1)
        unknown = [c for c in frame.columns if c not in table.columns]
        if unknown:
            raise ValueError(f"table {table.name} has no column {', '.join(unknown)}")
        given = {**{c: F.col(f"`{c}`") for c in frame.columns}, **{k: F.lit(v) for k, v in keys.items()}}
        return frame.select(
            *(given.get(name, F.lit(None)).cast(c.type).alias(name) for name, c in table.columns.items())
        )

    def _writer(self, table: str, rows: Any, note: str) -> Any:
        return rows.writeTo(self.qualified(table)).option("userMetadata", note)

    def _append_event(self, row: Mapping[str, Any]) -> None:
        event = pd.DataFrame({key: pd.Series([value], dtype=object) for key, value in row.items()})
        rows = self.warehouse.spark.createDataFrame(arrow(tables()["runs"], event)).coalesce(1)
        note = f"run_id={row['run_id']}; attempt={row['attempt']}; {row['state']}"
        self.warehouse.commit("runs", self._writer("runs", rows, note).append)

    def _last_attempt(self, run_id: str) -> int:
        if self.directory is not None and _never_in_log(self.directory / "runs" / "_delta_log", run_id):
            return 0  # a new run: nothing to ask Spark for
        of_run = self.warehouse.spark.table(self.qualified("runs")).where(F.col("run_id") == run_id)
        return max((row["attempt"] for row in of_run.select("attempt").collect()), default=0)

    def _version(self, table: str, note: str) -> int | None:
        """The newest version that carries a note; Delta's own answer to a write does not tell it."""
        if self.directory is not None:
            return _version_in_log(self.directory / table / "_delta_log", note)
        history = self.warehouse.spark.sql(f"DESCRIBE HISTORY {self.qualified(table)} LIMIT 50")
        return max((row["version"] for row in history.where(F.col("userMetadata") == note).collect()), default=None)


def _version_in_log(log: Path, note: str) -> int | None:
    """As `_version`, from the last commits of a local table's log, without a Spark job."""
    for commit in reversed(_commits(log)[-50:]):
        for line in commit.read_text(encoding="utf-8").splitlines():
            if '"commitInfo"' in line and json.loads(line).get("commitInfo", {}).get("userMetadata") == note:
                return int(commit.stem)
    return None


def _never_in_log(log: Path, run_id: str) -> bool:
    """Whether no commit of a local table ever named a run; False also where the log's beginning was cleaned away."""
    commits = _commits(log)
    complete = [int(commit.stem) for commit in commits] == list(range(len(commits)))
    return complete and not any(run_id.encode() in commit.read_bytes() for commit in commits)


def _commits(log: Path) -> list[Path]:
    """Files of the commits in a local table's log, by version; what else is there (compacted commits) has other names."""
    return sorted(commit for commit in log.glob("*.json") if commit.stem.isdigit())


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False)

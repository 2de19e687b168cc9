"""The ledger's rows in the Delta table `dp_ledger`: only ever appended, and no two writers decide on the same rows."""

from __future__ import annotations

import contextlib
import datetime as dt
import random
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd
from pyspark.sql import functions as F

from rapid_spark.locks import held
from rapid_spark.reaedp.filter import Row
from rapid_spark.reaedp.ledger import COLUMNS
from rapid_spark.store import Store, StoreError
from rapid_spark.tables import arrow, tables
from rapid_spark.warehouse import CONFLICT

NAME = "dp_ledger"
TRIES = 12


@dataclass(frozen=True)
class DeltaLedger:
    """The ledger of a store, as `reaedp.ledger` wants it.

    In a directory a lock of the operating system is held from reading to appending. In a schema of the catalog the
    append is a MERGE that inserts only where the table holds no row but those that were read; Delta refuses it when
    another commit came in between, and the decision is made again.

    Attributes:
        store: an open store.
    """

    store: Store

    def read(self) -> list[Row]:
        """All rows in the order of their times; nothing where nobody wrote into the ledger yet."""
        if NAME not in self.store.warehouse.existing():
            return []
        frame = self._spark.table(self._name)
        seconds = F.unix_micros("entered_at").alias("entered_at")
        rows = frame.select(*(seconds if c == "entered_at" else F.col(c) for c in COLUMNS)).collect()
        found = [row.asDict() | {"entered_at": _time(row["entered_at"])} for row in rows]
        return sorted(found, key=lambda r: (r["entered_at"], r["state"]))

    def transact(self, decide: Callable[[list[Row]], list[Row]]) -> list[Row]:
        """Append what `decide` makes of all rows so far, with no other writer in between; see `ledger.Storage`.

        Raises:
            StoreError: others wrote each time.
        """
        self.store.need(NAME)
        with self._alone():
            for attempt in range(TRIES):
                rows = self.read()
                made = decide(rows)
                if not made:
                    return []
                with contextlib.suppress(Conflict):
                    self._append(made, rows)
                    return made
                time.sleep(random.uniform(0.5, 1.0) * min(10.0, 0.2 * 2**attempt))
        raise StoreError(f"{self.store}: {NAME} was written by others {TRIES} times in a row; try later")

    @property
    def _spark(self) -> Any:
        return self.store.warehouse.spark

    @property
    def _name(self) -> str:
        return self.store.qualified(NAME)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        directory = self.store.directory
        with held(directory / ".locks" / "ledger") if directory is not None else contextlib.nullcontext():
            yield

    def _append(self, made: list[Row], seen: list[Row]) -> None:
        new = self._spark.createDataFrame(arrow(tables()[NAME], pd.DataFrame(made, columns=list(COLUMNS)).astype(object)))
        note = "; ".join(f"{row['entry_id']} {row['state']}" for row in made)
        if self.store.directory is not None:
            self.store.warehouse.commit(NAME, new.coalesce(1).writeTo(self._name).option("userMetadata", note).append)
            return
        known = F.array(*[F.lit(_identity(r)) for r in seen]).cast("array<string>")
        view = f"ledger_rows_{uuid.uuid4().hex}"  # of its own: threads of one session share their views
        new.withColumn("seen", known).createOrReplaceTempView(view)
        listed = ", ".join(f"`{c}`" for c in COLUMNS)
        values = ", ".join(f"s.`{c}`" for c in COLUMNS)
        statement = (
            f"MERGE INTO {self._name} AS t USING {view} AS s "
            "ON NOT array_contains(s.seen, concat(t.entry_id, '/', t.state)) "
            f"WHEN NOT MATCHED THEN INSERT ({listed}) VALUES ({values})"
        )
        try:
            self._spark.sql(statement)
        except Exception as error:
            if CONFLICT.search(str(error)):
                raise Conflict from None
            raise
        finally:
            self._spark.catalog.dropTempView(view)
        if not {_identity(r) for r in made} <= {_identity(r) for r in self.read()}:
            raise Conflict  # a row unknown to the decision was there: nothing was inserted


class Conflict(Exception):
    """Another writer was first."""


def _identity(row: Row) -> str:
    return f"{row['entry_id']}/{row['state']}"


def _time(microseconds: int) -> dt.datetime:
    return dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=microseconds)

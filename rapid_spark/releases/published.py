"""Where a release is kept: a Delta table written in one commit, whose properties name its ledger entry and guarantee."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from rapid_spark.config import ConfigError
from rapid_spark.io import quoted
from rapid_spark.reaedp.budget import Guarantee
from rapid_spark.store import Store, StoreError

FOLDER = "dp"
PREFIX = "rapid."
# Delta takes names with these only when it maps columns by number.
ODD = re.compile(r"[ ,;{}()\n\t=]")


@dataclass(frozen=True)
class Place:
    """One table of a release.

    Attributes:
        spark: the session.
        identifier: of the table, quoted for SQL.
        shown: how messages and results name it.
    """

    spark: Any
    identifier: str
    shown: str

    @classmethod
    def of(cls, store: Store, output: str | None, run_id: str, name: str, main: bool) -> Place:
        """The place of a table of this run.

        Args:
            store: the store, which holds releases that have no place of their own.
            output: folder, or `table:NAME`, as the user gave it; None for within the store.
            run_id: of the run.
            name: of the table within the release.
            main: the release's first table, which takes `output` as it stands; others get the name as a suffix.
        """
        spark = store.warehouse.spark
        if output is not None and output.startswith("table:"):
            table = output.removeprefix("table:") + ("" if main else f"_{name}")
            return cls(spark, ".".join(quoted(part) for part in table.split(".")), table)
        if output is not None:
            path = output if re.match(r"[A-Za-z][\w+.-]+:/", output) else str(Path(output).expanduser().absolute())
            path = path.rstrip("/") + ("" if main else f"-{name}")
        elif store.directory is not None:
            path = str(store.directory / FOLDER / run_id / name)
        else:
            table = f"{FOLDER}_{re.sub(r'[^A-Za-z0-9]', '_', run_id)}_{name}"
            return cls(spark, store.qualified(table), f"{store}.{table}")
        return cls(spark, f"delta.{quoted(path)}", path)

    def exists(self) -> bool:
        """Whether there is anything at this place."""
        path = Path(self.shown)
        if path.is_absolute():
            return path.exists() and (path.is_file() or any(path.iterdir()))
        try:
            self.spark.sql(f"DESCRIBE DETAIL {self.identifier}").collect()
        except Exception:  # there is none; of what kind is told when it is written
            return False
        return True

    def check_free(self) -> None:
        """Raise ConfigError where something is there: a release is never written over."""
        if self.exists():
            raise ConfigError(f"{self.shown} exists: a release is never written over. Name another place with --output")

    def write(self, frame: pd.DataFrame | pa.Table, guarantee: Guarantee, facts: dict[str, str]) -> None:
        """Write the table, once, with its guarantee and `facts` among its properties, in one commit.

        Raises:
            StoreError: something came to be there meanwhile.
        """
        rows = frame if isinstance(frame, pa.Table) else pa.Table.from_pandas(frame, preserve_index=False)
        rows = rows.cast(pa.schema([f.with_type(pa.string()) if pa.types.is_null(f.type) else f for f in rows.schema]))
        told = {k: v for k, v in guarantee.as_dict().items() if v is not None}
        properties = {f"{PREFIX}{k}": str(v) for k, v in {**told, **facts}.items()}
        properties["comment"] = (
            f"{guarantee.mechanism}: epsilon {guarantee.epsilon:g}, delta {guarantee.delta:g}, {guarantee.adjacency} "
            f"of one {guarantee.protected_unit}"
        )
        if any(ODD.search(name) for name in rows.column_names):
            properties["delta.columnMapping.mode"] = "name"
        writer = self.spark.createDataFrame(rows).writeTo(self.identifier).using("delta")
        for key, value in properties.items():
            writer = writer.tableProperty(key, value)
        try:
            writer.create()
        except Exception as error:
            if "ALREADY_EXISTS" in str(error):
                lost = f"{self.shown} came to be while the release was drawn: it is lost, its budget spent"
                raise StoreError(lost) from None
            raise

    def frame(self) -> Any:
        """The table as a Spark frame."""
        return self.spark.table(self.identifier)

    def read(self) -> pd.DataFrame:
        """The table as it was written."""
        frame: pd.DataFrame = self.frame().toPandas()
        return frame

    def facts(self) -> dict[str, str]:
        """What `write` put among the properties: the entry, the guarantee, and what else was told."""
        rows = self.spark.sql(f"SHOW TBLPROPERTIES {self.identifier}").collect()
        return {r["key"].removeprefix(PREFIX): r["value"] for r in rows if r["key"].startswith(PREFIX)}

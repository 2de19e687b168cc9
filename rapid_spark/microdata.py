"""A table of people as one typed pandas frame, for generators that learn from whole records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from .config import ConfigError, suggest
from .io import Source, fault_of, miscounted
from .kinds import Stored, as_double, is_infinite, present, wall_clock
from .profiles import column_types

MAX_ROWS = 500_000  # records that a generator learns from; above it a seeded sample
WIDE = 30  # names listed in a message
_NULLABLE = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}


@dataclass(frozen=True)
class Microdata:
    """Records in the types that their values have.

    Attributes:
        frame: records on the driver: all, or the sample; without key and dropped columns.
        kinds: by column, as `kinds.kind_of` says: 'integer', 'number', 'boolean', 'date', 'timestamp', 'text', 'empty'.
        n: records of the whole table.
        spark_frame: the whole table in the same columns and types.
        warnings: what the reader should know, without any value.
    """

    frame: pd.DataFrame
    kinds: Mapping[str, str]
    n: int
    spark_frame: DataFrame
    warnings: tuple[str, ...] = ()

    @property
    def is_sample(self) -> bool:
        """Whether the frame holds fewer records than the table."""
        return len(self.frame) < self.n


def read(
    source: Source, drop: Sequence[str] = (), codes: Mapping[str, Sequence[str | int | float]] | None = None,
    max_rows: int = MAX_ROWS, seed: int = 0,
) -> Microdata:
    """Decide the columns' types by their values, convert, and bring at most `max_rows` records to the driver.

    Types are those of an evaluation: a CSV column is numeric when all its values are numbers and none has leading
    zeros; NaN, null, blank text and the codes given are missing. A sample consists of the records with the smallest
    seeded hash of their content, so that it does not hang on the order of rows or partitions.

    Args:
        source: the table.
        drop: columns that are not wanted, such as the key.
        codes: per column, values that mean missing.
        max_rows: most records on the driver.
        seed: of the sample.

    Raises:
        ConfigError: a dropped column is not there, a column's type is none that can be synthesised, the table has no
            rows or columns, records of a CSV with too many or too few fields, or an unreadable file.
    """
    wanted = _wanted(source, drop, codes or {})
    types = column_types(source, wanted, codes)
    faults = [
        f"{source.name}: column {name!r} is stored as {c.stored.name}: expected numbers, text, booleans or dates"
        for name, c in types.columns.items() if c.kind == "other"
    ]  # fmt: skip
    if types.n_corrupt:
        faults.append(f"{source.name}: {miscounted(types.n_corrupt)} than the header")
    if faults:
        raise ConfigError("\n".join(faults))
    kinds = {name: types.columns[name].kind for name in wanted}
    values = {
        name: _value(source.column(name), types.columns[name].stored, kinds[name], (codes or {}).get(name, ()))
        for name in wanted
    }
    raw = {n: present(source.column(n), types.columns[n].stored, (codes or {}).get(n, ())) for n in wanted}
    lost = {n: F.count_if(raw[n].isNotNull() & values[n].isNull()) for n in wanted if kinds[n] in ("integer", "number")}
    try:
        counts = source.frame.agg(F.count(F.lit(1)).alias("n"), *(c.alias(f"l{i}") for i, c in enumerate(lost.values())))
        counted = counts.collect()[0].asDict()
    except Exception as error:
        raise fault_of(error, source) or error from None
    if not counted["n"]:
        raise ConfigError(f"{source.name}: the table has no rows: expected one line per person")
    warnings = []
    for i, name in enumerate(lost):
        if not counted[f"l{i}"]:
            continue
        if kinds[name] == "integer":  # whole numbers beyond 64 bits are codes
            kinds[name], values[name] = "text", raw[name].cast("string")
        else:
            warnings.append(f"{name}: {counted[f'l{i}']:,} infinite values are taken as missing")
    whole = source.frame.select(*(values[name].alias(name) for name in wanted))
    chosen = _sample(whole, max_rows, seed) if counted["n"] > max_rows else whole
    if counted["n"] > max_rows:
        warnings.append(f"{source.name}: a seeded sample of {max_rows:,} of its {counted['n']:,} records is learned from")
    try:
        rows = chosen.toArrow()
    except Exception as error:
        raise fault_of(error, source) or error from None
    frame = pd.DataFrame({name: _series(rows.column(i)) for i, name in enumerate(wanted)})
    return Microdata(frame, kinds, counted["n"], whole, tuple(warnings))


def _wanted(source: Source, drop: Sequence[str], codes: Mapping[str, object]) -> list[str]:
    named = [*(("--key or --drop", n) for n in drop), *(("missing_codes", n) for n in codes)]
    unknown = [(setting, name) for setting, name in named if name not in source.columns]
    if unknown:
        listed = ", ".join(map(repr, source.columns[:WIDE]))
        faults = [
            f"{setting}: {source.name} has no column {name!r}.{suggest(name, source.columns) or f' It has {listed}.'}"
            for setting, name in unknown
        ]
        raise ConfigError("\n".join(faults))
    wanted = [name for name in source.columns if name not in set(drop)]
    if not wanted:
        raise ConfigError(f"{source.name}: no column is left to synthesise")
    return wanted


def _value(column: Column, stored: Stored, kind: str, codes: Sequence[str | int | float]) -> Column:
    value = present(column, stored, codes)
    trimmed = F.trim(value) if stored.kind == "string" else value
    if kind == "integer":
        return trimmed.try_cast("bigint")
    if kind == "number":
        number = trimmed.try_cast("double") if stored.kind == "string" else as_double(value, stored)
        return F.when(~(F.isnan(number) | is_infinite(number)), number)
    if kind == "boolean":
        return trimmed.try_cast("boolean")
    if kind == "date":
        return trimmed.try_cast("date")
    if kind == "timestamp":
        return wall_clock(value, stored)
    return value.cast("string")


def _series(column: pa.ChunkedArray) -> pd.Series:
    # whole numbers and booleans with missing values keep their type; the others have a missing value of their own
    return column.to_pandas(types_mapper=_NULLABLE.get if column.null_count else None)


def _sample(frame: DataFrame, most: int, seed: int) -> DataFrame:
    columns = [F.col("`" + c.replace("`", "``") + "`") for c in frame.columns]
    content = F.xxhash64(F.lit(seed), *(F.coalesce(c.cast("string"), F.lit("\x00")) for c in columns))
    order = [content, *(c.asc_nulls_first() for c in columns)]
    return frame.orderBy(*order).limit(most)

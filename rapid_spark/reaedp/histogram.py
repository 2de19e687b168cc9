"""Exact counts by Spark, for releases: with `curves` the only module of this folder that touches it. No noise
is drawn here.

What a record contributes depends on the record alone: values outside the declared domains go to `other`,
uncounted, and nothing is refused because of a value.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import reduce
from typing import Literal

import numpy as np
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from rapid_spark.config import suggest
from rapid_spark.reaedp.budget import check_integer
from rapid_spark.reaedp.domain import Categories, Domain, Edges, Table, text_of
from rapid_spark.reaedp.noise import Counts

Universe = Literal["common", "table"]
MANY_LEVELS = 200
MANY_EDGES = 2_000
PART, OUTSIDE = "_part", -1
_NUMBERS = (T.DoubleType, T.FloatType, T.DecimalType)


def count_tables(
    frame: DataFrame,
    tables: Sequence[Table],
    *,
    person: Sequence[str] = (),
    max_rows_per_person: int | None = None,
    universe: Universe = "common",
) -> list[Counts]:
    """The dense counts of declared tables, in one pass over the frame.

    Args:
        frame: the records; only the tables' columns and the key are read.
        tables: declared tables.
        person: key columns of the person, where one may have several rows; records without a key are not
            counted.
        max_rows_per_person: rows kept per person, chosen by a hash of their bins; needed with `person`.
        universe: 'common' counts the records inside the domain of every column of all tables, so that margins
            agree; 'table' counts for each table the records inside its own.

    Returns:
        One vector per table, one entry per cell in the order of its cells, empty cells included.

    Raises:
        ValueError: if a column is not in the frame or has a type that cannot be binned, or `person` comes
            without a bound.
    """
    domains = list({d.column: d for t in tables for d in t.domains}.values())
    if bool(person) != (max_rows_per_person is not None):
        raise ValueError(
            "person and max_rows_per_person belong together: name the key, and how many rows of one are kept"
        )
    binned = with_bins(frame, domains, keep=person)
    if universe == "common":
        binned = inside(binned, domains)
    if max_rows_per_person is not None:
        binned = keep_rows(binned, person, max_rows_per_person, [bin_name(d) for d in domains])
    return count_binned(binned, tables)


def count_binned(binned: DataFrame, tables: Sequence[Table]) -> list[Counts]:
    """The dense counts of tables from a frame with bins, as `with_bins` makes it, in one pass."""
    cells = [F.struct(F.lit(i).alias("t"), _cell(t).alias("c")) for i, t in enumerate(tables)]
    counted = (
        binned.select(F.explode(F.array(*cells)).alias("at"))
        .where(F.col("at.c") >= 0)
        .groupBy(F.col("at.t").alias("t"), F.col("at.c").alias("c"))
        .count()
        .toPandas()
    )
    result = [np.zeros(t.cells, dtype=np.int64) for t in tables]
    for i, counts in enumerate(result):
        mine = counted[counted["t"] == i]
        counts[mine["c"].to_numpy(np.int64)] = mine["count"].to_numpy(np.int64)
    return result


def inside(binned: DataFrame, domains: Sequence[Domain]) -> DataFrame:
    """The records that are inside every domain."""
    return binned.where(reduce(lambda a, b: a & b, [_position(d) >= 0 for d in domains]))


def with_bins(frame: DataFrame, domains: Sequence[Domain], keep: Sequence[str] = ()) -> DataFrame:
    """The columns in `keep`, and for each domain the number of the record's bin, -1 for `other`."""
    check_columns(frame, [*keep, *(d.column for d in domains)])
    bins = []
    for i, domain in enumerate(domains):
        if isinstance(domain, Categories) and len(domain.levels) > MANY_LEVELS:
            frame = _join_levels(frame, domain, f"_level{i}")  # Long lists are looked up by a join.
            bins.append(F.col(f"_level{i}").alias(bin_name(domain)))
        else:
            bins.append(_bin_column(frame, domain).alias(bin_name(domain)))
    return frame.select(*[F.col(quoted(c)) for c in keep], *bins)


def keep_rows(frame: DataFrame, person: Sequence[str], limit: int, content: Sequence[str]) -> DataFrame:
    """At most `limit` rows of each person, chosen by a hash of the columns in `content`; none of persons
    without key.

    Which rows stay depends on the person's own rows alone, so that one person moves at most `limit` counts.
    """
    check_integer(limit, 1, "max_rows_per_person")
    check_columns(frame, [*person, *content])
    keyed = frame.where(_key_given(person))
    columns = [F.col(quoted(c)) for c in content]
    order = Window.partitionBy(*[F.col(quoted(c)) for c in person]).orderBy(F.xxhash64(*columns), *columns)
    return keyed.withColumn("_row", F.row_number().over(order)).where(F.col("_row") <= limit).drop("_row")


def with_parts(frame: DataFrame, person: Sequence[str], shares: Sequence[float], secret: str) -> DataFrame:
    """Add the column `_part`: 0, 1, .. for disjoint parts of the persons, by a keyed hash of the person's
    key.

    All rows of a person are in one part, and nobody moves when another person comes or goes. Persons without
    a key are in no part (null).

    Args:
        frame: the records.
        person: key columns; numbers with a fraction are refused.
        shares: expected share of each part, adding up to 1.
        secret: key of the hash (HMAC-SHA-256), the same at every call on this population.
    """
    check_columns(frame, person)
    if not secret:
        raise ValueError(
            "the secret of the split is empty; set one, and keep it the same for this population"
        )
    if not shares or min(shares) < 0 or abs(sum(shares) - 1) > 1e-9:
        raise ValueError(f"the shares {', '.join(f'{s:g}' for s in shares)} do not add up to 1")
    for field in frame.schema:
        if field.name in person and isinstance(field.dataType, _NUMBERS[:2]):
            raise ValueError(
                f"the key {field.name} is {field.dataType.simpleString()}; a key has no fractions"
            )
    message = F.to_json(
        F.struct(*[F.col(quoted(c)).cast("string").alias(f"k{i}") for i, c in enumerate(person)])
    )
    # 52 bits of the hash, exact in a double.
    place = F.conv(F.substring(_hmac(message, secret), 1, 13), 16, 10).cast("double") / F.lit(2.0**52)
    bounds = np.cumsum(shares)[:-1]
    part = reduce(lambda a, b: a + b, [(place >= float(b)).cast("int") for b in bounds], F.lit(0))
    return frame.withColumn(PART, F.when(_key_given(person), part))


def bin_name(domain: Domain) -> str:
    """The column that `with_bins` makes of a domain."""
    return f"_bin_{domain.column}"


def _position(domain: Domain) -> Column:
    return F.col(quoted(bin_name(domain)))


def _cell(table: Table) -> Column:
    """The row-major number of a record's cell, -1 where a column is outside its domain."""
    number, inside = F.lit(0).cast("long"), F.lit(True)
    for domain in table.domains:
        position = _position(domain)
        number, inside = number * domain.size + position, inside & (position >= 0)
    return F.when(inside, number).otherwise(F.lit(OUTSIDE).cast("long"))


def _bin_column(frame: DataFrame, domain: Domain) -> Column:
    source = F.col(quoted(domain.column))
    kind = frame.schema[domain.column].dataType
    is_missing = source.isNull() | (F.isnan(source) if isinstance(kind, _NUMBERS[:2]) else F.lit(False))
    position = _interval(domain, kind) if isinstance(domain, Edges) else _level(domain, kind)
    missing = domain.size - 1 if domain.missing else OUTSIDE
    return F.when(is_missing, missing).otherwise(F.coalesce(position, F.lit(OUTSIDE))).cast("int")


def _level(domain: Categories, kind: T.DataType) -> Column:
    source = F.col(quoted(domain.column))
    if isinstance(kind, _NUMBERS):
        levels = F.array(*[F.lit(v) for v in _as_numbers(domain, kind)])
        return F.array_position(levels, source.cast("double")).cast("int") - 1
    text = source.cast("string")
    if all(isinstance(v, bool) for v in domain.levels):
        text = F.lower(text)  # TRUE, True and true are one value in a text file.
    return F.array_position(F.array(*[F.lit(text_of(v)) for v in domain.levels]), text).cast("int") - 1


def _interval(domain: Edges, kind: T.DataType) -> Column:
    if isinstance(kind, (T.DateType, T.TimestampType, T.TimestampNTZType)):
        raise ValueError(
            f"column {domain.column} is a {kind.simpleString()}; edges need numbers: convert it to days first"
        )
    x = F.expr(f"try_cast({quoted(domain.column)} as double)")
    first, last, bins = domain.edges[0], domain.edges[-1], len(domain.edges) - 1
    inside = (x >= first) & (x <= last) & ~F.isnan(x)
    if domain.step is not None:
        guess = F.floor((x - first) / domain.step)
        # Division rounds: compare with the edges themselves, which are whole numbers.
        low = F.lit(first) + guess * domain.step
        position = guess + F.when(x < low, -1).when(x >= low + domain.step, 1).otherwise(0)
    elif bins <= MANY_EDGES:
        inner = F.array(*[F.lit(e) for e in domain.edges[1:-1]]).cast("array<double>")
        position = F.size(F.filter(inner, lambda e: e <= x))
    else:
        raise ValueError(
            f"column {domain.column} has {bins:,} uneven bins; above {MANY_EDGES:,} the edges must be whole "
            "numbers at one distance"
        )
    return F.when(inside, F.least(position.cast("int"), F.lit(bins - 1)))


def _join_levels(frame: DataFrame, domain: Categories, name: str) -> DataFrame:
    kind = frame.schema[domain.column].dataType
    source = F.col(quoted(domain.column))
    numeric = isinstance(kind, _NUMBERS)
    values = _as_numbers(domain, kind) if numeric else [text_of(v) for v in domain.levels]
    schema = f"{name}_value {'double' if numeric else 'string'}, {name} int"
    levels = frame.sparkSession.createDataFrame([(v, i) for i, v in enumerate(values)], schema)
    joined = frame.join(
        F.broadcast(levels), source.cast("double" if numeric else "string") == F.col(f"{name}_value"), "left"
    )
    missing = domain.size - 1 if domain.missing else OUTSIDE
    is_missing = source.isNull() | (F.isnan(source) if isinstance(kind, _NUMBERS[:2]) else F.lit(False))
    return joined.withColumn(
        name, F.when(is_missing, missing).otherwise(F.coalesce(F.col(name), F.lit(OUTSIDE)))
    )


def _as_numbers(domain: Categories, kind: T.DataType) -> list[float]:
    try:
        return [float(v) for v in domain.levels]
    except ValueError:
        raise ValueError(
            f"column {domain.column} is {kind.simpleString()}, and its declared levels are not all numbers"
        ) from None


def _key_given(person: Sequence[str]) -> Column:
    if not person:
        raise ValueError("no key column of the person is named; name at least one")
    return reduce(lambda a, b: a & b, [F.col(quoted(c)).isNotNull() for c in person])


def _hmac(message: Column, secret: str) -> Column:
    key = secret.encode()
    block = (hashlib.sha256(key).digest() if len(key) > 64 else key).ljust(64, b"\0")
    inner, outer = (F.lit(bytearray(b ^ pad for b in block)) for pad in (0x36, 0x5C))
    return F.sha2(F.concat(outer, F.unhex(F.sha2(F.concat(inner, F.encode(message, "UTF-8")), 256))), 256)


def check_columns(frame: DataFrame, columns: Sequence[str]) -> None:
    """Raise ValueError for a column that is not there, or has a double that differs in case only."""
    for column in columns:
        if column not in frame.columns:
            raise ValueError(f"column {column} is not in the data.{suggest(column, frame.columns)}")
        if len(alike := [c for c in frame.columns if c.lower() == column.lower()]) > 1:
            raise ValueError(f"columns {' and '.join(alike)} differ in case only; rename one of them")


def quoted(name: str) -> str:
    """A name in backticks, as Spark takes any name."""
    return "`" + name.replace("`", "``") + "`"

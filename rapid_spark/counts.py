"""What is counted of the normalised tables, in few aggregations: missing values, levels, patterns, digest, keys."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from . import digest
from .io import Source, fault_of
from .normalise import RECORD_ID, Plan, columns_of, infinite_flags, replicate_of
from .profiles import TableTypes
from .roles import ROLES, Found

REPLICATE = "replicate"
SKETCH = 12  # 2^12 registers: a relative error of 1.6 percent, none for a few values
MAX_REPLICATES = 1000


@dataclass(frozen=True)
class ColumnFigures:
    """What was counted of a normalised column.

    Attributes:
        n_missing: rows without a value.
        n_infinite: those of them whose value is infinite.
        constant: whether all values are one, in a table of real people.
        distinct: about how many different values, of a category or target in a table of real people; else 0.
        levels: sketch of the levels of a categorical quasi-identifier.
    """

    n_missing: int
    n_infinite: int
    constant: bool
    distinct: int
    levels: bytes | None = None


@dataclass(frozen=True)
class Figures:
    """What was counted of a table, or of one replicate.

    Attributes:
        n: rows.
        columns: by column of the frame.
        patterns: about how many different combinations of values, by name of the set.
        digest: of the content (`digest`).
        n_unidentified: rows without record id.
        n_without: by role, rows without a value.
        n_negative: rows with a negative weight.
        total_weight: sum of the weights.
    """

    n: int
    columns: dict[str, ColumnFigures]
    patterns: dict[str, int]
    digest: str
    n_unidentified: int
    n_without: dict[str, int]
    n_negative: int
    total_weight: float | None


def count_real(
    kept: DataFrame, found: Found, types: TableTypes, plan: Plan, sets: Mapping[str, Sequence[str]]
) -> Figures:
    """Count what `Figures` holds of a table of real people. Jobs: one.

    Its digest covers the normalised columns in use, and the record id where that comes from a key.

    Args:
        kept: its frame from `frame_of`, kept where it came from a CSV.
        found: the table.
        types: of its columns.
        plan: what they are.
        sets: by name, the columns (`q*`) whose combinations are counted.
    """
    flags = infinite_flags(found, types, plan)
    frame = kept
    if flags:  # so it is no CSV, and reading it again costs little
        flagged = {f"infinite_{c}": flag for c, flag in flags.items()}
        columns = columns_of(found, types, plan) | flagged
        frame = found.source.frame.select(*(value.alias(name) for name, value in columns.items()))
    content = {f"role {c}": c for c in kept.columns if c in ROLES or c == RECORD_ID and plan.config.columns.key}
    content |= {f"column {v.decision.name}": v.column for v in plan.variables}
    numeric = {v.column for v in plan.variables if v.numeric} | {"weight"}
    sums = digest.row_sums([_filled(content[name], content[name] in numeric) for name in sorted(content)])
    aggregates = [*_counts(plan, flags), *_spread(plan), *_levels(plan), *_role_counts(kept.columns), *sums]
    for i, members in enumerate(sets.values()):
        pattern = F.xxhash64(*(_filled(c, c in numeric) for c in members))
        aggregates.append(_distinct(pattern).alias(f"patterns{i}"))
    row = collect(frame.agg(*aggregates), found.source)[0]
    return _figures(row, found, types, plan, content, sets)


def count_release(found: Found, types: TableTypes, plan: Plan) -> dict[str | None, Figures]:
    """Count what `Figures` holds of a release, by replicate as text where it has a replicate column, else under None.

    Its digest covers all columns but the one that numbers the replicates, whatever the configuration says of them.
    Jobs: one.
    """
    source = found.source
    content = [c for c in source.columns if c != found.replicate_column]
    flags = infinite_flags(found, types, plan)
    columns = columns_of(found, types, plan) | {f"infinite_{c}": flag for c, flag in flags.items()}
    columns["content"] = content_row(source, types, content)
    by = {REPLICATE: replicate_of(found)} if found.replicate_column else {}
    frame = source.frame.select(*(value.alias(name) for name, value in (columns | by).items()))
    aggregates = [*_counts(plan, flags), *_levels(plan), *digest.row_sums([F.col("content")])]
    rows = collect(frame.groupBy(*by).agg(*aggregates).limit(MAX_REPLICATES + 1), source)
    return {row[REPLICATE] if by else None: _figures(row, found, types, plan, content, {}) for row in rows}


def content_row(source: Source, types: TableTypes, columns: Sequence[str]) -> Column:
    """Hash of a table's row by the columns' own kinds (`digest.content_row`)."""
    found = types.as_found
    stored = {c: found[c].stored for c in columns}
    kinds = {c: found[c].kind for c in columns}
    return digest.content_row({c: source.column(c) for c in columns}, stored, kinds)


def level_counts(original: DataFrame, plan: Plan) -> dict[str, dict[str | None, int]]:
    """Records by label (null: no value) for the column of each categorical target. Jobs: one, if there is one."""
    return level_columns(original, [v.column for v in plan.targets if not v.numeric])


def level_columns(original: DataFrame, wanted: Sequence[str]) -> dict[str, dict[str | None, int]]:
    """Records by label (null: no value) for each of several text columns. Jobs: one, if there is any."""
    counts: dict[str, dict[str | None, int]] = {column: {} for column in wanted}
    if wanted:
        pairs = (F.struct(F.lit(c).alias("target"), F.col(c).alias("label")) for c in wanted)
        cells = original.select(F.explode(F.array(*pairs)).alias("cell")).select("cell.*")
        for row in cells.groupBy("target", "label").count().collect():
            counts[row["target"]][row["label"]] = row["count"]
    return counts


def repeated_keys(frame: DataFrame) -> tuple[int, int] | None:
    """How many record ids occur more than once, and in how many rows; None if none does.

    Jobs: one on 64-bit hashes, as equal ids have equal hashes; a second, exact one only if two of these are equal.
    """
    if not _repeated(frame.select(F.xxhash64(RECORD_ID).alias("key"))):
        return None
    return _repeated(frame.select(F.col(RECORD_ID).alias("key")))


def _repeated(keys: DataFrame) -> tuple[int, int] | None:
    counts = keys.groupBy("key").count().where(F.col("count") > 1)
    row = counts.agg(F.count(F.lit(1)).alias("keys"), F.sum("count").alias("rows")).collect()[0]
    return (row["keys"], row["rows"]) if row["keys"] else None


def _counts(plan: Plan, flags: Mapping[str, Column]) -> list[Column]:
    found = [F.count(F.lit(1)).alias("n")]
    found += [F.count_if(f"infinite_{c}").alias(f"infinite_{c}") for c in flags]
    return found + [F.count(v.column).alias(f"present_{v.column}") for v in plan.variables]


def _spread(plan: Plan) -> list[Column]:
    """Lowest and highest of numbers; how many levels a category has, or a target, whose numbers may be codes."""
    found = []
    for v in plan.variables:
        if v.numeric:
            found += [F.min(v.column).alias(f"min_{v.column}"), F.max(v.column).alias(f"max_{v.column}")]
        if not v.numeric or v in plan.targets:
            found.append(_distinct(_level(v.column)).alias(f"distinct_{v.column}"))
    return found


def _levels(plan: Plan) -> list[Column]:
    """Sketches of the levels of categorical quasi-identifiers, which tell what two tables have in common."""
    wanted = [v.column for v in plan.quasi_identifiers if not v.numeric]
    return [F.hll_sketch_agg(_level(c), SKETCH).alias(f"levels_{c}") for c in wanted]


def _level(column: str) -> Column:
    return F.when(F.col(column).isNotNull(), F.xxhash64(column))


def _filled(column: str, numeric: bool) -> Column:
    """A normalised column with a value for missing ones that no other row can have."""
    return F.coalesce(F.col(column), F.lit(float("nan")) if numeric else F.lit(""))


def _distinct(hashed: Column) -> Column:
    # Not approx_count_distinct: it lays out hundreds of buffer columns, which take seconds to compile.
    return F.hll_sketch_estimate(F.hll_sketch_agg(hashed, SKETCH))


def _role_counts(columns: Sequence[str]) -> list[Column]:
    found = [F.count(RECORD_ID).alias("identified")]
    found += [F.count(role).alias(f"with_{role}") for role in ROLES if role in columns]
    if "weight" in columns:
        found += [F.count_if(F.col("weight") < 0).alias("negative"), F.sum("weight").alias("total")]
    return found


def _figures(
    row: Any, found: Found, types: TableTypes, plan: Plan, content: Collection[str], sets: Mapping[str, Sequence[str]]
) -> Figures:
    figures = row.asDict()
    n = figures["n"]
    columns = {}
    for v in plan.variables:
        c, with_value = v.column, figures[f"present_{v.column}"]
        of_text = types.columns[found.columns[v.decision.name]].n_infinite if v.numeric else 0
        low, high, distinct = (figures.get(f"{figure}_{c}") for figure in ("min", "max", "distinct"))
        constant = distinct == 1 if low is None else low == high
        infinite = figures.get(f"infinite_{c}", of_text)
        sketch = figures.get(f"levels_{c}")
        columns[c] = ColumnFigures(n - with_value, infinite, constant, distinct or 0, sketch and bytes(sketch))
    return Figures(
        n=n,
        columns=columns,
        patterns={name: figures[f"patterns{i}"] for i, name in enumerate(sets)},
        digest=digest.combine(content, figures, n),
        n_unidentified=n - figures.get("identified", n),
        n_without={role: n - figures[f"with_{role}"] for role in ROLES if f"with_{role}" in figures},
        n_negative=figures.get("negative", 0),
        total_weight=figures.get("total"),
    )


def collect(frame: DataFrame, source: Source) -> list[Any]:
    try:
        return frame.collect()
    except Exception as error:
        fault = fault_of(error, source)
        if fault is None:
            raise
        raise fault from None

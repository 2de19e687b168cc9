"""One aggregation over a table: how each column in use is filled, and the digest of the whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from . import digest
from .digest import ABSENT, cell_hash
from .io import Source, fault_of
from .kinds import INFINITE, MARKERS, NAN, NUMBERS, Stored, kind_of, present, text_class

DISTINCT_ERROR = 0.02  # relative standard deviation of the approximate counts
MAX_REPLICATES = 1000


@dataclass(frozen=True)
class ColumnProfile:
    """What one aggregation told of a column. Missing means null, NaN, empty text or a declared code.

    Attributes:
        stored: how it is stored.
        is_text: its type is undecided (CSV).
        n: rows.
        n_missing: rows without a value.
        classes: classes of its text values, as bits (`kinds`); 0 where it is not text.
        n_numbers: text values that are numbers.
        n_nan: text values 'NaN'.
        n_infinite: infinite values.
        distinct: about how many different values.
        constant: whether all present values are one.
        marker: a well-known text for "no value" among the values, such as '?', if there is one.
    """

    stored: Stored
    is_text: bool
    n: int
    n_missing: int
    classes: int
    n_numbers: int
    n_nan: int
    n_infinite: int
    distinct: int
    constant: bool
    marker: str | None

    @property
    def n_present(self) -> int:
        """Rows with a value."""
        return self.n - self.n_missing

    @property
    def kind(self) -> str:
        """What the column holds, by its own values alone (`kinds.kind_of`)."""
        return kind_of(self.stored, self.is_text, self.classes, self.n_present)

    def n_without_value(self, numeric: bool) -> int:
        """Rows without a usable value: for numbers, NaN and infinite ones too."""
        return self.n_missing + (self.n_nan + self.n_infinite if numeric else 0)


@dataclass(frozen=True)
class TableProfile:
    """One table, or one replicate in it.

    Attributes:
        n: rows.
        n_corrupt: CSV records with more or fewer fields than the header.
        columns: by name, the columns that were looked at.
        patterns: about how many different combinations of values, by name of the set of columns.
        digest: of the content of the digested columns.
    """

    n: int
    n_corrupt: int
    columns: dict[str, ColumnProfile]
    patterns: dict[str, int]
    digest: str


def stored_types(source: Source) -> dict[str, Stored]:
    """How each column of a table is stored. Runs no job."""
    by_name = {field.name: field.dataType for field in source.frame.schema.fields}
    return {name: Stored.of(by_name[name]) for name in source.columns}


def profile(
    source: Source,
    columns: Iterable[str],
    digested: Iterable[str],
    codes: Mapping[str, Sequence[str | int | float]] | None = None,
    sets: Mapping[str, Sequence[str]] | None = None,
    by: str | None = None,
) -> dict[str | None, TableProfile]:
    """Look at a table once. Jobs: one.

    Args:
        source: the table.
        columns: columns to describe.
        digested: columns whose content the digest covers.
        codes: per column, values that mean missing.
        sets: sets of columns (among `columns`) whose combinations are counted.
        by: column that numbers the replicates; its values, as text, are the keys of the result.

    Returns:
        One profile under the key None, or one per replicate; empty for a table without rows that has `by`.

    Raises:
        ConfigError: the file turned out to be unreadable.
    """
    codes = codes or {}
    plan = _Plan(source, list(columns), sorted(set(digested)), codes, by)
    aggregates = plan.aggregates(sets or {})
    try:
        if by is None:
            rows = plan.frame.agg(*aggregates).collect()
        else:
            rows = plan.frame.groupBy("by").agg(*aggregates).limit(MAX_REPLICATES + 1).collect()
    except Exception as error:
        fault = fault_of(error, source)
        if fault is None:
            raise
        raise fault from None
    return {row["by"] if by is not None else None: plan.result(row, sets or {}) for row in rows}


class _Plan:
    """Names columns by number, so that odd names never matter: v values, m classes, h hashes, d hashes as stored."""

    def __init__(
        self, source: Source, columns: list[str], digested: list[str],
        codes: Mapping[str, Sequence[str | int | float]], by: str | None,
    ) -> None:  # fmt: skip
        self.source, self.columns, self.digested, self.codes = source, columns, digested, codes
        self.stored = stored_types(source)
        self.number = {name: i for i, name in enumerate(dict.fromkeys([*columns, *digested]))}
        self.frame = self._frame(by)

    def _frame(self, by: str | None) -> DataFrame:
        raw = [
            (present if name in self.columns else _untouched)(
                self.source.column(name), self.stored[name], self.codes.get(name, ())
            ).alias(f"v{i}")
            for name, i in self.number.items()
        ]
        # A code is a value of the file all the same: the digest is of what was there.
        coded = [n for n in self.digested if n in self.columns and self.codes.get(n)]
        raw += [self.source.column(n).alias(f"r{self.number[n]}") for n in coded]
        extra = [self.source.column(self.source.corrupt).isNotNull().alias("corrupt")] if self.source.corrupt else []
        if by is not None:
            extra.append(F.trim(self.source.column(by).cast("string")).alias("by"))
        frame = self.source.frame.select(*raw, *extra)
        values = [(f"v{i}", f"m{i}", f"h{i}", name) for name, i in self.number.items()]
        values += [(f"r{self.number[n]}", f"rm{self.number[n]}", f"d{self.number[n]}", n) for n in coded]
        texts = [(v, m) for v, m, _, name in values if self.stored[name].kind == "string"]
        frame = frame.select("*", *(text_class(F.trim(v)).alias(m) for v, m in texts))
        hashes = [
            cell_hash(present(F.col(v), self.stored[name]), self.stored[name], F.col(m)).alias(h)
            for v, m, h, name in values
        ]
        self.coded = set(coded)
        return frame.select("*", *hashes)

    def aggregates(self, sets: Mapping[str, Sequence[str]]) -> list[Column]:
        found = [F.count(F.lit(1)).alias("n")]
        if self.source.corrupt:
            found.append(F.count_if("corrupt").alias("n_corrupt"))
        for name in self.columns:
            found += self._of_column(name)
        for i, columns in enumerate(sets.values()):
            cells = [F.coalesce(F.col(f"h{self.number[c]}"), F.lit(ABSENT)) for c in columns]
            found.append(F.approx_count_distinct(F.xxhash64(*cells), DISTINCT_ERROR).alias(f"patterns{i}"))
        hashes = {n: F.col(f"{'d' if n in self.coded else 'h'}{self.number[n]}") for n in self.digested}
        return found + [total.alias(name) for name, total in digest.row_sums(hashes).items()]

    def _of_column(self, name: str) -> list[Column]:
        i, stored = self.number[name], self.stored[name]
        value = F.col(f"v{i}")
        seen = F.when(value.isNotNull(), F.coalesce(F.col(f"h{i}"), F.lit(ABSENT)))
        found = [
            F.count(value).alias(f"present{i}"),
            F.min(seen).alias(f"min{i}"),
            F.max(seen).alias(f"max{i}"),
            F.approx_count_distinct(seen, DISTINCT_ERROR).alias(f"distinct{i}"),
        ]
        if stored.kind == "string":
            classes = F.col(f"m{i}")
            found += [
                F.bit_or(classes).alias(f"classes{i}"),
                F.count_if(classes.bitwiseAND(F.lit(NUMBERS)) != 0).alias(f"numbers{i}"),
                F.count_if(classes == NAN).alias(f"nan{i}"),
                F.count_if(classes == INFINITE).alias(f"infinite{i}"),
                F.max(F.when(F.trim(value).isin(*MARKERS), F.trim(value))).alias(f"marker{i}"),
            ]
        if stored.kind in ("float", "double"):
            found.append(F.count_if(F.abs(value) == float("inf")).alias(f"infinite{i}"))
        return found

    def result(self, row: Row, sets: Mapping[str, Sequence[str]]) -> TableProfile:
        figures = row.asDict()
        n = figures["n"]
        columns = {
            name: ColumnProfile(
                stored=self.stored[name], is_text=self.source.is_text, n=n,
                n_missing=n - figures[f"present{i}"],
                classes=figures.get(f"classes{i}") or 0,
                n_numbers=figures.get(f"numbers{i}") or 0,
                n_nan=figures.get(f"nan{i}") or 0,
                n_infinite=figures.get(f"infinite{i}") or 0,
                distinct=figures[f"distinct{i}"],
                constant=figures[f"present{i}"] > 0 and figures[f"min{i}"] == figures[f"max{i}"],
                marker=figures.get(f"marker{i}"),
            )
            for name, i in self.number.items()
            if name in self.columns
        }  # fmt: skip
        patterns = {name: figures[f"patterns{i}"] for i, name in enumerate(sets)}
        return TableProfile(n, figures.get("n_corrupt") or 0, columns, patterns, digest.combine(self.digested, figures, n))


def _untouched(column: Column, stored: Stored, codes: Sequence[str | int | float]) -> Column:
    return column

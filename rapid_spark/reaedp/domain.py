"""Declared domains: the bins of a column are public input of the configuration, never read off the data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from rapid_spark.config import suggest

MISSING = "missing"
MAX_CELLS = 5_000_000


@dataclass(frozen=True)
class Categories:
    """A column whose bins are named levels.

    Attributes:
        column: its name.
        levels: the levels in order, texts, numbers or booleans; all other values go to `other`, uncounted.
        missing: count null as one more level, `missing`, instead of `other`.
    """

    column: str
    levels: tuple[str | int | float | bool, ...]
    missing: bool = False

    def __post_init__(self) -> None:
        _check_column(self.column)
        object.__setattr__(self, "levels", tuple(self.levels))
        if not self.levels:
            raise ValueError(f"the domain of {self.column} has no level; declare at least one")
        _check_distinct(self.labels, f"the domain of {self.column} has two levels of one name")

    @property
    def size(self) -> int:
        """How many bins there are."""
        return len(self.levels) + self.missing

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """One text per bin."""
        return (*map(text_of, self.levels), *((MISSING,) if self.missing else ()))


@dataclass(frozen=True)
class Edges:
    """A numeric column whose bins are intervals [e0, e1), [e1, e2), .., the last one closed.

    Attributes:
        column: its name.
        edges: strictly increasing; the outermost may be infinite where nothing is to be drawn from the bins.
        missing: count null and NaN as one more bin, `missing`, instead of `other`.
        integer: the column holds whole numbers: values drawn within a bin are whole.
    """

    column: str
    edges: tuple[float, ...]
    missing: bool = False
    integer: bool = False

    def __post_init__(self) -> None:
        _check_column(self.column)
        object.__setattr__(self, "edges", tuple(float(e) for e in self.edges))
        if len(self.edges) < 2:
            raise ValueError(f"the domain of {self.column} has {len(self.edges)} edges; declare at least two")
        if any(not a < b for a, b in zip(self.edges, self.edges[1:], strict=False)):
            raise ValueError(f"the edges of {self.column} do not increase from one to the next")
        if any(math.isinf(e) for e in self.edges[1:-1]):
            raise ValueError(f"the edges of {self.column} are infinite in the middle")

    @property
    def size(self) -> int:
        """How many bins there are."""
        return len(self.edges) - 1 + self.missing

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """One text per bin, such as '[0, 10)'."""
        texts = [f"{e:g}" if float(f"{e:g}") == e else repr(e) for e in self.edges]
        ends = [")"] * (len(texts) - 2) + ["]"]
        bins = [f"[{a}, {b}{end}" for a, b, end in zip(texts, texts[1:], ends, strict=False)]
        return (*bins, *((MISSING,) if self.missing else ()))

    @property
    def step(self) -> int | None:
        """The width of the bins where edges are whole numbers at one distance, otherwise None."""
        first, last = self.edges[0], self.edges[-1]
        if not (math.isfinite(first) and math.isfinite(last) and max(abs(first), abs(last)) < 2**52):
            return None
        width = self.edges[1] - first
        even = all(e == first + i * width for i, e in enumerate(self.edges))
        return int(width) if even and first.is_integer() and width.is_integer() else None


Domain = Categories | Edges


@dataclass(frozen=True)
class Table:
    """A k-way table over declared domains. Cells are in row-major order, the last column moving fastest."""

    domains: tuple[Domain, ...]

    def __post_init__(self) -> None:
        if not self.domains:
            raise ValueError("a table has no column; name at least one")
        _check_distinct(self.columns, "a table names a column twice")
        if self.cells > MAX_CELLS:
            raise ValueError(
                f"the table {self.name} has {self.cells:,} cells; at most {MAX_CELLS:,} are counted: every "
                "empty cell gets noise too. Use fewer columns or wider bins"
            )

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(d.column for d in self.domains)

    @property
    def name(self) -> str:
        """The names of the columns as one text, 'age*sex'."""
        return "*".join(self.columns)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of bins of each column."""
        return tuple(d.size for d in self.domains)

    @property
    def cells(self) -> int:
        """The number of cells, empty ones included."""
        return math.prod(self.shape)

    def labels(self) -> list[npt.NDArray[np.object_]]:
        """For each column the label of its bin in every cell, in the order of the cells."""
        positions = np.unravel_index(np.arange(self.cells), self.shape)
        return [np.array(d.labels, dtype=object)[p] for d, p in zip(self.domains, positions, strict=True)]


def tables_over(domains: Sequence[Domain], tables: Sequence[Sequence[str]]) -> tuple[Table, ...]:
    """The tables named by their columns.

    Raises:
        ValueError: if a column has no declared domain, or two domains, or a table comes twice.
    """
    known = {d.column: d for d in domains}
    _check_distinct([d.column for d in domains], "two domains are declared for one column")
    for column in (c for table in tables for c in table):
        if column not in known:
            raise ValueError(
                f"column {column} has no declared domain; declare its categories or edges."
                f"{suggest(column, known)}"
            )
    if not tables:
        raise ValueError("no table is named; a release needs at least one")
    _check_distinct(["*".join(sorted(t)) for t in tables], "a table is named twice")
    return tuple(Table(tuple(known[c] for c in table)) for table in tables)


def text_of(level: str | int | float | bool) -> str:
    """A level as text: booleans as 'true' and 'false', whole numbers without a decimal point."""
    if isinstance(level, bool):
        return "true" if level else "false"
    if isinstance(level, float):
        if not math.isfinite(level):
            raise ValueError("a level is not a finite number; use `missing` for missing values")
        return str(int(level)) if level.is_integer() and abs(level) < 2**53 else repr(level)
    return str(level)


def _check_column(column: str) -> None:
    if not isinstance(column, str) or not column:
        raise ValueError("a domain has no column name")


def _check_distinct(names: Sequence[str], fault: str) -> None:
    if twice := sorted(
        {n for n in names if list(names).count(n) > 1} if len(set(names)) < len(names) else ()
    ):
        raise ValueError(f"{fault}: {', '.join(twice[:3])}")

"""Recode columns of a table: the same rows, with coarser values, and counts of what found no place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ..config import ConfigError, Recode
from ..io import Source, fault_of, quoted
from ..kinds import FAMILIES, SPOKEN, as_label, present
from ..profiles import ColumnType, column_types, stored_types
from . import hierarchy
from .columns import is_suppressed, recoded


@dataclass(frozen=True)
class Step:
    """What is done to one column of a table.

    Attributes:
        name: of the column in the configuration.
        column: in the table.
        recode: what is done.
        codes: declared codes of missing values.
    """

    name: str
    column: str
    recode: Recode
    codes: tuple[str | int | float, ...] = field(default=())


def recode_table(source: Source, steps: Sequence[Step], drop: bool = False) -> Source:
    """A table with its columns recoded; columns of which nothing but suppressed cells changes stay as they are.

    Jobs: one where a recoded column is text, to see what it holds.

    Args:
        source: the table.
        steps: one per column.
        drop: whether columns that are dropped go from the table.

    Raises:
        ConfigError: a column does not hold what its recode takes, or a hierarchy file is at fault; all faults at once.
    """
    active = [step for step in steps if step.recode.changes]
    gone = {step.column for step in steps if drop and step.recode.drop}
    if not active:
        return _without(source, gone)
    types = column_types(source, [s.column for s in active], {s.column: _codes(s) for s in active}).columns
    faults = list(_faults(source, active, types))
    if faults:
        raise ConfigError("\n".join(faults))
    frame, mapped = source.frame, {}
    for i, step in enumerate(active):
        if step.recode.hierarchy is not None:
            frame, mapped[step.column] = _joined(frame, source, step, types[step.column], i)
    by_column = {
        step.column: recoded(
            source.column(step.column), types[step.column].stored, types[step.column].kind, step.recode, step.codes,
            mapped.get(step.column),
        )
        for step in active
    }
    kept = [c for c in source.frame.columns if c not in gone]
    columns = [(by_column[c] if c in by_column else F.col(quoted(c))).alias(c) for c in kept]
    return _without(replace(source, frame=frame.select(*columns), number=None), gone)


def counts(source: Source, steps: Sequence[Step], done: Source | None = None) -> dict[str, tuple[int, int]]:
    """Per column, cells that hold a marker of suppression, and values without a place in the recode. Jobs: one.

    Args:
        source: the table as it was found.
        steps: one per column.
        done: the same table recoded, where it was; its rows are counted against the values there were.
    """
    steps = [step for step in steps if not step.recode.drop]
    if not steps:
        return {}
    stored = stored_types(source)
    aggregates: list[Column] = []
    for i, step in enumerate(steps):
        raw = source.column(step.column)
        aggregates.append(F.count_if(is_suppressed(raw, stored[step.column], step.recode)).alias(f"s{i}"))
        aggregates.append(F.count(present(raw, stored[step.column], _codes(step))).alias(f"p{i}"))
    try:
        before = source.frame.agg(*aggregates).collect()[0]
        after = None
        if done is not None:
            after = done.frame.agg(*(F.count(quoted(s.column)).alias(f"p{i}") for i, s in enumerate(steps))).collect()[0]
    except Exception as error:
        fault = fault_of(error, source)
        if fault is None:
            raise
        raise fault from None
    return {
        step.name: (
            before[f"s{i}"],
            before[f"p{i}"] - after[f"p{i}"] if after is not None and step.recode.changes else 0,
        )
        for i, step in enumerate(steps)
    }


def sentences(found: Mapping[str, tuple[int, int]], where: str) -> list[str]:
    """What `counts` found, as warnings."""
    said = []
    for name, (suppressed, unplaced) in found.items():
        if suppressed:
            said.append(f"{name!r} in {where}: {suppressed} suppressed values are taken as missing")
        if unplaced:
            said.append(
                f"{name!r} in {where}: {unplaced} values have no place in recode.{name} and are taken as missing; "
                "give them one, or a level under other"
            )
    return said


def _codes(step: Step) -> tuple[str | int | float, ...]:
    return (*step.codes, *step.recode.suppressed)


def _faults(source: Source, steps: Iterable[Step], types: Mapping[str, ColumnType]) -> Iterable[str]:
    for step in steps:
        found = types[step.column]
        family = FAMILIES[found.kind]
        spoken = SPOKEN.get(found.kind, found.stored.name)
        if family == "other":
            yield f"recode.{step.name}: {step.column!r} of {source.name} holds {spoken}: it cannot be recoded"
        elif step.recode.for_numbers and family not in ("number", "empty"):
            texts = f" ({found.n_present - found.n_numbers} of {found.n_present} values are no numbers)"
            yield (
                f"recode.{step.name}: {step.column!r} of {source.name} holds {spoken}"
                f"{texts if family == 'text' and found.is_text else ''}: bands, top, bottom and round are for numbers; "
                "use merge, mask or a hierarchy, or declare what means missing under columns.missing_codes"
            )


def _joined(
    frame: DataFrame, source: Source, step: Step, found: ColumnType, number: int
) -> tuple[DataFrame, Column]:
    """The table with the level that the hierarchy's file gives each value beside it."""
    assert step.recode.hierarchy is not None
    levels = hierarchy.read(step.recode.hierarchy, f"recode.{step.name}.hierarchy")
    value, level = f"_value_{number}", f"_level_{number}"
    rows = frame.sparkSession.createDataFrame(list(levels.items()), f"{value} string, {level} string")
    raw = source.column(step.column)
    label = as_label(present(raw, found.stored, _codes(step)), found.stored, found.kind)
    return frame.join(F.broadcast(rows), F.trim(label) == F.col(value), "left"), F.col(level)


def _without(source: Source, gone: set[str]) -> Source:
    if not gone:
        return source
    frame = source.frame.select(*(F.col(quoted(c)) for c in source.frame.columns if c not in gone))
    return replace(source, frame=frame, columns=tuple(c for c in source.columns if c not in gone), number=None)

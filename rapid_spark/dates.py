"""Dates that a file writes in a form of its own ('03 Feb 2021'): read by the pattern that the configuration states."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import Column
from pyspark.sql import functions as F

from .agreement import Notes
from .config import Config
from .io import technical
from .kinds import present
from .profiles import stored_types
from .roles import Found, Tables

TIME_OF_DAY = re.compile(r"[HhKk]")


def dated(tables: Tables, config: Config, notes: Notes) -> Tables:
    """The tables with a column of dates (or times) beside each text column of `columns.dates`, named in its place.

    The text itself stays as it was found, as digests go by it. A value that is a date as 2021-02-03 is one under any
    pattern; a column that is stored as dates is left alone. Jobs: one for each table with such text columns.

    Args:
        tables: with their columns found.
        config: with `columns.dates`, patterns as Spark's `to_date` takes them, months by their English names.
        notes: of values that are no dates, and of patterns that are none, faults are added here.
    """
    if not config.columns.dates:
        return tables
    holdout = _dated(tables.holdout, config, notes) if tables.holdout else None
    return Tables(
        _dated(tables.original, config, notes), {r: _dated(t, config, notes) for r, t in tables.releases.items()}, holdout
    )


def _dated(found: Found, config: Config, notes: Notes) -> Found:
    source, stored = found.source, stored_types(found.source)
    patterns = {
        name: pattern for name, pattern in config.columns.dates.items()
        if name in found.columns and stored[found.columns[name]].kind == "string"
    }  # fmt: skip
    texts = {
        name: present(source.column(found.columns[name]), stored[found.columns[name]], config.missing_codes(name))
        for name in patterns
    }
    read = {name: _date(text, patterns[name]) for name, text in texts.items()}
    wrong = _wrong(found, patterns, texts, read, notes)
    for name, n in wrong.items():
        notes.faults.append(
            f"columns.dates: {n:,} values of {name!r} in {found.spoken} are no dates as {patterns[name]!r} "
            "(nor as 'yyyy-MM-dd'): correct the pattern, or declare what means missing under columns.missing_codes"
        )
    frame, places = source.frame, dict(found.columns)
    for i, name in enumerate(patterns):
        places[name] = technical(f"date_{i}", source.columns)
        frame = frame.withColumn(places[name], read[name])
    return replace(found, source=replace(source, frame=frame), columns=places)


def _date(text: Column, pattern: str) -> Column:
    moment = F.coalesce(F.try_to_timestamp(F.trim(text), F.lit(pattern)), F.trim(text).try_cast("timestamp"))
    return moment if TIME_OF_DAY.search(pattern) else moment.cast("date")


def _wrong(
    found: Found, patterns: Mapping[str, str], texts: Mapping[str, Column], read: Mapping[str, Column], notes: Notes
) -> dict[str, int]:
    """How many values are no dates, for the columns that have any; a pattern that Spark does not take is a fault."""
    if not patterns:
        return {}
    counts = [F.count_if(texts[n].isNotNull() & read[n].isNull()).alias(f"n{i}") for i, n in enumerate(patterns)]
    try:
        row = found.source.frame.agg(*counts).collect()[0]
    except Exception as error:
        if "DATETIME_PATTERN" not in str(error):
            raise
        stated = ", ".join(sorted(map(repr, patterns.values())))
        notes.faults.append(
            f"columns.dates: {stated} is not taken by Spark: a pattern is made of d, M, y, H, m and s, such as dd MMM yyyy "
            "or dd.MM.yyyy HH:mm"
        )
        return {}
    return {name: row[f"n{i}"] for i, name in enumerate(patterns) if row[f"n{i}"]}

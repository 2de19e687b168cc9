"""Roles of columns, and the alignment of original, releases and holdout: names, types, missing values, record ids.

What comes out has safe column names (`record_id`, `q0`.., `s0`..) and normalised values (no NaN, -0.0, empty text), so
that nothing after this module has to think of odd names, file formats or dtypes.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from . import digest
from .agreement import Notes, Seen, decide_quasi_identifier, decide_target
from .config import Config, SensitiveAttribute
from .counts import (
    MAX_REPLICATES,
    Figures,
    collect,
    content_row,
    count_real,
    count_release,
    level_counts,
    repeated_keys,
)
from .dates import dated
from .findings import Counted, check_rows, check_targets, repeated_fault, too_many_levels, usable_sets
from .io import Source, miscounted
from .kept import let_go
from .kinds import present
from .normalise import Plan, Variable, frame_of, identity_faults, keep
from .overlap import MOST_LABELS, check_overlap
from .profiles import TableTypes, column_types
from .recode.tables import coarsened
from .roles import Found, Tables, find_all
from .sidebyside import at_once


class SchemaError(ValueError):
    """The tables do not fit the configuration or each other; the text lists every fault, one a line."""


@dataclass(frozen=True)
class QuasiIdentifier:
    """A quasi-identifier that is used.

    Attributes:
        name: its name in the configuration.
        column: its column in the aligned frames, `q0`, `q1`, ..
        kind: 'numeric' (double; dates as days since 1970-01-01) or 'categorical' (string).
        n_missing: original records without a value (null in the frame).
    """

    name: str
    column: str
    kind: Literal["numeric", "categorical"]
    n_missing: int


@dataclass(frozen=True)
class Target:
    """A sensitive attribute.

    Attributes:
        name: its name in the configuration.
        column: its column in the aligned frames, `s0`, `s1`, ..
        type: 'categorical' (string) or 'continuous' (double; dates as days since 1970-01-01).
        attribute: its settings.
        n_missing: original records without a value (null in the frame).
        levels: of a categorical one, records of the original by label; null counts those without a value.
    """

    name: str
    column: str
    type: Literal["categorical", "continuous"]
    attribute: SensitiveAttribute
    n_missing: int
    levels: dict[str | None, int] = field(default_factory=dict)

    @property
    def missing(self) -> Literal["class", "drop", "median", "constant"]:
        """What becomes of records without a value: as configured, else 'class' (categorical) or 'drop'."""
        return self.attribute.missing or ("class" if self.type == "categorical" else "drop")


@dataclass(frozen=True)
class Aligned:
    """Tables made ready for an evaluation.

    Attributes:
        original: `record_id` (string, unique), `person`, `household`, `weight`, `stratum`, `psu` as far as the
            configuration names them (strings; weight double), `q*` and `s*`.
        releases: by replicate 1..m, `q*` and `s*`.
        holdout: as the original, with those of the roles that it has.
        quasi_identifiers: those used, ordered by name.
        sets: by name of the set, its quasi-identifiers' columns, in the order of their names.
        targets: in the configuration's order.
        n_original: rows of the original.
        n_release: rows by replicate.
        n_holdout: rows of the holdout.
        patterns: by name of the set, about how many different combinations of its values the original holds.
        warnings: what the user should know, without any value of a person.
        original_digest: of the normalised content in use (`digest`).
        release_digests: by replicate, of the content of all columns, as it was found.
        holdout_digest: as the original's.
        kept: frames that `close` frees.
    """

    original: DataFrame
    releases: dict[int, DataFrame]
    holdout: DataFrame | None
    quasi_identifiers: tuple[QuasiIdentifier, ...]
    sets: dict[str, tuple[str, ...]]
    targets: tuple[Target, ...]
    n_original: int
    n_release: dict[int, int]
    n_holdout: int
    patterns: dict[str, int]
    warnings: list[str]
    original_digest: str
    release_digests: dict[int, str]
    holdout_digest: str | None
    kept: tuple[DataFrame, ...] = field(default=(), repr=False)

    @property
    def release_digest(self) -> str:
        """Of the release as a whole: its only replicate's digest, or one over those of all replicates."""
        digests = [self.release_digests[r] for r in sorted(self.release_digests)]
        return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()

    def target(self, name: str) -> Target:
        """The sensitive attribute of this name."""
        return next(target for target in self.targets if target.name == name)

    def close(self) -> None:
        """Free what was kept in memory or on disk."""
        for frame in self.kept:
            let_go(frame)


def align(
    original: Source, releases: Mapping[int, Source], config: Config, holdout: Source | None = None
) -> Aligned:
    """Check the tables against the configuration and each other, and make them ready.

    Types are decided on the original and applied to the others (`agreement`). Jobs: one per table that has text
    columns, one per table with `columns.dates`, one per table, one for the levels of all categorical targets, one for
    the keys of each table of real people (two if some occur twice). The rows of a CSV with real people are kept in
    memory or on disk once the types are known, until `Aligned.close`.

    Args:
        original: real people, one row a record.
        releases: by replicate 1..m; a single one may carry several in its `replicate_column`.
        config: roles, missing codes, declared types.
        holdout: real people who were not used to make the release.

    Raises:
        SchemaError: with every fault found.
        ConfigError: a file turned out to be unreadable.
    """
    notes = Notes()
    tables = find_all(original, releases, holdout, config, notes.faults, notes.warnings)
    _raise(notes)
    tables = dated(coarsened(tables, config, notes), config, notes)
    _raise(notes)
    spark = original.frame.sparkSession
    found = at_once(spark, [functools.partial(_types, t, config) for t in tables.all])
    types = {t.place: of_table for t, of_table in zip(tables.all, found, strict=True)}
    notes.faults += [_corrupt_fault(t, types[t.place]) for t in tables.all if types[t.place].n_corrupt]
    _raise(notes)
    plan = _decide(tables, types, config, notes)
    _raise(notes)
    kept = {t.place: keep(frame_of(t, types[t.place], plan), t.source) for t in tables.real}
    try:
        counted = _count(tables, types, plan, kept, notes)
        sets = usable_sets(counted, plan, notes)
        check_targets(counted, plan, notes)
        check_overlap(counted, plan, notes)
        _raise(notes)
        levels = _levels_and_keys(tables, plan, kept, notes)
        _raise(notes)
    except Exception:
        for frame in kept.values():
            let_go(frame)
        raise
    return _finish(counted, plan, sets, levels, kept, notes)


def content_digest(source: Source) -> str:
    """The digest of a table as `Aligned.release_digests` holds it. Jobs: one, two if it has text columns.

    Raises:
        ConfigError: a file turned out to be unreadable.
    """
    types = column_types(source, source.columns)
    columns = [c for c in source.columns if c != source.replicate_column]
    rows = source.frame.select(content_row(source, types, columns).alias("content"))
    sums = digest.row_sums([F.col("content")])
    row = collect(rows.agg(F.count(F.lit(1)).alias("n"), *sums), source)[0]
    return digest.combine(columns, row.asDict(), row["n"])


def _raise(notes: Notes) -> None:
    if notes.faults:
        faults = list(dict.fromkeys(notes.faults))
        count = "a fault" if len(faults) == 1 else f"{len(faults)} faults"
        raise SchemaError(f"{count} in the tables:\n" + "\n".join(f"  {f}" for f in faults))


def _types(found: Found, config: Config) -> TableTypes:
    source = found.source
    wanted = [*found.columns.values(), *(() if found.real else source.columns)]  # a release's digest is of all columns
    codes = {column: config.missing_codes(name) for name, column in found.columns.items()}
    return column_types(source, dict.fromkeys(wanted), codes)


def _corrupt_fault(found: Found, types: TableTypes) -> str:
    return (
        f"{found.spoken}: {miscounted(types.n_corrupt)} than the header's "
        f"{len(found.source.columns)}. Check the delimiter, and that a field with a delimiter or a line break in it is "
        "in quotation marks"
    )


def _decide(tables: Tables, types: Mapping[str, TableTypes], config: Config, notes: Notes) -> Plan:
    quasi: list[Variable] = []
    targets: list[Variable] = []
    for name in config.all_quasi_identifiers:
        decision = decide_quasi_identifier(name, _seen(name, tables, types), config, notes)
        if decision:
            quasi.append(Variable(f"q{len(quasi)}", decision))
    for attribute in config.sensitive_attributes:
        seen = _seen(attribute.name, tables, types)
        decision = decide_target(attribute, seen, config.threshold.error, notes)
        if decision:
            targets.append(Variable(f"s{len(targets)}", decision))
    for found in tables.real:
        notes.faults += identity_faults(found, types[found.place], config)
    return Plan(config, quasi, targets)


def _seen(name: str, tables: Tables, types: Mapping[str, TableTypes]) -> list[Seen]:
    return [
        Seen(
            t.spoken, types[t.place].columns[t.columns[name]], functools.partial(_is_empty, t, name, types[t.place]),
            functools.partial(_some_labels, t, name, types[t.place]),
        )
        for t in tables.all
    ]


def _is_empty(found: Found, name: str, types: TableTypes) -> bool:
    column = found.columns[name]
    value = present(found.source.column(column), types.columns[column].stored)
    return found.source.frame.where(value.isNotNull()).limit(1).isEmpty()


def _some_labels(found: Found, name: str, types: TableTypes) -> list[str]:
    column = found.columns[name]
    value = present(found.source.column(column), types.columns[column].stored).cast("string")
    rows = found.source.frame.select(F.trim(value).alias("label")).where("label is not null").distinct().limit(MOST_LABELS)
    return sorted(row["label"] for row in rows.collect())


def _count(
    tables: Tables, types: Mapping[str, TableTypes], plan: Plan, kept: Mapping[str, DataFrame], notes: Notes
) -> Counted:
    """Figures of every table; raises where a table or replicate is without rows, or records without identity."""
    column = {v.decision.name: v.column for v in plan.quasi_identifiers}
    sets = {name: tuple(column[c] for c in columns) for name, columns in plan.config.sets.items()}
    spark = tables.original.source.frame.sparkSession
    of_real: list[Callable[[], Any]] = [
        functools.partial(count_real, kept[t.place], t, types[t.place], plan, sets if t is tables.original else {})
        for t in tables.real
    ]
    of_releases: list[Callable[[], Any]] = [
        functools.partial(count_release, t, types[t.place], plan) for t in tables.releases.values()
    ]
    counted: list[Any] = at_once(spark, [*of_real, *of_releases])
    real = {t.place: figures for t, figures in zip(tables.real, counted, strict=False)}
    for found in tables.real:
        check_rows(found, real[found.place], plan.config, notes)
    releases: dict[int, tuple[Found, Figures]] = {}
    for (replicate, found), figures in zip(tables.releases.items(), counted[len(of_real):], strict=True):
        if not any(f.n for f in figures.values()):
            notes.faults.append(f"{found.spoken}: there are no records in it")
        elif found.replicate_column is None:
            releases[replicate] = (found, figures[None])
        else:
            releases |= {r: (found, f) for r, f in _by_number(found, figures, notes).items()}
    _raise(notes)
    holdout = real[tables.holdout.place] if tables.holdout else None
    return Counted(tables, types, real[tables.original.place], releases, holdout, sets)


def _by_number(found: Found, figures: Mapping[str | None, Figures], notes: Notes) -> dict[int, Figures]:
    """Replicates of one table by their numbers, which must be 1..m."""
    setting = f"release.replicate_column: {found.replicate_column!r} of {found.spoken}"
    without = figures[None].n if None in figures else 0
    if without:
        notes.faults.append(f"{setting} is missing in {without} records")
    numbers = {text: re.fullmatch(r"(\d{1,9})(\.0*)?", text) for text in figures if text is not None}
    if len(figures) > MAX_REPLICATES or not all(numbers.values()):
        notes.faults.append(f"{setting}: expected whole numbers 1..m, at most {MAX_REPLICATES} of them")
        return {}
    by_number = {int(match.group(1)): figures[text] for text, match in numbers.items() if match}
    if sorted(by_number) != list(range(1, len(by_number) + 1)) or len(by_number) < len(numbers):
        notes.faults.append(f"{setting}: expected the numbers 1..m without gaps, each written in one way")
    return dict(sorted(by_number.items()))


def _levels_and_keys(
    tables: Tables, plan: Plan, kept: Mapping[str, DataFrame], notes: Notes
) -> dict[str, dict[str | None, int]]:
    keyed = tables.real if plan.config.columns.key else []
    calls: list[Callable[[], Any]] = [functools.partial(level_counts, kept[tables.original.place], plan)]
    calls += [functools.partial(repeated_keys, kept[t.place]) for t in keyed]
    levels, *repeated_of = at_once(tables.original.source.frame.sparkSession, calls)
    for variable, attribute in plan.attributes:
        n_levels = len([label for label in levels.get(variable.column, {}) if label is not None])
        if n_levels > attribute.max_levels:
            notes.faults.append(too_many_levels(attribute, str(n_levels)))
    for found, repeated in zip(keyed, repeated_of, strict=True):
        if repeated:
            notes.faults.append(repeated_fault(repeated, found, plan.config))
    return levels


def _finish(
    counted: Counted,
    plan: Plan,
    sets: Mapping[str, tuple[str, ...]],
    levels: Mapping[str, dict[str | None, int]],
    kept: Mapping[str, DataFrame],
    notes: Notes,
) -> Aligned:
    tables, types = counted.tables, counted.types
    used = [v for v in plan.quasi_identifiers if any(v.column in columns for columns in sets.values())]
    final = {v.column: f"q{i}" for i, v in enumerate(used)}
    dropped = {v.column for v in plan.quasi_identifiers} - set(final)

    def named(frame: DataFrame) -> DataFrame:
        return frame.select(*(F.col(c).alias(final.get(c, c)) for c in frame.columns if c not in dropped))

    missing = {column: figures.n_missing for column, figures in counted.original.columns.items()}
    return Aligned(
        original=named(kept[tables.original.place]),
        releases={
            r: named(frame_of(found, types[found.place], plan, r)) for r, (found, _) in counted.releases.items()
        },
        holdout=named(kept[tables.holdout.place]) if tables.holdout else None,
        quasi_identifiers=tuple(
            QuasiIdentifier(v.decision.name, final[v.column], v.decision.scale, missing[v.column]) for v in used
        ),
        sets={name: tuple(final[c] for c in columns) for name, columns in sets.items()},
        targets=tuple(
            Target(a.name, v.column, v.type, a, missing[v.column], levels.get(v.column, {}))
            for v, a in plan.attributes
        ),
        n_original=counted.original.n,
        n_release={r: figures.n for r, (_, figures) in counted.releases.items()},
        n_holdout=counted.holdout.n if counted.holdout else 0,
        patterns=counted.original.patterns,
        warnings=list(dict.fromkeys(notes.warnings)),
        original_digest=counted.original.digest,
        release_digests={r: figures.digest for r, (_, figures) in counted.releases.items()},
        holdout_digest=counted.holdout.digest if counted.holdout else None,
        kept=tuple(kept.values()),
    )

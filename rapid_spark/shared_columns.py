"""Original, releases and holdout as frames of the columns they share, normalised alike; nothing is dropped.

`schema.align` serves attackers that learn, and leaves out what they cannot learn from. Matching by equal values needs
every column, also one with a single value.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame

from .agreement import Notes, Seen, decide_quasi_identifier
from .config import Config
from .io import Source
from .kept import let_go
from .kinds import present
from .normalise import Plan, Variable, frame_of, keep
from .profiles import TableTypes, column_types
from .roles import ROLES, Found, Tables, find_all
from .schema import SchemaError


@dataclass(frozen=True)
class Shared:
    """One column that all tables have: `column` in the frames is double where `numeric`, else string."""

    name: str
    column: str
    numeric: bool


@dataclass(frozen=True)
class SharedTables:
    """Tables with the columns that all of them have.

    Attributes:
        original: `record_id` and the shared columns `c0`, `c1`, ..; null where a value is missing.
        releases: by replicate, the shared columns; with `record_id` where `identified`.
        holdout: as the original; or None.
        columns: shared columns, ordered by name.
        sets: by name of the quasi-identifier set, its columns in the frames.
        targets: by name of the sensitive attribute, its column.
        warnings: columns left out, and why.
        identified: whether the releases hold the key columns too.
        kept: frames that `close` frees.
    """

    original: DataFrame
    releases: dict[int, DataFrame]
    holdout: DataFrame | None
    columns: tuple[Shared, ...]
    sets: dict[str, tuple[str, ...]]
    targets: dict[str, str]
    warnings: list[str]
    identified: bool = False
    kept: tuple[DataFrame, ...] = field(default=(), repr=False)

    def of(self, *columns: str) -> list[Shared]:
        """Shared columns by their place in the frames."""
        by_place = {s.column: s for s in self.columns}
        return [by_place[c] for c in columns]

    def place(self, name: str) -> str:
        """The column of a name."""
        return next(s.column for s in self.columns if s.name == name)

    def close(self) -> None:
        """Free what was kept in memory or on disk."""
        for frame in self.kept:
            let_go(frame)


def lay(
    original: Source, releases: Mapping[int, Source], config: Config, holdout: Source | None = None
) -> SharedTables:
    """Lay the tables side by side. Jobs: one per table with text columns.

    Args:
        original: real people.
        releases: by replicate 1..m, one table each.
        config: quasi-identifiers, sensitive attributes, key, missing codes, declared types.
        holdout: real people who were not used to make the release.

    Raises:
        SchemaError: a column that the configuration names is missing or differs in type, with every fault found.
    """
    named = tuple(dict.fromkeys([*config.all_quasi_identifiers, *(a.name for a in config.sensitive_attributes)]))
    notes, asides = Notes(), Notes()
    others = _others([original, *releases.values(), *([holdout] if holdout else [])], config, named)
    tables = find_all(original, releases, holdout, _wide(config, others), notes.faults, notes.warnings)
    if notes.faults:
        raise SchemaError("\n".join(notes.faults))
    if any(r.replicate_column for r in tables.releases.values()):
        notes.warnings.append("the replicates of one table are taken together here: give them as several tables")
    keys = config.columns.key
    identified = bool(keys) and all(set(keys) <= set(r.columns) for r in releases.values())
    if identified and config.columns.key_hmac:
        identified = False  # occurrence numbers follow the content, which the release has altered
        notes.warnings.append("columns.key_hmac: records of original and release are not matched by their keys")
    if identified:
        own = {k: k for k in keys}
        with_key = {r: replace(t, columns={**t.columns, **own}, real=True) for r, t in tables.releases.items()}
        tables = replace(tables, releases=with_key)
    types = {t.place: column_types(t.source, _wanted(t), _codes(t, config)) for t in tables.all}
    decided = _declared(config)
    variables: dict[str, Variable] = {}
    for name in sorted({*named, *others}):
        seen = [_seen(name, t, types[t.place]) for t in tables.all]
        decision = decide_quasi_identifier(name, seen, decided, notes if name in named else asides)
        if decision is not None:
            variables[name] = Variable(f"c{len(variables)}", decision)
    if notes.faults:
        raise SchemaError("\n".join(dict.fromkeys(notes.faults)))
    notes.warnings += [f"left out of measures over all columns: {fault}" for fault in asides.faults]
    return replace(_frames(tables, types, variables, config, notes), identified=identified)


def _frames(
    tables: Tables, types: Mapping[str, TableTypes], variables: Mapping[str, Variable], config: Config, notes: Notes
) -> SharedTables:
    plan = Plan(config, list(variables.values()), [])
    kept: list[DataFrame] = []

    def made(found: Found, replicate: int | None = None) -> DataFrame:
        frame = keep(frame_of(found, types[found.place], plan, replicate), found.source)
        if found.source.is_text:
            kept.append(frame)
        return frame

    place = {name: v.column for name, v in variables.items()}
    return SharedTables(
        made(tables.original),
        {r: made(found) for r, found in tables.releases.items()},
        made(tables.holdout) if tables.holdout else None,
        tuple(Shared(name, v.column, v.numeric) for name, v in variables.items()),
        {name: tuple(place[c] for c in columns) for name, columns in config.sets.items()},
        {a.name: place[a.name] for a in config.sensitive_attributes},
        list(dict.fromkeys(notes.warnings)), kept=tuple(kept),
    )  # fmt: skip


def _others(sources: list[Source], config: Config, named: tuple[str, ...]) -> tuple[str, ...]:
    """Columns that every table has and no setting names."""
    apart = {*named, *config.columns.key, *(getattr(config.columns, role) for role in ROLES)}
    apart |= {s.replicate_column for s in sources}
    lower = {str(c).lower() for c in apart if c}
    common = set(sources[0].columns).intersection(*(s.columns for s in sources[1:]))
    return tuple(sorted(c for c in common if c.lower() not in lower))


def _wide(config: Config, others: tuple[str, ...]) -> Config:
    """The configuration with one more set, of the columns that no setting names."""
    sets = {**config.sets, **({"": others} if others else {})}
    return config.model_copy(update={"quasi_identifiers": (), "qi_sets": sets})


def _declared(config: Config) -> Config:
    """The configuration with the declared types of its sensitive attributes among those of the columns."""
    kinds = {"categorical": "categorical", "continuous": "numeric"}
    own = {a.name: kinds[a.type] for a in config.sensitive_attributes if a.type}
    types = {**config.columns.types, **own}
    return config.model_copy(update={"columns": config.columns.model_copy(update={"types": types})})


def _seen(name: str, found: Found, types: TableTypes) -> Seen:
    return Seen(found.spoken, types.columns[found.columns[name]], functools.partial(_is_empty, found, name, types))


def _wanted(found: Found) -> list[str]:
    return list(dict.fromkeys(found.columns.values()))


def _codes(found: Found, config: Config) -> dict[str, tuple[str | int | float, ...]]:
    return {found.columns[n]: c for n, c in config.columns.missing_codes.items() if n in found.columns}


def _is_empty(found: Found, name: str, types: TableTypes) -> bool:
    column = found.columns[name]
    value = present(found.source.column(column), types.columns[column].stored)
    return found.source.frame.where(value.isNotNull()).limit(1).isEmpty()


"""Out of a store: a finished run's aggregates, protected, as a document; and what earlier publications give away."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pandas as pd

from rapid_spark.config import ConfigError, check_identifier, suggest
from rapid_spark.publishing import TABLES, Rule, protect
from rapid_spark.store import Store
from rapid_spark.tables import tables

from .document import Document

# Of the settings: where things are at the sender's.
PLACES = frozenset({
    "original", "release", "releases", "holdout", "path", "paths", "pattern", "table", "location", "uri", "store",
    "tracking", "session", "experiment",
})  # fmt: skip


@dataclass(frozen=True)
class Export:
    """A document and what its sender must know.

    Attributes:
        document: to be encoded.
        withheld: per table, rows without figures or left out.
        warnings: what earlier publications make of this one.
    """

    document: Document
    withheld: Mapping[str, int]
    warnings: list[str] = field(default_factory=list)


def collect(store: Store, run_id: str, rounding: int | None = None, min_cell_count: int | None = None) -> Export:
    """A finished run's aggregates, protected for publication.

    Args:
        store: that holds the run.
        run_id: of the run.
        rounding: base of rounded counts; never below the run's own `publish.rounding`.
        min_cell_count: fewest people a count tells of; never below the run's own `drivers.min_cell_count`.

    Raises:
        ConfigError: there is no such run, or its latest attempt is not finished.
    """
    run = finished_run(store, run_id)
    settings = json.loads(run["config"] or "{}")
    rule = rule_of(settings, rounding, min_cell_count)
    there = store.warehouse.existing()
    found = {name: read(store, name, run_id) for name in TABLES if name in there}
    if not len(found["risk_summary"]):
        raise ConfigError(f"run {run_id} has no figures to export: it is of command {run['command']!r}")
    published = protect(found, rule)
    summary = published.tables["risk_summary"]
    manifest = {
        "run_id": run_id,
        "command": run["command"],
        "exported_at": datetime.now(UTC),
        "started_at": run["started_at"],
        "ended_at": run["ended_at"],
        "settings_digest": run["settings_digest"],
        "quasi_identifiers": run["quasi_identifiers"],
        "release_date": run["release_date"],
        "n_release": run["n_release"],
        "releases": [
            {"registry": registry, "release_id": release}
            for registry, release in sorted(set(zip(summary["registry"], summary["release_id"], strict=True)))
        ],
        "protection": {"min_cell_count": rule.min_cell_count, "rounding": rule.rounding, "withheld": published.withheld},
    }
    document = Document(
        manifest,
        published.tables,
        without_places(settings),
        json.loads(run["package_versions"] or "{}"),
    )
    return Export(document, published.withheld, differences(store, run_id, found["risk_summary"], rule))


def rule_of(settings: Mapping[str, Any], rounding: int | None = None, min_cell_count: int | None = None) -> Rule:
    """The publication rule of a run's settings (of an audit: the strictest of its registries), or a stricter one."""
    own = max(_values(settings, "drivers", "min_cell_count"), default=10)
    base = max([*_values(settings, "publish", "rounding"), rounding or 0])
    try:
        return Rule(max(own, min_cell_count or 0), base or None)
    except ValueError as error:
        raise ConfigError(f"publish: {error}") from None


def _values(settings: Any, section: str, name: str) -> list[int]:
    """The numbers that a setting has, at any depth."""
    if isinstance(settings, (list, tuple)):
        return [value for item in settings for value in _values(item, section, name)]
    if not isinstance(settings, Mapping):
        return []
    own = (settings.get(section) or {}).get(name) if isinstance(settings.get(section), Mapping) else None
    deeper = [value for item in settings.values() for value in _values(item, section, name)]
    return [*([int(own)] if own else []), *deeper]


def without_places(settings: Any) -> Any:
    """Settings without the names of files, tables and services, at any depth."""
    if isinstance(settings, Mapping):
        return {k: without_places(v) for k, v in settings.items() if k not in PLACES}
    if isinstance(settings, (list, tuple)):
        return [without_places(v) for v in settings]
    return settings


def finished_run(store: Store, run_id: str) -> dict[str, Any]:
    """The row of a finished run.

    Raises:
        ConfigError: there is no such run, or its latest attempt is not finished.
    """
    try:
        check_identifier(run_id)
    except ValueError as error:
        raise ConfigError(f"--run: {error}") from None
    rows = read(store, "finished_runs", run_id)
    if len(rows):
        return dict(rows.iloc[0])
    known = [row[0] for row in store.query("SELECT DISTINCT run_id FROM runs").collect()]
    if run_id in known:
        raise ConfigError(f"run {run_id}: its latest attempt is not finished, no figure of it counts: run it again")
    listed = f" Its runs are: {', '.join(sorted(known)[-5:])}" if known else ""
    raise ConfigError(f"run {run_id}: {store} has no such run.{suggest(run_id, known)}{listed}")


def read(store: Store, name: str, run_id: str) -> pd.DataFrame:
    """Rows of a run, exact: whole numbers stay whole, times are UTC."""
    table = tables().get(name, tables()["runs"])
    names = list(store.query(f"SELECT * FROM {name} LIMIT 0").columns)
    times = [c for c in names if c in table.columns and table.columns[c].type == "timestamp"]
    columns = ", ".join(f"unix_micros(`{c}`) AS `{c}`" if c in times else f"`{c}`" for c in names)
    rows = [row.asDict() for row in store.query(f"SELECT {columns} FROM {name} WHERE run_id = '{run_id}'").collect()]
    for row in rows:
        row |= {c: None if row[c] is None else datetime.fromtimestamp(row[c] / 1e6, UTC) for c in times}
    return pd.DataFrame(rows, columns=names, dtype=object)


def differences(store: Store, run_id: str, summary: pd.DataFrame, rule: Rule) -> list[str]:
    """Warnings where an earlier publication of the same registry speaks of nearly the same people.

    Whoever holds both can subtract one from the other: what remains is about the few people in one of them only. Where
    the store holds records of both runs, people are compared by their keys, otherwise by their numbers.
    """
    if "exports" not in store.warehouse.existing():
        return []
    warnings = []
    for registry in sorted(set(summary["registry"])):
        earlier = store.query(
            f"SELECT run_id, max(exported_at) AS at FROM exports WHERE registry = '{registry}' AND run_id <> '{run_id}' "
            "GROUP BY run_id ORDER BY at DESC"
        ).collect()
        mine = _people(summary, registry)
        for other, at in ((row[0], row[1]) for row in earlier):
            theirs = _people(read(store, "risk_summary", other), registry)
            told = _difference(store, registry, (run_id, mine), (other, theirs), rule.min_cell_count)
            if told:
                warnings.append(f"{registry}: run {other} was exported on {at:%Y-%m-%d}, and {told}")
    return warnings


@dataclass(frozen=True)
class _People:
    digests: frozenset[str]
    total: int
    defined: Mapping[tuple[str, str], int]  # per attribute and set, records with an outcome


def _people(summary: pd.DataFrame, registry: str) -> _People:
    rows = [row for row in summary.to_dict("records")
            if row["registry"] == registry and row["scored_on"] == "original" and row["n"] is not None]  # fmt: skip
    return _People(
        frozenset(row["original_digest"] for row in rows if row["original_digest"]),
        max((row["n"] + (row["n_undefined"] or 0) for row in rows), default=0),
        {(row["sensitive_attribute"], row["qi_set"]): row["n"] for row in rows},
    )


def _difference(
    store: Store, registry: str, mine: tuple[str, _People], theirs: tuple[str, _People], limit: int
) -> str | None:
    people, others = mine[1], theirs[1]
    if people.digests and people.digests == others.digests:
        return None  # the same table: nobody is in one only
    subtract = "whoever has both can subtract one from the other. Round counts (publish.rounding), or export only one"
    apart = _symmetric_difference(store, registry, mine[0], theirs[0])
    if apart is not None:
        return f"fewer than {limit} people are in only one of the two: {subtract}" if 0 < apart < limit else None
    if 0 < abs(people.total - others.total) < limit:
        return f"the numbers of people differ by fewer than {limit}: {subtract}"
    near = sorted({a for (a, s), n in people.defined.items() if 0 < abs(n - others.defined.get((a, s), n)) < limit})
    if near:
        return f"the numbers of people with a value of {', '.join(near)} differ by fewer than {limit}: {subtract}"
    if people.total == others.total and people.digests and others.digests:
        return f"the same number of people with other content: whether fewer than {limit} were exchanged cannot be told"
    return None


def _symmetric_difference(store: Store, registry: str, a: str, b: str) -> int | None:
    """People of one run only; None where the store does not hold every record of both."""
    shown = f"registry = '{registry}' AND scored_on = 'original'"
    counts = store.query(
        "SELECT count_if(a <> b) AS apart, count_if(a) AS n_a, count_if(b) AS n_b FROM ("
        f"SELECT record_id, max(run_id = '{a}') AS a, max(run_id = '{b}') AS b FROM risk_records "
        f"WHERE run_id IN ('{a}', '{b}') AND {shown} GROUP BY record_id)"
    ).first()
    totals = {
        row[0]: row[1]
        for row in store.query(
            f"SELECT run_id, max(n) FROM risk_summary WHERE run_id IN ('{a}', '{b}') AND {shown} GROUP BY run_id"
        ).collect()
    }
    complete = all(n and n >= (totals.get(run) or 0) for run, n in ((a, counts["n_a"]), (b, counts["n_b"])))
    return int(counts["apart"]) if complete else None

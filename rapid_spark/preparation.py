"""What must be right before anything is fitted: settings, the store's place, attackers, tables."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from . import attackers, io, pipeline, schema, session, tracking, training
from .config import Config, ConfigError
from .evaluation import replicates
from .io import Source
from .underway import Clock, quiet
from .warehouse import is_writable, resolve

DEFAULT_STORE = "./rapid-store"


@dataclass(frozen=True)
class Tables:
    """The tables of an evaluation as they were found; replicates are numbered from 1."""

    original: Source
    releases: dict[int, Source]
    holdout: Source | None

    @property
    def all(self) -> list[Source]:
        """Every table."""
        return [self.original, *self.releases.values(), *([self.holdout] if self.holdout else [])]

    def explained(self, error: BaseException) -> BaseException:
        """The user's fault behind an error of Spark, where a file turned out to be unreadable; else the error."""
        if isinstance(error, Exception):
            for source in self.all:
                fault = io.fault_of(error, source)
                if fault is not None:
                    return fault
        return error

    def named(self) -> dict[str, Any]:
        """Names and Delta versions."""
        return {
            "original": {"name": self.original.name, "version": self.original.version},
            "releases": {str(r): {"name": s.name, "version": s.version} for r, s in self.releases.items()},
            **({"holdout": {"name": self.holdout.name, "version": self.holdout.version}} if self.holdout else {}),
        }


def open_tables(spark: Any, config: Config) -> Tables:
    """Open every table that the configuration names.

    Raises:
        ConfigError: with the faults of all of them.
    """
    faults: list[str] = []

    def opened(table: Any) -> Any:
        try:
            return io.read(spark, table)
        except ConfigError as error:
            faults.append(str(error))

    original = opened(config.original)
    releases = [opened(table) for table in config.release]
    holdout = opened(config.holdout) if config.holdout is not None else None
    if faults:
        raise ConfigError("\n".join(dict.fromkeys(faults)))
    return Tables(original, replicates(releases), holdout)


def ready(config: Config) -> Config:
    """What can be said before Spark starts: all tables named, attackers known, the store's place usable."""
    faults = [*unnamed(config), *settings_faults(config)]
    if config.search.active:
        faults.append("sensitive_attributes: all, and qi_sets with sizes, ask for a search: rapid-spark search does it")
    if faults:
        raise ConfigError("\n".join(faults))
    return with_store(config)


def unnamed(config: Config) -> list[str]:
    """A fault for each of original and release that the configuration does not name."""
    return [
        f"{name}: name a table, in the file or by --{name}" for name in ("original", "release") if not getattr(config, name)
    ]


def settings_faults(config: Config) -> list[str]:
    """What is wrong with the store's place, the attackers or tracking, one text each."""
    faults = []
    for part in (_check_store, _check_attackers, tracking.check):
        try:
            part(config)
        except (ConfigError, attackers.AttackerError) as error:
            faults.append(str(error))
    return faults


def with_store(config: Config) -> Config:
    """The configuration with the store's place filled in.

    Raises:
        ConfigError: on Databricks there is no default.
    """
    if config.store.location:
        return config
    if "DATABRICKS_RUNTIME_VERSION" in os.environ:
        raise ConfigError("store.location: there is no default on Databricks: schema:[catalog.]schema, or a volume's path")
    return config.model_copy(update={"store": config.store.model_copy(update={"location": DEFAULT_STORE})})


def _check_store(config: Config) -> None:
    """Refuse a store that cannot be written, before anything starts; nothing is made."""
    location = str(with_store(config).store.location)
    directory, _ = resolve(location)
    if directory is None:
        return
    place = directory
    while not place.exists():
        place = place.parent
    if not place.is_dir():
        raise ConfigError(f"store {location}: {place} is a file, a directory is needed: name another with --store")
    if not is_writable(place):
        raise ConfigError(f"store {location} cannot be written: choose another place with --store")


def attacker_faults(config: Config) -> list[str]:
    """A fault for each attacker or parameter that does not exist."""
    faults = []
    for attacker in config.attackers:
        try:
            attackers.check(attacker.name, attacker.parameters, config.allow_code)
        except attackers.AttackerError as error:
            faults.append(str(error))
    return list(dict.fromkeys(faults))


def _check_attackers(config: Config) -> None:
    faults = attacker_faults(config)
    if faults:
        raise attackers.AttackerError("\n".join(faults))


def check(
    config: Config,
    *,
    debug: bool = False,
    say: Callable[[str], None] = quiet,
    watch: Callable[[Any], None] = lambda _: None,
) -> dict[str, Any]:
    """Check settings and tables without fitting anything.

    Returns:
        `status`, `tables` (name, version, rows), `columns` (role, kind, missing), `combinations`, `warnings`; plain data.

    Raises:
        ConfigError, SchemaError, AttackerError: with every fault found.

    Example:
        >>> from rapid_spark import check, load
        >>> from rapid_spark.simulate import registry
        >>> registry(50, kappa=5, seed=1).to_csv("people.csv", index=False)
        >>> registry(50, kappa=5, seed=2).to_csv("published.csv", index=False)
        >>> plan = check(load(overrides={
        ...     "original": "people.csv", "release": ["published.csv"], "quasi_identifiers": ["age", "gender"],
        ...     "sensitive_attributes": ["disease_status"], "attackers": ["cart"],
        ... }))
        >>> plan["status"], [row["rows"] for row in plan["tables"]]
        ('ok', [50, 50])
    """
    faults: list[str] = []
    clock = Clock(say, {})
    with _collected(faults):
        config = ready(config)
    if config.original is None or not config.release:
        raise ConfigError("\n".join(faults))
    with clock.stage("starting Spark"):
        spark = session.get(config.session, debug, config.tables)
    watch(spark)
    with clock.stage("opening tables"), _collected(faults):
        tables = open_tables(spark, config)
        with clock.stage("checking tables"):
            aligned = schema.align(tables.original, tables.releases, config, tables.holdout)
            pipeline.check_relations(aligned, config)
    if faults:
        raise ConfigError("\n".join(faults))
    try:
        return plan(aligned, config, tables) | {"warnings": aligned.warnings}
    finally:
        aligned.close()


@contextlib.contextmanager
def _collected(faults: list[str]) -> Iterator[None]:
    """Put a fault of the user into a list and go on."""
    try:
        yield
    except (ConfigError, schema.SchemaError) as error:
        faults.append(str(error))


def plan(aligned: schema.Aligned, config: Config, tables: Tables) -> dict[str, Any]:
    """What an evaluation would do: tables, columns as they are taken, combinations; plain data, no values."""
    rows = {"original": aligned.n_original, **{f"release {r}": n for r, n in aligned.n_release.items()}}
    names = {"original": tables.original, **{f"release {r}": tables.releases.get(r) for r in aligned.n_release}}
    if tables.holdout is not None:
        rows["holdout"], names["holdout"] = aligned.n_holdout, tables.holdout
    first = next(iter(tables.releases.values()))
    listed = [
        {"table": place, "name": (names[place] or first).name, "version": (names[place] or first).version, "rows": n}
        for place, n in rows.items()
    ]
    columns: list[dict[str, Any]] = [
        {"column": q.name, "role": "quasi-identifier", "kind": q.kind, "missing": q.n_missing, "levels": None}
        for q in aligned.quasi_identifiers
    ]
    columns += [
        {
            "column": t.name,
            "role": "sensitive attribute",
            "kind": t.type,
            "missing": t.n_missing,
            "levels": len([level for level in t.levels if level is not None]) or None,
        }
        for t in aligned.targets
    ]
    combinations = [
        {
            "qi_set": key.qi_set,
            "patterns": aligned.patterns[key.qi_set],
            "sensitive_attribute": target.name,
            "replicate": key.replicate,
            "attacker": attacker.name,
            "measure": measure,
            "computed": attackers.serves(attacker.name, target.type, config.allow_code),
        }
        for key, target, attacker in training.keys(aligned, training.replicate_numbers(aligned.n_release, config), config)
        for measure in (config.measures if target.type == "categorical" else (config.threshold.error,))
    ]
    return {"status": "ok", "tables": listed, "columns": columns, "combinations": combinations}

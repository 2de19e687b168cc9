"""The search: the cheap attacker over all surfaces, side by side on Spark; then all attackers on the worst."""

from __future__ import annotations

import functools
import hashlib
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from .. import attackers, continuous, schema, training
from ..attackers import Feature
from ..config import Config, ConfigError, SensitiveAttribute, parse_as
from ..counts import level_columns
from ..findings import FEW_VALUES
from ..io import Source
from ..kinds import FAMILIES
from ..preparation import Tables
from ..profiles import column_types
from ..risk import Classes, Combination
from ..schema import Aligned
from .figures import Rate, chance, rate_of, without
from .plan import FIRST_GUESS, Surface, count, estimate, surfaces
from .progress import Progress
from .workers import Job, Packed, Target, fit_batches, score_batches

GROUP = 240  # surfaces between two writes of the progress
GROUP_BYTES = 24 * 2**20  # of models that travel with one function


@dataclass(frozen=True)
class Scope:
    """What a search is over.

    Attributes:
        targets: attributes that are guessed.
        pool: columns an attacker may know.
        config: the evaluation that aligns all of these columns as quasi-identifiers.
    """

    targets: tuple[str, ...]
    pool: tuple[str, ...]
    config: Config

    @property
    def fits(self) -> int:
        """How many surfaces there are."""
        return count(self.targets, self.pool, self.config.search)


def scope(config: Config, tables: Tables) -> Scope:
    """Attributes and columns of a search, from the configuration and the names of the tables' columns. Runs no job.

    Raises:
        ConfigError: a named column is missing, an attribute is one of its own, or nothing is left.
    """
    search = config.search
    first = next(iter(tables.releases.values()))
    roles = {*config.columns.key, config.columns.person, config.columns.household, config.columns.weight,
             config.columns.stratum, config.columns.psu, first.replicate_column}  # fmt: skip
    dropped = {name for name, recode in config.recode.items() if recode.drop}
    both = [c for c in tables.original.columns if c in set(first.columns) and c not in roles | dropped]
    named = config.all_quasi_identifiers
    pool = search.columns or named or tuple(both)
    targets = tuple(both) if search.all_attributes else tuple(a.name for a in config.sensitive_attributes)
    if not targets:
        raise ConfigError("sensitive_attributes: name them, or write all for each column against the others")
    missing = [c for c in (*pool, *targets) if c not in both]
    if missing:
        raise ConfigError(f"search: {missing[0]!r} is not a column of both tables that has no other role; there are {both}")
    if not search.columns and not named and not search.all_attributes:
        pool = tuple(c for c in pool if c not in targets)
    every = tuple(sorted({*pool, *targets}))
    types = {
        a.name: "categorical" for a in config.sensitive_attributes if a.type == "categorical"
    } | dict(config.columns.types)  # fmt: skip
    plain = config.model_dump(mode="json")
    aligning = parse_as(Config, {
        **plain, "quasi_identifiers": every, "qi_sets": {}, "sensitive_attributes": [], "baseline": {},
        "columns": {**plain["columns"], "types": {k: v for k, v in types.items() if k in every}},
    })
    return Scope(tuple(sorted(targets)), tuple(sorted(pool)), aligning)


@dataclass
class Found:
    """What the cheap attacker found.

    Attributes:
        rates: one per surface.
        kinds: kind of each attribute, 'categorical' or 'continuous', as it was taken.
        warnings: what the reader must know.
        types: kinds of columns that are not what their values suggest, as under columns.types.
        seconds: of the search.
        resumed: surfaces taken from an earlier, stopped search.
    """

    rates: list[Rate]
    kinds: dict[str, str]
    warnings: list[str]
    types: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    resumed: int = 0


@dataclass
class _Searching:
    spark: Any
    scope: Scope
    aligned: Aligned
    cores: int
    dates: set[str]
    targets: dict[str, Target] = field(default_factory=dict)
    constants: dict[str, float | None] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

    @property
    def columns(self) -> dict[str, schema.QuasiIdentifier]:
        return {q.name: q for q in self.aligned.quasi_identifiers}


def go_over(
    spark: Any, tables: Tables, searched: Scope, progress: Callable[[str], Progress], cores: int,
    say: Callable[[str], None], note: Callable[[str], None],
) -> Found:
    """The cheap attacker over all surfaces, or over those that an earlier search has left.

    Args:
        spark: session.
        tables: as read.
        searched: what is searched.
        progress: the file that keeps rates, given a digest of tables and settings.
        cores: that share the work.
        say: called with the name of each stage.
        note: called with the number of fits and an estimate of time, before it starts.

    Raises:
        ConfigError, SchemaError: the tables do not fit, or the surfaces are too many.
    """
    started = time.perf_counter()
    wanted = surfaces(searched.targets, searched.pool, searched.config.search)
    note(f"{len(wanted):,} fits of {searched.config.search.cheap}: {estimate(len(wanted), FIRST_GUESS, cores)} by a first "
         "guess")  # fmt: skip
    say("checking tables")
    dates = _dates(tables.original, searched.config.all_quasi_identifiers)
    aligned, rows, warnings, types = _aligned(tables, searched.config)
    try:
        work = _Searching(spark, searched, aligned, cores, dates)
        say("counting classes")
        _describe(work)
        kept = progress(_digest(searched.config, aligned))
        done = {(r.target, r.known): r for r in kept.read()}
        left = [s for s in wanted if (s.target, s.known) not in done]
        resumed = len(wanted) - len(left)
        if resumed:
            note(f"{resumed:,} of them were done before the search was stopped")
        packed = Packed.of(rows)
        for part, rates in _groups(work, left, packed, say):
            kept.add(rates)
            done |= {(r.target, r.known): r for r in rates}
            if part == 1 and len(left) > GROUP:
                each = sum(r.seconds for r in rates) / max(1, len(rates))
                rest = len(left) - len(rates)
                note(f"{rest:,} fits are left: {estimate(rest, 1.5 * each, cores)}")
    finally:
        aligned.close()
    rates = [done[s.target, s.known] for s in wanted]
    kinds = {name: t.type for name, t in work.targets.items()}
    return Found(rates, kinds, warnings, types, time.perf_counter() - started, resumed)


def _dates(source: Source, columns: Iterable[str]) -> set[str]:
    types = column_types(source, [c for c in columns if c in source.columns]).columns
    return {name for name, found in types.items() if FAMILIES[found.kind] == "time"}


def _aligned(tables: Tables, config: Config) -> tuple[Aligned, pd.DataFrame, list[str], dict[str, str]]:
    """Tables with every column as a quasi-identifier, and training rows. Numbers of few values are taken as classes."""
    limited = config.model_copy(update={
        "training": config.training.model_copy(update={
            "max_train_rows": min(config.training.max_train_rows, config.search.max_train_rows), "replicates": "pooled",
        })
    })  # fmt: skip

    def once(chosen: Config) -> tuple[Aligned, pd.DataFrame, list[str]]:
        aligned = schema.align(tables.original, tables.releases, chosen)
        try:
            frames, warnings = training.release_rows(aligned, chosen)
        except BaseException:
            aligned.close()
            raise
        return aligned, frames[min(frames)], [*aligned.warnings, *warnings]

    aligned, rows, warnings = once(limited)
    few = [
        q.name for q in aligned.quasi_identifiers
        if q.kind == "numeric" and q.name not in config.columns.types and rows[q.column].nunique() <= FEW_VALUES
    ]
    types: dict[str, str] = {**config.columns.types, **dict.fromkeys(few, "categorical")}
    if not few:
        return aligned, rows, warnings, types
    aligned.close()
    aligned, rows, warnings = once(
        limited.model_copy(update={"columns": config.columns.model_copy(update={"types": types})})
    )
    said = f"numbers with at most {FEW_VALUES} different values are taken as classes: {', '.join(few)}"
    return aligned, rows, [*warnings, said], types


def _describe(work: _Searching) -> None:
    """Classes and counts of categorical attributes; spread and best constant guess of continuous ones."""
    config, aligned = work.scope.config, work.aligned
    there = {name: work.columns[name] for name in work.scope.targets if name in work.columns}
    for name in set(work.scope.targets) - set(there):
        work.reasons[name] = "one single value, or none at all, in the original"
    texts = [q.column for q in there.values() if q.kind == "categorical"]
    levels = level_columns(aligned.original, texts)
    numbers = {name: q.column for name, q in there.items() if q.kind == "numeric" and name not in work.dates}
    most = {a.name: a.max_levels for a in config.sensitive_attributes}
    limit = SensitiveAttribute.model_fields["max_levels"].default
    for name, q in there.items():
        if q.kind == "categorical":
            n_levels = len([label for label in levels[q.column] if label is not None])
            if n_levels > most.get(name, limit):
                work.reasons[name] = f"{n_levels} levels: more than max_levels ({most.get(name, limit)})"
                continue
            classes = Classes.of(levels[q.column], "class")
            if len(classes.labels) < 2:
                work.reasons[name] = "one class"
                continue
            counts = tuple(int(n) for n in classes.counts)
            work.targets[name] = Target(
                q.column, classes.labels, counts, config.threshold.tau["normalized_gain"], config.threshold
            )
        elif name in work.dates:
            work.reasons[name] = "a date: declare what counts as right"
    _continuous(work, numbers)


def _continuous(work: _Searching, columns: Mapping[str, str]) -> None:
    config, frame = work.scope.config, work.aligned.original.withColumn("n", F.lit(1))
    spreads = continuous.spreads(frame, dict(columns), config.threshold)
    for name, column in columns.items():
        if not spreads[name]["range"]:
            work.reasons[name] = "constant: known without any other column"
            continue
        tolerance = config.threshold.tolerance
        work.targets[name] = Target(column, None, (), tolerance, config.threshold, spreads[name]["spread"])
        one = Combination(0, "", (), name, column, "continuous", 1, "", str(config.threshold.error), tolerance, "", "drop")
        best = continuous.best_constant(frame, name, [one], spreads[name], config.threshold)
        work.constants[name] = None if best is None else best[1] / spreads[name]["n"]


def _groups(
    work: _Searching, left: Sequence[Surface], packed: Packed, say: Callable[[str], None]
) -> Iterable[tuple[int, list[Rate]]]:
    undefined = [without(s, "undefined", work.reasons[s.target]) for s in left if s.target in work.reasons]
    if undefined:
        yield 0, undefined
    todo = [s for s in left if s.target not in work.reasons]
    for part, begin in enumerate(range(0, len(todo), GROUP), 1):
        say(f"searching, {begin:,} of {len(todo):,} fits done")
        yield part, _group(work, todo[begin : begin + GROUP], packed)


def _group(work: _Searching, group: Sequence[Surface], packed: Packed) -> list[Rate]:
    columns = work.columns
    found: dict[int, Rate] = {}
    jobs: dict[int, Job] = {}
    for i, surface in enumerate(group):
        used = [columns[c] for c in surface.known if c in columns]
        target = work.targets[surface.target]
        if not used:
            found[i] = without(surface, "undefined", "no usable column is left in this set")
        elif not attackers.serves(work.scope.config.search.cheap, target.type):
            reason = f"attacker {work.scope.config.search.cheap} does not serve a {target.type} attribute"
            found[i] = without(surface, "undefined", reason)
        else:
            features = tuple(Feature(f"q{k}", q.kind) for k, q in enumerate(used))
            jobs[i] = Job(i, target, tuple(q.column for q in used), features)
    models: dict[int, bytes] = {}
    seconds: dict[int, float] = {}
    for row in _fit(work, jobs, packed):
        seconds[row["i"]] = row["seconds"]
        if row["model"] is None:
            found[row["i"]] = without(group[row["i"]], "failed", row["reason"])
        else:
            models[row["i"]] = bytes(row["model"])
    for part in _by_size(models):
        for i, (n, hits, exceeding) in _score(work, [jobs[i] for i in part], {i: models[i] for i in part}).items():
            surface, target = group[i], jobs[i].target
            if target.labels is None:
                baseline = work.constants.get(surface.target)
            else:
                baseline = chance(np.array(target.counts), exceeding)
            found[i] = rate_of(surface, n, hits, baseline, seconds[i])
    return [found[i] for i in range(len(group))]


def _fit(work: _Searching, jobs: Mapping[int, Job], packed: Packed) -> list[Any]:
    if not jobs:
        return []
    search, config = work.scope.config.search, work.scope.config
    given = next((a.parameters for a in config.attackers if a.name == search.cheap), {})
    fitting = functools.partial(fit_batches, packed=packed, jobs=dict(jobs), attacker=search.cheap, parameters=given,
                                seed=config.training.seed)  # fmt: skip
    tasks = max(1, min(len(jobs), 4 * work.cores))
    numbers = work.spark.createDataFrame([(i,) for i in jobs], "i int").repartition(tasks, "i")
    made = numbers.mapInPandas(fitting, "i int, model binary, reason string, seconds double")
    return list(made.collect())


def _by_size(models: Mapping[int, bytes]) -> Iterable[list[int]]:
    part: list[int] = []
    size = 0
    for i, model in models.items():
        if part and size + len(model) > GROUP_BYTES:
            yield part
            part, size = [], 0
        part.append(i)
        size += len(model)
    if part:
        yield part


def _score(
    work: _Searching, jobs: Sequence[Job], models: Mapping[int, bytes]
) -> dict[int, tuple[int, int, np.ndarray]]:
    used = sorted({c for job in jobs for c in (*job.columns, job.target.column)})
    scoring = functools.partial(score_batches, jobs=list(jobs), models=dict(models))
    rows: DataFrame = work.aligned.original.select(*used).repartition(2 * work.cores)
    sums: dict[int, tuple[int, int, np.ndarray]] = {}
    partial = rows.mapInPandas(scoring, "i int, n bigint, hits bigint, exceeding array<bigint>")
    for row in partial.collect():
        n, hits, exceeding = sums.get(row["i"], (0, 0, np.zeros(0, dtype=np.int64)))
        more = np.array(row["exceeding"], dtype=np.int64)
        size = max(len(more), len(exceeding))
        both = np.pad(exceeding, (0, size - len(exceeding))) + np.pad(more, (0, size - len(more)))
        sums[row["i"]] = (n + row["n"], hits + row["hits"], both)
    return sums


def _digest(config: Config, aligned: Aligned) -> str:
    """Of what decides the figures: tables, settings, the cheap attacker."""
    plain = config.model_dump(mode="json")
    used = {k: plain[k] for k in ("threshold", "recode", "columns", "attackers", "quasi_identifiers")}
    used |= {"seed": config.training.seed, "cheap": config.search.cheap, "rows": config.search.max_train_rows}
    content = json.dumps([aligned.original_digest, aligned.release_digest, used], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()

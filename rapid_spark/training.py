"""Training rows of the release on the driver, and one fitted attacker per combination, shipped to the workers."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StructField

from . import attackers, spreading
from .config import Attacker, Config
from .risk import MISSING_LABEL, Classes
from .schema import Aligned, Target
from .scoring import Carrier, Task, TooLarge, ship
from .spreading import Answer, Request

logger = logging.getLogger(__name__)
POOLED = 0  # replicate number of the attacker who trains on all published copies together


class Undefined(Exception):
    """The data do not allow this combination; the text is its reason."""


@dataclass(frozen=True)
class Fit:
    """A fitted attacker on its way to the workers.

    Attributes:
        name: prefix of its prediction fields.
        carrier: how the workers load it.
        fields: its prediction fields.
        classes: classes it knows (categorical targets).
        n_train: rows it was fitted on.
        n_dropped: release rows left out because the target was missing.
        seconds: fitting time.
        notes: what fitting had to give up (levels pooled, a solver that did not converge).
    """

    name: str
    carrier: Carrier
    fields: tuple[StructField, ...]
    classes: tuple[str, ...]
    n_train: int
    n_dropped: int
    seconds: float
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class FitKey:
    """What one fitted attacker serves: all measures of it."""

    qi_set: str
    sensitive_attribute: str
    replicate: int
    attacker: str


def release_rows(aligned: Aligned, config: Config) -> tuple[dict[int, pd.DataFrame], list[str]]:
    """Release rows to train on, per replicate, with internal column names; replicate 0 holds all copies together.

    Up to `training.max_train_rows` rows of each release are used whole. Above that, a sample stratified by the first
    categorical attribute: in each stratum the rows whose seeded content hash is smallest, so that the order of rows
    and partitions does not matter.

    Returns:
        Frames and warnings.
    """
    limit, seed = config.training.max_train_rows, config.training.seed
    warnings = []
    frames: dict[int, pd.DataFrame] = {}
    columns = [q.column for q in aligned.quasi_identifiers] + [t.column for t in aligned.targets]
    strata = [t.column for t in aligned.targets if t.type == "categorical"][:1]
    for replicate, frame in aligned.releases.items():
        n = aligned.n_release[replicate]
        chosen = frame.select(*columns)
        if n > limit:
            chosen = sample(chosen, columns, strata, limit, n, seed)
            warnings.append(
                f"release {replicate}: attackers are fitted on a seeded sample of {limit:,} of its {n:,} rows "
                "(training.max_train_rows)"
            )
        frames[replicate] = chosen.toPandas()
    if len(frames) > 1 and config.training.replicates != "each":
        pooled = pd.concat([frames[r] for r in sorted(frames)], ignore_index=True)
        if len(pooled) > limit:
            spread = pd.util.hash_pandas_object(pooled.astype(str), index=False, hash_key=f"{seed:016d}"[:16])
            pooled = pooled.loc[spread.sort_values(kind="stable").index[:limit]].reset_index(drop=True)
            warnings.append(f"the pooled attacker is fitted on a seeded sample of {limit:,} rows of all copies")
        frames[POOLED] = pooled
        if config.training.replicates == "pooled":
            frames = {POOLED: pooled}
    return frames, warnings


def sample(frame: DataFrame, columns: list[str], strata: list[str], limit: int, n: int, seed: int) -> DataFrame:
    """The rows with the smallest seeded content hash in each stratum, in proportion to the strata."""
    content = F.xxhash64(F.lit(seed), *(F.coalesce(F.col(c).cast("string"), F.lit("\x00")) for c in columns))
    hashed = frame.withColumn("_hash", content)
    order = [F.col("_hash"), *(F.col(c).asc_nulls_first() for c in columns)]
    window = Window.partitionBy(*strata) if strata else Window.partitionBy(F.lit(0))
    ranked = hashed.withColumn("_rank", F.row_number().over(window.orderBy(*order))).withColumn(
        "_size", F.count(F.lit(1)).over(window)
    )
    return ranked.where(F.col("_rank") <= F.ceil(F.col("_size") * F.lit(limit / n))).drop("_hash", "_rank", "_size")


def fit_all(
    spark: SparkSession,
    aligned: Aligned,
    rows: Mapping[int, pd.DataFrame],
    config: Config,
    n_jobs: int,
    progress: Callable[[str], None],
    keep: Callable[[FitKey, attackers.Fitted], None] | None = None,
) -> tuple[dict[FitKey, Fit], dict[FitKey, tuple[str, str]]]:
    """Fit every attacker on every release, attribute and quasi-identifier set, and ship each at once.

    Shipping at once keeps only one fitted attacker in the driver's memory. `keep` is given each one before that.

    Returns:
        Fits, and for the others (status, reason): 'undefined' where the data do not allow it, 'failed' where it broke.
    """
    fits: dict[FitKey, Fit] = {}
    missing: dict[FitKey, tuple[str, str]] = {}
    jobs: list[_Job] = []
    for key, target, attacker in keys(aligned, rows, config):
        try:
            jobs.append(_prepared(aligned, rows[key.replicate], key, target, attacker, config))
        except Undefined as reason:
            missing[key] = ("undefined", str(reason))
    spread = config.training.fit_on == "executors"
    answers = _on_executors(spark, jobs, progress) if spread else _here(jobs, n_jobs, progress)
    for job, answer in zip(jobs, answers, strict=True):
        if isinstance(answer.error, attackers.AttackerError):
            raise answer.error
        if answer.fitted is None:  # one broken combination must not take the others with it
            missing[job.key] = ("failed", f"fitting ended with {answer.error}")
            continue
        if keep is not None:
            keep(job.key, answer.fitted)
        try:
            fits[job.key] = _shipped(spark, f"c{len(fits)}", aligned, job, answer.fitted, answer.seconds)
        except TooLarge as error:
            missing[job.key] = ("failed", str(error))
    return fits, missing


def replicate_numbers(published: Iterable[int], config: Config) -> list[int]:
    """Replicates that attackers are fitted on: each published copy, all together (0), or both."""
    numbers = sorted(published)
    if len(numbers) < 2 or config.training.replicates == "each":
        return numbers
    return [POOLED] if config.training.replicates == "pooled" else [*numbers, POOLED]


def keys(
    aligned: Aligned, replicates: Iterable[int], config: Config
) -> Iterable[tuple[FitKey, Target, Attacker]]:
    """Every attacker to fit, in the order of the configuration."""
    for qi_set in aligned.sets:
        for target in aligned.targets:
            for replicate in sorted(replicates, key=lambda r: (r == POOLED, r)):
                for attacker in config.attackers:
                    yield FitKey(qi_set, target.name, replicate, attacker.name), target, attacker


@dataclass(frozen=True)
class _Job:
    """One fit that the data allow."""

    key: FitKey
    target: Target
    request: Request
    rows: pd.DataFrame
    n_dropped: int


def _prepared(
    aligned: Aligned, rows: pd.DataFrame, key: FitKey, target: Target, attacker: Attacker, config: Config
) -> _Job:
    if not attackers.serves(attacker.name, target.type, config.allow_code):
        raise Undefined(f"attacker {attacker.name} does not serve a {target.type} attribute")
    columns = aligned.sets[key.qi_set]
    if not columns:
        raise Undefined("no usable quasi-identifier is left in this set")
    features = [
        attackers.Feature(q.column, q.kind) for q in aligned.quasi_identifiers if q.column in columns
    ]
    frame, n_dropped = fill_target(rows, target)
    if frame.empty:
        raise Undefined("the release has no row with a value of this attribute")
    request = Request(
        attacker.name, attacker.parameters, key.replicate, tuple(features), target.column, target.type,
        config.training.seed, config.allow_code,
    )
    return _Job(key, target, request, frame, n_dropped)


def _here(jobs: Iterable[_Job], n_jobs: int, progress: Callable[[str], None]) -> Iterator[Answer]:
    """Fit one after the other on the driver, with all its cores."""
    for job in jobs:
        progress(_spoken(job))
        request, started = job.request, time.perf_counter()
        frame = job.rows[[*(f.name for f in request.features), request.target]]
        fitted: attackers.Fitted | None = None
        error: Exception | None = None
        try:
            fitted = attackers.fit(
                request.name, request.parameters, frame, request.features, request.target, request.target_type,
                request.seed, n_jobs, allow_code=request.allow_code,
            )
        except attackers.AttackerError as fault:
            error = fault
        except Exception as broken:  # its text may hold a value of a row
            logger.debug("fitting failed", exc_info=True)
            error = RuntimeError(type(broken).__name__)
        yield Answer(fitted, error, time.perf_counter() - started)


def _on_executors(spark: SparkSession, jobs: Sequence[_Job], progress: Callable[[str], None]) -> Iterator[Answer]:
    progress(f"{len(jobs)} attackers as Spark tasks")
    rows = {(job.request.replicate, job.request.target): job.rows for job in jobs}
    return spreading.fit_all(spark, [job.request for job in jobs], rows) if jobs else iter(())


def _spoken(job: _Job) -> str:
    copy = f", replicate {job.key.replicate}" if job.key.replicate != 1 else ""
    return f"{job.request.name} for {job.target.name}{copy}"


def _shipped(
    spark: SparkSession, name: str, aligned: Aligned, job: _Job, fitted: attackers.Fitted, seconds: float
) -> Fit:
    target = job.target
    labels = Classes.of(target.levels, target.missing).labels if target.type == "categorical" else None
    task = Task(name, fitted, labels)
    notes = tuple(f"{job.request.name} for {target.name}: {_named(note, aligned)}" for note in fitted.notes)
    return Fit(
        name, ship(spark, task), tuple(task.fields()), tuple(fitted.classes or ()), len(job.rows), job.n_dropped, seconds,
        notes,
    )


def _named(note: str, aligned: Aligned) -> str:
    """A note with the columns' own names."""
    names = {q.column: q.name for q in aligned.quasi_identifiers}
    return re.sub(r"\bq\d+\b", lambda found: names.get(found.group(), found.group()), note)


def fill_target(frame: pd.DataFrame, target: Target) -> tuple[pd.DataFrame, int]:
    """Apply the attribute's rule for missing values to training rows; returns the rows and how many were dropped."""
    column, rule = target.column, target.missing
    empty = frame[column].isna()
    if not empty.any():
        return frame, 0
    if rule == "drop":
        return frame[~empty].reset_index(drop=True), int(empty.sum())
    fill: str | float | None = MISSING_LABEL
    if rule == "median":
        fill = float(frame[column].median()) if not empty.all() else None
    elif rule == "constant":
        fill = target.attribute.constant
    if fill is None:
        return frame.iloc[:0], int(empty.sum())
    return frame.assign(**{column: frame[column].where(~empty, fill)}), 0

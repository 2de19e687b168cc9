"""Score a table with the fitted attackers, and sum the scores up: the steps between fitting and result rows."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from . import clusters, continuous, continuous_null, relations, risk, scoring, strata, summary, survey, training
from .config import Config
from .kept import hold, let_go
from .risk import Classes, Combination
from .schema import Aligned
from .sidebyside import at_once
from .training import Fit, FitKey

REPEATS = 0.5  # fewer distinct patterns than this share of the records: score patterns, else records
ROWS_PER_TASK = 25_000


@dataclass
class State:
    """What all steps of one evaluation share."""

    spark: SparkSession
    aligned: Aligned
    config: Config
    fits: dict[FitKey, Fit]
    missing: dict[FitKey, tuple[str, str]]
    cores: int
    warnings: list[str]
    sets: frozenset[str] = frozenset()  # those to report; others are fitted for attribution only

    @functools.cached_property
    def classes(self) -> dict[str, Classes]:
        """Classes of the original, per categorical attribute."""
        return classes_of(self.aligned)

    @functools.cached_property
    def combinations(self) -> list[tuple[FitKey, Combination]]:
        """Every requested combination, also those that could not be fitted."""
        config = self.config
        result: list[tuple[FitKey, Combination]] = []
        names = {q.column: q.name for q in self.aligned.quasi_identifiers}
        replicates = {key.replicate for key in (*self.fits, *self.missing)}
        for key, target, _ in training.keys(self.aligned, replicates, config):
            categorical = target.type == "categorical"
            for measure in config.measures if categorical else (config.threshold.error,):
                threshold = config.threshold.tau[measure] if categorical else config.threshold.tolerance
                fit = self.fits.get(key)
                where = f"{prediction_name(self.aligned, key.qi_set)}.{fit.name}" if fit else ""
                result.append((key, Combination(
                    len(result), key.qi_set, tuple(names[c] for c in self.aligned.sets[key.qi_set]), target.name,
                    target.column, target.type, key.replicate, key.attacker, str(measure), float(threshold), where,
                    target.missing,
                )))
        return result

    @property
    def reported(self) -> list[tuple[FitKey, Combination]]:
        """Combinations of the quasi-identifier sets that were asked for."""
        return [(key, c) for key, c in self.combinations if not self.sets or c.qi_set in self.sets]

    @property
    def known_classes(self) -> dict[int, tuple[str, ...]]:
        """Per combination, the classes of its attacker's probability matrix."""
        return {c.index: self.fits[key].classes for key, c in self.combinations if key in self.fits}


def classes_of(aligned: Aligned) -> dict[str, Classes]:
    """Classes of the original, per categorical attribute."""
    return {t.name: Classes.of(t.levels, t.missing) for t in aligned.targets if t.type == "categorical"}


def check_relations(aligned: Aligned, config: Config) -> None:
    """Refuse `drivers.exclude_relations` that do not fit the tables, before anything is fitted.

    Raises:
        ConfigError: with every fault found.
    """
    names = [q.name for q in aligned.quasi_identifiers]
    parsed = relations.parse_relations(config.drivers.exclude_relations, names, classes_of(aligned))
    labelled = {q.name: q.column for q in aligned.quasi_identifiers if q.kind == "categorical"}
    relations.check_levels(aligned.original, parsed, labelled)


def prediction_name(aligned: Aligned, qi_set: str) -> str:
    """Column that holds the predictions of one quasi-identifier set."""
    return f"prediction_{list(aligned.sets).index(qi_set)}"


@dataclass
class Scored:
    """A scored table: `cells` with counts n for categorical sums, and `records` (n = 1) for figures per record."""

    cells: DataFrame
    records: DataFrame
    held: list[DataFrame]

    def free(self) -> None:
        """Let go of what Spark keeps."""
        for frame in self.held:
            let_go(frame)


def score(state: State, table: DataFrame) -> Scored:
    """Score each distinct pattern once where patterns repeat, otherwise each record; on all cores.

    Cells (pattern x categorical attributes, with their count) come from one pass over the table. Predictions are kept
    so that later steps do not score again.
    """
    aligned = state.aligned
    sets = {name: columns for name, columns in aligned.sets.items() if any(k.qi_set == name for k in state.fits)}
    repeating = {name: aligned.patterns[name] <= REPEATS * aligned.n_original for name in sets}
    categorical = [t.column for t in aligned.targets if t.type == "categorical"]
    union = sorted({c for columns in sets.values() for c in columns})
    held: list[DataFrame] = []
    records = fill_missing(state, table).withColumn("n", F.lit(1))
    if sets and all(repeating.values()):
        cells = _keep(table.groupBy(*union, *categorical).agg(F.count(F.lit(1)).alias("n")), held)
    else:
        cells = records
    for name, columns in sets.items():
        fits = [fit for key, fit in state.fits.items() if key.qi_set == name]
        prediction = scoring.predictions(columns, [f.carrier for f in fits], [x for f in fits for x in f.fields])
        column = prediction_name(aligned, name)
        if repeating[name]:
            source = cells if all(repeating.values()) else table
            tasks = max(2 * state.cores, aligned.patterns[name] // ROWS_PER_TASK)
            patterns = _keep(scoring.score_patterns(source.select(*columns).distinct(), prediction, tasks), held)
            n_patterns = patterns.count()
            joined = scoring.join_patterns(records, patterns, columns, column, n_patterns)
            cells = joined if cells is records else scoring.join_patterns(cells, patterns, columns, column, n_patterns)
            records = joined
        else:
            # all other columns stay behind in the JVM: no join afterwards
            tasks = max(2 * state.cores, aligned.n_original // (4 * ROWS_PER_TASK))
            records = cells = records.repartition(tasks).withColumn(column, prediction)
    if cells is records:
        records = cells = _keep(records, held)
    else:
        cells = _keep(cells, held)
    return Scored(cells, records, held)


def fill_missing(state: State, table: DataFrame) -> DataFrame:
    """Continuous attributes with `missing: median` or `constant`: the table's own median, or the constant."""
    fills: dict[str, bool | float | int | str] = {}
    for t in state.aligned.targets:
        if t.type == "continuous" and t.missing == "constant":
            fills[t.column] = float(t.attribute.constant or 0.0)
        elif t.type == "continuous" and t.missing == "median":
            fills[t.column] = float(table.agg(F.median(t.column)).toPandas().to_numpy()[0, 0])
    return table.fillna(fills) if fills else table


def _keep(frame: DataFrame, held: list[DataFrame]) -> DataFrame:
    kept = hold(frame)
    held.append(kept)
    return kept


@dataclass
class Found:
    """Sums of one scored table.

    Attributes:
        results: per combination index.
        reasons: (status, reason) of the combinations without a result.
        true_prob: per categorical combination, the mean g of each class.
        targets: per continuous attribute, count, mean, sd, range and spread of the original.
        persons, households: rates by cluster, per combination.
        own: rates under this table's own prevalences, per combination (holdout).
        survey: weighted figures, per combination, where columns.weight is configured.
    """

    results: dict[int, summary.Result]
    reasons: dict[int, tuple[str, str]]
    true_prob: dict[int, list[float]]
    targets: dict[str, dict[str, float]]
    persons: dict[int, clusters.ClusterRate] = field(default_factory=dict)
    households: dict[int, clusters.ClusterRate] = field(default_factory=dict)
    own: dict[int, float] = field(default_factory=dict)
    survey: dict[int, survey.Survey] = field(default_factory=dict)


def summarise(state: State, scored: Scored) -> Found:
    """Figures of the original."""
    continuous_targets = {t.name: t.column for t in state.aligned.targets if t.type == "continuous"}
    targets = continuous.spreads(scored.records, continuous_targets, state.config.threshold)
    reasons: dict[int, tuple[str, str]] = {}
    for key, c in state.combinations:
        reason = state.missing.get(key) or _undefined(state, c, targets)
        if reason:
            reasons[c.index] = reason
    found = _figures(state, scored, state.config, targets, reasons)
    usable = [c for _, c in state.combinations if c.index in found.results and not c.categorical]
    continuous_null.add_nulls(scored.records, usable, found.results, targets, state.config)
    by = tuple(q.column for q in state.aligned.quasi_identifiers if q.name in state.config.baseline.by)
    if by:
        plain = [c for _, c in state.combinations if c.index in found.results and c.measure == "normalized_gain"]
        for index, rate in strata.rates(scored.cells, plain, state.classes, by).items():
            found.results[index].figures["rapid_within_strata"] = rate
    _by_cluster(state, scored, found)
    if state.config.columns.weight:
        reported = [c for _, c in state.reported if c.index in found.results]
        found.survey, warnings = survey.summarise(
            scored.records, reported, state.classes, state.known_classes, targets, state.config
        )
        state.warnings += warnings
    return found


def summarise_holdout(state: State, scored: Scored, original: Found) -> Found:
    """Figures of the holdout, under the original's baselines; `own` has the rates under its own."""
    config = state.config.model_copy(update={
        "intervals": state.config.intervals.model_copy(update={"permutations": 0})
    })
    means = {c.index: original.true_prob[c.index] for _, c in state.combinations
             if c.measure == "rcs_conditional" and c.index in original.true_prob}
    found = _figures(state, scored, config, original.targets, dict(original.reasons), means, False)
    usable = [c for _, c in state.combinations if c.index in found.results]
    sizes = {
        c.sensitive_attribute: np.array([row["n"] for row in found.results[c.index].classes], dtype=np.int64)
        for c in usable if c.categorical
    }
    own = {name: replace(state.classes[name], counts=n) for name, n in sizes.items() if n.sum()}
    plain = [c for c in usable if c.categorical and c.sensitive_attribute in own]
    settings = config.model_copy(update={
        "intervals": config.intervals.model_copy(update={"method": "wilson"})
    })
    results, _ = summary.summarise_categorical(scored.cells, plain, own, state.known_classes, settings)
    _by_cluster(state, scored, found)
    found.own = {i: r.rapid for i, r in results.items() if r.rapid is not None}
    found.own |= {c.index: found.results[c.index].rapid or 0.0 for c in usable if not c.categorical}
    return found


def _figures(
    state: State, scored: Scored, config: Config, targets: dict[str, dict[str, float]],
    reasons: dict[int, tuple[str, str]], means: Mapping[int, list[float]] | None = None,
    own_spread: bool = True,
) -> Found:
    usable = [c for _, c in state.combinations if c.index not in reasons]
    found: list[Any] = at_once(state.spark, [
        lambda: summary.summarise_categorical(
            scored.cells, [c for c in usable if c.categorical], state.classes, state.known_classes, config, means
        ),
        lambda: continuous.summarise_continuous(
            scored.records, [c for c in usable if not c.categorical], targets, config, own_spread
        ),
    ])
    (results, true_prob), of_continuous = found
    results |= of_continuous
    for index in [i for i, r in results.items() if not r.n]:
        del results[index]
        reasons[index] = ("undefined", "no record has a defined outcome")
    return Found(results, reasons, true_prob, targets)


def _undefined(state: State, c: Combination, targets: Mapping[str, dict[str, float]]) -> tuple[str, str] | None:
    if c.categorical:
        return ("undefined", "one class") if len(state.classes[c.sensitive_attribute].labels) == 1 else None
    if targets[c.sensitive_attribute]["range"] == 0:
        return "undefined", "constant: known without any quasi-identifier"
    return None


def record_struct(state: State, found: Found, key: FitKey, c: Combination) -> Column:
    """Score, true_prob, baseline, error and at_risk of one combination, over a frame of scored records or cells."""
    return risk.record_columns(
        c, state.config.threshold, state.classes.get(c.sensitive_attribute), found.true_prob.get(c.index, []),
        len(state.fits[key].classes), found.targets.get(c.sensitive_attribute, {}).get("spread"),
    )


def flags(state: State, found: Found) -> dict[int, Column]:
    """The at_risk column of every combination with a result."""
    return {
        c.index: record_struct(state, found, key, c)["at_risk"]
        for key, c in state.combinations if c.index in found.results
    }


def _by_cluster(state: State, scored: Scored, found: Found) -> None:
    """Rates by person and household, and intervals that count clusters instead of rows."""
    there = scored.records.columns
    if "person" in there:
        found.persons = clusters.cluster_rates(scored.records, "person", flags(state, found))
    if "household" in there:
        found.households = clusters.cluster_rates(scored.records, "household", flags(state, found))
    widest = found.households or found.persons
    for index, rate in widest.items():
        found.results[index].widen(rate.design_effect, rate.n, state.config.intervals)

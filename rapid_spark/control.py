"""What membership adds: the holdout's rate beside the original's, and two references fitted on the original itself.

- *holdout*: real people who were not used to make the release, scored with the original's baselines.
- *population_reference*: an attacker cross-fitted on the original, so that nobody's own record is used on them.
- *copy_ceiling*: an attacker trained on the original and scored on it; a release that is the original reaches it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

import numpy as np
import pandas as pd
from pyspark.sql import functions as F

from . import attackers, intervals
from .config import Attacker, Config
from .risk import (
    Classes,
    class_threshold,
    prediction_error_array,
)
from .schema import Aligned, Target
from .training import fill_target, sample

FOLDS = 5
COMPARE_ROWS = 20_000  # of each table, for the attempt to tell them apart
COMPARABLE_AUC = 0.05  # how far from 0.5 the AUC may be
COMPARABLE_P = 0.001
Ends = tuple[float | None, float | None]


@dataclass(frozen=True)
class Comparability:
    """Whether original and holdout look like a random split of one population.

    Attributes:
        auc: cross-validated AUC of telling original from holdout by the quasi-identifiers; 0.5 when they are alike.
        prevalence_p: smallest chi-square p over the categorical attributes, times their number; None without any.
        overlap_keys: holdout records whose key is in the original; None where keys are mere line numbers.
        overlap_rows: holdout records that equal an original record in all named columns.
        n: holdout records.
        shared: by 'person' and 'household' where both tables have them, holdout records of one that the original has too.
    """

    auc: float
    prevalence_p: float | None
    overlap_keys: int | None
    overlap_rows: int
    n: int
    shared: Mapping[str, int] = field(default_factory=dict)

    @property
    def comparable(self) -> bool:
        alike = abs(self.auc - 0.5) <= COMPARABLE_AUC
        apart = not self.overlap_keys and not any(self.shared.values())
        return alike and (self.prevalence_p is None or self.prevalence_p >= COMPARABLE_P) and apart

    def sentence(self) -> str:
        """What the difference may be called, and why."""
        shared = f"{self.overlap_rows:,} of {self.n:,} holdout records equal an original record in all named columns"
        if self.overlap_keys is not None:
            shared += f", {self.overlap_keys:,} have a key of the original"
        for cluster, n in self.shared.items():
            shared += f", {n:,} belong to a {cluster} of the original"
        if self.comparable:
            return (f"holdout and original look like a random split (AUC {self.auc:.2f}; {shared}): the difference is "
                    "the mean effect of being in the data, if no person or household is in both")
        return (f"holdout and original are not comparable (AUC {self.auc:.2f}; {shared}): this is a difference between "
                "populations, not an effect of membership")


def compare(aligned: Aligned, classes: dict[str, Classes], seed: int, keys_known: bool) -> Comparability:
    """Overlap of original and holdout, and whether they look alike; four to six small Spark jobs and one
    driver-side fit.

    Args:
        aligned: with a holdout.
        classes: of the original, per categorical attribute.
        seed: of the samples and folds.
        keys_known: False where record ids are line numbers, which two tables share without meaning.
    """
    holdout, original = aligned.holdout, aligned.original
    assert holdout is not None
    columns = [q.column for q in aligned.quasi_identifiers] + [t.column for t in aligned.targets]
    n = holdout.count()
    condition = reduce(lambda a, b: a & b, (F.col(f"l.{c}").eqNullSafe(F.col(f"r.{c}")) for c in columns))
    rows = (
        holdout.select(*columns).alias("l")
        .join(original.select(*columns).distinct().alias("r"), condition, "left_semi").count()
    )
    shared = holdout.join(original.select("record_id"), "record_id", "left_semi").count() if keys_known else None
    clusters: dict[str, int] = {
        c: holdout.join(original.select(c).where(F.col(c).isNotNull()).distinct(), c, "left_semi").count()
        for c in ("person", "household") if c in holdout.columns and c in original.columns
    }
    return Comparability(_tell_apart(aligned, n, seed), _prevalences(aligned, classes), shared, rows, n, clusters)


def _tell_apart(aligned: Aligned, n_holdout: int, seed: int) -> float:
    """Cross-validated AUC of a small boosting model for 'is of the holdout'."""
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import StratifiedKFold

    columns = [q.column for q in aligned.quasi_identifiers]
    features = [attackers.Feature(q.column, q.kind) for q in aligned.quasi_identifiers]
    parts = []
    assert aligned.holdout is not None
    for label, table, n in (("holdout", aligned.holdout, n_holdout), ("original", aligned.original, aligned.n_original)):
        part = table.select(*columns)
        part = sample(part, columns, [], COMPARE_ROWS, n, seed) if n > COMPARE_ROWS else part
        parts.append(part.toPandas().assign(table=label))
    both = pd.concat(parts, ignore_index=True)
    smallest = both["table"].value_counts().min()
    if smallest < 2 * 2:
        return 0.5
    score = np.zeros(len(both))
    split = StratifiedKFold(min(3, smallest), shuffle=True, random_state=seed)
    for train, test in split.split(both, both["table"]):
        fitted = attackers.fit(
            "gbm", {"max_iter": 50}, both.iloc[train].reset_index(drop=True), features, "table", "categorical", seed, 1
        )
        column = (fitted.classes or ()).index("holdout")
        score[test] = fitted.predict_proba(both.iloc[test].reset_index(drop=True))[:, column]
    return float(roc_auc_score(both["table"] == "holdout", score))


def _prevalences(aligned: Aligned, classes: dict[str, Classes]) -> float | None:
    """Smallest chi-square p of original against holdout class counts, Bonferroni-corrected."""
    from scipy.stats import chi2_contingency

    found = []
    assert aligned.holdout is not None
    for target in aligned.targets:
        if target.type != "categorical":
            continue
        counted = aligned.holdout.groupBy(target.column).count().toPandas()
        levels = dict(zip(counted[target.column].where(counted[target.column].notna(), None), counted["count"], strict=True))
        theirs = Classes.of(levels, target.missing)
        labels = sorted({*theirs.labels, *classes[target.name].labels})
        table = np.array([[dict(zip(c.labels, c.counts, strict=True)).get(x, 0) for x in labels]
                          for c in (classes[target.name], theirs)])
        if table.shape[1] > 1 and table.sum(axis=1).all():
            found.append(float(chi2_contingency(table).pvalue))
    return min(1.0, min(found) * len(found)) if found else None


def difference(
    members: tuple[int, int, np.ndarray | None],
    others: tuple[int, int, np.ndarray | None],
    confidence: float,
    ends: tuple[Ends, Ends] | None = None,
) -> tuple[float, float, float]:
    """Original's rate less the holdout's, with an interval.

    Args:
        members, others: hits, records, and bootstrap draws of the rate that share each replicate's baselines. Without
            draws the interval is Newcombe's (score intervals combined; baselines held fixed).
        confidence: e.g. 0.95.
        ends: intervals of the two rates that count clusters (persons, households) in place of records; then the
            interval is theirs combined (square-and-add, Zou and Donner, Statistics in Medicine 27, 2008, 1693-1702;
            for correlated rates Zou, Psychological Methods 12, 2007, 399-413), with the correlation of the draws, which
            comes from the baselines that both share.
    """
    (a, n, left), (b, m, right) = members, others
    p, q = a / n, b / m
    point = p - q
    (low, high), (other_low, other_high) = ends or ((None, None), (None, None))
    if low is not None and high is not None and other_low is not None and other_high is not None:
        together = 0.0
        if left is not None and right is not None and left.std() > 0 and right.std() > 0:
            together = float(np.corrcoef(left, right)[0, 1])
        return (
            point, point - _combined(p - low, other_high - q, together), point + _combined(high - p, q - other_low, together)
        )
    if left is not None and right is not None:
        return (point, *intervals.percentile(left - right, confidence))
    from statsmodels.stats.proportion import confint_proportions_2indep

    low, high = confint_proportions_2indep(a, n, b, m, method="newcomb", compare="diff", alpha=1.0 - confidence)
    return point, float(low), float(high)


def _combined(a: float, b: float, correlation: float) -> float:
    """Half-width of a difference from those of its parts."""
    return math.sqrt(max(0.0, a * a + b * b - 2.0 * correlation * a * b))


def reference_rows(aligned: Aligned, config: Config) -> pd.DataFrame:
    """Original rows on the driver for the two references: all, or a seeded sample of `training.max_train_rows`."""
    columns = [q.column for q in aligned.quasi_identifiers] + [t.column for t in aligned.targets]
    table, limit, n = aligned.original.select(*columns), config.training.max_train_rows, aligned.n_original
    if n > limit:
        strata = [t.column for t in aligned.targets if t.type == "categorical"][:1]
        table = sample(table, columns, strata, limit, n, config.training.seed)
    return table.toPandas()


def references(
    rows: pd.DataFrame, features: Sequence[attackers.Feature], target: Target, attacker: Attacker, config: Config,
    classes: Classes | None, spread: float | None, n_jobs: int,
) -> tuple[float, float]:
    """(population_reference, copy_ceiling) of one attacker, attribute and quasi-identifier set.

    Args:
        rows: original rows.
        features: quasi-identifiers.
        target: sensitive attribute.
        attacker: to fit.
        config: threshold and seed; the measure is `normalized_gain`, or the configured error.
        classes: of the original (categorical).
        spread: divisor of the normalised error.
        n_jobs: threads of fitting.
    """
    frame, _ = fill_target(rows, target)
    order = np.random.default_rng(config.training.seed).permutation(len(frame))
    frame = frame.sort_values(list(frame.columns), kind="stable").reset_index(drop=True).iloc[order].reset_index(drop=True)
    flags = np.zeros(len(frame), dtype=bool)
    for fold in range(FOLDS):
        test = np.arange(len(frame)) % FOLDS == fold
        train, held_out = frame[~test].reset_index(drop=True), frame[test].reset_index(drop=True)
        flags[test] = _flags(train, held_out, features, target, attacker, config, classes, spread, n_jobs)
    copied = _flags(frame, frame, features, target, attacker, config, classes, spread, n_jobs)
    return float(flags.mean()), float(copied.mean())


def _flags(
    train: pd.DataFrame, scored: pd.DataFrame, features: Sequence[attackers.Feature], target: Target,
    attacker: Attacker, config: Config, classes: Classes | None, spread: float | None, n_jobs: int,
) -> np.ndarray:
    fitted = attackers.fit(
        attacker.name, attacker.parameters, train, features, target.column, target.type, config.training.seed, n_jobs,
        allow_code=config.allow_code,
    )
    truth = scored[target.column]
    if target.type == "continuous":
        error = prediction_error_array(truth.to_numpy(dtype=float), fitted.predict(scored), config.threshold, spread)
        return error < config.threshold.tolerance
    assert classes is not None and fitted.classes is not None
    p = fitted.predict_proba(scored).round(12)
    position = {label: i for i, label in enumerate(fitted.classes)}
    column = truth.map(position).fillna(-1).to_numpy(dtype=int)
    g = np.where(column >= 0, p[np.arange(len(p)), column], 0.0)
    share = dict(zip(classes.labels, classes.prevalence, strict=True))
    b = truth.map(share).to_numpy(dtype=float)
    return g > class_threshold(b, config.threshold.tau["normalized_gain"])

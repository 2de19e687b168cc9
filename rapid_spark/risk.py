"""Scores and flags: one comparison for records, curves, bootstrap and permutation, as Spark columns and in NumPy.

Categorical measures are brought to one shape: a *value* per class, and a *threshold* per class that it must exceed.

- `normalized_gain`: the value is the probability g, the threshold of class k is b_k + tau (1 - b_k) (RAPID, section 3).
- `rcs_conditional`: the value is g over the mean g of the records of that class, the threshold is tau.
- `nce`: the value is 1 + ln(max(g, 1e-10)) / ln K, the threshold is tau.

A record is at risk when the value of its true class exceeds its threshold strictly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from .config import Threshold

MISSING_LABEL = "missing"
LOWEST_PROBABILITY = 1e-10  # of nce
LOG_LOSS_FLOOR = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Classes:
    """Classes of a categorical attribute in the original, by rank: the most frequent first, ties by label.

    Attributes:
        labels: class labels.
        counts: records of each class, int64 array.
    """

    labels: tuple[str, ...]
    counts: np.ndarray

    @classmethod
    def of(cls, levels: dict[str | None, int], missing: str) -> Classes:
        """From counts per label; null counts as class `missing`, or is left out when missing is 'drop'."""
        counts: dict[str, int] = {}
        for label, n in levels.items():
            if label is None and missing == "drop":
                continue
            name = MISSING_LABEL if label is None else label
            counts[name] = counts.get(name, 0) + n
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        return cls(tuple(k for k, _ in ranked), np.array([n for _, n in ranked], dtype=np.int64))

    @property
    def n(self) -> int:
        """Records with a defined class."""
        return int(self.counts.sum())

    @property
    def prevalence(self) -> np.ndarray:
        """b_k = n_k / n."""
        return self.counts / self.n

    def index(self, column: str, missing: str) -> Column:
        """1-based rank of the class in `column`; null where it is dropped or not a class of the original."""
        label = F.col(column) if missing == "drop" else F.coalesce(F.col(column), F.lit(MISSING_LABEL))
        position = F.array_position(F.array(*(F.lit(x) for x in self.labels)), label)
        return F.when(position > 0, position.cast("int"))


def class_threshold(baseline: np.ndarray, tau: float | np.ndarray) -> np.ndarray:
    """b + tau (1 - b), computed in this order in float64 wherever a threshold is needed."""
    return baseline + tau * (1.0 - baseline)


def measure_thresholds(measure: str, baseline: np.ndarray, tau: float) -> np.ndarray:
    """Threshold of each class on the measure's value."""
    if measure == "normalized_gain":
        return class_threshold(baseline, tau)
    return np.full(len(baseline), float(tau))


def measure_values(measure: str, p: Column, mean_true_prob: Sequence[float], n_classes: int) -> Column:
    """The measure's value of every class, from the array of class probabilities.

    Args:
        measure: a categorical measure.
        p: array<double> of probabilities, by class rank.
        mean_true_prob: per class, the mean g of its records (used by rcs_conditional; 0 makes the value 0).
        n_classes: width of the attacker's probability matrix (used by nce).
    """
    if measure == "normalized_gain":
        return p
    if measure == "nce":
        scale = F.lit(float(np.log(n_classes)))
        return F.transform(p, lambda x: 1.0 + F.log(F.greatest(x, F.lit(LOWEST_PROBABILITY))) / scale)
    means = F.array(*(F.lit(float(m)) for m in mean_true_prob))
    return F.zip_with(p, means, lambda x, m: F.when(m > 0, x / m).otherwise(F.lit(0.0)))


def count_below(value: Column, edges: Column, longest: int) -> Column:
    """How many of the ascending `edges` (array<double>) lie strictly below `value`: a binary search.

    So the number of records with value > edge j is the number whose count exceeds j, for any number of edges,
    in one aggregation.
    """
    steps = [2**i for i in reversed(range(max(1, int(longest).bit_length())))]

    def advance(found: Column, step: Column) -> Column:
        there = found + step
        return F.when((there <= F.size(edges)) & (F.try_element_at(edges, there) < value), there).otherwise(found)

    return F.aggregate(F.array(*(F.lit(s) for s in steps)), F.lit(0), advance)


def prediction_error(y: Column, guess: Column, threshold: Threshold, spread: float | None) -> Column:
    """Error of a continuous guess under the configured error; null where it is undefined.

    Args:
        y: true value.
        guess: predicted value.
        threshold: error kind and smoothing.
        spread: sd or range of the true values (for `normalised`); None or 0 leaves the error null.
    """
    distance = F.abs(y - guess)
    delta = F.lit(threshold.delta)
    if threshold.error == "symmetric":
        return 2.0 * distance / (F.abs(y) + F.abs(guess) + 2.0 * delta)
    if threshold.error == "stabilised_relative":
        return distance / (F.abs(y) + delta)
    if threshold.error == "relative":
        return F.when(y != 0, distance / F.nullif(F.abs(y), F.lit(0.0)))
    if threshold.error == "absolute":
        return distance
    return distance / F.lit(spread) if spread else F.lit(None).cast("double")


def prediction_error_array(
    y: np.ndarray, guess: np.ndarray | float, threshold: Threshold, spread: float | None
) -> np.ndarray:
    """`prediction_error` on arrays; NaN where it is undefined."""
    y = np.asarray(y, dtype=float)
    distance = np.abs(y - guess)
    if threshold.error == "symmetric":
        return 2.0 * distance / (np.abs(y) + np.abs(guess) + 2.0 * threshold.delta)
    if threshold.error == "stabilised_relative":
        return distance / (np.abs(y) + threshold.delta)
    if threshold.error == "relative":
        with np.errstate(over="ignore"):  # near 0 an error is without bounds
            return np.divide(distance, np.abs(y), out=np.full(np.shape(distance), np.nan), where=y != 0)
    if threshold.error == "absolute":
        return distance
    return distance / spread if spread else np.full(np.shape(distance), np.nan)


@dataclass(frozen=True)
class Combination:
    """One row of risk_summary to be: what is attacked, with what, and where its prediction stands in the frame."""

    index: int
    qi_set: str
    quasi_identifiers: tuple[str, ...]
    sensitive_attribute: str
    column: str
    target_type: str
    replicate: int
    attacker: str
    measure: str
    threshold: float
    prediction: str  # e.g. prediction_0.c3: field names `..._p`, `..._value`, `..._unseen` follow
    missing: str  # what a missing sensitive value means

    @property
    def categorical(self) -> bool:
        return self.target_type == "categorical"


def categorical_rows(
    frame: DataFrame,
    combinations: Sequence[Combination],
    classes: dict[str, Classes],
    means: Mapping[int, Sequence[float]],
    widths: dict[int, int],
    keep: Sequence[str] = ("n",),
) -> DataFrame:
    """One row per row of `frame` and combination: `combo`, `y` (class rank), `p`, `v` (values), `unseen`, and `keep`.

    Rows whose sensitive value is left out (missing: drop) have y null.
    """
    structs = []
    for c in combinations:
        k = classes[c.sensitive_attribute]
        p = F.col(f"{c.prediction}_p")
        mean = means.get(c.index, [1.0] * len(k.labels))
        structs.append(
            F.struct(
                F.lit(c.index).alias("combo"),
                k.index(c.column, c.missing).alias("y"),
                p.alias("p"),
                measure_values(c.measure, p, mean, widths[c.index]).alias("v"),
                F.col(f"{c.prediction}_unseen").alias("unseen"),
            )
        )
    return frame.select(*keep, F.inline(F.array(*structs)))


def continuous_rows(
    frame: DataFrame,
    combinations: Sequence[Combination],
    threshold: Threshold,
    spreads: dict[str, float | None],
    keep: Sequence[str] = ("n",),
) -> DataFrame:
    """One row per row of `frame` and combination: `combo`, `y`, `guess`, `error`, `unseen`, and `keep`."""
    structs = []
    for c in combinations:
        y, guess = F.col(c.column), F.col(f"{c.prediction}_value")
        structs.append(
            F.struct(
                F.lit(c.index).alias("combo"),
                y.alias("y"),
                guess.alias("guess"),
                prediction_error(y, guess, threshold, spreads.get(c.sensitive_attribute)).alias("error"),
                F.col(f"{c.prediction}_unseen").alias("unseen"),
            )
        )
    return frame.select(*keep, F.inline(F.array(*structs)))


def record_columns(
    combination: Combination,
    threshold: Threshold,
    classes: Classes | None,
    mean_true_prob: Sequence[float],
    n_classes: int,
    spread: float | None,
) -> Column:
    """Score, true_prob, baseline, error and at_risk of one combination, as a struct column of a records frame."""
    null = F.lit(None).cast("double")
    if combination.categorical:
        assert classes is not None
        y = classes.index(combination.column, combination.missing)
        p = F.col(f"{combination.prediction}_p")
        baseline = F.array(*(F.lit(float(b)) for b in classes.prevalence))
        cut = measure_thresholds(combination.measure, classes.prevalence, combination.threshold)
        value = F.try_element_at(measure_values(combination.measure, p, mean_true_prob, n_classes), y)
        g, b = F.try_element_at(p, y), F.try_element_at(baseline, y)
        score = (g - b) / (1.0 - b) if combination.measure == "normalized_gain" else value
        at_risk = value > F.try_element_at(F.array(*(F.lit(float(t)) for t in cut)), y)
        return F.struct(score.alias("score"), g.alias("true_prob"), b.alias("baseline"), null.alias("error"),
                        at_risk.alias("at_risk"))
    error = prediction_error(
        F.col(combination.column), F.col(f"{combination.prediction}_value"), threshold, spread
    )
    return F.struct(null.alias("score"), null.alias("true_prob"), null.alias("baseline"), error.alias("error"),
                    (error < combination.threshold).alias("at_risk"))

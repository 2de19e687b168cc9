"""From counts to rates, curves, intervals and nulls of categorical attributes.

Spark reduces the scored rows to counts (`aggregates`) between thresholds laid down before (`thresholds`); here NumPy
finishes.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame

from . import distributions, intervals, quality, resampling
from .aggregates import core_counts, mask_counts, rank_counts, true_prob_moments
from .config import Config, Intervals
from .resampling import Null
from .risk import Classes, Combination, categorical_rows
from .sidebyside import at_once
from .thresholds import Plan, plan


@dataclass
class Result:
    """What is known of one combination; figures that were not computed are None."""

    n: int = 0
    n_at_risk: int = 0
    ci: tuple[float | None, float | None] = (None, None)
    ci_method: str = ""
    baseline_rate: float | None = None
    null: Null | None = None
    figures: dict[str, float | int | None] = field(default_factory=dict)  # further columns of risk_summary
    curve: list[dict[str, float | int | None]] = field(default_factory=list)
    classes: list[dict[str, float | int | str | None]] = field(default_factory=list)
    data_driven_threshold: float | None = None
    exploratory_threshold: float | None = None
    draws: np.ndarray | None = None  # bootstrap draws of the rate at the configured threshold
    place: int = 0  # of the configured threshold in the curve
    variances: list[float] = field(default_factory=list)  # of the rates of the curve, records independent
    design_effect: float = 1.0
    distributions: list[dict[str, float | int | str]] = field(default_factory=list)  # score and calibration

    @property
    def rapid(self) -> float | None:
        return self.n_at_risk / self.n if self.n else None

    @property
    def by_cluster(self) -> bool:
        """Whether the interval counts clusters in place of records."""
        return self.ci_method.endswith("clusters")

    def n_effective(self) -> float | None:
        """p (1 - p) / Var of the rate: by bootstrap draws, and by a design effect where records come in clusters."""
        rate = self.rapid
        if rate is None or not 0 < rate < 1:
            return float(self.n) if self.n else None
        variance = rate * (1.0 - rate) / self.n if self.draws is None else float(self.draws.var(ddof=1))
        return rate * (1.0 - rate) / (variance * self.design_effect) if variance > 0 else self.n / self.design_effect

    def widen(self, design_effect: float, clusters: int, settings: Intervals) -> None:
        """Replace the intervals by Wilson's with n_eff divided by a design effect (records come in clusters).

        The effect is that at the configured threshold; the curve takes it over. Where nobody or everybody is at risk, the
        clusters count.

        Args:
            design_effect: variance of the rate by clusters over its variance by records.
            clusters: their number.
            settings: confidence.
        """
        self.design_effect = max(design_effect, 1e-9)
        for row, variance in zip(self.curve, self.variances, strict=True):
            rate = float(row["rapid"] or 0)
            wider, n = variance * self.design_effect, self.n if 0 < rate < 1 else clusters
            row["ci_low"], row["ci_high"] = intervals.wilson_neff(rate, n, wider, settings.confidence)
        self.ci = self.curve[self.place]["ci_low"], self.curve[self.place]["ci_high"]
        self.ci_method = "wilson_neff, clusters"


def summarise_categorical(
    frame: DataFrame,
    combinations: Sequence[Combination],
    classes: dict[str, Classes],
    known_classes: dict[int, tuple[str, ...]],
    config: Config,
    means: Mapping[int, Sequence[float]] | None = None,
) -> tuple[dict[int, Result], dict[int, list[float]]]:
    """Results per combination index, and per combination the mean g of each class.

    Three Spark aggregations for all combinations together (four with rcs_conditional).

    Args:
        frame: rows with `n`, the sensitive columns and the predictions.
        combinations: categorical ones.
        classes: per sensitive attribute, its classes in the original.
        known_classes: per combination, the classes of the attacker's probability matrix.
        config: thresholds, intervals, seed.
        means: mean g per class that `rcs_conditional` divides by, per combination index, where it is another table's.
    """
    if not combinations:
        return {}, {}
    spark = frame.sparkSession
    widths = {c.index: len(known_classes[c.index]) for c in combinations}
    moving = [c for c in combinations if c.measure == "rcs_conditional" and c.index not in (means or {})]
    moments = true_prob_moments(frame, moving, classes, widths)
    means = {**(means or {}), **{i: [mean for mean, _ in found] for i, found in moments.items()}}
    plans = {}
    for c in combinations:
        known = moments.get(c.index, [(0.0, 0.0)] * len(classes[c.sensitive_attribute].labels))
        spread = [sd / mean if mean > 0 else 0.0 for mean, sd in known]
        plans[c.index] = plan(c, classes[c.sensitive_attribute], config, spread)
    rows = categorical_rows(frame, combinations, classes, means, widths)
    counts = [core_counts, rank_counts, *([mask_counts] if config.intervals.permutations else [])]
    found: list[Any] = at_once(spark, [functools.partial(count, rows, spark, plans) for count in counts])
    core, ranks, masks = found if len(found) == 3 else (*found, {})
    results, true_prob = {}, {}
    for c in combinations:
        mine, counted = plans[c.index], Counted(core[core["combo"] == c.index], ranks[ranks["combo"] == c.index])
        results[c.index], true_prob[c.index] = finish(
            mine, replace(counted, masks=masks.get(c.index)), known_classes[c.index], config, means.get(c.index),
            c.index in moments,
        )
    return results, true_prob


@dataclass(frozen=True)
class Counted:
    """Counts of one combination, as `aggregates` gives them.

    Attributes:
        cells: by y, guess (class ranks from 1), claim and position among the plan's edges: n, g, g2, loss, unseen.
        ranks: by class k, bin (rounded p_k) and position in the grid: n, positives.
        masks: by positions of all classes: n; or by j (place in the grid): row_squares. None without a null.
    """

    cells: pd.DataFrame
    ranks: pd.DataFrame
    masks: pd.DataFrame | None = None


def finish(
    plan: Plan, counted: Counted, known: tuple[str, ...], config: Config, means: Sequence[float] | None = None,
    own_means: bool = True,
) -> tuple[Result, list[float]]:
    """Result of one combination from its counts, and the mean g of each class; NumPy only.

    Args:
        plan: the thresholds that were counted between.
        counted: the counts.
        known: classes of the attacker's probability matrix.
        config: intervals, permutations, seed, smallest cell.
        means: mean g per class that values were divided by (`rcs_conditional`).
        own_means: whether these are the means of the records counted.
    """
    cells, ranks, labels = counted.cells, counted.ranks, plan.classes.labels
    result = _rates(plan, cells, config.intervals, config.training.seed, own_means)
    true_prob = list(means or [0.0] * len(labels))
    if not result.n:
        return result, true_prob
    exceeding = _exceeding(plan, ranks)
    _baselines(result, plan, exceeding)
    if counted.masks is not None:
        _null(result, plan, counted.masks, exceeding, config)
    _quality(result, plan, cells, ranks, known)
    if means is None:
        totals = cells.groupby("y")[["g", "n"]].sum().reindex(range(1, len(labels) + 1), fill_value=0)
        true_prob = list((totals["g"] / totals["n"].where(totals["n"] > 0, 1)).to_numpy())
    result.distributions = _distributions(plan, cells, ranks, true_prob, len(known), config)
    return result, true_prob


def _distributions(
    plan: Plan, cells: pd.DataFrame, ranks: pd.DataFrame, mean_true_prob: list[float], width: int, config: Config
) -> list[dict[str, float | int | str]]:
    """Histogram of the score by true class, and calibration by class."""
    labels, smallest, measure = plan.classes.labels, config.drivers.min_cell_count, plan.combination.measure
    above = [_above(plan, cells, k)[np.searchsorted(plan.edges[k], plan.bins[:, k])] for k in range(len(labels))]
    lowest, highest = distributions.score_range(measure, plan.classes.prevalence, np.array(mean_true_prob), width)
    rows = distributions.histogram(
        measure, labels, above, _sizes(plan, cells), plan.scores, lowest, highest, plan.combination.threshold, smallest
    )
    for k, label in enumerate(labels[: distributions.MOST_CLASSES]):
        by_bin = ranks[ranks["k"] == k + 1].groupby("bin")[["n", "positives"]].sum()
        rows += distributions.calibration(
            label, by_bin.index.to_numpy(dtype=float), by_bin["n"].to_numpy(), by_bin["positives"].to_numpy(), smallest
        )
    return rows


def _sizes(plan: Plan, cells: pd.DataFrame) -> np.ndarray:
    """Records of each class."""
    ranks = range(1, len(plan.classes.labels) + 1)
    return cells.groupby("y")["n"].sum().reindex(ranks, fill_value=0).to_numpy(dtype=np.int64)


def _above(plan: Plan, cells: pd.DataFrame, k: int) -> np.ndarray:
    """Records of class k whose value exceeds edge j, for every j."""
    mine = cells[cells["y"] == k + 1]
    counts = np.bincount(mine["position"].to_numpy(dtype=np.int64), weights=mine["n"].to_numpy(dtype=float),
                         minlength=len(plan.edges[k]) + 1)
    return np.cumsum(counts[::-1])[::-1][1:]


def _draws(
    plan: Plan, cells: pd.DataFrame, above: Sequence[np.ndarray], sizes: np.ndarray, seed: int, own_means: bool
) -> np.ndarray | None:
    """Bootstrap draws of the rate at every threshold, (draws, taus); None where no flag moves."""
    bootstrap, n = plan.bootstrap, int(sizes.sum())
    if bootstrap is None or (plan.conditional and not own_means):
        return None
    if plan.conditional:
        found = [_value_cells(plan, cells, k) for k in range(len(sizes))]
        return resampling.conditional_hits(bootstrap.sizes, found, plan.grid, seed) / n
    survival = [
        above[k][np.searchsorted(plan.edges[k], bootstrap.thresholds[:, :, k])] / max(1, size)
        for k, size in enumerate(sizes)
    ]
    if not np.array_equal(sizes, plan.classes.counts):
        # another table under the original's baselines: its own sizes are drawn, the thresholds stay
        own = np.random.default_rng(seed + 1).multinomial(n, sizes / n, size=len(bootstrap.sizes))
        bootstrap = resampling.BootstrapPlan(own, bootstrap.thresholds)
    return resampling.bootstrap_hits(bootstrap, survival, seed) / n


def _value_cells(plan: Plan, cells: pd.DataFrame, k: int) -> resampling.ValueCells:
    """Records of class k by cell of g over its mean."""
    mine = cells[cells["y"] == k + 1]
    place, length = mine["position"].to_numpy(dtype=np.int64), len(plan.edges[k]) + 1
    n, g, g2 = (np.bincount(place, weights=mine[c].to_numpy(dtype=float), minlength=length) for c in ("n", "g", "g2"))
    mean = g.sum() / n.sum() if g.sum() > 0 else 1.0
    return resampling.ValueCells(plan.edges[k], n.astype(np.int64), g / mean, g2 / mean**2)


def _rates(plan: Plan, cells: pd.DataFrame, settings: Intervals, seed: int, own_means: bool = False) -> Result:
    """Rates, curve, intervals and class rows."""
    labels = plan.classes.labels
    above = [_above(plan, cells, k) for k in range(len(labels))]
    sizes = _sizes(plan, cells)
    n = int(sizes.sum())
    if not n:
        return Result(ci_method=settings.method)
    at_edge = [np.searchsorted(plan.edges[k], plan.cuts[:, k]) for k in range(len(labels))]
    hits = np.array([above[k][at_edge[k]] for k in range(len(labels))]).astype(np.int64)  # (classes, taus)
    at = plan.at
    draws = _draws(plan, cells, above, sizes, seed, own_means)
    result = Result(n=n, n_at_risk=int(hits[:, at].sum()), ci_method=settings.method, place=at,
                    draws=None if draws is None else draws[:, at])
    for j, tau in enumerate(plan.grid):
        total = int(hits[:, j].sum())
        result.variances.append(variance_of(total, n, None if draws is None else draws[:, j]))
        low, high = _interval(total, n, None if draws is None else draws[:, j], settings)
        result.curve.append({"threshold": tau, "n_at_risk": total, "rapid": total / n, "ci_low": low, "ci_high": high})
    result.ci = (result.curve[at]["ci_low"], result.curve[at]["ci_high"])
    if draws is not None:
        inside = sum(
            above[k][np.searchsorted(plan.edges[k], plan.window[0, k])]
            - above[k][np.searchsorted(plan.edges[k], plan.window[1, k])]
            for k in range(len(labels))
        )
        result.figures["near_threshold"] = float(inside) / n
    claims = cells[cells["claim"].astype(bool)]
    for k, label in enumerate(labels):
        mine, claimed = cells[cells["y"] == k + 1], claims[claims["guess"] == k + 1]
        size, made = int(sizes[k]), int(claimed["n"].sum())
        result.classes.append({
            "class_label": label, "class_rank": k + 1, "prevalence": float(plan.classes.prevalence[k]), "n": size,
            "n_at_risk": int(hits[k, at]), "rapid": int(hits[k, at]) / size if size else None,
            "mean_true_prob": float(mine["g"].sum()) / size if size else None, "n_confident_claims": made,
            "claims_correct": int(claimed.loc[claimed["y"] == k + 1, "n"].sum()) / made if made else None,
        })
    return result


def variance_of(count: int, n: int, draws: np.ndarray | None) -> float:
    """Of a rate: of its draws, or binomial where flags do not move."""
    return count / n * (1.0 - count / n) / n if draws is None else float(draws.var(ddof=1))


def _interval(
    count: int, n: int, draws: np.ndarray | None, settings: Intervals
) -> tuple[float | None, float | None]:
    if settings.method == "bootstrap":
        if draws is None:
            # flags that do not move: hits are binomial, and the interval its percentile
            from scipy.stats import binom

            tail = (1.0 - settings.confidence) / 2.0
            return float(binom.ppf(tail, n, count / n)) / n, float(binom.ppf(1.0 - tail, n, count / n)) / n
        return intervals.percentile(draws, settings.confidence)
    if settings.method == "wilson_neff":
        variance = 0.0 if draws is None else float(draws.var(ddof=1))
        return intervals.wilson_neff(count / n, n, variance, settings.confidence)
    return intervals.proportion(count, n, settings.confidence, settings.method)


def _exceeding(plan: Plan, ranks: pd.DataFrame) -> np.ndarray:
    """m_k per threshold of the grid: records whose value of class k exceeds its cut; (taus, classes)."""
    exceeding = np.zeros((len(plan.grid), len(plan.classes.labels)), dtype=np.int64)
    for k in range(exceeding.shape[1]):
        mine = ranks[ranks["k"] == k + 1]
        counts = np.bincount(mine["position"].to_numpy(dtype=np.int64), weights=mine["n"].to_numpy(dtype=float),
                             minlength=len(plan.grid) + 1)
        exceeding[:, k] = np.cumsum(counts[::-1])[::-1][1:]
    return exceeding


def _baselines(result: Result, plan: Plan, exceeding: np.ndarray) -> None:
    """baseline_rate = sum_k n_k m_k / n^2, the exact mean of RAPID when targets are shuffled."""
    sizes = np.array([c["n"] for c in result.classes], dtype=float)
    rates = exceeding @ sizes / float(result.n) ** 2
    for row, rate in zip(result.curve, rates, strict=True):
        row["baseline_rate"] = float(rate)
    result.baseline_rate = float(rates[plan.at])


def _null(result: Result, plan: Plan, masks: pd.DataFrame, exceeding: np.ndarray, config: Config) -> None:
    """Permutation null at the configured threshold, and the data-driven threshold over the grid."""
    sizes = np.array([c["n"] for c in result.classes], dtype=np.int64)
    at = plan.at
    if "positions" in masks:
        positions = np.array(masks["positions"].tolist(), dtype=np.int64)
        counts = masks["n"].to_numpy(dtype=np.int64)
        nulls = []
        for j in range(len(plan.grid)):
            mean, variance = resampling.categorical_moments(sizes, positions > j, counts)
            nulls.append(resampling.null_from_moments(mean, variance, result.n, int(result.curve[j]["n_at_risk"] or 0)))
        if result.n < 1_000_000_000:
            flags, inverse = np.unique(positions > at, axis=0, return_inverse=True)
            merged = np.bincount(inverse.ravel(), weights=counts).astype(np.int64)
            result.null = resampling.categorical_null(
                sizes, flags, merged, result.n_at_risk, config.intervals.permutations, config.training.seed
            )
        else:
            result.null = nulls[at]
    else:
        nulls = _nulls_from_squares(result, masks, exceeding, sizes)
        result.null = nulls[at]
    limits = [null.q95 for null in nulls]
    observed = [float(row["rapid"] or 0.0) for row in result.curve]
    result.data_driven_threshold = resampling.fixed_sequence(plan.grid, observed, limits)
    pointwise = [t for t, rate, limit in zip(plan.grid, observed, limits, strict=True) if rate > limit]
    result.exploratory_threshold = max(pointwise, default=None)


def _nulls_from_squares(result: Result, squares: pd.DataFrame, exceeding: np.ndarray, sizes: np.ndarray) -> list[Null]:
    """Nulls by exact moments where flag patterns are too many to draw."""
    by_threshold = squares.set_index("j")["row_squares"]
    nulls = []
    for j, row in enumerate(result.curve):
        a = float(row["baseline_rate"] or 0.0) * float(result.n) ** 2
        columns = float(sizes @ (exceeding[j].astype(float) ** 2))
        mean, variance = resampling.moments(float(result.n), a, float(by_threshold.get(j, 0.0)), columns)
        nulls.append(resampling.null_from_moments(mean, variance, result.n, int(row["n_at_risk"] or 0)))
    return nulls


def _quality(
    result: Result, plan: Plan, cells: pd.DataFrame, ranks: pd.DataFrame, known: tuple[str, ...]
) -> None:
    """Attacker quality, confident claims, and the counts of unseen levels and classes."""
    k = len(plan.classes.labels)
    confusion = np.zeros((k, k), dtype=np.int64)
    np.add.at(confusion, (cells["y"].to_numpy(dtype=int) - 1, cells["guess"].to_numpy(dtype=int) - 1),
              cells["n"].to_numpy(dtype=np.int64))
    areas = []
    for j in range(1, k + 1):
        by_bin = ranks[ranks["k"] == j].groupby("bin")[["n", "positives"]].sum().sort_index()
        areas.append(quality.auc(by_bin["positives"].to_numpy(), (by_bin["n"] - by_bin["positives"]).to_numpy()))
    claimed = cells[cells["claim"].astype(bool)]
    made = int(claimed["n"].sum())
    right = int(claimed.loc[claimed["y"] == claimed["guess"], "n"].sum())
    sizes = confusion.sum(axis=1)
    result.figures |= {
        "n_confident_claims": made,
        "claims_correct": right / made if made else None,
        "accuracy": quality.accuracy(confusion),
        "macro_f1": quality.macro_f1(confusion),
        "log_loss": float(cells["loss"].sum()) / result.n,
        "auc": areas[0] if k == 2 else quality.macro_auc(areas),
        "majority_rate": float(sizes.max()) / result.n,
        "n_unseen_level": int(cells["unseen"].sum()),
        "n_unseen_class": int(sum(n for n, c in zip(sizes, plan.classes.labels, strict=True) if c not in known)),
    }

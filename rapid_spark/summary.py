"""From scored rows to rates, curves, intervals and nulls: Spark reduces to counts, NumPy finishes.

Every function takes a frame with the count `n` of each row (a record, or a cell of equal records), the sensitive
columns and the predictions, and reduces it with group-bys whose results are small: by class, predicted class and
position among sorted thresholds. No second scoring, nothing row-sized on the driver.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from . import intervals, quality, resampling
from .config import Config, Intervals
from .resampling import Null
from .risk import (
    LOG_LOSS_FLOOR,
    Classes,
    Combination,
    categorical_rows,
    count_below,
    measure_thresholds,
)
from .sidebyside import at_once

RCS_GRID = tuple(i / 4 for i in range(1, 17))  # rcs_conditional has no upper bound: 0.25 to 4
PATTERNS_DRAWN = 10_000  # more flag patterns than that: exact moments instead of draws


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
    calibration: list[dict[str, float | int | str]] = field(default_factory=list)

    @property
    def rapid(self) -> float | None:
        return self.n_at_risk / self.n if self.n else None

    def widen(self, design_effect: float, settings: Intervals) -> None:
        """Replace the interval by Wilson's with n_eff divided by a design effect (records come in clusters)."""
        rate = self.rapid
        if rate is None or not 0 < rate < 1:
            return
        variance = rate * (1.0 - rate) / self.n if self.draws is None else float(self.draws.var(ddof=1))
        self.ci = intervals.wilson_neff(rate, self.n, variance * max(design_effect, 1e-9), settings.confidence)
        self.ci_method = "wilson_neff, clusters"


def grid_of(combination: Combination, config: Config) -> tuple[float, ...]:
    """Thresholds of the combination's curve, ascending; the configured one is always among them."""
    if not combination.categorical:
        grid: Sequence[float] = config.threshold.tolerance_grid
        if config.threshold.error == "absolute":
            grid = [combination.threshold * t / 0.1 for t in grid]
    else:
        grid = RCS_GRID if combination.measure == "rcs_conditional" else config.threshold.tau_grid
    return tuple(sorted({*grid, combination.threshold}))


@dataclass(frozen=True)
class _Plan:
    """Sorted thresholds per class of one combination, and the bootstrap they come from."""

    combination: Combination
    classes: Classes
    grid: tuple[float, ...]
    cuts: np.ndarray  # (taus, classes)
    edges: tuple[np.ndarray, ...]  # per class
    bootstrap: resampling.BootstrapPlan | None
    atom_window: np.ndarray  # (2, classes): two sd around the configured cut


def _plan(combination: Combination, classes: Classes, config: Config, seed: int) -> _Plan:
    grid = grid_of(combination, config)
    b = classes.prevalence
    cuts = np.array([measure_thresholds(combination.measure, b, t) for t in grid])
    at = grid.index(combination.threshold)
    moving = combination.measure == "normalized_gain" and config.intervals.method in ("wilson_neff", "bootstrap")
    bootstrap = None
    window = np.repeat(cuts[at][None, :], 2, axis=0)
    extra = np.empty((0, len(b)))
    if moving:
        bootstrap = resampling.plan_bootstrap(classes.counts, grid, config.intervals.bootstrap, seed)
        sd = (1.0 - combination.threshold) * np.sqrt(b * (1.0 - b) / classes.n)
        window = np.array([cuts[at] - 2 * sd, cuts[at] + 2 * sd])
        extra = bootstrap.thresholds.reshape(-1, len(b))
    stacked = np.concatenate([cuts, window, extra])
    return _Plan(combination, classes, grid, cuts, tuple(np.unique(stacked[:, k]) for k in range(len(b))),
                 bootstrap, window)


def summarise_categorical(
    frame: DataFrame,
    combinations: Sequence[Combination],
    classes: dict[str, Classes],
    known_classes: dict[int, tuple[str, ...]],
    config: Config,
) -> tuple[dict[int, Result], dict[int, list[float]]]:
    """Results per combination index, and per combination the mean g of each class.

    Three Spark aggregations for all combinations together (four with rcs_conditional).

    Args:
        frame: rows with `n`, the sensitive columns and the predictions.
        combinations: categorical ones.
        classes: per sensitive attribute, its classes in the original.
        known_classes: per combination, the classes of the attacker's probability matrix.
        config: thresholds, intervals, seed.
    """
    if not combinations:
        return {}, {}
    spark = frame.sparkSession
    widths = {c.index: len(known_classes[c.index]) for c in combinations}
    means = _mean_true_prob(frame, [c for c in combinations if c.measure == "rcs_conditional"], classes, widths)
    plans = {
        c.index: _plan(c, classes[c.sensitive_attribute], config, config.training.seed) for c in combinations
    }
    rows = categorical_rows(frame, combinations, classes, means, widths)
    counts = [_core_counts, _rank_counts, *([_mask_counts] if config.intervals.permutations else [])]
    counted: list[Any] = at_once(spark, [functools.partial(count, rows, spark, plans) for count in counts])
    core, ranks, masks = counted if len(counted) == 3 else (*counted, {})
    results, true_prob = {}, {}
    for c in combinations:
        plan = plans[c.index]
        cells = core[core["combo"] == c.index]
        result = _rates(plan, cells, config.intervals, config.training.seed)
        results[c.index], true_prob[c.index] = result, [0.0] * len(plan.classes.labels)
        if not result.n:
            continue
        exceeding = _exceeding(plan, ranks[ranks["combo"] == c.index])
        _baselines(result, plan, exceeding)
        if c.index in masks:
            _null(result, plan, masks[c.index], exceeding, config)
        _quality(result, plan, cells, ranks[ranks["combo"] == c.index], known_classes[c.index])
        totals = cells.groupby("y")[["g", "n"]].sum().reindex(range(1, len(plan.classes.labels) + 1), fill_value=0)
        true_prob[c.index] = list((totals["g"] / totals["n"].where(totals["n"] > 0, 1)).to_numpy())
    return results, true_prob


def _mean_true_prob(
    frame: DataFrame, combinations: Sequence[Combination], classes: dict[str, Classes], widths: dict[int, int]
) -> dict[int, list[float]]:
    """Mean g per class, which rcs_conditional needs before its values exist."""
    if not combinations:
        return {}
    rows = categorical_rows(frame, combinations, classes, {}, widths).where(F.col("y").isNotNull())
    g = F.try_element_at("p", F.col("y"))
    found = (
        rows.groupBy("combo", "y").agg((F.sum(F.col("n") * g) / F.sum("n")).alias("mean")).toPandas()
        .set_index(["combo", "y"])["mean"].to_dict()
    )
    return {
        c.index: [
            float(found.get((c.index, k + 1), 0.0)) for k in range(len(classes[c.sensitive_attribute].labels))
        ]
        for c in combinations
    }


def _core_counts(rows: DataFrame, spark: object, plans: dict[int, _Plan]) -> pd.DataFrame:
    """Counts by combination, true class, predicted class, confident claim and position among the thresholds."""
    lookup = pd.DataFrame(
        [
            (i, k + 1, plan.edges[k].tolist(), plan.cuts[plan.grid.index(plan.combination.threshold)].tolist())
            for i, plan in plans.items()
            for k in range(len(plan.edges))
        ],
        columns=["combo", "y", "edges", "cuts"],
    )
    table = spark.createDataFrame(lookup, "combo int, y int, edges array<double>, cuts array<double>")  # type: ignore[attr-defined]
    longest = max(len(e) for plan in plans.values() for e in plan.edges)
    joined = rows.join(F.broadcast(table), ["combo", "y"])
    g = F.element_at("p", F.col("y"))
    guess = F.array_position("p", F.array_max("p")).cast("int")
    scored = joined.select(
        "combo", "y", "n", "unseen", g.alias("g"), guess.alias("guess"),
        (F.element_at("v", guess) > F.element_at("cuts", guess)).alias("claim"),
        count_below(F.element_at("v", F.col("y")), F.col("edges"), longest).alias("position"),
    )
    n = F.col("n")
    return (
        scored.groupBy("combo", "y", "guess", "claim", "position")
        .agg(
            F.sum(n).alias("n"),
            F.sum(n * F.col("g")).alias("g"),
            F.sum(-n * F.log(F.greatest("g", F.lit(LOG_LOSS_FLOOR)))).alias("loss"),
            F.sum(F.when(F.col("unseen"), n).otherwise(0)).alias("unseen"),
        )
        .toPandas()
    )


def _grid_table(spark: object, plans: dict[int, _Plan]) -> tuple[DataFrame, int]:
    """Per combination and class k, the cuts of the grid as ascending `edges`."""
    lookup = pd.DataFrame(
        [
            (i, k + 1, plan.cuts[:, k].tolist())
            for i, plan in plans.items()
            for k in range(plan.cuts.shape[1])
        ],
        columns=["combo", "k", "edges"],
    )
    table = spark.createDataFrame(lookup, "combo int, k int, edges array<double>")  # type: ignore[attr-defined]
    return table, max(len(plan.grid) for plan in plans.values())


def _rank_counts(rows: DataFrame, spark: object, plans: dict[int, _Plan]) -> pd.DataFrame:
    """Counts by combination, class k, rounded p_k and its position in the grid: AUC and m_k."""
    table, longest = _grid_table(spark, plans)
    long = rows.where(F.col("y").isNotNull()).select(
        "combo", "y", "n", F.posexplode(F.arrays_zip("p", "v")).alias("i", "pair")
    )
    long = long.withColumn("k", F.col("i") + 1).join(F.broadcast(table), ["combo", "k"])
    bin_ = F.round(F.col("pair.p"), quality.AUC_DECIMALS).alias("bin")
    position = count_below(F.col("pair.v"), F.col("edges"), longest).alias("position")
    return (
        long.groupBy("combo", "k", bin_, position)
        .agg(F.sum("n").alias("n"), F.sum(F.when(F.col("y") == F.col("k"), F.col("n")).otherwise(0)).alias("positives"))
        .toPandas()
    )


def _mask_counts(rows: DataFrame, spark: object, plans: dict[int, _Plan]) -> dict[int, pd.DataFrame]:
    """Per combination, records by the vector of positions of all classes; only where there are few such vectors."""
    table = pd.DataFrame(
        [(i, plan.cuts.T.tolist()) for i, plan in plans.items()], columns=["combo", "grids"]
    )
    grids = spark.createDataFrame(table, "combo int, grids array<array<double>>")  # type: ignore[attr-defined]
    longest = max(len(plan.grid) for plan in plans.values())
    positions = F.zip_with("v", "grids", lambda v, e: count_below(v, e, longest)).alias("positions")
    counted = (
        rows.where(F.col("y").isNotNull()).join(F.broadcast(grids), "combo")
        .groupBy("combo", positions).agg(F.sum("n").alias("n"))
    )
    limit = (PATTERNS_DRAWN + 1) * len(plans)
    found = counted.limit(limit).toPandas()
    if len(found) == limit:
        found = found.iloc[:0]  # some combination has too many; which ones is not known
    groups = {i: found[found["combo"] == i] for i in plans if (found["combo"] == i).any()}
    many = [i for i in plans if len(groups.get(i, ())) > PATTERNS_DRAWN or i not in groups]
    for i in many:
        groups[i] = _mask_moments(counted.where(F.col("combo") == i), plans[i])
    return groups


def _mask_moments(counted: DataFrame, plan: _Plan) -> pd.DataFrame:
    """Sums of n r and n r^2 per threshold of the grid, r = records whose class the prediction would hit."""
    counts = F.array(*(F.lit(float(x)) for x in plan.classes.counts))
    long = counted.select("n", "positions", F.explode(F.array(*(F.lit(j) for j in range(len(plan.grid))))).alias("j"))
    hit = F.zip_with("positions", counts, lambda p, c: F.when(p > F.col("j"), c).otherwise(F.lit(0.0)))
    r = F.aggregate(hit, F.lit(0.0), lambda a, x: a + x)
    return long.select("j", "n", r.alias("r")).groupBy("j").agg(
        F.sum(F.col("n") * F.col("r") * F.col("r")).alias("row_squares")
    ).toPandas()


def _above(plan: _Plan, cells: pd.DataFrame, k: int) -> np.ndarray:
    """Records of class k whose value exceeds edge j, for every j."""
    mine = cells[cells["y"] == k + 1]
    counts = np.bincount(mine["position"].to_numpy(dtype=np.int64), weights=mine["n"].to_numpy(dtype=float),
                         minlength=len(plan.edges[k]) + 1)
    return np.cumsum(counts[::-1])[::-1][1:]


def _rates(plan: _Plan, cells: pd.DataFrame, settings: Intervals, seed: int) -> Result:
    """Rates, curve, intervals and class rows."""
    labels = plan.classes.labels
    above = [_above(plan, cells, k) for k in range(len(labels))]
    sizes = cells.groupby("y")["n"].sum().reindex(range(1, len(labels) + 1), fill_value=0).to_numpy(dtype=np.int64)
    n = int(sizes.sum())
    if not n:
        return Result(ci_method=settings.method)
    at_edge = [np.searchsorted(plan.edges[k], plan.cuts[:, k]) for k in range(len(labels))]
    hits = np.array([above[k][at_edge[k]] for k in range(len(labels))]).astype(np.int64)  # (classes, taus)
    at = plan.grid.index(plan.combination.threshold)
    draws = None
    if plan.bootstrap is not None:
        survival = [
            above[k][np.searchsorted(plan.edges[k], plan.bootstrap.thresholds[:, :, k])] / max(1, sizes[k])
            for k in range(len(labels))
        ]
        bootstrap = plan.bootstrap
        if not np.array_equal(sizes, plan.classes.counts):
            # another table under the original's baselines: its own sizes are drawn, the thresholds stay
            own = np.random.default_rng(seed + 1).multinomial(n, sizes / n, size=len(bootstrap.sizes))
            bootstrap = resampling.BootstrapPlan(own, bootstrap.thresholds)
        draws = resampling.bootstrap_hits(bootstrap, survival, seed) / n
    result = Result(n=n, n_at_risk=int(hits[:, at].sum()), ci_method=settings.method,
                    draws=None if draws is None else draws[:, at])
    for j, tau in enumerate(plan.grid):
        total = int(hits[:, j].sum())
        low, high = _interval(total, n, None if draws is None else draws[:, j], settings)
        result.curve.append({"threshold": tau, "n_at_risk": total, "rapid": total / n, "ci_low": low, "ci_high": high})
    result.ci = (result.curve[at]["ci_low"], result.curve[at]["ci_high"])
    if draws is not None:
        inside = sum(
            above[k][np.searchsorted(plan.edges[k], plan.atom_window[0, k])]
            - above[k][np.searchsorted(plan.edges[k], plan.atom_window[1, k])]
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


def _exceeding(plan: _Plan, ranks: pd.DataFrame) -> np.ndarray:
    """m_k per threshold of the grid: records whose value of class k exceeds its cut; (taus, classes)."""
    exceeding = np.zeros((len(plan.grid), len(plan.classes.labels)), dtype=np.int64)
    for k in range(exceeding.shape[1]):
        mine = ranks[ranks["k"] == k + 1]
        counts = np.bincount(mine["position"].to_numpy(dtype=np.int64), weights=mine["n"].to_numpy(dtype=float),
                             minlength=len(plan.grid) + 1)
        exceeding[:, k] = np.cumsum(counts[::-1])[::-1][1:]
    return exceeding


def _baselines(result: Result, plan: _Plan, exceeding: np.ndarray) -> None:
    """baseline_rate = sum_k n_k m_k / n^2, the exact mean of RAPID when targets are shuffled."""
    sizes = np.array([c["n"] for c in result.classes], dtype=float)
    rates = exceeding @ sizes / float(result.n) ** 2
    for row, rate in zip(result.curve, rates, strict=True):
        row["baseline_rate"] = float(rate)
    result.baseline_rate = float(rates[plan.grid.index(plan.combination.threshold)])


def _null(result: Result, plan: _Plan, masks: pd.DataFrame, exceeding: np.ndarray, config: Config) -> None:
    """Permutation null at the configured threshold, and the data-driven threshold over the grid."""
    sizes = np.array([c["n"] for c in result.classes], dtype=np.int64)
    at = plan.grid.index(plan.combination.threshold)
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
    result: Result, plan: _Plan, cells: pd.DataFrame, ranks: pd.DataFrame, known: tuple[str, ...]
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

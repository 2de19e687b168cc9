"""Weighted rates beside the unweighted ones: Spark reduces records to sums, `weights` finishes.

Only for a configuration with `columns.weight`; strata and primary sampling units (named within their stratum) where it
has them. The original only; claims, quality and the permutation null stay unweighted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from . import weights
from .config import Config
from .continuous import best_constant
from .risk import (
    Classes,
    Combination,
    categorical_rows,
    continuous_rows,
    count_below,
    measure_thresholds,
)
from .thresholds import grid_of

METHOD = "wilson_neff, survey"
DESIGN = ("weight", "stratum", "psu")
EXACT = 1e12  # weights add up to this where a count is expected, so that a whole number says enough


@dataclass
class Survey:
    """Weighted figures of one combination; see `summary.Result` for the unweighted ones.

    Attributes:
        n, n_at_risk: records with a defined outcome, and those of them at risk under the weighted thresholds.
        rapid, ci, baseline_rate: of the population.
        weight_sum: weights of the n records together.
        n_effective: records of a simple random sample that would tell as much.
        curve, classes: columns of risk_curve and risk_classes that differ from the keys.
    """

    n: int
    n_at_risk: int
    rapid: float
    weight_sum: float
    ci: tuple[float | None, float | None] = (None, None)
    n_effective: float | None = None
    baseline_rate: float | None = None
    curve: list[dict[str, Any]] = field(default_factory=list)
    classes: list[dict[str, Any]] = field(default_factory=list)
    offset: np.ndarray | float = 0.0  # u_c per class, or u
    cuts: np.ndarray | float = 0.0  # at the configured threshold


def summarise(
    records: DataFrame,
    combinations: Sequence[Combination],
    classes: dict[str, Classes],
    known_classes: dict[int, tuple[str, ...]],
    targets: dict[str, dict[str, float]],
    config: Config,
) -> tuple[dict[int, Survey], list[str]]:
    """Weighted figures per combination index, and warnings.

    Spark jobs: three for all categorical combinations together, one for the continuous ones and two per continuous
    attribute, and one for the variances of all.

    Args:
        records: one row per record: `weight`, `stratum` and `psu` as far as they are configured, sensitive columns,
            predictions.
        combinations: those with an unweighted figure.
        classes: per categorical attribute.
        known_classes: per combination, the classes of the attacker's probability matrix.
        targets: `continuous.spreads` of the original.
        config: thresholds, intervals, columns.
    """
    frame = records.withColumns({c: F.lit("") for c in ("stratum", "psu") if c not in records.columns})
    by_class = [c for c in combinations if c.categorical]
    others = [c for c in combinations if not c.categorical]
    found: dict[int, Survey] = {}
    parts: list[DataFrame] = []
    if by_class:
        rows, figures = _categorical(frame, by_class, classes, known_classes, config)
        found |= figures
        parts += [_linearised_by_class(rows, figures)] if figures else []
    if others:
        rows, figures = _continuous(frame, others, targets, config)
        found |= figures
        parts += [_linearised(rows, figures)] if figures else []
    warnings = _intervals(parts, found, config) if found else []
    return found, warnings


def _categorical(
    frame: DataFrame, combinations: list[Combination], classes: dict[str, Classes],
    known_classes: dict[int, tuple[str, ...]], config: Config,
) -> tuple[DataFrame, dict[int, Survey]]:  # fmt: skip
    widths = {c.index: len(known_classes[c.index]) for c in combinations}
    plain = categorical_rows(frame, combinations, classes, {}, widths, keep=("weight",)).where(F.col("y").isNotNull())
    w, g = F.col("weight"), F.element_at("p", F.col("y"))
    moments = plain.groupBy("combo", "y").agg(
        F.count(F.lit(1)).alias("n"), F.sum(w).alias("w"), F.sum(w * w).alias("ww"), F.sum(w * g).alias("wg"),
        F.sum(w * g * g).alias("wgg"),
    ).toPandas()  # fmt: skip
    plans = {c.index: _Plan.of(c, _by_class(moments, c, classes), config) for c in combinations}
    plans = {i: plan for i, plan in plans.items() if plan.total > 0}
    means = {i: plan.mean.tolist() for i, plan in plans.items()}
    usable = [c for c in combinations if c.index in plans]
    if not usable:
        return plain, {}
    rows = categorical_rows(frame, usable, classes, means, widths, keep=DESIGN)
    defined = rows.where(F.col("y").isNotNull())
    cells, ranks = _cells(defined, plans), _ranks(defined, plans)
    labels = {c.index: classes[c.sensitive_attribute].labels for c in usable}
    return rows, {i: plan.finish(cells[cells["combo"] == i], ranks[ranks["combo"] == i], labels[i])
                  for i, plan in plans.items()}  # fmt: skip


def _by_class(moments: pd.DataFrame, c: Combination, classes: dict[str, Classes]) -> pd.DataFrame:
    k = len(classes[c.sensitive_attribute].labels)
    return moments[moments["combo"] == c.index].set_index("y").reindex(range(1, k + 1), fill_value=0.0)


@dataclass(frozen=True)
class _Plan:
    """Weighted prevalences and sorted edges per class of one categorical combination."""

    combination: Combination
    grid: tuple[float, ...]
    n: np.ndarray
    share: np.ndarray  # weighted prevalence b_c
    total: float
    mean: np.ndarray  # of g, weighted, per class
    cuts: np.ndarray  # (thresholds, classes)
    h: np.ndarray
    edges: tuple[np.ndarray, ...]

    @classmethod
    def of(cls, c: Combination, moments: pd.DataFrame, config: Config) -> _Plan:
        n, w, ww, wg, wgg = (moments[name].to_numpy(dtype=float) for name in ("n", "w", "ww", "wg", "wgg"))
        total = float(w.sum())
        share = w / total if total > 0 else w
        mean, square = (np.divide(x, w, out=np.zeros_like(w), where=w > 0) for x in (wg, wgg))
        grid = grid_of(c, config)
        cuts = np.array([measure_thresholds(c.measure, share, t) for t in grid])
        shift = (1.0 - c.threshold) * np.sqrt(share * (1.0 - share) / max(1.0, float(n.sum())))
        n_effective = np.divide(w**2, ww, out=np.zeros_like(w), where=ww > 0)
        h = weights.half_width(np.sqrt(np.maximum(square - mean**2, 0.0)), n_effective, shift)
        at = cuts[grid.index(c.threshold)]
        stacked = np.concatenate([cuts, [at - h, at + h]])
        edges = tuple(np.unique(stacked[:, k]) for k in range(len(w)))
        return cls(c, grid, n, share, total, mean, cuts, h, edges)

    @property
    def at(self) -> int:
        return self.grid.index(self.combination.threshold)

    def finish(self, cells: pd.DataFrame, ranks: pd.DataFrame, labels: Sequence[str]) -> Survey:
        """Figures from weights and counts by class and position among the edges."""
        above = [_above(cells[cells["y"] == k + 1], "w", len(e)) for k, e in enumerate(self.edges)]
        records = [_above(cells[cells["y"] == k + 1], "n", len(e)) for k, e in enumerate(self.edges)]
        place = [np.searchsorted(e, self.cuts[:, k]) for k, e in enumerate(self.edges)]
        hits = np.array([above[k][place[k]] for k in range(len(above))]) / self.total  # (classes, thresholds)
        rates = hits.sum(axis=0)
        exceeding = np.array([_above(ranks[ranks["k"] == k + 1], "w", len(self.grid)) for k in range(len(above))])
        baselines = self.share @ (exceeding / self.total)
        at, cut = self.at, self.cuts[self.at]
        slope = np.zeros(len(above))
        if self.combination.measure == "normalized_gain":
            low, high = (
                np.array([a[np.searchsorted(e, x)] for a, e, x in zip(above, self.edges, ends, strict=True)])
                for ends in (cut - self.h, cut + self.h)
            )
            size = np.where(self.share > 0, self.share * self.total, 1.0)
            f = weights.density(low / size, high / size, self.h)
            slope = weights.slopes(self.combination.threshold, self.share, f)
        n_hits = [int(records[k][place[k][at]]) for k in range(len(above))]
        return Survey(
            n=int(self.n.sum()), n_at_risk=sum(n_hits), rapid=float(rates[at]), weight_sum=self.total,
            baseline_rate=float(baselines[at]), offset=weights.offsets(float(rates[at]), self.share, slope), cuts=cut,
            curve=[{"threshold": t, "rapid": float(rates[j]), "baseline_rate": float(baselines[j])}
                   for j, t in enumerate(self.grid)],
            classes=[{"class_label": label, "class_rank": k + 1, "prevalence": float(self.share[k]), "n": int(self.n[k]),
                      "n_at_risk": n_hits[k], "rapid": float(hits[k, at] / self.share[k]) if self.share[k] > 0 else None,
                      "mean_true_prob": float(self.mean[k])}
                     for k, label in enumerate(labels)],
        )  # fmt: skip


def _above(cells: pd.DataFrame, what: str, edges: int) -> np.ndarray:
    """Sum of a column over the rows whose value exceeds edge j, for every j."""
    sums = np.bincount(cells["position"].to_numpy(dtype=np.int64), cells[what].to_numpy(dtype=float), edges + 1)
    return np.cumsum(sums[::-1])[::-1][1:]


def _cells(rows: DataFrame, plans: dict[int, _Plan]) -> pd.DataFrame:
    """Weights and counts by combination, true class, and position among the class's edges."""
    lookup = pd.DataFrame(
        [(i, k + 1, e.tolist()) for i, plan in plans.items() for k, e in enumerate(plan.edges)],
        columns=["combo", "y", "edges"],
    )
    table = rows.sparkSession.createDataFrame(lookup, "combo int, y int, edges array<double>")
    longest = max(len(e) for plan in plans.values() for e in plan.edges)
    position = count_below(F.element_at("v", F.col("y")), F.col("edges"), longest).alias("position")
    found: pd.DataFrame = (
        rows.join(F.broadcast(table), ["combo", "y"]).groupBy("combo", "y", position)
        .agg(F.sum("weight").alias("w"), F.count(F.lit(1)).alias("n")).toPandas()
    )  # fmt: skip
    return found


def _ranks(rows: DataFrame, plans: dict[int, _Plan]) -> pd.DataFrame:
    """Weights by combination, class k and position of the record's value of class k among the cuts of that class."""
    lookup = pd.DataFrame(
        [(i, k + 1, plan.cuts[:, k].tolist()) for i, plan in plans.items() for k in range(plan.cuts.shape[1])],
        columns=["combo", "k", "edges"],
    )
    table = rows.sparkSession.createDataFrame(lookup, "combo int, k int, edges array<double>")
    longest = max(len(plan.grid) for plan in plans.values())
    long = rows.select("combo", "weight", F.posexplode("v").alias("i", "value")).withColumn("k", F.col("i") + 1)
    position = count_below(F.col("value"), F.col("edges"), longest).alias("position")
    found: pd.DataFrame = (
        long.join(F.broadcast(table), ["combo", "k"]).groupBy("combo", "k", position)
        .agg(F.sum("weight").alias("w")).toPandas()
    )  # fmt: skip
    return found


def _continuous(
    frame: DataFrame, combinations: list[Combination], targets: dict[str, dict[str, float]], config: Config
) -> tuple[DataFrame, dict[int, Survey]]:
    threshold = config.threshold
    rows = continuous_rows(frame, combinations, threshold, {k: t["spread"] for k, t in targets.items()}, keep=DESIGN)
    edges = sorted({t for c in combinations for t in grid_of(c, config)})
    position = sum(((F.col("error") >= F.lit(float(t))).cast("int") for t in edges), F.lit(0)).alias("position")
    cells = (
        rows.where(F.col("error").isNotNull()).groupBy("combo", position)
        .agg(F.sum("weight").alias("w"), F.count(F.lit(1)).alias("n")).toPandas()
    )  # fmt: skip
    names = dict.fromkeys(c.sensitive_attribute for c in combinations)
    total = float(cells["w"].sum()) or 1.0
    scaled = frame.withColumn("n", F.col("weight") * F.lit(EXACT / total))
    constants = {name: best_constant(scaled, name, combinations, targets[name], threshold) for name in names}
    found = {}
    for c in combinations:
        mine = cells[cells["combo"] == c.index]
        w, n = (np.bincount(mine["position"].to_numpy(dtype=np.int64), mine[k].to_numpy(dtype=float), len(edges) + 1)
                for k in ("w", "n"))  # fmt: skip
        if not w.sum() > 0:
            continue
        rates = np.cumsum(w) / w.sum()
        at, hits = edges.index(c.threshold), constants[c.sensitive_attribute]
        baseline = None if hits is None else hits[1] / EXACT * total / float(w.sum())
        found[c.index] = Survey(
            n=int(n.sum()), n_at_risk=int(np.cumsum(n)[at]), rapid=float(rates[at]), weight_sum=float(w.sum()),
            baseline_rate=baseline, offset=-float(rates[at]), cuts=c.threshold,
            curve=[{"threshold": t, "rapid": float(rates[edges.index(t)])} for t in grid_of(c, config)],
        )  # fmt: skip
    return rows, found


def _linearised_by_class(rows: DataFrame, found: dict[int, Survey]) -> DataFrame:
    """z_i of every record and categorical combination; 0 where the outcome is undefined."""
    lookup = pd.DataFrame(
        [(i, k + 1, float(cut), float(u), s.weight_sum) for i, s in found.items()
         for k, (cut, u) in enumerate(zip(np.atleast_1d(s.cuts), np.atleast_1d(s.offset), strict=True))],
        columns=["combo", "y", "cut", "u", "total"],
    )  # fmt: skip
    table = rows.sparkSession.createDataFrame(lookup, "combo int, y int, cut double, u double, total double")
    rows = rows.where(F.col("combo").isin(*found))
    joined = rows.join(F.broadcast(table), ["combo", "y"], "left")
    at_risk = (F.element_at("v", F.col("y")) > F.col("cut")).cast("double")
    return _units(joined, F.col("weight") / F.col("total") * (at_risk + F.col("u")))


def _linearised(rows: DataFrame, found: dict[int, Survey]) -> DataFrame:
    """As `_linearised_by_class`, where a record is at risk when its error is below the tolerance."""
    lookup = pd.DataFrame(
        [(i, s.cuts, s.offset, s.weight_sum) for i, s in found.items()], columns=["combo", "cut", "u", "total"]
    )
    table = rows.sparkSession.createDataFrame(lookup, "combo int, cut double, u double, total double")
    joined = rows.join(F.broadcast(table), "combo")
    at_risk = (F.col("error") < F.col("cut")).cast("double")
    return _units(joined, F.col("weight") / F.col("total") * (at_risk + F.col("u")))


def _units(rows: DataFrame, z: Column) -> DataFrame:
    return rows.select("combo", "stratum", "psu", F.coalesce(z, F.lit(0.0)).alias("z"))


def _intervals(parts: list[DataFrame], found: dict[int, Survey], config: Config) -> list[str]:
    """Variance by strata and units into every figure's interval; warnings. One Spark job."""
    rows = parts[0]
    for part in parts[1:]:
        rows = rows.unionByName(part)
    if config.columns.psu is not None:
        rows = rows.groupBy("combo", "stratum", "psu").agg(F.sum("z").alias("z"))
    strata = rows.groupBy("combo", "stratum").agg(
        F.count(F.lit(1)).alias("units"), F.sum("z").alias("z"), F.sum(F.col("z") * F.col("z")).alias("zz")
    ).toPandas()  # fmt: skip
    singles = 0
    for i, figure in found.items():
        mine = strata[strata["combo"] == i]
        sums = (mine[name].to_numpy(dtype=float) for name in ("units", "z", "zz"))
        variance, singles = weights.variance(*sums)
        low, high, figure.n_effective = weights.interval(figure.rapid, figure.n, variance, config.intervals.confidence)
        figure.ci = (low, high)
    if not singles:
        return []
    unit = "primary sampling unit" if config.columns.psu else "record"
    return [f"survey weights: strata with a single {unit}: {singles}; it is set against the mean of all units"]

"""Rates of a continuous attribute: tolerance curve, the best constant guess, attacker errors."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from . import intervals, resampling
from .config import Config, Threshold
from .risk import Combination, continuous_rows, count_below, prediction_error
from .sidebyside import at_once
from .summary import Result, variance_of
from .thresholds import grid_of

CELLS_PER_WINDOW = 64


def spreads(frame: DataFrame, columns: dict[str, str], threshold: Threshold) -> dict[str, dict[str, float]]:
    """Per attribute: count, mean, sd, range and lowest of the true values, in one Spark job.

    Args:
        frame: rows with the sensitive columns.
        columns: attribute name to column.
        threshold: says which spread the `normalised` error divides by.

    Returns:
        Per attribute `n`, `mean`, `sd`, `range`, `kurtosis` (0 for a normal law), and `spread` (the one chosen).
    """
    if not columns:
        return {}
    weight = F.col("n") if "n" in frame.columns else F.lit(1)
    figures = []
    for i, column in enumerate(columns.values()):
        c = F.col(column)
        figures += [
            F.count(c).alias(f"n{i}"), F.avg(c).alias(f"mean{i}"), F.stddev_samp(c).alias(f"sd{i}"),
            (F.max(c) - F.min(c)).alias(f"range{i}"), F.kurtosis(c).alias(f"kurtosis{i}"),
        ]
    row = frame.where(weight > 0).agg(*figures).toPandas().iloc[0]
    result = {}
    for i, name in enumerate(columns):
        sd = 0.0 if pd.isna(row[f"sd{i}"]) else float(row[f"sd{i}"])
        span = 0.0 if pd.isna(row[f"range{i}"]) else float(row[f"range{i}"])
        mean = float("nan") if pd.isna(row[f"mean{i}"]) else float(row[f"mean{i}"])
        kurtosis = 0.0 if pd.isna(row[f"kurtosis{i}"]) else float(row[f"kurtosis{i}"])
        result[name] = {"n": int(row[f"n{i}"]), "mean": mean, "sd": sd, "range": span, "kurtosis": kurtosis,
                        "spread": sd if threshold.normalised_by == "sd" else span}
    return result


def summarise_continuous(
    frame: DataFrame, combinations: Sequence[Combination], targets: dict[str, dict[str, float]], config: Config,
    own_spread: bool = True,
) -> dict[int, Result]:
    """Results per combination index, in one Spark aggregation for all of them, and two per attribute.

    One more for errors over the sd of the target, whose flags move with the sample.

    Args:
        frame: one row per record with `n` = 1, the sensitive columns and the predictions.
        combinations: continuous ones.
        targets: `spreads` of the original.
        config: thresholds and intervals.
        own_spread: whether the spread in `targets` is that of these records.
    """
    if not combinations:
        return {}
    threshold = config.threshold
    rows = continuous_rows(frame, combinations, threshold, {k: t["spread"] for k, t in targets.items()})
    grids = {c.index: grid_of(c, config) for c in combinations}
    edges = sorted({t for grid in grids.values() for t in grid})
    error, n = F.col("error"), F.col("n")
    # the number of edges at or below the error: at risk for edge j exactly when it is at most j
    position = sum(((error >= F.lit(float(t))).cast("int") for t in edges), F.lit(0)).alias("position")
    off = F.abs(F.col("y") - F.col("guess"))
    cells = (
        rows.where(F.col("y").isNotNull())
        .groupBy("combo", position)
        .agg(
            F.sum(n).alias("n"), F.sum(n * off).alias("absolute"), F.sum(n * off * off).alias("squared"),
            F.sum(n * off / F.nullif(F.abs("y"), F.lit(0.0))).alias("relative"),
            F.sum(F.when(F.col("y") != 0, n).otherwise(0)).alias("nonzero"),
            F.sum(F.when(F.col("unseen"), n).otherwise(0)).alias("unseen"),
        )
    )
    moves = threshold.error == "normalised" and threshold.normalised_by == "sd" and own_spread
    found: list[Any] = at_once(frame.sparkSession, [
        cells.toPandas,
        lambda: _moving_draws(rows, combinations, grids, targets, config) if moves else {},
        *(functools.partial(best_constant, frame, name, combinations, t, threshold) for name, t in targets.items()),
    ])
    counted, draws, constants = found[0], found[1], dict(zip(targets, found[2:], strict=True))
    results = {}
    for c in combinations:
        mine = counted[counted["combo"] == c.index]
        result = _result(c, mine, grids[c.index], edges, targets, config, draws.get(c.index))
        hits = constants[c.sensitive_attribute]
        if result.n and hits is not None:
            result.baseline_rate = hits[1] / result.n
            result.figures["best_constant_hits"] = hits[1]
        results[c.index] = result
    return results


def _result(
    c: Combination, cells: pd.DataFrame, grid: tuple[float, ...], edges: list[float],
    targets: dict[str, dict[str, float]], config: Config, draws: np.ndarray | None,
) -> Result:
    defined = cells[cells["position"].notna()]
    n = int(defined["n"].sum())
    total = int(cells["n"].sum())
    result = Result(n=n, ci_method=config.intervals.method, place=grid.index(c.threshold))
    if not total:
        return result
    counts = np.bincount(defined["position"].to_numpy(dtype=np.int64), weights=defined["n"].to_numpy(dtype=float),
                         minlength=len(edges) + 1)
    below = np.cumsum(counts).astype(np.int64)
    settings = config.intervals
    result.draws = None if draws is None else draws[:, grid.index(c.threshold)]
    for j, t in enumerate(grid):
        hits = int(below[edges.index(t)])
        own = None if draws is None else draws[:, j]
        result.variances.append(variance_of(hits, n, own) if n else 0.0)
        low, high = interval(hits, n, config, own)
        result.curve.append({"threshold": t, "n_at_risk": hits, "rapid": hits / n if n else None,
                             "ci_low": low, "ci_high": high})
    at = result.curve[grid.index(c.threshold)]
    result.n_at_risk, result.ci = int(at["n_at_risk"] or 0), (at["ci_low"], at["ci_high"])
    squared, target = float(cells["squared"].sum()), targets[c.sensitive_attribute]
    around = target["sd"] ** 2 * (target["n"] - 1)
    nonzero = int(cells["nonzero"].sum())
    result.figures |= {
        "mae": float(cells["absolute"].sum()) / total, "rmse": math.sqrt(squared / total),
        "r2": 1.0 - squared / around if around > 0 else None,
        "relative_mae": float(cells["relative"].sum()) / nonzero if nonzero else None,
        "n_unseen_level": int(cells["unseen"].sum()), "n_unseen_class": 0, "n_undefined_error": total - n,
        "confidence": settings.confidence,
    }
    return result


def _moving_draws(
    rows: DataFrame, combinations: Sequence[Combination], grids: dict[int, tuple[float, ...]],
    targets: dict[str, dict[str, float]], config: Config,
) -> dict[int, np.ndarray]:
    """Bootstrap draws of the rate of errors over the sd of the target, (draws, tolerances) per combination.

    The tolerance on |y - p| is that times the replicate's own sd, the root of its mean of m = ((y - mean) / sd)^2. So
    errors are counted in fine cells around every tolerance, with sums of m and m^2 (`resampling.conditional_hits`). That
    the replicate's mean of y moves as well changes its variance by 1/n only.
    """
    if config.intervals.method not in ("wilson_neff", "bootstrap"):
        return {}
    edges = {
        c.index: resampling.conditional_edges(
            grids[c.index], 0.5 * math.sqrt(max(0.0, targets[c.sensitive_attribute]["kurtosis"] + 2.0)),
            int(targets[c.sensitive_attribute]["n"]),
        )
        for c in combinations if targets[c.sensitive_attribute]["sd"] > 0
    }
    table = pd.DataFrame(
        [(c.index, edges[c.index].tolist(), targets[c.sensitive_attribute]["mean"], targets[c.sensitive_attribute]["sd"])
         for c in combinations if c.index in edges],
        columns=["combo", "edges", "mean", "sd"],
    )
    known = rows.sparkSession.createDataFrame(table, "combo int, edges array<double>, mean double, sd double")
    m = F.pow((F.col("y") - F.col("mean")) / F.col("sd"), F.lit(2.0))
    position = count_below(F.col("error"), F.col("edges"), max(map(len, edges.values()), default=1)).alias("position")
    counted = (
        rows.where(F.col("error").isNotNull()).join(F.broadcast(known), "combo").groupBy("combo", position)
        .agg(F.sum("n").alias("n"), F.sum(F.col("n") * m).alias("total"), F.sum(F.col("n") * m * m).alias("squares"))
        .toPandas()
    )
    draws = {}
    for index, edge in edges.items():
        mine = counted[counted["combo"] == index]
        place = mine["position"].to_numpy(dtype=np.int64)
        n, total, squares = (
            np.bincount(place, weights=mine[c].to_numpy(dtype=float), minlength=len(edge) + 1)
            for c in ("n", "total", "squares")
        )
        size = int(n.sum())
        if size:
            scale = total.sum() / size
            cells = resampling.ValueCells(edge, n.astype(np.int64), total / scale, squares / scale**2)
            sizes = np.full((config.intervals.bootstrap, 1), size)
            above = resampling.conditional_hits(sizes, [cells], grids[index], config.training.seed, 0.5)
            draws[index] = (size - above) / size
    return draws


def interval(
    hits: int, n: int, config: Config, draws: np.ndarray | None = None
) -> tuple[float | None, float | None]:
    """Interval of a rate: from its draws, or binomial (n_eff = n) where flags do not move with the sample."""
    settings = config.intervals
    if not n:
        return None, None
    if draws is not None:
        if settings.method == "bootstrap":
            return intervals.percentile(draws, settings.confidence)
        return intervals.wilson_neff(hits / n, n, float(draws.var(ddof=1)), settings.confidence)
    if settings.method == "bootstrap":
        from scipy.stats import binom

        tail = (1.0 - settings.confidence) / 2.0
        return float(binom.ppf(tail, n, hits / n)) / n, float(binom.ppf(1.0 - tail, n, hits / n)) / n
    method = "wilson" if settings.method == "wilson_neff" else settings.method
    return intervals.proportion(hits, n, settings.confidence, method)


def _coordinate(y: Column, threshold: Threshold) -> tuple[Column, Column]:
    """(sign, t) such that the values a constant hits form a window of constant width in t, per sign."""
    if threshold.error in ("absolute", "normalised"):
        return F.lit(1), y
    delta = 0.0 if threshold.error == "relative" else threshold.delta
    size = F.abs(y) + F.lit(delta)
    sign = F.when(y < 0, -1).otherwise(1)
    return sign, F.when(size > 0, F.log(size))


def _window(threshold: Threshold, spread: float, tolerance: float) -> tuple[float, float]:
    """(how far a hit value may lie below, above the constant), in the coordinate t."""
    if threshold.error == "symmetric":
        half = 2.0 * math.atanh(tolerance / 2.0)
        return half, half
    if threshold.error in ("stabilised_relative", "relative"):
        # ln(1 - e) < t_c - t_y < ln(1 + e)
        return math.log1p(tolerance), -math.log1p(-tolerance)
    half = tolerance * (spread if threshold.error == "normalised" else 1.0)
    return half, half


def _constant(sign: int, t: float, threshold: Threshold) -> float:
    if threshold.error in ("absolute", "normalised"):
        return t
    delta = 0.0 if threshold.error == "relative" else threshold.delta
    return sign * max(0.0, math.exp(t) - delta)


def best_constant(
    frame: DataFrame, name: str, combinations: Sequence[Combination], target: dict[str, float], threshold: Threshold
) -> tuple[float, int] | None:
    """The constant guess that puts most true values within the tolerance, and its exact hits.

    Values are counted by cells of a 64th of the window, per sign; the window slides over the cells on the driver; the
    best constants of both signs, and constants around 0 whose windows hold values of both signs, are then counted
    exactly. So the count is exact for the constant named, and that constant at most one cell short of the best.

    Returns:
        (constant, hits), or None where the attribute has no defined error.
    """
    mine = [c for c in combinations if c.sensitive_attribute == name]
    if not mine or (threshold.error == "normalised" and not target["spread"]):
        return None
    column, tolerance = mine[0].column, mine[0].threshold
    below, above = _window(threshold, target["spread"], tolerance)
    width = (below + above) / CELLS_PER_WINDOW
    values = frame.where(F.col(column).isNotNull()).select(F.col(column).alias("y"), "n")
    sign, t = _coordinate(F.col("y"), threshold)
    cells = (
        values.groupBy(sign.alias("sign"), F.floor(t / F.lit(width)).alias("cell")).agg(F.sum("n").alias("n"))
        .where(F.col("cell").isNotNull()).toPandas()
    )
    candidates = [_slide(cells[cells["sign"] == s], s, below, width, threshold) for s in (-1, 1)]
    if threshold.error in ("symmetric", "stabilised_relative"):
        reach = 2.0 * threshold.delta * tolerance / (2.0 - tolerance)
        candidates += list(np.linspace(-reach, reach, 33))
    found = [c for c in candidates if c is not None]
    if not found:
        return None
    counts = values.agg(*(
        F.sum(F.when(prediction_error(F.col("y"), F.lit(float(c)), threshold, target["spread"]) < tolerance,
                     F.col("n")).otherwise(0)).alias(f"c{i}")
        for i, c in enumerate(found)
    )).toPandas().iloc[0]
    best = int(np.argmax(counts.to_numpy(dtype=np.int64)))
    return float(found[best]), int(counts.iloc[best])


def _slide(cells: pd.DataFrame, sign: int, below: float, width: float, threshold: Threshold) -> float | None:
    """Best window of 64 consecutive cells, as the constant whose window it is."""
    if cells.empty:
        return None
    ordered = cells.sort_values("cell")
    cell = ordered["cell"].to_numpy(dtype=np.int64)
    total = np.concatenate([[0], np.cumsum(ordered["n"].to_numpy(dtype=np.int64))])
    # windows that start at an occupied cell, or end at one
    starts = np.unique(np.concatenate([cell, cell - CELLS_PER_WINDOW + 1]))
    inside = total[np.searchsorted(cell, starts + CELLS_PER_WINDOW)] - total[np.searchsorted(cell, starts)]
    start = int(starts[np.argmax(inside)])
    return _constant(sign, start * width + below, threshold)

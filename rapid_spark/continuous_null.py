"""Permutation null of a continuous rate: exact moments from two histograms, whatever the number of records.

A prediction p is a hit for exactly the true values y in one interval (L(p), U(p)). Shuffling the targets against the
predictions therefore has known mean and variance, which need only how many targets each interval holds and how many
intervals hold each target.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from . import resampling
from .config import Config, Threshold
from .resampling import Null
from .risk import Combination
from .sidebyside import at_once
from .summary import Result

CELLS = 2**15


def hit_interval(
    p: np.ndarray, tolerance: float, threshold: Threshold, spread: float | None
) -> tuple[np.ndarray, np.ndarray]:
    """Open interval (L, U) of the true values that prediction p hits.

    Args:
        p: predictions.
        tolerance: e; below 2 for the symmetric error, below 1 for the relative ones.
        threshold: error kind and smoothing d.
        spread: divisor of the normalised error.

    Returns:
        L and U. Symmetric, p >= 0: U = (p(2+e) + 2ed)/(2-e), L = (p(2-e) - 2ed)/(2+e), divided by (2-e) instead
        when negative; a negative p mirrors.
    """
    p = np.asarray(p, dtype=float)
    if threshold.error in ("absolute", "normalised"):
        half = tolerance * (1.0 if threshold.error == "absolute" else float(spread or np.nan))
        return p - half, p + half
    e, size = tolerance, np.abs(p)
    if threshold.error == "symmetric":
        d = threshold.delta
        low = size * (2 - e) - 2 * e * d
        high = (size * (2 + e) + 2 * e * d) / (2 - e)
        low = np.where(low < 0, low / (2 - e), low / (2 + e))
    else:
        d = 0.0 if threshold.error == "relative" else threshold.delta
        low = size - e * d
        high = (size + e * d) / (1 - e)
        low = np.where(low < 0, low / (1 - e), low / (1 + e))
    return np.where(p < 0, -high, low), np.where(p < 0, -low, high)


def add_nulls(
    frame: DataFrame, combinations: Sequence[Combination], results: dict[int, Result],
    targets: dict[str, dict[str, float]], config: Config,
) -> None:
    """Put the permutation null and the data-driven threshold into each result; two Spark group-bys in all.

    Args:
        frame: rows with `n`, sensitive columns and predictions.
        combinations: continuous ones; those without a result are passed over.
        results: by combination index; changed.
        targets: count, range and spread per attribute.
        config: threshold and intervals.
    """
    mine = [c for c in combinations if c.index in results and results[c.index].n]
    if not mine or not config.intervals.permutations:
        return
    exact = max(targets[c.sensitive_attribute]["n"] for c in mine) <= CELLS
    columns = {c.sensitive_attribute: c.column for c in mine}
    truths, guesses = at_once(frame.sparkSession, [
        lambda: _histogram(
            frame, {name: (F.col(column), F.col(column)) for name, column in columns.items()}, targets, config, exact
        ),
        lambda: _histogram(
            frame,
            {str(c.index): (F.col(f"{c.prediction}_value"), F.col(c.column)) for c in mine},
            {str(c.index): targets[c.sensitive_attribute] for c in mine}, config, exact,
        ),
    ])
    for c in mine:
        y, p = truths[c.sensitive_attribute], guesses[str(c.index)]
        spread = targets[c.sensitive_attribute]["spread"]
        result = results[c.index]
        nulls = {
            float(row["threshold"] or 0): _null(y, p, float(row["threshold"] or 0), int(row["n_at_risk"] or 0), result.n,
                                                config.threshold, spread)
            for row in result.curve
            if float(row["threshold"] or 0) <= c.threshold and _allowed(float(row["threshold"] or 0), config.threshold)
        }
        result.null = nulls.get(c.threshold)
        descending = sorted(nulls, reverse=True)
        observed = {float(row["threshold"] or 0): float(row["rapid"] or 0) for row in result.curve}
        rates, limits = [observed[t] for t in descending], [nulls[t].q95 for t in descending]
        result.data_driven_threshold = resampling.fixed_sequence(descending, rates, limits)
        result.exploratory_threshold = min(
            (t for t, r, q in zip(descending, rates, limits, strict=True) if r > q), default=None
        )


def _allowed(tolerance: float, threshold: Threshold) -> bool:
    limits = {"symmetric": 2.0, "relative": 1.0, "stabilised_relative": 1.0}
    return 0 < tolerance < limits.get(threshold.error, np.inf)


def _histogram(
    frame: DataFrame, values: dict[str, tuple[Column, Column]], targets: dict[str, dict[str, float]], config: Config,
    exact: bool,
) -> dict[str, pd.DataFrame]:
    """Counts by ordered cell and the mean value in it, for several columns in one group-by; null truths are left out."""
    zero = config.threshold.error == "relative"
    structs = []
    for name, (value, truth) in values.items():
        cell = value if exact else _cell(value, targets[name], config.threshold)
        defined = truth.isNotNull() & ((truth != 0) if zero else F.lit(True))
        structs.append(F.struct(F.lit(name).alias("name"), F.when(defined, cell).alias("cell"), value.alias("value")))
    counted = (
        frame.select("n", F.inline(F.array(*structs))).where(F.col("cell").isNotNull())
        .groupBy("name", "cell").agg(
            F.sum("n").alias("n"), (F.sum(F.col("n") * F.col("value")) / F.sum("n")).alias("value"),
            F.min("value").alias("low"), F.max("value").alias("high"),
        ).toPandas()
    )
    return {str(name): group.sort_values("value") for name, group in counted.groupby("name")}


def _cell(value: Column, target: dict[str, float], threshold: Threshold) -> Column:
    """Ordered cells: of constant width in the value, or in its signed logarithm for the relative errors."""
    if threshold.error in ("absolute", "normalised"):
        return F.floor(value / F.lit(target["range"] / CELLS)).cast("double")
    unit = target["sd"] * 1e-3 if threshold.error == "relative" else threshold.delta
    top = np.log1p((abs(target["mean"]) + target["range"]) / unit)
    return F.floor(F.signum(value) * F.log1p(F.abs(value) / F.lit(unit)) / F.lit(2.0 * top / CELLS)).cast("double")


def _null(
    y: pd.DataFrame, p: pd.DataFrame, tolerance: float, observed: int, n: int, threshold: Threshold, spread: float
) -> Null:
    low, high = hit_interval(p["value"].to_numpy(), tolerance, threshold, spread)
    n_y, n_p = y["n"].to_numpy(dtype=float), p["n"].to_numpy(dtype=float)
    r = _mass_below(y, high, strict=True) - _mass_below(y, low, strict=False)
    # how many intervals hold each target: opened at or before it, less closed before it
    at = y["value"].to_numpy()
    opened, closed = _weight_order(low, n_p), _weight_order(high, n_p)
    c = opened(at, "left") - closed(at, "right")
    a = float(n_p @ r)
    mean, variance = resampling.moments(float(n), a, float(n_p @ r**2), float(n_y @ c**2))
    return resampling.null_from_moments(mean, variance, n, observed)


def _mass_below(y: pd.DataFrame, x: np.ndarray, strict: bool) -> np.ndarray:
    """Targets below x (strict) or up to x; a cell that x cuts counts in proportion."""
    n, low, high = (y[c].to_numpy(dtype=float) for c in ("n", "low", "high"))
    total = np.concatenate([[0.0], np.cumsum(n)])
    full = np.searchsorted(high, x, "left" if strict else "right")
    rest = np.minimum(full, len(n) - 1)
    width = high[rest] - low[rest]
    cut = np.where(width > 0, (x - low[rest]) / np.where(width > 0, width, 1.0), 0.0)
    return total[full] + np.where(full < len(n), n[rest] * np.clip(cut, 0.0, 1.0), 0.0)


def _weight_order(x: np.ndarray, weight: np.ndarray):  # type: ignore[no-untyped-def]
    order = np.argsort(x, kind="stable")
    ascending, total = x[order], np.concatenate([[0.0], np.cumsum(weight[order])])
    return lambda at, side: total[np.searchsorted(ascending, at, side)]

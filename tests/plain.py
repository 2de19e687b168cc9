"""Plain NumPy versions of what the package computes, written from the definitions."""

from __future__ import annotations

import numpy as np


def normalized_gain(p, y, tau):
    """at_risk per record; p (n, K) probabilities, y class index; baselines from y."""
    n, k = p.shape
    b = np.array([np.mean(y == j) for j in range(k)])
    g = p[np.arange(n), y]
    return g > b[y] + tau * (1 - b[y])


def error(y, p, kind, delta=0.01):
    y, p = np.asarray(y, float), np.asarray(p, float)
    if kind == "symmetric":
        return 2 * abs(y - p) / (abs(y) + abs(p) + 2 * delta)
    if kind == "stabilised_relative":
        return abs(y - p) / (abs(y) + delta)
    if kind == "relative":
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(y == 0, np.nan, abs(y - p) / abs(y))
    if kind == "normalised":
        return abs(y - p) / np.std(y, ddof=1)
    return abs(y - p)


def scored_frame(spark, labels, p, unseen=None, column="s0"):
    """A frame as scoring leaves it: one row per record, predictions of attacker c0 in prediction_0."""
    from pyspark.sql import functions as F

    unseen = [False] * len(labels) if unseen is None else unseen
    rows = [(None if y is None else str(y), [float(x) for x in row], bool(u), 1)
            for y, row, u in zip(labels, p, unseen, strict=True)]
    frame = spark.createDataFrame(rows, f"{column} string, p array<double>, u boolean, n int")
    return frame.select(
        column, "n", F.struct(F.col("p").alias("c0_p"), F.col("u").alias("c0_unseen")).alias("prediction_0")
    )


def continuous_frame(spark, y, guess, column="s0"):
    from pyspark.sql import functions as F

    rows = [(None if v is None else float(v), float(g), False, 1) for v, g in zip(y, guess, strict=True)]
    frame = spark.createDataFrame(rows, f"{column} double, v double, u boolean, n int")
    return frame.select(
        column, "n", F.struct(F.col("v").alias("c0_value"), F.col("u").alias("c0_unseen")).alias("prediction_0")
    )

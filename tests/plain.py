"""Plain NumPy versions of what the package computes, written from the definitions."""

from __future__ import annotations

import numpy as np
import pandas as pd


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


def values(measure, p, y):
    """The measure's value of every class."""
    if measure == "normalized_gain":
        return p
    if measure == "nce":
        return 1 + np.log(np.maximum(p, 1e-10)) / np.log(p.shape[1])
    g, k = p[np.arange(len(y)), y], p.shape[1]
    mean = (np.bincount(y, g, k) / np.maximum(1, np.bincount(y, minlength=k))).round(12)
    return np.divide(p, mean, out=np.zeros(p.shape), where=mean > 0)


def result(p, y, measure="normalized_gain", plan=None, **settings):
    """Result and plan of one combination, from NumPy counts in place of Spark's; classes in rank order.

    With `plan` the records are judged by another table's thresholds.
    """
    from rapid_spark import config, summary, thresholds
    from rapid_spark.risk import Classes, Combination

    y, k = np.asarray(y), p.shape[1]
    parsed = config.parse({"measures": [measure]} | settings)
    c = Combination(0, "all", ("x",), "y", "s0", "categorical", 1, "rf", measure, parsed.threshold.tau[measure], "", "class")
    classes = Classes(tuple("abcdefghij"[:k]), np.bincount(y, minlength=k))
    g, v = p[np.arange(len(y)), y], values(measure, p, y)
    cv = [float((g[y == j].std() / g[y == j].mean()).round(12)) if g[y == j].sum() > 0 else 0.0 for j in range(k)]
    plan = plan or thresholds.plan(c, classes, parsed, cv)
    guess = p.argmax(axis=1)
    at, cut = np.arange(len(y)), plan.cuts[plan.at]
    cells = pd.DataFrame({
        "y": y + 1, "guess": guess + 1, "claim": v[at, guess] > cut[guess],
        "position": [np.searchsorted(plan.edges[j], v[i, j]) for i, j in enumerate(y)], "n": 1, "g": g, "g2": g * g,
        "loss": -np.log(np.maximum(g, np.finfo(float).eps)), "unseen": 0,
    }).groupby(["y", "guess", "claim", "position"], as_index=False).sum()
    places = np.array([[np.searchsorted(plan.cuts[:, j], v[i, j]) for j in range(k)] for i in at])
    ranks = pd.concat([
        pd.DataFrame({"k": j + 1, "bin": p[:, j].round(4), "position": places[:, j], "n": 1, "positives": (y == j).astype(int)})
        for j in range(k)
    ]).groupby(["k", "bin", "position"], as_index=False).sum()
    found, counts = np.unique(places, axis=0, return_counts=True)
    masks = pd.DataFrame({"positions": found.tolist(), "n": counts}) if parsed.intervals.permutations else None
    counted = summary.Counted(cells, ranks, masks)
    return summary.finish(plan, counted, classes.labels, parsed)[0], plan

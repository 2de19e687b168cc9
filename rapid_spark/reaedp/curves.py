"""Sums of curves by Spark, for the private mean: each curve is clipped, and no noise is drawn here."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from rapid_spark.reaedp.histogram import check_columns, quoted
from rapid_spark.reaedp.noise import Floats


def sum_curves(
    frame: DataFrame, columns: Sequence[str], mass: Floats, norm_limit: float
) -> tuple[Floats, int]:
    """The sum of curves, each scaled down to norm at most `norm_limit`, and how many curves there are.

    A curve is a row with one column per point of the grid. A missing value takes that of the last point
    before it, or of the first after it; a curve without a value is 0 everywhere. So every curve counts,
    whatever it holds.

    Args:
        frame: one row per curve.
        columns: the columns in the order of the grid.
        mass: tridiagonal matrix as two rows: the squared norm of x is sum m[0] x_k^2 + 2 sum m[1] x_k
            x_(k+1).
        norm_limit: the largest norm of a curve.
    """
    sums = [F.sum(F.col("x")[i]).alias(f"s{i}") for i in range(len(columns))]
    row = _clipped(frame, columns, mass, norm_limit).agg(F.count(F.lit(1)).alias("n"), *sums).first()
    assert row is not None
    return np.array([row[f"s{i}"] or 0.0 for i in range(len(columns))]), int(row["n"])


def mean_form(frame: DataFrame, columns: Sequence[str], mass: Floats, norm_limit: float, matrix: Floats) -> float:
    """The mean over clipped curves of the quadratic form x' M x, for evaluations.

    Args:
        frame: as in `sum_curves`.
        columns: as in `sum_curves`.
        mass: as in `sum_curves`.
        norm_limit: as in `sum_curves`.
        matrix: M, one row and column per point of the grid.
    """

    def dot(a: Column, b: Column) -> Column:
        return F.aggregate(F.zip_with(a, b, lambda v, w: v * w), F.lit(0.0), lambda total, v: total + v)

    rows = F.array(*[F.array(*[F.lit(float(v)) for v in row]) for row in matrix])
    form = dot(F.transform(rows, lambda r: dot(r, F.col("x"))), F.col("x"))
    row = _clipped(frame, columns, mass, norm_limit).agg(F.avg(form).alias("form")).first()
    assert row is not None
    return float(row["form"] or 0.0)


def _clipped(frame: DataFrame, columns: Sequence[str], mass: Floats, norm_limit: float) -> DataFrame:
    check_columns(frame, columns)
    raw = [F.expr(f"try_cast({quoted(c)} as double)") for c in columns]
    finite = F.array(*[F.when(~F.isnan(v) & (F.abs(v) < float("inf")), v) for v in raw])
    filled = frame.select(_fill(_fill(finite, backward=False), backward=True).alias("x"))
    # The norm of x over its largest value, so that no square overflows.
    values = [F.col("x")[i] for i in range(len(columns))]
    top = F.greatest(*[F.abs(v) for v in values]) if len(values) > 1 else F.abs(values[0])
    scaled = filled.withColumn("top", F.when(top > 0, top).otherwise(1.0)).select(
        "top", F.transform("x", lambda v: v / F.col("top")).alias("u")
    )
    unit = [F.col("u")[i] for i in range(len(columns))]
    squares = [F.lit(float(m)) * u * u for m, u in zip(mass[0], unit, strict=True)]
    squares += [F.lit(2 * float(m)) * a * b for m, a, b in zip(mass[1], unit, unit[1:], strict=False)]
    norm = F.sqrt(F.greatest(reduce(lambda a, b: a + b, squares), F.lit(0.0)))
    # u * min(top, limit / norm(u)) = x * min(1, limit / norm(x)).
    factor = F.when(norm * F.col("top") > norm_limit, norm_limit / norm).otherwise(F.col("top"))
    return scaled.withColumn("f", factor).select(F.transform("u", lambda v: v * F.col("f")).alias("x"))


def widen_curves(frame: DataFrame, curve: str, time: str, value: str, grid: Sequence[float]) -> DataFrame:
    """Long curves (one row per curve and time) as one row per curve with columns `t0`, `t1`, .. at the grid's
    times.

    Several values of one curve at one time are averaged; times off the grid are left out.
    """
    check_columns(frame, [curve, time, value])
    at = F.expr(f"try_cast({quoted(time)} as double)")
    measured = F.expr(f"try_cast({quoted(value)} as double)")
    finite = F.when(~F.isnan(measured) & (F.abs(measured) < float("inf")), measured)
    points = [F.avg(F.when(at == float(g), finite)).alias(f"t{i}") for i, g in enumerate(grid)]
    return frame.groupBy(F.col(quoted(curve)).alias("curve")).agg(*points)


def _fill(values: Column, *, backward: bool) -> Column:
    """Missing entries take the entry before; `backward` starts at the end, and ends with 0."""
    source = F.reverse(values) if backward else values

    def step(state: Column, v: Column) -> Column:
        last = F.coalesce(v, state["last"])
        return F.struct(F.concat(state["all"], F.array(last)).alias("all"), last.alias("last"))

    start = F.struct(
        F.array().cast("array<double>").alias("all"),
        F.lit(0.0 if backward else None).cast("double").alias("last"),
    )
    filled = F.aggregate(source, start, step)["all"]
    return F.reverse(filled) if backward else filled

"""Baselines beyond prevalence: the prevalence within strata that everybody knows."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from .risk import Classes, Combination, categorical_rows


def rates(
    cells: DataFrame, combinations: Sequence[Combination], classes: dict[str, Classes], by: Sequence[str]
) -> dict[int, float]:
    """RAPID with b_i the share of the record's class within its stratum; one shuffle for all combinations.

    A stratum with one class has b = 1: nothing about it can be disclosed, and its records are not at risk.

    Args:
        cells: rows with `n`, the columns of `by`, sensitive columns and predictions.
        combinations: of the measure `normalized_gain`.
        classes: per attribute.
        by: columns of the strata.

    Returns:
        Share of records at risk, per combination index.
    """
    if not combinations:
        return {}
    kept = ("n", *by)
    rows = categorical_rows(cells, combinations, classes, {}, {c.index: 2 for c in combinations}, kept)
    rows = rows.where(F.col("y").isNotNull()).withColumn("g", F.element_at("p", F.col("y")))
    stratum = Window.partitionBy("combo", *by)
    own = Window.partitionBy("combo", *by, "y")
    with_baseline = rows.withColumn("b", F.sum("n").over(own) / F.sum("n").over(stratum))
    pairs = (x for c in combinations for x in (F.lit(c.index), F.lit(c.threshold)))
    tau = F.element_at(F.create_map(*pairs), F.col("combo"))
    at_risk = F.col("g") > F.col("b") + tau * (1.0 - F.col("b"))
    found = with_baseline.groupBy("combo").agg(
        (F.sum(F.when(at_risk, F.col("n")).otherwise(0)) / F.sum("n")).alias("rate")
    ).toPandas()
    return {int(combo): float(rate) for combo, rate in zip(found["combo"], found["rate"], strict=True)}

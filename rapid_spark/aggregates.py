"""Group-bys of scored rows whose results are small: what every figure of a categorical attribute is computed from.

Every function takes rows of `risk.categorical_rows` with their count `n`, and reduces them by class, predicted class and
position among sorted thresholds. No second scoring, nothing row-sized on the driver.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from . import quality
from .risk import LOG_LOSS_FLOOR, Classes, Combination, categorical_rows, count_below
from .thresholds import Plan

PATTERNS_DRAWN = 10_000  # more flag patterns than that: exact moments instead of draws


def true_prob_moments(
    frame: DataFrame, combinations: Sequence[Combination], classes: dict[str, Classes], widths: dict[int, int]
) -> dict[int, list[tuple[float, float]]]:
    """Mean and sd of g per class, which `rcs_conditional` needs before its values exist; one Spark job if any."""
    if not combinations:
        return {}
    rows = categorical_rows(frame, combinations, classes, {}, widths).where(F.col("y").isNotNull())
    g, n = F.try_element_at("p", F.col("y")), F.col("n")
    counted = rows.groupBy("combo", "y").agg(
        (F.sum(n * g) / F.sum(n)).alias("mean"), (F.sum(n * g * g) / F.sum(n)).alias("square")
    ).toPandas()
    found = {
        # rounded, so that the order in which Spark adds does not show
        (int(combo), int(y)): (round(float(mean), 12), round(max(0.0, float(square) - float(mean) ** 2) ** 0.5, 12))
        for combo, y, mean, square in counted.itertuples(index=False)
    }
    return {
        c.index: [
            found.get((c.index, k + 1), (0.0, 0.0)) for k in range(len(classes[c.sensitive_attribute].labels))
        ]
        for c in combinations
    }


def core_counts(rows: DataFrame, spark: object, plans: dict[int, Plan]) -> pd.DataFrame:
    """Counts by combination, true class, predicted class, confident claim and position among the thresholds."""
    lookup = pd.DataFrame(
        [
            (i, k + 1, plan.edges[k].tolist(), plan.cuts[plan.at].tolist())
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
            F.sum(n * F.col("g") * F.col("g")).alias("g2"),
            F.sum(-n * F.log(F.greatest("g", F.lit(LOG_LOSS_FLOOR)))).alias("loss"),
            F.sum(F.when(F.col("unseen"), n).otherwise(0)).alias("unseen"),
        )
        .toPandas()
    )


def _grid_table(spark: object, plans: dict[int, Plan]) -> tuple[DataFrame, int]:
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


def rank_counts(rows: DataFrame, spark: object, plans: dict[int, Plan]) -> pd.DataFrame:
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


def mask_counts(rows: DataFrame, spark: object, plans: dict[int, Plan]) -> dict[int, pd.DataFrame]:
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


def _mask_moments(counted: DataFrame, plan: Plan) -> pd.DataFrame:
    """Sums of n r and n r^2 per threshold of the grid, r = records whose class the prediction would hit."""
    counts = F.array(*(F.lit(float(x)) for x in plan.classes.counts))
    long = counted.select("n", "positions", F.explode(F.array(*(F.lit(j) for j in range(len(plan.grid))))).alias("j"))
    hit = F.zip_with("positions", counts, lambda p, c: F.when(p > F.col("j"), c).otherwise(F.lit(0.0)))
    r = F.aggregate(hit, F.lit(0.0), lambda a, x: a + x)
    return long.select("j", "n", r.alias("r")).groupBy("j").agg(
        F.sum(F.col("n") * F.col("r") * F.col("r")).alias("row_squares")
    ).toPandas()

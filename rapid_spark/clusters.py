"""Persons and households with several rows: at risk if any row is; intervals that count people, not rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F


@dataclass(frozen=True)
class ClusterRate:
    """What one combination gives by cluster.

    Attributes:
        n: clusters with a defined outcome.
        n_at_risk: clusters with any record at risk.
        design_effect: variance of the record rate by clusters over its variance if records were independent.
    """

    n: int
    n_at_risk: int
    design_effect: float


def cluster_rates(frame: DataFrame, cluster: str, flags: Mapping[int, Column]) -> dict[int, ClusterRate]:
    """Rates by cluster for all combinations, in two Spark aggregations (a shuffle by cluster, then one row).

    The variance of the record rate R is that of a ratio over clusters, C/(C-1) sum (h_c - R m_c)^2 / n^2, with h_c
    hits among the m_c records of cluster c (Cochran, Sampling Techniques, section 9).

    Args:
        frame: one row per record with column `cluster`; a record without one is a cluster of its own.
        cluster: column.
        flags: per combination, its at_risk column (null where undefined).
    """
    if not flags:
        return {}
    own = F.concat(F.lit("\x00"), F.col("record_id").cast("string"))
    grouped = frame.groupBy(F.coalesce(F.concat(F.lit("\x01"), F.col(cluster).cast("string")), own).alias("_cluster")).agg(
        *(F.sum(flag.cast("int")).alias(f"h{i}") for i, flag in flags.items()),
        *(F.count(flag).alias(f"m{i}") for i, flag in flags.items()),
    )
    sums = []
    for i in flags:
        h, m = F.coalesce(F.col(f"h{i}"), F.lit(0)).cast("double"), F.col(f"m{i}").cast("double")
        sums += [
            F.count_if(m > 0).alias(f"c{i}"), F.count_if(h > 0).alias(f"any{i}"), F.sum(h).alias(f"sh{i}"),
            F.sum(m).alias(f"sm{i}"), F.sum(h * h).alias(f"hh{i}"), F.sum(h * m).alias(f"hm{i}"),
            F.sum(m * m).alias(f"mm{i}"),
        ]
    row = grouped.agg(*sums).toPandas().iloc[0]
    result = {}
    for i in flags:
        count, n, hits = int(row[f"c{i}"]), float(row[f"sm{i}"] or 0), float(row[f"sh{i}"] or 0)
        rate = hits / n if n else 0.0
        squares = float(row[f"hh{i}"]) - 2 * rate * float(row[f"hm{i}"]) + rate**2 * float(row[f"mm{i}"])
        independent = n * rate * (1 - rate)
        effect = squares * count / (count - 1) / independent if count > 1 and independent > 0 else 1.0
        result[i] = ClusterRate(count, int(row[f"any{i}"]), effect)
    return result

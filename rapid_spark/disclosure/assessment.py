"""All classical measures of a release, and RAPID beside them; reads and writes nothing."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ..config import Config
from ..kept import hold, let_go
from ..results import Assessment
from ..shared_columns import SharedTables
from ..suite import rows_of
from . import distances, measures
from .cells import binned, cells, check_bins
from .measures import Measure, measure

Stage = Callable[[str], AbstractContextManager[None]]


def assess(tables: SharedTables, config: Config, stage: Stage, cores: int = 2) -> list[Measure]:
    """Every classical measure, per quasi-identifier set, sensitive attribute and replicate.

    Args:
        tables: laid side by side.
        config: with `disclosure`.
        stage: names what runs.
        cores: tasks at once.

    Raises:
        ConfigError: bins of a column that is not there or holds no numbers.
    """
    settings = config.disclosure
    check_bins(tables, settings.bins)
    numeric = {s.column: s.numeric for s in tables.columns}
    everything = [s.column for s in tables.columns]
    found: list[Measure] = []
    for replicate, release in tables.releases.items():
        one = {"replicate": replicate}
        with stage("counting key cells"):
            for qi_set, keys in tables.sets.items():
                by_key = cells(tables, release, keys, None, settings.bins)
                found += measures.of_keys(by_key, settings.sampling_fraction, {**one, "qi_set": qi_set})
                for name, target in tables.targets.items():
                    about = {**one, "qi_set": qi_set, "sensitive_attribute": name}
                    counted = cells(tables, release, keys, target, settings.bins)
                    hold(counted.frame)
                    try:
                        found += measures.of_targets(counted, about)
                        found.append(measures.t_closeness(counted, numeric[target], about))
                    finally:
                        let_go(counted.frame)
            found.append(measures.identical(cells(tables, release, everything, None, {}), one))
        with stage("finding nearest records"):
            found += distances.of_release(tables, release, settings.max_records, config.training.seed, one, cores)
    return found


def of_rapid(assessment: Assessment) -> list[Measure]:
    """RAPID and its excess over chance as rows beside the classical measures, original records only."""
    found = []
    for row in rows_of(assessment.summary):
        if row["scored_on"] != "original":
            continue
        about = {key: row[key] for key in ("qi_set", "sensitive_attribute", "replicate", "attacker")}
        for name, column in (("rapid", "rapid"), ("rapid_excess", "excess")):
            ok = row["status"] == "ok" and row[column] is not None
            reason = None if ok else (row["reason"] or "not defined for this measure")
            found.append(measure(name, float(row[column]) if ok else None, row["n"], reason, **about))
    return found


def per_record(tables: SharedTables, config: Config, qi_set: str, sensitive_attribute: str, replicate: int = 1) -> DataFrame:
    """What the measures that are means over original records are for each of them; as sensitive as the attribute itself.

    Returns:
        `record_id`, `cell_original` and `cell_release` (records in its key cell), `dcap` (the release's share of its
        target in its cell; 0 unmatched), `disco` and `replicated_unique` (booleans).
    """
    bins = config.disclosure.bins
    edges = {s.column: bins.get(s.name) for s in tables.columns}
    keys, target = tables.sets[qi_set], tables.targets[sensitive_attribute]
    counted = cells(tables, tables.releases[replicate], keys, target, bins)
    by_key = counted.by_key.select(*(F.col(k).alias(f"k_{k}") for k in keys), F.col("d").alias("cell_original"),
                                   F.col("s").alias("cell_release"))  # fmt: skip
    of_target = counted.frame.select(*(F.col(k).alias(f"t_{k}") for k in keys), F.col("t").alias("t_t"),
                                     F.col("s").alias("hits"))  # fmt: skip
    cell = [*(binned(c, edges[c]).alias(c) for c in keys), binned(target, edges[target]).alias("t")]
    rows = tables.original.select("record_id", *cell)
    joined = rows.join(by_key, _same(keys, "k_")).join(of_target, _same((*keys, "t"), "t_"))
    share = F.when(F.col("cell_release") > 0, F.col("hits") / F.col("cell_release")).otherwise(0.0)
    return joined.select(
        "record_id", "cell_original", "cell_release", share.alias("dcap"), (share == 1.0).alias("disco"),
        ((F.col("cell_original") == 1) & (F.col("cell_release") == 1)).alias("replicated_unique"),
    )  # fmt: skip


def _same(columns: tuple[str, ...], prefix: str) -> Column:
    """Equal values, missing ones too."""
    conditions: list[Any] = [F.col(c).eqNullSafe(F.col(f"{prefix}{c}")) for c in columns]
    whole = conditions[0]
    for condition in conditions[1:]:
        whole = whole & condition
    return whole

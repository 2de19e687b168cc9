"""The release before: what earlier finished runs of a store say of a registry's other releases."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date
from typing import Any

import pandas as pd
from pyspark.sql import functions as F

from .policy import Previous, decisive
from .store import Store

COLUMNS = (
    "run_id", "registry", "release_id", "release_date", "replicate", "scored_on", "qi_set", "sensitive_attribute",
    "target_type", "measure", "attacker", "weighting", "threshold", "rapid", "status", "reason", "settings_digest",
    "evaluated_at",
)  # fmt: skip


def finished(store: Store, registries: Collection[str]) -> pd.DataFrame:
    """Rows of risk_summary of these registries, of runs whose latest attempt is finished. Jobs: one join."""
    spark = store.warehouse.spark
    runs = spark.table(store.qualified("runs"))
    latest = runs.groupBy("run_id").agg(F.max("attempt").alias("attempt"))
    done = runs.where("state = 'finished'").join(latest, ["run_id", "attempt"], "left_semi").select("run_id").distinct()
    rows = spark.table(store.qualified("risk_summary")).where(F.col("registry").isin(*registries))
    found: pd.DataFrame = rows.join(done, "run_id", "left_semi").select(*COLUMNS).toPandas()
    return found


def previous(
    rows: pd.DataFrame, registry: str, release_id: str, released: date | None, settings: str, without: Collection[str] = ()
) -> Previous:
    """The registry's release before this one, as the store knows it.

    Args:
        rows: from `finished`.
        registry, release_id: the release that is judged.
        released: its date.
        settings: its settings_digest; figures under other settings say nothing of an increase.
        without: releases that are known to be no earlier ones.
    """
    others = rows[(rows["registry"] == registry) & ~rows["release_id"].isin([release_id, *without])]
    if not len(others):
        return Previous()
    if released is None:
        return Previous(problem="the store has other releases of this registry: release_date tells which is the one before")
    dates = pd.to_datetime(others["release_date"]).dt.date
    if dates.isna().all():
        return Previous(problem="the store has other releases of this registry, all without release_date")
    earlier = others[[d is not None and d == d and d < released for d in dates]]
    if not len(earlier):
        return Previous()
    newest = str(earlier.sort_values(["release_date", "evaluated_at"])["release_id"].iloc[-1])
    alike = earlier[(earlier["release_id"] == newest) & (earlier["settings_digest"] == settings)]
    if not len(alike):
        return Previous(newest, problem=f"release {newest} was evaluated under other settings only")
    run: Any = alike.sort_values("evaluated_at")["run_id"].iloc[-1]
    return Previous(newest, decisive(alike[alike["run_id"] == run]))

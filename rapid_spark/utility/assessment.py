"""Every measure of utility of one release, from tables laid side by side."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import pandas as pd
from pyspark.sql import DataFrame

from ..config import Config
from ..disclosure.distances import sample
from ..shared_columns import SharedTables
from . import measures
from .measures import Column, Utility


def assess(
    tables: SharedTables, config: Config, stage: Callable[[str], AbstractContextManager[None]], replicate: int = 1
) -> list[Utility]:
    """Marginals, associations and propensity over all shared columns; prediction and regression of each target.

    Predictors are the quasi-identifiers of all sets.
    """
    names = {s.column: s.name for s in tables.columns}
    with stage("reading for utility"):
        both = (tables.original, tables.releases[replicate])
        original, release = (_rows(f, tables, config).rename(columns=names) for f in both)
    edges = config.disclosure.bins
    every = [Column(s.name, s.numeric, tuple(edges[s.name][1:-1]) if s.name in edges else None) for s in tables.columns]
    by_name = {c.name: c for c in every}
    known = [by_name[name] for name in config.all_quasi_identifiers]
    with stage("measuring utility"):
        found = measures.marginals(original, release, every)
        found += measures.associations(original, release, every)
        found += measures.propensity(original, release, every)
        for name in tables.targets:
            target = by_name[name]
            found += measures.tstr(original, release, [*known, target], target, config.training.seed)
            found += measures.regression(original, release, [*known, target], target)
    return found


def _rows(frame: DataFrame, tables: SharedTables, config: Config) -> pd.DataFrame:
    columns = [s.column for s in tables.columns]
    chosen = sample(frame, columns, frame.count(), config.disclosure.max_records, config.training.seed)
    return chosen.select(*columns).toPandas().sort_values(columns, ignore_index=True)

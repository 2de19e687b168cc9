"""`dp histogram`: noisy tables over declared domains, and synthetic records from them where asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from rapid_spark.config import ConfigError
from rapid_spark.reaedp import histogram, model, sampling
from rapid_spark.reaedp import tables as noisy
from rapid_spark.reaedp.budget import Guarantee
from rapid_spark.reaedp.entropy import shannon

from .desk import told
from .population import check_number, declared_domains
from .settings import ReleaseConfig

MANY_CELLS = 200_000


@dataclass(frozen=True)
class HistogramRelease:
    """A planned histogram release; see `desk.Mechanism`."""

    config: ReleaseConfig
    planned: noisy.Plan
    name: str = field(default="histogram", init=False)

    @classmethod
    def of(cls, config: ReleaseConfig) -> HistogramRelease:
        """Plan from settings alone.

        Raises:
            ConfigError: a setting is missing or wrong, or a share of the budget would be useless.
        """
        config.need("n_declared", "epsilon", "adjacency", "domains")
        wanted = config.histogram.tables or tuple((c,) for c in config.domains)
        if config.columns.person and config.max_rows_per_person is None:
            raise ConfigError(
                "max_rows_per_person: missing; say how many rows of a person are kept, as columns.person is named"
            )
        if config.max_rows_per_person is not None and not config.columns.person:
            raise ConfigError("columns.person: missing; name the person's key, as max_rows_per_person is set")
        with told():
            planned = noisy.plan(
                config.declared,
                wanted,
                float(config.epsilon or 0),
                int(config.n_declared or 0),
                adjacency=config.adjacency,  # type: ignore[arg-type]
                mechanism=config.mechanism,
                delta=config.delta,
                weights=config.histogram.weights,
                max_rows_per_person=config.max_rows_per_person,
                protected_unit=config.unit,
            )
            if config.histogram.records:
                model.check_drawable(list({d.column: d for t in planned.tables for d in t.domains}.values()))
        return cls(config, planned)

    @property
    def columns(self) -> list[str]:
        """Columns that are read."""
        return [*dict.fromkeys([*self.config.columns.person, *(c for t in self.planned.tables for c in t.columns)])]

    @property
    def guarantee(self) -> Guarantee:
        """The total."""
        return self.planned.guarantee

    @property
    def warnings(self) -> tuple[str, ...]:
        """To be told before the drawing."""
        return self.planned.warnings

    @property
    def tables(self) -> tuple[str, ...]:
        """Tables of the release."""
        return ("tables", "records") if self.config.histogram.records else ("tables",)

    def parameters(self) -> dict[str, Any]:
        """Everything declared that decides what is drawn."""
        return {
            "tables": [list(t.columns) for t in self.planned.tables],
            "domains": declared_domains(self.config, [c for t in self.planned.tables for c in t.columns]),
            "epsilon_per_table": [s.epsilon for s in self.planned.shares],
            "n_declared": self.planned.n_declared,
            "max_rows_per_person": self.planned.max_rows_per_person,
            "rule": self.config.histogram.rule,
            "records": self.config.histogram.records,
        }

    def plan(self) -> list[dict[str, Any]]:
        """The split of the budget."""
        return self.planned.rows()

    def count(self, frame: Any, secret: str) -> list[Any]:
        """Exact counts of the tables; under replace the declared number of units is held against the table."""
        config = self.config
        if config.adjacency == "replace":
            check_number(frame, config)
        return histogram.count_tables(
            frame,
            self.planned.tables,
            person=config.columns.person,
            max_rows_per_person=config.max_rows_per_person if config.columns.person else None,
        )

    def draw(self, exact: list[Any]) -> dict[str, pd.DataFrame]:
        """The noisy tables, and records drawn from them."""
        released = noisy.draw(self.planned, exact, self.config.histogram.rule)
        frames = {"tables": released.frame()}
        if self.config.histogram.records:
            frames["records"] = sampling.records(self.planned.tables, released.estimates, self.config.histogram.records)
        return frames

    def tell(self, frames: Mapping[str, pd.DataFrame]) -> dict[str, Any]:
        """Per table its entropy, and expected errors before and after post-processing."""
        released = self._released(frames["tables"])
        cells = sum(t.cells for t in self.planned.tables)
        after = noisy.expected_errors(released, 20 if cells <= MANY_CELLS else 2)
        rows = []
        for share, estimate, error in zip(self.planned.shares, released.estimates, after, strict=True):
            rows.append(
                {
                    "table": share.table.name,
                    "cells": share.table.cells,
                    "total": float(estimate.sum()),
                    "entropy": shannon(estimate),
                    "expected_error_before_post_processing": share.error_before,
                    "expected_error": error,
                }
            )
        return {"tables": rows}

    def evaluate(self, exact: list[Any]) -> dict[str, Any]:
        """Observed errors of a separate draw."""
        fresh = noisy.draw(self.planned, exact, self.config.histogram.rule)
        return {
            "tables": [
                {
                    "table": table.name,
                    "observed_error": float(np.abs(estimate - true).mean()),
                    "entropy": shannon(true) if true.any() else None,
                    "entropy_released": shannon(estimate),
                }
                for table, true, estimate in zip(self.planned.tables, exact, fresh.estimates, strict=True)
            ]
        }

    def _released(self, stored: pd.DataFrame) -> noisy.Release:
        ordered = stored.sort_values("cell")
        parts = [ordered[ordered["table"] == t.name] for t in self.planned.tables]
        return noisy.Release(
            self.planned,
            tuple(p["noisy_count"].to_numpy(np.int64) for p in parts),
            tuple(p["count"].to_numpy(np.float64) for p in parts),
            self.config.histogram.rule,
        )

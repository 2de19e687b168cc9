"""`dp entropy`: the entropy of one table with noise calibrated to its exact sensitivity, under replace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from rapid_spark.config import ConfigError
from rapid_spark.reaedp import entropy, histogram
from rapid_spark.reaedp.budget import Guarantee, check_epsilon
from rapid_spark.reaedp.domain import Table, tables_over

from .desk import told
from .population import check_number, declared_domains
from .settings import ReleaseConfig


@dataclass(frozen=True)
class EntropyRelease:
    """A planned entropy; see `desk.Mechanism`."""

    config: ReleaseConfig
    table: Table
    epsilon: float
    sensitivity: float
    name: str = field(default="entropy", init=False)
    tables: tuple[str, ...] = field(default=("entropy",), init=False)

    @classmethod
    def of(cls, config: ReleaseConfig) -> EntropyRelease:
        """Plan from settings alone; with a target error and no epsilon, the smallest epsilon that meets it.

        Raises:
            ConfigError: a setting is missing or wrong.
        """
        asked = config.entropy
        config.need("n_declared", "domains", "entropy.columns")
        if config.adjacency == "add_remove":
            raise ConfigError(
                "adjacency is add_remove: the entropy's sensitivity is known under replace, where n is public. Release a "
                "histogram and take its entropy, which costs no more"
            )
        if config.delta != 0:
            raise ConfigError(f"delta is {config.delta:g}: the entropy's Laplace noise needs none, leave it at 0")
        if (config.epsilon is None) == (asked.target_error is None):
            raise ConfigError("give exactly one of epsilon and entropy.target_error (--epsilon, --target-error)")
        if config.max_rows_per_person not in (None, 1):
            raise ConfigError("max_rows_per_person: the entropy takes one row of each person; set 1")
        n = int(config.n_declared or 0)
        with told():
            table = tables_over(config.declared, [asked.columns])[0]
            if config.epsilon is None:
                epsilon = entropy.smallest_epsilon(float(asked.target_error or 0), n, table.cells, asked.order, asked.bound)
            else:
                epsilon = check_epsilon(config.epsilon)
            moved = entropy.released_sensitivity(n, table.cells, asked.order, asked.bound)
        return cls(config, table, epsilon, moved)

    @property
    def columns(self) -> list[str]:
        """Columns that are read."""
        return [*dict.fromkeys([*self.config.columns.person, *self.table.columns])]

    @property
    def guarantee(self) -> Guarantee:
        """The total."""
        return Guarantee(self.epsilon, 0.0, "replace", "laplace", self.sensitivity, self.config.unit)

    @property
    def warnings(self) -> tuple[str, ...]:
        """To be told before the drawing."""
        return ()

    def parameters(self) -> dict[str, Any]:
        """Everything declared that decides what is drawn."""
        return {
            "columns": list(self.table.columns),
            "domains": declared_domains(self.config, self.table.columns),
            "n_declared": self.config.n_declared,
            "epsilon": self.epsilon,
            "order": self.config.entropy.order,
            "bound": self.config.entropy.bound,
        }

    def plan(self) -> list[dict[str, Any]]:
        """The budget, and the error to expect, before the value is kept within its range."""
        return [
            {
                "entropy": "shannon" if self.config.entropy.order is None else f"renyi {self.config.entropy.order:g}",
                "columns": self.table.name,
                "bins": self.table.cells + 1,
                "n_declared": self.config.n_declared,
                "epsilon": self.epsilon,
                "sensitivity": self.sensitivity,
                "expected_error_bits": self.sensitivity / self.epsilon,
            }
        ]

    def count(self, frame: Any, secret: str) -> Any:
        """Exact counts of the table."""
        person = self.config.columns.person
        check_number(frame, self.config)
        return histogram.count_tables(frame, [self.table], person=person, max_rows_per_person=1 if person else None)[0]

    def draw(self, exact: Any) -> dict[str, pd.DataFrame]:
        """One row: the value, as it was drawn and kept within its range, and the guarantee."""
        asked = self.config.entropy
        drawn = entropy.release(
            exact, self.epsilon, int(self.config.n_declared or 0), order=asked.order, bound=asked.bound,
            protected_unit=self.config.unit,
        )  # fmt: skip
        row = {
            "columns": list(self.table.columns),
            "entropy": drawn.value,
            "noisy_entropy": drawn.noisy,
            "order": drawn.order,
            "bins": drawn.bins,
            "n": drawn.n,
            "scale": drawn.scale,
            "expected_error": drawn.expected_error,
            "bound": asked.bound,
            **{k: v for k, v in self.guarantee.as_dict().items() if k != "rho"},
        }
        return {"entropy": pd.DataFrame([row]).astype({"order": "float64"})}

    def tell(self, frames: Mapping[str, pd.DataFrame]) -> dict[str, Any]:
        """The released value, in bits, and its error."""
        row = frames["entropy"].iloc[0]
        names = ("entropy", "noisy_entropy", "order", "bins", "n", "scale", "expected_error")
        return {"columns": list(row["columns"]), **{k: row[k] for k in names}, "unit": "bits"}

    def evaluate(self, exact: Any) -> dict[str, Any]:
        """The exact entropy and the error of a separate draw."""
        fresh = self.draw(exact)["entropy"]["entropy"].iloc[0]
        whole = np.append(exact, int(self.config.n_declared or 0) - int(exact.sum()))
        order = self.config.entropy.order
        true = entropy.shannon(whole) if order is None else entropy.renyi(whole, order)
        return {"entropy": true, "observed_error": abs(float(fresh) - true)}

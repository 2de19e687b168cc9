"""`dp synthetic`: records by mechanism F, or without seeds, with Spark as the counter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import functions as F

from rapid_spark.config import ConfigError
from rapid_spark.reaedp import binning, histogram, model, synthesis, synthesis_plan
from rapid_spark.reaedp.budget import Guarantee
from rapid_spark.reaedp.domain import Table

from .desk import told
from .population import check_number, declared_domains, with_own_key
from .settings import ReleaseConfig


@dataclass(frozen=True)
class SyntheticRelease:
    """Planned synthetic records; see `desk.Mechanism`."""

    config: ReleaseConfig
    planned: synthesis_plan.Plan
    name: str = field(default="synthetic", init=False)
    tables: tuple[str, ...] = field(default=("records",), init=False)

    @classmethod
    def of(cls, config: ReleaseConfig) -> SyntheticRelease:
        """Plan from settings alone.

        Raises:
            ConfigError: a setting is missing or wrong, or the persons cannot carry the plan, with what would.
        """
        config.need("n_declared", "epsilon", "adjacency", "domains", "synthetic.records")
        if config.max_rows_per_person not in (None, 1):
            raise ConfigError("max_rows_per_person: synthetic records are made from one row of each person; set 1")
        asked = config.synthetic
        if asked.key_stays and not config.columns.person:
            raise ConfigError("synthetic.key_stays: name the key that stays, as columns.person")
        with told():
            planned = synthesis_plan.plan(
                config.declared,
                int(asked.records or 0),
                float(config.epsilon or 0),
                config.delta,
                int(config.n_declared or 0),
                kept=asked.kept,
                redrawn=asked.redrawn,
                gamma=asked.gamma,
                pass_probability=asked.pass_probability,
                adjacency=config.adjacency,  # type: ignore[arg-type]
                key_stays=asked.key_stays,
                shares=asked.shares,
                max_parents=asked.max_parents,
                bound=asked.bound,
                grid=asked.grid,
                protected_unit=config.unit,
            )
        return cls(config, planned)

    @property
    def columns(self) -> list[str]:
        """Columns that are read."""
        return [*dict.fromkeys([*self.config.columns.person, *(d.column for d in self.planned.domains)])]

    @property
    def guarantee(self) -> Guarantee:
        """The total."""
        return self.planned.guarantee

    @property
    def warnings(self) -> tuple[str, ...]:
        """To be told before the drawing."""
        return self.planned.warnings

    def parameters(self) -> dict[str, Any]:
        """Everything declared that decides what is drawn."""
        asked = self.config.synthetic.model_dump(mode="json")
        return {
            **{k: v for k, v in asked.items() if v is not None},
            "domains": declared_domains(self.config, [d.column for d in self.planned.domains]),
            "n_declared": self.planned.n_declared,
        }

    def plan(self) -> list[dict[str, Any]]:
        """What each part of the persons is used for, and what it costs."""
        plan = self.planned
        pairs = len(model.pair_tables(plan.domains))
        rows: list[dict[str, Any]] = [
            {"part": "structure", "share": plan.shares[0], "tables": pairs, "epsilon": plan.structure_epsilon,
             "delta": 0.0, "scale": plan.structure_scale},
            {"part": "parameters", "share": plan.shares[1], "tables": max(plan.redrawn), "epsilon": plan.parameters_epsilon,
             "delta": 0.0, "scale": plan.parameters_scale},
        ]  # fmt: skip
        if plan.test is not None:
            rows.append(
                {"part": "seeds", "share": plan.shares[2], "epsilon": plan.parameters_epsilon, "delta": plan.guarantee.delta,
                 "k": plan.test.k, "t": plan.test.t, "gamma": plan.test.gamma, "epsilon0": plan.test.epsilon0,
                 "pass_probability": plan.pass_probability, "support_epsilon": plan.support_epsilon, "beta": plan.beta,
                 "stop": plan.stop}
            )  # fmt: skip
        return rows

    def count(self, frame: Any, secret: str) -> synthesis.Count:
        """A counter of tables over the parts, by Spark; each record's part and bins are settled here."""
        config, domains = self.config, list(self.planned.domains)
        if config.adjacency == "replace":
            check_number(frame, config)
        person = list(config.columns.person)
        if person:
            binned = histogram.inside(histogram.with_bins(frame, domains, keep=person), domains)
            binned = histogram.keep_rows(binned, person, 1, [histogram.bin_name(d) for d in domains])
        else:
            # Equal content lies apart by its occurrence number; see `population.with_own_key`.
            keyed, person = with_own_key(frame, [d.column for d in domains])
            binned = histogram.inside(histogram.with_bins(keyed, domains, keep=person), domains)
        parted = histogram.with_parts(binned, person, self.planned.shares, secret)

        def count(part: synthesis.Part, tables: Sequence[Table]) -> list[Any]:
            mine = parted.where(F.col(histogram.PART) == synthesis.PARTS.index(part))
            return histogram.count_binned(mine, tables)

        return count

    def draw(self, exact: synthesis.Count) -> dict[str, pd.DataFrame]:
        """Exactly N records."""
        try:
            return {"records": synthesis.draw(self.planned, exact).frame}
        except (synthesis.Unproved, synthesis.Incomplete) as error:
            raise ConfigError(str(error)) from None

    def tell(self, frames: Mapping[str, pd.DataFrame]) -> dict[str, Any]:
        """How many records there are, and of what."""
        records = frames["records"]
        return {"records": len(records), "columns": list(records.columns), "seeds": bool(self.planned.kept)}

    def evaluate(self, exact: synthesis.Count) -> dict[str, Any]:
        """Total variation of margins between the seeds' part and a separate draw, which is discarded."""
        part: synthesis.Part = "seeds" if self.planned.test is not None else "parameters"
        fresh = self.draw(exact)["records"]
        tables = [Table((d,)) for d in self.planned.domains] + model.pair_tables(self.planned.domains)
        true = exact(part, tables)
        rows = []
        for table, counts in zip(tables, true, strict=True):
            drawn = binning.count(fresh, table)
            distance = np.abs(counts / max(counts.sum(), 1) - drawn / max(drawn.sum(), 1)).sum() / 2
            rows.append({"table": table.name, "total_variation": float(distance)})
        return {"tables": rows}

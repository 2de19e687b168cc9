"""`dp curve`: the private mean of curves in Wiener kernel space, under replace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import functions as F

from rapid_spark.config import ConfigError
from rapid_spark.io import quoted
from rapid_spark.reaedp import curves, wiener
from rapid_spark.reaedp.accounting import analytic_sigma
from rapid_spark.reaedp.budget import Guarantee, delta_rule

from .desk import told
from .settings import ReleaseConfig


@dataclass(frozen=True)
class CurveRelease:
    """A planned mean curve; see `desk.Mechanism`."""

    config: ReleaseConfig
    grid: tuple[float, ...]
    sensitivity: float
    sigma: float
    delta_warning: str | None
    name: str = field(default="curve", init=False)
    tables: tuple[str, ...] = field(default=("curve",), init=False)

    @classmethod
    def of(cls, config: ReleaseConfig) -> CurveRelease:
        """Plan from settings alone.

        Raises:
            ConfigError: a setting is missing or wrong.
        """
        asked = config.curve
        config.need("n_declared", "epsilon", "curve.norm_limit")
        if not asked.columns and asked.curve is None:
            raise ConfigError("curve: name columns (one per point of the grid), or curve, time and value")
        if config.adjacency == "add_remove":
            raise ConfigError(
                "adjacency is add_remove: the mean curve is calibrated for replace, where their number is public"
            )
        if config.columns.person:
            raise ConfigError(
                "columns.person: a curve is a person's; long tables name it as curve.curve, wide ones have a row each"
            )
        n, grid = int(config.n_declared or 0), _grid(config)
        with told():
            warning = delta_rule(config.delta, n)
            wiener.check_grid(grid)
            moved = wiener.sensitivity(n, float(asked.norm_limit or 0), asked.penalty, asked.bound, asked.components)
            sigma = analytic_sigma(float(config.epsilon or 0), config.delta, moved)
        return cls(config, grid, moved, sigma, warning)

    @property
    def columns(self) -> list[str]:
        """Columns that are read."""
        asked = self.config.curve
        return list(asked.columns) or [c for c in (asked.curve, asked.time, asked.value) if c]

    @property
    def guarantee(self) -> Guarantee:
        """The total."""
        config = self.config
        unit = config.protected_unit or "curve"
        return Guarantee(float(config.epsilon or 0), config.delta, "replace", "gaussian_process", self.sensitivity, unit)

    @property
    def warnings(self) -> tuple[str, ...]:
        """To be told before the drawing."""
        return (self.delta_warning,) if self.delta_warning else ()

    def parameters(self) -> dict[str, Any]:
        """Everything declared that decides what is drawn."""
        said = self.config.curve.model_dump(mode="json", exclude_none=True)
        return {**said, "grid": list(self.grid), "n_declared": self.config.n_declared}

    def plan(self) -> list[dict[str, Any]]:
        """The budget, and the error by noise."""
        config, values = self.config, wiener.eigenvalues(self.config.curve.components)
        squared = self.sigma**2 * float(values.sum())
        return [
            {
                "curves": config.n_declared,
                "norm_limit": config.curve.norm_limit,
                "penalty": config.curve.penalty,
                "epsilon": config.epsilon,
                "delta": config.delta,
                "sensitivity": self.sensitivity,
                "sigma": self.sigma,
                "noise_squared_error": squared,
                "noise_root_mean_squared_error": squared**0.5,
            }
        ]

    def count(self, frame: Any, secret: str) -> dict[str, Any]:
        """The sum of the clipped curves; their number is public under replace, and must be the declared one."""
        wide, columns = self._wide(frame)
        total, n = curves.sum_curves(wide, columns, wiener.mass(self.grid), float(self.config.curve.norm_limit or 0))
        if n != self.config.n_declared:
            raise ConfigError(
                f"n_declared is {self.config.n_declared:,}, and the table has {n:,} curves; under replace their number is "
                "public and must be right"
            )
        return {"sum": total, "wide": wide, "columns": columns}

    def draw(self, exact: dict[str, Any]) -> dict[str, pd.DataFrame]:
        """The released curve on even points of [0, 1]."""
        points = np.linspace(0, 1, self.config.curve.points)
        return {"curve": self._release(exact).frame(points)}

    def tell(self, frames: Mapping[str, pd.DataFrame]) -> dict[str, Any]:
        """What the error by noise is; bias and sampling depend on the data."""
        return {"penalty": self.config.curve.penalty, "points": len(frames["curve"]), **{
            k: self.plan()[0][k] for k in ("sigma", "noise_squared_error", "noise_root_mean_squared_error")
        }}  # fmt: skip

    def evaluate(self, exact: dict[str, Any]) -> dict[str, Any]:
        """Expected squared error in its parts, and that of a separate draw, both computed from the data."""
        asked, n = self.config.curve, int(self.config.n_declared or 0)
        values = wiener.eigenvalues(asked.components)
        transform = wiener.coefficients(np.eye(len(self.grid)), self.grid, asked.components)
        mean = exact["sum"] / n @ transform
        fresh = self._release(exact)
        kept = transform * (values / (values + asked.penalty))
        limit = float(asked.norm_limit or 0)
        second = curves.mean_form(exact["wide"], exact["columns"], wiener.mass(self.grid), limit, kept @ kept.T)
        sampling = max(second - float(((exact["sum"] / n @ kept) ** 2).sum()), 0.0) / max(n - 1, 1)
        split = wiener.error_split(mean, np.zeros(len(mean)), n, asked.penalty, fresh.sigma)
        total = split["bias"] + sampling + split["noise"]
        return {
            "expected_squared_error": {**split, "sampling": sampling, "total": total},
            "observed_squared_error": float(((fresh.coefficients - mean) ** 2).sum()),
        }

    def _release(self, exact: dict[str, Any]) -> wiener.CurveRelease:
        config, asked = self.config, self.config.curve
        return wiener.release(
            exact["sum"], self.grid, int(config.n_declared or 0), float(asked.norm_limit or 0), asked.penalty,
            float(config.epsilon or 0), config.delta, bound=asked.bound, components=asked.components,
            protected_unit=self.guarantee.protected_unit,
        )  # fmt: skip

    def _wide(self, frame: Any) -> tuple[Any, list[str]]:
        asked = self.config.curve
        if asked.columns:
            return frame, list(asked.columns)
        named = frame.where(F.col(quoted(str(asked.curve))).isNotNull()) if str(asked.curve) in frame.columns else frame
        wide = curves.widen_curves(named, str(asked.curve), str(asked.time), str(asked.value), self.grid)
        return wide, [f"t{i}" for i in range(len(self.grid))]


def draw_plot(frame: pd.DataFrame, path: Path) -> Path:
    """A picture of a released curve with the band of its noise, from the stored table alone."""
    from matplotlib.figure import Figure

    first = frame.iloc[0]
    ordered = frame.sort_values("t")
    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.subplots()
    low, high = ordered["mean"] - 1.96 * ordered["noise_sd"], ordered["mean"] + 1.96 * ordered["noise_sd"]
    axes.fill_between(ordered["t"], low, high, color="#9ecae1", label="95 % band of the noise, pointwise")
    axes.plot(ordered["t"], ordered["mean"], color="#08519c", label="released mean")
    axes.set_xlabel("t")
    axes.set_ylabel("mean curve")
    axes.set_xlim(0, 1)
    axes.set_title(
        f"Mean of {int(first['n']):,} curves, epsilon {first['epsilon']:g}, delta {first['delta']:g}, {first['adjacency']}, "
        f"penalty {first['penalty']:g}",
        fontsize=10,
    )
    axes.legend(frameon=False, fontsize=9)
    figure.text(0.01, -0.02, "The band is the noise's alone: it says nothing of bias and sampling.", fontsize=8)
    figure.savefig(path, dpi=150, bbox_inches="tight")
    return path


def _grid(config: ReleaseConfig) -> tuple[float, ...]:
    times = config.curve.times()
    if not times and config.curve.columns:
        times = tuple(np.linspace(0, 1, len(config.curve.columns)))  # Declared by their number: even points.
    if not times:
        raise ConfigError("curve.grid: missing; give the increasing points of [0, 1] at which curves are measured")
    if config.curve.columns and len(times) != len(config.curve.columns):
        raise ConfigError(f"curve.grid has {len(times)} points, and curve.columns names {len(config.curve.columns)} columns")
    return times

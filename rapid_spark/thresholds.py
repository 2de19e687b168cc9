"""Thresholds of one combination, all laid down before any record is looked at; NumPy only.

The curve's thresholds, those of every bootstrap replicate, the ends of the histogram's bins: one Spark aggregation then
counts the records between the sorted ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from . import resampling
from .config import Config
from .distributions import score_edges
from .risk import Classes, Combination, measure_thresholds

RCS_GRID = tuple(i / 4 for i in range(1, 17))  # rcs_conditional has no upper bound: 0.25 to 4


def grid_of(combination: Combination, config: Config) -> tuple[float, ...]:
    """Thresholds of the combination's curve, ascending; the configured one is always among them."""
    if not combination.categorical:
        grid: Sequence[float] = config.threshold.tolerance_grid
        if config.threshold.error == "absolute":
            grid = [combination.threshold * t / 0.1 for t in grid]
    else:
        grid = RCS_GRID if combination.measure == "rcs_conditional" else config.threshold.tau_grid
    return tuple(sorted({*grid, combination.threshold}))


@dataclass(frozen=True)
class Plan:
    """Sorted thresholds per class of one combination, and the bootstrap they come from.

    Attributes:
        combination, classes: what is summed up.
        grid: thresholds of the curve.
        cuts: (taus, classes) thresholds on the measure's value.
        edges: per class, every value that records are counted between.
        bootstrap: sizes, and for `normalized_gain` thresholds, of the replicates; None where no flag moves.
        window: (2, classes): two sd of the threshold around the configured cut.
        scores: ends of the bins of the score's histogram.
        bins: (scores, classes) the same as values.
    """

    combination: Combination
    classes: Classes
    grid: tuple[float, ...]
    cuts: np.ndarray
    edges: tuple[np.ndarray, ...]
    bootstrap: resampling.BootstrapPlan | None
    window: np.ndarray
    scores: np.ndarray
    bins: np.ndarray

    @property
    def at(self) -> int:
        """Place of the configured threshold in the grid."""
        return self.grid.index(self.combination.threshold)

    @property
    def conditional(self) -> bool:
        """Whether thresholds move with the mean of g in a class, not with its prevalence."""
        return self.combination.measure == "rcs_conditional"


def plan(combination: Combination, classes: Classes, config: Config, spread: Sequence[float]) -> Plan:
    """Lay down the thresholds of one combination.

    Args:
        combination: categorical.
        classes: of its attribute.
        config: thresholds, intervals, seed.
        spread: per class, the sd of g over its mean (used by `rcs_conditional`).
    """
    grid, measure, tau = grid_of(combination, config), combination.measure, combination.threshold
    b, counts = classes.prevalence, classes.counts
    cuts = np.array([measure_thresholds(measure, b, t) for t in grid])
    at = cuts[grid.index(tau)]
    scores = score_edges(measure, tau)
    bins = np.array([measure_thresholds(measure, b, float(t)) for t in scores])
    bootstrap, window = None, np.repeat(at[None, :], 2, axis=0)
    extra: list[np.ndarray] = [np.empty(0)] * len(b)
    if measure in ("normalized_gain", "rcs_conditional") and config.intervals.method in ("wilson_neff", "bootstrap"):
        bootstrap = resampling.plan_bootstrap(counts, grid, config.intervals.bootstrap, config.training.seed)
        if measure == "normalized_gain":
            sd = (1.0 - tau) * np.sqrt(b * (1.0 - b) / classes.n)
            extra = list(bootstrap.thresholds.reshape(-1, len(b)).T)
        else:
            sd = tau * np.asarray(spread) / np.sqrt(np.maximum(counts, 1))
            extra = [resampling.conditional_edges(grid, cv, int(n)) for cv, n in zip(spread, counts, strict=True)]
        window = np.array([at - 2 * sd, at + 2 * sd])
    fixed = np.concatenate([cuts, window, bins])
    edges = tuple(np.unique(np.concatenate([fixed[:, k], extra[k]])) for k in range(len(b)))
    return Plan(combination, classes, grid, cuts, edges, bootstrap, window, scores, bins)

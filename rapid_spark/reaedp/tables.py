"""A release of noisy tables: the plan before anything is drawn, one drawing, and its post-processing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd

from rapid_spark.reaedp import margins, noise
from rapid_spark.reaedp.accounting import zcdp_epsilon, zcdp_rho
from rapid_spark.reaedp.budget import (
    Adjacency,
    Guarantee,
    check_adjacency,
    check_epsilon,
    check_integer,
    delta_rule,
)
from rapid_spark.reaedp.domain import Domain, Table, tables_over
from rapid_spark.reaedp.entropy import shannon

Mechanism = Literal["laplace", "gaussian"]
Rule = Literal["least_squares", "rescale"]


@dataclass(frozen=True)
class Share:
    """One table's part of the budget.

    Attributes:
        table: the table.
        epsilon: its part; under Gaussian noise what its rho alone converts to at the release's delta.
        rho: its part under Gaussian noise, else None.
        sensitivity: of the table, L1 for Laplace and L2 for Gaussian noise.
        scale: of the noise (Laplace scale, or sigma), in records.
        variance: of the noise in one cell.
        error_before: expected absolute error of one cell before post-processing, in records.
    """

    table: Table
    epsilon: float
    rho: float | None
    sensitivity: float
    scale: float
    variance: float
    error_before: float

    @property
    def largest_noise(self) -> float:
        """About the largest noise among the cells of the table, in records."""
        return self.scale * (
            _log_cells(self.table) if self.rho is None else math.sqrt(2 * _log_cells(self.table))
        )

    @property
    def added_to_empty_cells(self) -> float:
        """Records that setting negative cells to 0 would add to a table of empty cells."""
        return self.table.cells * self.error_before / 2


@dataclass(frozen=True)
class Plan:
    """What will be drawn: `guarantee` is the total, the ledger's entry; `warnings` are to be shown first."""

    shares: tuple[Share, ...]
    guarantee: Guarantee
    mechanism: Mechanism
    n_declared: int
    total: int
    max_rows_per_person: int | None
    warnings: tuple[str, ...]

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables in order."""
        return tuple(s.table for s in self.shares)

    @property
    def variances(self) -> list[float]:
        """The variance of the noise in one cell, per table."""
        return [s.variance for s in self.shares]

    def rows(self) -> list[dict[str, Any]]:
        """The split of the budget, one row per table, to be printed before the drawing."""
        after = margins.fitted_variance(self.tables, self.variances, total_known=True)
        return [
            {
                "table": s.table.name,
                "cells": s.table.cells,
                "mean_count": self.total / s.table.cells,
                "epsilon": s.epsilon,
                "rho": s.rho,
                "scale": s.scale,
                "expected_error_before_post_processing": s.error_before,
                "standard_error_after_consistency": math.sqrt(v),
                "records_added_to_empty_cells_by_clipping": s.added_to_empty_cells,
            }
            for s, v in zip(self.shares, after, strict=True)
        ]


def plan(
    domains: Sequence[Domain],
    tables: Sequence[Sequence[str]],
    epsilon: float,
    n_declared: int,
    *,
    adjacency: Adjacency,
    mechanism: Mechanism = "laplace",
    delta: float = 0.0,
    weights: Sequence[float] | None = None,
    max_rows_per_person: int | None = None,
    protected_unit: str | None = None,
    total: int | None = None,
) -> Plan:
    """Split a budget over tables and say what each will be worth, from declared constants alone.

    Laplace noise splits epsilon, Gaussian noise splits the rho that (epsilon, delta) converts to. A record
    lies in at most one cell of a table: L1 sensitivity 1 under add_remove and 2 under replace, L2 1 and sqrt
    2, times the rows that a person may have.

    Args:
        domains: of all columns that the tables name.
        tables: the columns of each table.
        epsilon: total of the release.
        n_declared: declared number of protected units, a constant of the configuration.
        adjacency: 'add_remove' or 'replace'.
        mechanism: 'laplace' or 'gaussian'.
        delta: 0 for Laplace; above 0 for Gaussian.
        weights: relative shares of the tables; equal by default.
        max_rows_per_person: rows kept per person, where a person may have several; None where each row is its
            own unit.
        protected_unit: name of the unit; by default 'record', or 'person' with `max_rows_per_person`.
        total: declared number of counted records, which the post-processed tables add up to; by default
            `n_declared`.

    Raises:
        ValueError: for a bad parameter, a missing domain, or a share so small that its table would say
            nothing: fewer than two cells could ever stand out of the noise, were all records in them.
    """
    check_epsilon(epsilon), check_adjacency(adjacency)
    n = check_integer(n_declared, 1, "n_declared")
    rows = 1 if max_rows_per_person is None else check_integer(max_rows_per_person, 1, "max_rows_per_person")
    records = n if total is None else check_integer(total, 1, "total")
    warnings = [w for w in (_check_mechanism(mechanism, delta, n),) if w]
    wanted = tables_over(domains, tables)
    parts = _normalised(weights, len(wanted))
    rho = zcdp_rho(epsilon, delta) if mechanism == "gaussian" else None
    shares = tuple(
        _share(t, p, epsilon, delta, rho, adjacency, rows) for t, p in zip(wanted, parts, strict=True)
    )
    for share in shares:
        warnings += _judge(share, records)
    # All tables together as one vector: L1 adds up, L2 adds in squares.
    joint = (
        sum(s.sensitivity for s in shares) if rho is None else math.hypot(*(s.sensitivity for s in shares))
    )
    unit = protected_unit or ("record" if max_rows_per_person is None else "person")
    guarantee = Guarantee(epsilon, delta, adjacency, f"discrete_{mechanism}", joint, unit, rho)
    return Plan(shares, guarantee, mechanism, n, records, max_rows_per_person, tuple(warnings))


@dataclass(frozen=True)
class Release:
    """Noisy tables as drawn (`noisy`) and after post-processing (`estimates`), cells in the tables' order."""

    plan: Plan
    noisy: tuple[noise.Counts, ...]
    estimates: tuple[npt.NDArray[np.float64], ...]
    rule: Rule

    def frame(self) -> pd.DataFrame:
        """One row per cell: table, its number, columns, bins, noisy_count, count (post-processed), and the guarantee."""
        return pd.concat([self._frame(i) for i in range(len(self.noisy))], ignore_index=True)

    def _frame(self, i: int) -> pd.DataFrame:
        share, promise = self.plan.shares[i], self.plan.guarantee
        bins = list(map(list, zip(*share.table.labels(), strict=True)))
        frame = pd.DataFrame({"bins": bins, "noisy_count": self.noisy[i], "count": self.estimates[i]})
        frame.insert(0, "table", share.table.name)
        frame.insert(1, "cell", np.arange(len(frame)))
        frame.insert(2, "columns", [list(share.table.columns)] * len(frame))
        return frame.assign(
            scale=share.scale,
            table_epsilon=share.epsilon,
            epsilon=promise.epsilon,
            delta=promise.delta,
            adjacency=promise.adjacency,
            mechanism=promise.mechanism,
            sensitivity=share.sensitivity,
            protected_unit=promise.protected_unit,
        )

    def entropies(self) -> list[float]:
        """The Shannon entropy of each post-processed table, in bits; no budget is needed for it."""
        return [shannon(e) for e in self.estimates]


def draw(planned: Plan, counts: Sequence[noise.Counts], rule: Rule = "least_squares") -> Release:
    """Add the noise, once, to exact counts of all tables, empty cells included, and post-process.

    Never call it twice for one entry of the ledger: store the result, then use that.

    Args:
        planned: the plan, already entered in the ledger.
        counts: one vector per table, in the order of its cells.
        rule: see `post_process`.
    """
    for table, exact in zip(planned.tables, counts, strict=True):
        if np.shape(exact) != (table.cells,) or np.min(exact) < 0:
            raise ValueError(f"the counts of {table.name} are not {table.cells} numbers of at least 0")
    add = noise.add_laplace if planned.mechanism == "laplace" else noise.add_gaussian
    noisy = tuple(add(c, s.scale) for s, c in zip(planned.shares, counts, strict=True))
    return Release(planned, noisy, post_process(planned, noisy, rule), rule)


def post_process(
    planned: Plan, noisy: Sequence[npt.NDArray[Any]], rule: Rule = "least_squares"
) -> tuple[npt.NDArray[np.float64], ...]:
    """Tables without negative cells that add up to the declared total, from noisy values and known variances
    alone.

    Args:
        planned: the plan.
        noisy: one vector per table.
        rule: 'least_squares' also makes all shared margins agree; 'rescale' clips each table at 0 and
            rescales it, which puts too much into empty cells.
    """
    if rule not in get_args(Rule):
        raise ValueError(f"rule is {rule!r}; it must be one of {', '.join(get_args(Rule))}")
    values = [np.asarray(v, dtype=np.float64) for v in noisy]
    if rule == "rescale":
        return tuple(margins.clip_and_rescale(v, planned.total) for v in values)
    return tuple(margins.nonnegative(planned.tables, values, planned.variances, planned.total))


def expected_errors(release: Release, repetitions: int = 20) -> list[float]:
    """Expected absolute error of a cell after post-processing, per table, in records.

    The released tables are taken for the truth, noise of the same law is added again, and the result is
    post-processed again. Only released values are read, so it costs no budget; the noise here protects
    nothing.

    Args:
        release: what was drawn.
        repetitions: how often; the result varies a little from call to call.
    """
    totals = np.zeros(len(release.noisy))
    for _ in range(check_integer(repetitions, 1, "repetitions")):
        again = [
            e + noise.approximate(len(e), s.scale, gaussian=s.rho is not None)
            for e, s in zip(release.estimates, release.plan.shares, strict=True)
        ]
        fitted = post_process(release.plan, again, release.rule)
        totals += [np.abs(f - e).mean() for f, e in zip(fitted, release.estimates, strict=True)]
    return [float(t) for t in totals / repetitions]


def _share(
    table: Table,
    part: float,
    epsilon: float,
    delta: float,
    rho: float | None,
    adjacency: Adjacency,
    rows: int,
) -> Share:
    changes = rows if adjacency == "add_remove" else 2 * rows
    if rho is None:
        scale = noise.laplace_scale(changes, part * epsilon)
        return Share(
            table,
            part * epsilon,
            None,
            changes,
            scale,
            noise.laplace_variance(scale),
            noise.laplace_error(scale),
        )
    sensitivity = rows * (1.0 if adjacency == "add_remove" else math.sqrt(2))
    sigma = noise.gaussian_scale(sensitivity, part * rho)
    error, variance = noise.gaussian_moments(sigma)
    return Share(table, zcdp_epsilon(part * rho, delta), part * rho, sensitivity, sigma, variance, error)


def _judge(share: Share, n: int) -> list[str]:
    table = share.table
    if 2 * share.largest_noise >= n:
        raise ValueError(
            f"the share of {table.name} is useless: epsilon {share.epsilon:.3g} over {table.cells:,} cells "
            "gives "
            f"noise of up to about {share.largest_noise:,.0f} records in a cell, and only {n:,} are "
            "declared. "
            "Name fewer tables, give this one more weight, or raise epsilon"
        )
    if share.error_before > n / table.cells:
        return [
            f"{table.name} is sparse: {n / table.cells:.3g} records per cell on average against an expected "
            f"error of {share.error_before:.3g} per cell; setting negative cells to 0 would alone add up to "
            "about "
            f"{share.added_to_empty_cells:,.0f} records in empty cells"
        ]
    return []


def _check_mechanism(mechanism: str, delta: float, n: int) -> str | None:
    if mechanism not in get_args(Mechanism):
        raise ValueError(f"mechanism is {mechanism!r}; it must be one of {', '.join(get_args(Mechanism))}")
    if mechanism == "laplace":
        if delta != 0:
            raise ValueError(
                f"delta is {delta}; Laplace noise needs none: leave it at 0, or ask for gaussian"
            )
        return None
    if not delta > 0:
        raise ValueError(f"delta is {delta}; Gaussian noise needs one above 0 and below 1 / n_declared")
    return delta_rule(delta, n)


def _normalised(weights: Sequence[float] | None, tables: int) -> list[float]:
    if weights is None:
        return [1 / tables] * tables
    if len(weights) != tables or not all(math.isfinite(w) and w > 0 for w in weights):
        raise ValueError(f"{len(weights)} weights for {tables} tables; give one above 0 for each")
    return [w / math.fsum(weights) for w in weights]


def _log_cells(table: Table) -> float:
    return math.log(table.cells) + 0.5772

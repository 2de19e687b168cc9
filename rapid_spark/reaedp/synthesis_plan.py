"""The plan of a synthetic table: its parts, parameters and budget, from declared constants alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rapid_spark.reaedp import model, noise, plausible
from rapid_spark.reaedp.accounting import Grid
from rapid_spark.reaedp.budget import (
    Adjacency,
    Guarantee,
    check_adjacency,
    check_delta,
    check_epsilon,
    check_integer,
    delta_rule,
    disjoint_parts,
)
from rapid_spark.reaedp.domain import Domain, tables_over

SHARES = {True: (0.4, 0.6, 0.0), False: (0.2, 0.3, 0.5)}
SUPPORT_SHARE, BETA_SHARE, STOP_SHARE = 0.1, 0.1, 0.001
LEAST_RECORDS_PER_CELL = 5


@dataclass(frozen=True)
class Plan:
    """What will be drawn, and what each part costs. `guarantee` is the total, equal to the ledger's entry.

    Attributes:
        domains: of all columns.
        kept: columns copied from the seed; empty without seeds.
        redrawn: how many columns are drawn anew, omega; several numbers for one chosen at random per
            candidate.
        records: N, fixed beforehand.
        shares: of the persons, per part.
        structure_epsilon: of the noisy 2-way tables, under the plan's adjacency.
        parameters_epsilon: of the conditionals' tables, under the plan's adjacency.
        structure_scale: of the noise in a 2-way table.
        parameters_scale: of the noise in a conditional's table.
        test: parameters of the privacy test, None without seeds.
        pass_probability: that the support must prove.
        support_epsilon: spent on the support.
        beta: probability that the support's bound is wrong.
        stop: probability that the drawing ends before N records although the bound is right.
        max_parents: of a column.
        max_parent_cells: of a column's parents together.
        n_declared: number of persons.
        guarantee: the total.
        warnings: to be shown before the drawing.
    """

    domains: tuple[Domain, ...]
    kept: tuple[str, ...]
    redrawn: tuple[int, ...]
    records: int
    shares: tuple[float, float, float]
    structure_epsilon: float
    parameters_epsilon: float
    structure_scale: float
    parameters_scale: float
    test: plausible.PrivacyTest | None
    pass_probability: float | None
    support_epsilon: float | None
    beta: float
    stop: float
    max_parents: int
    max_parent_cells: float
    n_declared: int
    guarantee: Guarantee
    warnings: tuple[str, ...]

    @property
    def starts(self) -> tuple[int, ...]:
        """The positions from which columns are redrawn, the finest (most columns kept) first."""
        return tuple(sorted((len(self.domains) - r for r in self.redrawn), reverse=True))


def plan(
    domains: Sequence[Domain],
    records: int,
    epsilon: float,
    delta: float,
    n_declared: int,
    *,
    kept: Sequence[str] = (),
    redrawn: Sequence[int] | None = None,
    gamma: float = 4.0,
    pass_probability: float = 0.1,
    adjacency: Adjacency = "add_remove",
    key_stays: bool = False,
    shares: tuple[float, float, float] | None = None,
    max_parents: int = 3,
    bound: plausible.Bound = "theorem1",
    grid: Grid = "library",
    protected_unit: str = "person",
) -> Plan:
    """Settle everything that is drawn, from declared constants alone.

    Under add_remove each part may spend all of epsilon, since a person is in one part. Under replace too
    where a changed record keeps its key, otherwise half of it; and there F costs twice (group privacy). A
    tenth of the seeds' epsilon and of delta buys the support that proves the pass probability.

    Args:
        domains: of all columns.
        records: N.
        epsilon: total.
        delta: total; 0 without seeds.
        n_declared: number of persons, not below the true one.
        kept: columns copied from the seed; none means seedless, where only the model's budget counts.
        redrawn: omega; by default all columns but the kept ones. Several numbers: one is chosen per
            candidate. The largest number of kept columns must be that of `kept`.
        gamma: width of the classes of the privacy test.
        pass_probability: what the support must prove, at most 1/2.
        adjacency: of the guarantee.
        key_stays: replace changes values, and never the person's key.
        shares: of the persons, for structure, parameters and seeds.
        max_parents: of a column.
        bound: see `plausible`.
        grid: see `accounting.compose`.
        protected_unit: what one key stands for.

    Raises:
        ValueError: for a bad parameter, or a plan that n_declared persons cannot carry, with what would make
            it feasible.
    """
    seedless = not kept
    records, n = check_integer(records, 1, "records"), check_integer(n_declared, 1, "n_declared")
    check_epsilon(epsilon), check_delta(delta), check_adjacency(adjacency)
    tables_over(domains, [[d.column for d in domains]] if len(domains) < 2 else [[d.column] for d in domains])
    model.check_drawable(domains)
    omegas = _omegas(domains, kept, redrawn)
    split = _check_shares(shares or SHARES[seedless], seedless)
    warnings = _check_total_delta(delta, n, seedless)

    halves = 2.0 if adjacency == "replace" and not key_stays else 1.0
    part_epsilon, changes = epsilon / halves, 1 if adjacency == "add_remove" else 2
    pairs, drawn = len(model.pair_tables(domains)), max(omegas)
    structure_scale = noise.laplace_scale(changes * pairs, part_epsilon)
    parameters_scale = noise.laplace_scale(changes * drawn, part_epsilon)
    max_cells = max(1.0, n * split[1] / (LEAST_RECORDS_PER_CELL * parameters_scale))
    warnings += _noisy_model(n, split, structure_scale, parameters_scale)

    guarantee = _total(part_epsilon, delta, adjacency, key_stays, seedless, epsilon, protected_unit)
    seeds = (None, None, None, 0.0, 0.0)
    if not seedless:
        seeds = _plan_seeds(records, part_epsilon, delta, n, gamma, pass_probability, adjacency, bound, grid)
    test, chance, support_epsilon, beta, stop = seeds
    return Plan(
        tuple(domains), tuple(kept), omegas, records, split, part_epsilon, part_epsilon, structure_scale,
        parameters_scale, test, chance, support_epsilon, beta, stop, max_parents, max_cells, n, guarantee,
        tuple(warnings),
    )  # fmt: skip


def _plan_seeds(
    records: int,
    epsilon: float,
    delta: float,
    n: int,
    gamma: float,
    chance: float,
    adjacency: Adjacency,
    bound: plausible.Bound,
    grid: Grid,
) -> tuple[Any, Any, Any, float, float]:
    if not 0 < plausible.check_probability(chance) <= 0.5:
        raise ValueError(f"pass_probability is {chance}; a support proves at most 0.5")
    if adjacency == "replace":  # Group privacy of two: see `budget.two_steps`.
        epsilon = epsilon / 2
        delta = delta / (1 + math.exp(epsilon))
    support_epsilon, beta, stop = SUPPORT_SHARE * epsilon, BETA_SHARE * delta, STOP_SHARE * delta
    found = plausible.plan(
        records,
        epsilon - support_epsilon,
        delta - beta - stop,
        gamma,
        chance,
        bound=bound,
        grid=grid,
        n_declared=n,
    )
    if found["feasible"]:
        reach = plausible.largest_pass_probability(found["k"], support_epsilon, beta, n)
        if reach < chance:
            found |= {
                "feasible": False,
                "reason": f"with k = {found['k']:,} the noisy support of {n:,} persons proves at most "
                f"{max(reach, 0):.3g}, and "
                f"pass_probability is {chance:g}; give a smaller one, or raise epsilon",
            }
    if not found["feasible"]:
        raise ValueError(f"the plan cannot be carried: {found['reason']}")
    test = plausible.PrivacyTest(found["k"], found["t"], gamma, found["epsilon0"])
    return test, chance, support_epsilon, beta, stop


def _total(
    part: float,
    delta: float,
    adjacency: Adjacency,
    key_stays: bool,
    seedless: bool,
    epsilon: float,
    unit: str,
) -> Guarantee:
    seeds = [] if seedless else [(part, delta)]
    spent, failure = disjoint_parts([(part, 0.0), (part, 0.0), *seeds], adjacency, key_stays=key_stays)
    mechanism = "bayesian_network" if seedless else "plausible_deniability"
    return Guarantee(
        min(spent, epsilon), failure, adjacency, mechanism, 1.0 if adjacency == "add_remove" else 2.0, unit
    )


def _omegas(domains: Sequence[Domain], kept: Sequence[str], redrawn: Sequence[int] | None) -> tuple[int, ...]:
    names = [d.column for d in domains]
    if unknown := [c for c in kept if c not in names]:
        raise ValueError(f"kept columns {', '.join(unknown)} have no declared domain")
    if len(set(kept)) < len(kept):
        raise ValueError("a kept column is named twice")
    if len(kept) == len(names):
        raise ValueError("all columns are kept; leave at least one to be drawn anew")
    omegas = tuple(sorted({check_integer(r, 1, "redrawn") for r in redrawn or (len(names) - len(kept),)}))
    if omegas[0] != len(names) - len(kept) or omegas[-1] > len(names):
        raise ValueError(
            f"redrawn is {', '.join(map(str, omegas))}; the least must be {len(names) - len(kept)}, the "
            "columns that are not "
            f"kept, and the most {len(names)}"
        )
    return omegas


def _check_shares(shares: Sequence[float], seedless: bool) -> tuple[float, float, float]:
    structure, parameters, seeds = shares
    if (
        min(structure, parameters) <= 0
        or (seeds <= 0) != seedless
        or abs(sum(shares) - 1) > 1e-9
        or seeds < 0
    ):
        raise ValueError(
            f"shares are {structure:g}, {parameters:g}, {seeds:g}; they are above 0 and add up to 1, seeds 0 "
            "only without kept columns"
        )
    return structure, parameters, seeds


def _check_total_delta(delta: float, n: int, seedless: bool) -> list[str]:
    if seedless:
        if delta != 0:
            raise ValueError(f"delta is {delta}; without seeds none is spent: leave it at 0")
        return []
    if delta == 0:
        raise ValueError("delta is 0; drawing from seeds needs one above 0 and below 1 / n_declared")
    warning = delta_rule(delta, n)
    return [warning] if warning else []


def _noisy_model(
    n: int, shares: tuple[float, float, float], structure: float, parameters: float
) -> list[str]:
    warnings = []
    if n * shares[0] < LEAST_RECORDS_PER_CELL * structure:
        warnings.append(
            f"the 2-way tables have noise of {structure:,.0f} records a cell for about {n * shares[0]:,.0f} "
            "records: no "
            "association will be seen. Declare fewer columns or a larger epsilon"
        )
    if n * shares[1] < LEAST_RECORDS_PER_CELL * parameters:
        warnings.append(
            f"the conditionals have noise of {parameters:,.0f} records a cell for about {n * shares[1]:,.0f} "
            "records: they "
            "will be near noise. Declare fewer columns or a larger epsilon"
        )
    return warnings

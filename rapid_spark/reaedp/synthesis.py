"""A synthetic table by mechanism F, or without seeds: one drawing of what `synthesis_plan` settles.

The persons are split by a keyed hash into three parts: structure, parameters, seeds. Exact counts come
through a function that the caller gives (Spark counts); everything else happens here, on the driver, on
counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from rapid_spark.reaedp import model, noise, plausible
from rapid_spark.reaedp.domain import Table
from rapid_spark.reaedp.model import Cells, Network, Structure
from rapid_spark.reaedp.synthesis_plan import Plan

Part = Literal["structure", "parameters", "seeds"]
Count = Callable[[Part, Sequence[Table]], list[noise.Counts]]
PARTS: tuple[Part, ...] = ("structure", "parameters", "seeds")
LARGEST_BATCH = 200_000


class Unproved(ValueError):
    """The noisy support does not prove the pass probability: nothing is drawn, the budget is spent."""


class Incomplete(RuntimeError):
    """The candidates ended before the records were complete: nothing is released, the budget is spent."""


@dataclass(frozen=True)
class Synthetic:
    """The drawn records (`frame`, exactly N rows), the structure they follow, and the support that was
    bought.
    """

    plan: Plan
    frame: pd.DataFrame
    structure: Structure
    support: plausible.Support | None


def draw(planned: Plan, count: Count) -> Synthetic:
    """Learn the model from noisy counts and draw N records, once.

    Attempts, failures and pass rates depend on the data and are told to nobody.

    Args:
        planned: the plan, already entered in the ledger.
        count: exact dense counts of tables over the records of a part.

    Raises:
        Unproved: if the noisy support does not prove the pass probability.
        Incomplete: as `draw_until`.
    """
    network = learn(planned, count)
    if planned.test is None:
        rows = network.redraw(np.zeros((planned.records, len(planned.domains)), dtype=np.int64), 0)
        bought = None
    else:
        finest = Table(network.structure.domains[: planned.starts[0]])
        counts = count("seeds", [finest])[0]
        bought = buy_support(planned, counts)
        rows = draw_until(planned, network, counts, bought.pass_probability)
    frame = model.decode(network.structure.domains, rows)
    return Synthetic(planned, frame[[d.column for d in planned.domains]], network.structure, bought)


def learn(planned: Plan, count: Count) -> Network:
    """The model: structure from noisy 2-way tables of one part, conditionals from noisy counts of another."""
    scale = planned.structure_scale
    pairs = [noise.add_laplace(c, scale) for c in count("structure", model.pair_tables(planned.domains))]
    variance = noise.laplace_variance(scale)
    association = model.associations(planned.domains, [p.astype(np.float64) for p in pairs], variance, 6.0)
    structure = model.choose_structure(
        planned.domains,
        association,
        planned.kept,
        max_parents=planned.max_parents,
        max_parent_cells=planned.max_parent_cells,
    )
    first = planned.starts[-1]
    families = [structure.family(i) for i in range(first, len(structure.domains))]
    scale = planned.parameters_scale
    noisy = [noise.add_laplace(c, scale) for c in count("parameters", families)]
    return model.fit(structure, first, noisy, scale)


def buy_support(planned: Plan, kept_counts: noise.Counts) -> plausible.Support:
    """Release the noisy support, and refuse a plan that it cannot carry."""
    assert (
        planned.test is not None
        and planned.support_epsilon is not None
        and planned.pass_probability is not None
    )
    bought = plausible.release_support(
        kept_counts,
        planned.test.k,
        planned.support_epsilon,
        planned.beta,
        planned.n_declared,
        planned.guarantee.protected_unit,
    )
    if bought.pass_probability < planned.pass_probability:
        raise Unproved(
            f"the noisy support proves a pass probability of {max(bought.pass_probability, 0):.3g}, and the "
            "plan needs "
            f"{planned.pass_probability:g}: no record is drawn, and the budget is spent. Keep fewer columns "
            "or coarser bins, "
            "ask for fewer records, or draw without seeds"
        )
    return bought


def draw_until(planned: Plan, network: Network, kept_counts: noise.Counts, chance: float) -> Cells:
    """Exactly N records that pass the privacy test, as bins in the order of the structure.

    The number of candidates is fixed beforehand and all of them are drawn and tested, so that not even the run time
    says how many pass; the first N that do are the release.

    Args:
        planned: the plan.
        network: the model.
        kept_counts: exact counts of the seed records over the kept columns, at their finest.
        chance: proved pass probability, which settles the number of candidates.

    Raises:
        Incomplete: if fewer than N pass, which has probability at most `stop` where the proof holds.
    """
    assert planned.test is not None
    left = plausible.attempts_for(planned.records, chance, planned.stop)
    done: list[Cells] = []
    cumulative = np.cumsum(kept_counts)
    wanted = planned.records
    while left > 0 and cumulative[-1] > 0:
        size = min(left, LARGEST_BATCH)
        left -= size
        seeds = _seeds(network.structure, planned.starts[0], cumulative, size)
        starts = np.array(planned.starts)[noise.uniform_below(np.full(size, len(planned.starts)))]
        rows = network.redraw(seeds, starts)
        counts = plausible_seeds(network, kept_counts, planned.starts, seeds, rows, planned.test.gamma)
        passed = rows[planned.test.passes(counts)][:wanted]
        done.append(passed)
        wanted -= len(passed)
    if wanted > 0:
        raise Incomplete(
            "the drawing ended before its records were complete; nothing is released, the budget is spent"
        )
    return np.concatenate(done)


def plausible_seeds(
    network: Network,
    kept_counts: noise.Counts,
    starts: Sequence[int],
    seeds: Cells,
    rows: Cells,
    gamma: float,
) -> noise.Counts:
    """For each candidate the number of seed records whose class I equals its seed's.

    p_s(y) is the mean over the starts of the probability to redraw y's columns from there on, where s agrees
    with y before it, else 0. So it depends on the longest start up to which s agrees with y, and counts of
    the kept columns, summed over their later ones, say how many records that are.

    Args:
        network: the model.
        kept_counts: counts over the columns before the largest start.
        starts: decreasing positions.
        seeds: bins of the seeds, read up to the largest start.
        rows: bins of the candidates.
        gamma: width of the classes.
    """
    cube = np.asarray(kept_counts).reshape([d.size for d in network.structure.domains[: starts[0]]])
    agreeing = [_agreeing(cube, rows, start) for start in starts]
    if len(starts) == 1:
        return agreeing[0]
    tails = np.zeros((len(rows), len(network.structure.domains) + 1))
    for position in range(len(network.structure.domains) - 1, starts[-1] - 1, -1):
        tails[:, position] = tails[:, position + 1] + network.log_probability(rows, position)
    logs = tails[:, list(starts)]
    # Level j: agrees up to starts[j], and no further; then only the starts from j on can have drawn y.
    levels = [np.logaddexp.reduce(logs[:, j:], axis=1) - math.log(len(starts)) for j in range(len(starts))]
    classes = np.stack([plausible.plausible_class(level, gamma) for level in levels])
    same = np.stack([(seeds[:, :start] == rows[:, :start]).all(axis=1) for start in starts])
    mine = np.take_along_axis(classes, same.argmax(axis=0)[None], axis=0)
    exactly = np.diff(np.stack([np.zeros(len(rows), dtype=np.int64), *agreeing]), axis=0)
    return np.asarray(np.where(classes == mine, exactly, 0).sum(axis=0))


def _agreeing(cube: Any, rows: Cells, start: int) -> noise.Counts:
    """How many records agree with each row before position `start`."""
    prefix = cube.sum(axis=tuple(range(start, cube.ndim))) if start < cube.ndim else cube
    return np.asarray(
        prefix[tuple(rows[:, i] for i in range(start))] if start else np.full(len(rows), prefix)
    )


def _seeds(structure: Structure, finest: int, cumulative: noise.Counts, size: int) -> Cells:
    """Records drawn uniformly, with replacement, as bins of their kept columns; the other columns are 0."""
    cell = np.searchsorted(cumulative, noise.uniform_below(np.full(size, cumulative[-1])), side="right")
    rows = np.zeros((size, len(structure.domains)), dtype=np.int64)
    rows[:, :finest] = np.stack(np.unravel_index(cell, [d.size for d in structure.domains[:finest]]), axis=1)
    return rows

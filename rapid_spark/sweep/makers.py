"""Releases to sweep over: synthetic records from noisy tables, made on the driver from data that are public or simulated.

A sweep computes figures on the original beside each release, which no epsilon covers, so it is for data that are public
anyway. Domains are read off such data; a real release declares them. Nothing here enters a ledger.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd

from ..config import ConfigError, suggest
from ..reaedp import model, noise, synthesis, synthesis_plan, tables
from ..reaedp.domain import Categories, Domain, Edges, Table

BINS = 12  # of a numeric column without declared ones
KEPT = 0.5  # share of the columns that mechanism F copies from the seed
GAMMA, PASS = 4.0, 0.1


def domains_of(frame: pd.DataFrame, bins: Mapping[str, Sequence[float]]) -> list[Domain]:
    """Domains of public data: levels, and declared edges or quantiles of numbers."""
    found: list[Domain] = []
    for name in frame.columns:
        column = frame[name]
        missing = bool(column.isna().any())
        if not pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column):
            levels = sorted(column.dropna().astype(str).unique())
            found.append(Categories(str(name), tuple(levels), missing=missing))
            continue
        values = column.dropna().to_numpy(dtype=float)
        whole = bool(np.all(values == np.floor(values)))
        edges = np.asarray(
            bins[name] if name in bins else np.unique(np.quantile(values, np.linspace(0, 1, BINS + 1))), dtype=float
        )
        edges = np.unique(np.floor(edges)) if whole else edges
        if len(edges) < 2:
            edges = np.array([edges[0], edges[0] + 1.0])
        found.append(Edges(str(name), tuple(edges), missing=missing, integer=whole))
    return found


def codes(frame: pd.DataFrame, domains: Sequence[Domain]) -> np.ndarray:
    """The bin of every value (rows x columns), values outside moved into the nearest bin of numbers."""
    result = np.zeros((len(frame), len(domains)), dtype=np.int64)
    for i, d in enumerate(domains):
        column = frame[d.column]
        absent = column.isna().to_numpy()
        if isinstance(d, Categories):
            found = pd.Index([str(v) for v in d.levels]).get_indexer(pd.Index(column.astype(str)))
            result[:, i] = np.where(absent, d.size - 1, found)
        else:
            inner = np.asarray(d.edges[1:-1])
            place = np.searchsorted(inner, column.fillna(0).to_numpy(dtype=float), side="right")
            result[:, i] = np.where(absent, d.size - 1, place)
    return result


def counts(rows: np.ndarray, domains: Sequence[Domain], wanted: Sequence[Table]) -> list[noise.Counts]:
    """Dense counts of tables over coded rows."""
    place = {d.column: i for i, d in enumerate(domains)}
    found = []
    for table in wanted:
        flat = np.ravel_multi_index(tuple(rows[:, place[c]] for c in table.columns), table.shape)
        found.append(np.bincount(flat, minlength=table.cells).astype(np.int64))
    return found


def independent(frame: pd.DataFrame, domains: Sequence[Domain], target: str, epsilon: float, delta: float) -> pd.DataFrame:
    """Every column from its own noisy histogram; epsilon is shared equally."""
    released = _released(frame, domains, [[d.column] for d in domains], epsilon)
    drawn = [_choice(e, len(frame)) for e in released]
    return _decoded(np.column_stack(drawn), domains)


def naive_bayes(frame: pd.DataFrame, domains: Sequence[Domain], target: str, epsilon: float, delta: float) -> pd.DataFrame:
    """The target from its histogram, every other column from its noisy 2-way table with the target."""
    others = [d for d in domains if d.column != target]
    released = _released(frame, domains, [[target, d.column] for d in others], epsilon)
    own = next(d for d in domains if d.column == target)
    shaped = [e.reshape(own.size, d.size) for e, d in zip(released, others, strict=True)]
    first = _choice(sum((s.sum(axis=1) for s in shaped), np.zeros(own.size)), len(frame))
    drawn = {target: first}
    for d, s in zip(others, shaped, strict=True):
        column = np.zeros(len(frame), dtype=np.int64)
        for level in range(own.size):
            at = np.flatnonzero(first == level)
            column[at] = _choice(s[level], len(at))
        drawn[d.column] = column
    return _decoded(np.column_stack([drawn[d.column] for d in domains]), domains)


def bayes_net(frame: pd.DataFrame, domains: Sequence[Domain], target: str, epsilon: float, delta: float) -> pd.DataFrame:
    """The DP Bayesian network: structure and conditionals from noisy counts, no seeds (`reaedp.synthesis`)."""
    return _synthesis(frame, domains, epsilon, 0.0, ())


def mechanism_f(frame: pd.DataFrame, domains: Sequence[Domain], target: str, epsilon: float, delta: float) -> pd.DataFrame:
    """Mechanism F: seeds, half of the columns copied, and the privacy test (`reaedp.plausible`).

    Raises:
        ValueError: these people cannot carry so many records at this epsilon.
    """
    sizes = sorted(domains, key=lambda d: d.size)
    kept = [d.column for d in sizes[: max(1, round(KEPT * len(domains)))]]
    return _synthesis(frame, domains, epsilon, delta or len(frame) ** -1.2, kept)


MAKERS: dict[str, Callable[[pd.DataFrame, Sequence[Domain], str, float, float], pd.DataFrame]] = {
    "independent": independent, "naive_bayes": naive_bayes, "bayes_net": bayes_net, "mechanism_f": mechanism_f,
}  # fmt: skip


def check(names: Sequence[str], epsilons: Sequence[float]) -> None:
    """Refuse mechanisms that are not known and epsilons that are none, every fault at once."""
    faults = [
        f"--mechanism: {n!r} is not known.{suggest(n, MAKERS)} Known: {', '.join(MAKERS)}" for n in names if n not in MAKERS
    ]
    faults += [f"--epsilon: {e:g} is no budget: a number above 0 is needed" for e in epsilons if not 0 < e < np.inf]
    if faults:
        raise ConfigError("\n".join(faults))


def _released(frame: pd.DataFrame, domains: Sequence[Domain], wanted: list[list[str]], epsilon: float) -> list[np.ndarray]:
    planned = tables.plan(domains, wanted, epsilon, len(frame), adjacency="add_remove")
    exact = counts(codes(frame, domains), domains, planned.tables)
    return [np.asarray(e, dtype=float) for e in tables.draw(planned, exact, "rescale").estimates]


def _synthesis(
    frame: pd.DataFrame, domains: Sequence[Domain], epsilon: float, delta: float, kept: Sequence[str]
) -> pd.DataFrame:
    planned = synthesis_plan.plan(
        domains, len(frame), epsilon, delta, len(frame), kept=kept, gamma=GAMMA, pass_probability=PASS
    )
    rows = codes(frame, domains)
    # every person is in one part, which no one can foresee: the same as a keyed hash whose key is thrown away
    draw = np.frombuffer(os.urandom(8 * len(frame)), dtype=np.uint64) / 2.0**64
    part = np.searchsorted(np.cumsum(planned.shares)[:-1], draw, side="right")

    def count(which: synthesis.Part, wanted: Sequence[Table]) -> list[noise.Counts]:
        return counts(rows[part == synthesis.PARTS.index(which)], domains, wanted)

    return synthesis.draw(planned, count).frame


def _choice(weights: np.ndarray, size: int) -> np.ndarray:
    """Places drawn in proportion to weights; all alike where there is none."""
    kept = np.clip(weights, 0, None)
    total = kept.cumsum() if kept.sum() > 0 else np.ones(len(kept)).cumsum()
    return np.minimum(np.searchsorted(total, noise.uniform(size) * total[-1], side="right"), len(kept) - 1)


def _decoded(rows: np.ndarray, domains: Sequence[Domain]) -> pd.DataFrame:
    return model.decode(domains, rows)

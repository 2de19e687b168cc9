"""Rates of surfaces from a few sums, and their ranks. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from .plan import Surface


@dataclass(frozen=True)
class Rate:
    """What the cheap attacker reached on a surface.

    Attributes:
        target, known, kind: of the surface.
        n: records with a defined outcome.
        n_at_risk: records at risk.
        rapid: n_at_risk / n; None where there is none.
        baseline_rate: what chance gives.
        beyond_chance: (rapid - baseline_rate) / (1 - baseline_rate): the share of what chance leaves. 1 is a column that
            is known exactly from the others, whatever its prevalences.
        seconds: of the fit.
        status: 'ok', 'undefined' or 'failed'.
        reason: why there is no rate.
    """

    target: str
    known: tuple[str, ...]
    kind: str
    n: int = 0
    n_at_risk: int = 0
    rapid: float | None = None
    baseline_rate: float | None = None
    beyond_chance: float | None = None
    seconds: float = 0.0
    status: str = "ok"
    reason: str | None = None

    def row(self) -> dict[str, Any]:
        """As plain data."""
        return {**asdict(self), "known": list(self.known)}


def without(surface: Surface, status: str, reason: str) -> Rate:
    """A surface that has no rate."""
    return Rate(surface.target, surface.known, surface.kind, status=status, reason=reason)


def rate_of(surface: Surface, n: int, hits: int, baseline: float | None, seconds: float) -> Rate:
    """The rate from its sums.

    Args:
        surface: the surface.
        n: records with a defined outcome.
        hits: those at risk.
        baseline: what chance gives, a share; None where it is not known.
        seconds: of the fit.
    """
    if not n:
        return without(surface, "undefined", "no record has a defined outcome")
    rapid = hits / n
    beyond = None if baseline is None else 0.0 if baseline >= 1 else (rapid - baseline) / (1 - baseline)
    return Rate(surface.target, surface.known, surface.kind, n, hits, rapid, baseline, beyond, seconds)


def chance(counts: np.ndarray, exceeding: np.ndarray) -> float:
    """What chance gives: sum_k n_k m_k / n^2 (arXiv:2602.09235 as the specification derives it).

    Args:
        counts: n_k, records of each class.
        exceeding: m_k, records whose probability of class k is above its threshold.
    """
    n = float(counts.sum())
    return float((counts.astype(float) * exceeding.astype(float)).sum() / n**2)


def ranked(rates: Sequence[Rate]) -> list[Rate]:
    """The worst first: by `beyond_chance`, then by rate, then the fewest columns known; those without a rate last."""

    def order(r: Rate) -> tuple[Any, ...]:
        beyond = r.beyond_chance if r.beyond_chance is not None else -np.inf
        return (r.rapid is None, -round(beyond, 9), -round(r.rapid or 0.0, 9), len(r.known), r.target, r.known)

    return sorted(rates, key=order)


def heat(rates: Sequence[Rate]) -> tuple[list[str], list[str], np.ndarray]:
    """Rows (attributes), columns (known) and the largest `beyond_chance` of surfaces that know the column; NaN where none.

    Where each column was tried alone, only those surfaces count, so that a cell tells of its column; sets of sizes count
    where there are no others.
    """
    alone = [r for r in rates if r.kind == "alone"]
    chosen = alone or [r for r in rates if r.kind == "set"] or list(rates)
    targets = sorted({r.target for r in chosen})
    known = sorted({c for r in chosen for c in r.known})
    cells = np.full((len(targets), len(known)), np.nan)
    for r in chosen:
        for c in r.known:
            i, j = targets.index(r.target), known.index(c)
            if r.beyond_chance is not None:
                cells[i, j] = np.nanmax([cells[i, j], r.beyond_chance])
    return targets, known, cells


def worst(rates: Sequence[Rate], n: int) -> list[Rate]:
    """The worst surfaces that all attackers are tried on: sets and all others, one column alone only where nothing else is;
    of an attribute one surface of each kind.
    """
    whole = [r for r in ranked(rates) if r.rapid is not None]
    found: dict[tuple[str, str], Rate] = {}
    for r in [r for r in whole if r.kind != "alone"] or whole:
        found.setdefault((r.target, r.kind), r)
    return list(found.values())[:n]


def by_target(rates: Sequence[Rate]) -> Mapping[str, list[Rate]]:
    """Surfaces by attribute, in their order."""
    found: dict[str, list[Rate]] = {}
    for r in rates:
        found.setdefault(r.target, []).append(r)
    return found

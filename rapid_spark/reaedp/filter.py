"""Whether one more release fits: budgets, what entries charge to them, and the filter, on ledger rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, get_args

from rapid_spark.config import check_identifier
from rapid_spark.reaedp.accounting import zcdp_epsilon, zcdp_rho
from rapid_spark.reaedp.budget import (
    Adjacency,
    Guarantee,
    check_adjacency,
    check_delta,
    check_epsilon,
    check_integer,
    delta_rule,
)

Row = dict[str, Any]
Composition = Literal["sum", "rho"]
BUDGET, ENTERED, DRAWN = "budget", "entered", "drawn"
CONTENT = "content_hmac"


@dataclass(frozen=True)
class Budget:
    """The limit of one population, and the filter it is kept by.

    Attributes:
        dataset: name of the population.
        epsilon: limit.
        delta: limit; with composition 'rho' the delta at which the sum of rho is converted.
        adjacency: of the whole budget.
        n_declared: number of persons, a constant.
        composition: 'sum' of (epsilon, delta), or 'rho': the sum of rho, converted once.
        protected_unit: 'record' takes every entry, any other name only entries with the same.
    """

    dataset: str
    epsilon: float
    delta: float
    adjacency: Adjacency
    n_declared: int
    composition: Composition = "sum"
    protected_unit: str = "record"

    def __post_init__(self) -> None:
        check_identifier(self.dataset)
        check_epsilon(self.epsilon), check_delta(self.delta), check_adjacency(self.adjacency)
        check_integer(self.n_declared, 1, "n_declared")
        delta_rule(self.delta, self.n_declared)
        if self.composition not in get_args(Composition):
            raise ValueError(f"composition is {self.composition!r}; it must be 'sum' or 'rho'")
        if self.composition == "rho" and self.delta == 0:
            raise ValueError("delta is 0; a sum of rho is converted at a delta above 0")

    @property
    def rho(self) -> float | None:
        """The limit of the sum of rho, where that is the filter."""
        return zcdp_rho(self.epsilon, self.delta) if self.composition == "rho" else None

    @property
    def warning(self) -> str | None:
        """What is to be said about delta, see `budget.delta_rule`."""
        return delta_rule(self.delta, self.n_declared)


@dataclass(frozen=True)
class Request:
    """One release that wants to be entered.

    Attributes:
        dataset: what it is computed from.
        run_id: of the run; another run id is another charge.
        release_id: name of what is released.
        guarantee: its total.
        parameters: everything declared that decides what is drawn, as JSON values; with the run id the
            request's identity.
        derived_from: the datasets that `dataset` is a version, subset or join of; none if it is the
            population itself.
        content_hmac: keyed HMAC of the content, which only ever warns.
    """

    dataset: str
    run_id: str
    release_id: str
    guarantee: Guarantee
    parameters: Mapping[str, Any]
    derived_from: tuple[str, ...] = ()
    content_hmac: str | None = None

    def __post_init__(self) -> None:
        for name in (self.dataset, self.run_id, self.release_id, *self.derived_from):
            check_identifier(name)
        if CONTENT in self.parameters:
            raise ValueError(
                f"{CONTENT} is not a parameter; a request's identity is never a digest of the data"
            )


def check(rows: Sequence[Row], request: Request) -> None:
    """Raise ValueError, with the reason, unless a request fits in every budget it charges."""
    _check_derivation(rows, request)
    for root in roots(rows, request.dataset, request.derived_from):
        budget = budget_of(rows, root)
        if budget is None:
            raise ValueError(
                f"no budget is set for {root}; set one first: rapid-spark ledger set-budget --dataset {root}"
            )
        guarantee = request.guarantee
        if budget.protected_unit not in ("record", guarantee.protected_unit):
            raise ValueError(
                f"the budget of {root} protects a {budget.protected_unit}, and the release a "
                f"{guarantee.protected_unit}"
            )
        charged = [*_charged(rows, root), _charge(guarantee, budget)]
        if excess := _excess(charged, budget):
            raise ValueError(f"over budget: {excess} on {root}; nothing is drawn, and nothing was charged")


def spent(rows: Sequence[Row], dataset: str) -> dict[str, Any]:
    """What the entries of a population add up to under its filter: epsilon, delta, composition, and rho for
    'rho'.
    """
    budget = budget_of(rows, dataset)
    if budget is None:
        raise ValueError(f"no budget is set for {dataset}")
    charged = _charged(rows, dataset)
    if budget.composition == "rho":
        total = float(_sum(c.rho for c in charged))
        epsilon = zcdp_epsilon(total, budget.delta) if total else 0.0
        return {
            "epsilon": epsilon,
            "delta": budget.delta if total else 0.0,
            "rho": total,
            "composition": "rho",
        }
    return {
        "epsilon": float(_sum(c.epsilon for c in charged)),
        "delta": float(_sum(c.delta for c in charged)),
        "composition": "sum",
    }


def budget_of(rows: Sequence[Row], dataset: str) -> Budget | None:
    """The budget that was set for a dataset, or None."""
    for row in rows:
        if row["state"] == BUDGET and row["dataset"] == dataset:
            said = json.loads(row["parameters"])
            return Budget(
                dataset,
                row["epsilon"],
                row["delta"],
                row["adjacency"],
                said["n_declared"],
                said["composition"],
                row["protected_unit"],
            )
    return None


def roots(rows: Sequence[Row], dataset: str, derived_from: Sequence[str] = ()) -> tuple[str, ...]:
    """The populations whose budget a dataset charges, in alphabetical order: itself, or what it is derived
    from at last.

    Raises:
        ValueError: if a dataset is derived from itself.
    """

    def walk(name: str, path: tuple[str, ...]) -> set[str]:
        if name in path:
            raise ValueError(f"{name} is derived from itself: {' <- '.join((*path, name))}")
        above = (derived_from if name == dataset and derived_from else None) or parents_of(rows, name)
        return {root for parent in above for root in walk(parent, (*path, name))} if above else {name}

    return tuple(sorted(walk(dataset, ())))


def parents_of(rows: Sequence[Row], dataset: str) -> tuple[str, ...]:
    """What a dataset was entered as derived from; nothing for a population."""
    for row in rows:
        if row["dataset"] == dataset and row["derived_from"]:
            return tuple(row["derived_from"].split(","))
    return ()


def _check_derivation(rows: Sequence[Row], request: Request) -> None:
    known, given = parents_of(rows, request.dataset), tuple(sorted(set(request.derived_from)))
    if given and known and known != given:
        raise ValueError(
            f"{request.dataset} is in the ledger as derived from {', '.join(known)}, and now from "
            f"{', '.join(given)}; where a "
            "dataset comes from does not change"
        )
    if given and not known and any(r["dataset"] == request.dataset for r in rows):
        raise ValueError(
            f"{request.dataset} is in the ledger as a population of its own; it cannot become derived"
        )


@dataclass(frozen=True)
class _Charge:
    epsilon: float
    delta: float
    rho: float


def _charge(guarantee: Guarantee, budget: Budget) -> _Charge:
    """What a guarantee costs under the budget's adjacency and filter."""
    if guarantee.adjacency == "replace" and budget.adjacency == "add_remove":
        raise ValueError(
            f"the release is calibrated for replace, and the budget of {budget.dataset} is add_remove: "
            "replace says nothing "
            "about a record more or less. Calibrate it for add_remove"
        )
    seen = guarantee.under_replace() if budget.adjacency == "replace" else guarantee
    if budget.composition == "sum":
        return _Charge(seen.epsilon, seen.delta, 0.0)
    if seen.rho is None and seen.delta > 0:
        raise ValueError(
            f"{seen.mechanism} has a delta and no rho, and the budget of {budget.dataset} adds up rho; it "
            "fits a budget with "
            "composition 'sum' only"
        )
    return _Charge(seen.epsilon, seen.delta, seen.epsilon**2 / 2 if seen.rho is None else seen.rho)


def _charged(rows: Sequence[Row], root: str) -> list[_Charge]:
    budget = budget_of(rows, root)
    assert budget is not None
    return [
        _charge(_guarantee(r), budget)
        for r in rows
        if r["state"] == ENTERED and root in roots(rows, r["dataset"])
    ]


def _excess(charged: Sequence[_Charge], budget: Budget) -> str | None:
    limits = (
        (("rho", budget.rho),)
        if budget.composition == "rho"
        else (("epsilon", budget.epsilon), ("delta", budget.delta))
    )
    for name, limit in limits:
        total = _sum(getattr(c, name) for c in charged)
        if total > _exact(limit):
            before = _sum(getattr(c, name) for c in charged[:-1])
            return f"{name} {float(before):g} spent + {getattr(charged[-1], name):g} asked > {limit:g} set"
    return None


def _sum(values: Iterable[float]) -> Decimal:
    # As decimals: three times 0.1 is 0.3, and fits in a budget of 0.3.
    return sum((_exact(v) for v in values), Decimal(0))


def _exact(value: float | None) -> Decimal:
    return Decimal(repr(float(value or 0.0)))


def _guarantee(row: Row) -> Guarantee:
    names = ("epsilon", "delta", "adjacency", "mechanism", "sensitivity", "protected_unit", "rho")
    return Guarantee(**{n: row[n] for n in names})

"""The ledger: what was spent on a population of persons, and whether one more release may be entered.

A budget belongs to a dataset, the population; its versions, subsets and joins (`derived_from`) charge the
same budget. The filter is fixed when the budget is set: the sum of (epsilon, delta), or the sum of rho
converted once. An entry is written before its noise is drawn, so a crash in between leaves the budget spent.
Rows are only ever appended.

This module decides on rows; where they are kept is behind `Storage`.
"""

from __future__ import annotations

import datetime as dt
import json
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from rapid_spark.reaedp.filter import (
    BUDGET,
    CONTENT,
    DRAWN,
    ENTERED,
    Budget,
    Request,
    Row,
    budget_of,
    check,
    parents_of,
    roots,
    spent,
)

COLUMNS = (
    "entry_id",
    "dataset",
    "derived_from",
    "release_id",
    "run_id",
    "mechanism",
    "adjacency",
    "protected_unit",
    "epsilon",
    "delta",
    "rho",
    "sensitivity",
    "parameters",
    "entered_at",
    "state",
)


class Storage(Protocol):
    """Where the rows are: append-only, each a dict with the keys in `COLUMNS`."""

    def read(self) -> list[Row]:
        """All rows, in the order in which they were appended."""

    def transact(self, decide: Callable[[list[Row]], list[Row]]) -> list[Row]:
        """Append, at once, the rows that `decide` makes of all rows so far, and return them.

        No other writer's row may come between the reading and the appending: under a lock held over both, or
        by a conditional commit that calls `decide` again when another writer was first. What `decide` raises
        is passed on, and nothing is appended.
        """


@dataclass(frozen=True)
class Entry:
    """The answer to a request: `drawn` means that it was drawn before, and what was stored then is to be
    returned.
    """

    entry_id: str
    drawn: bool
    warnings: tuple[str, ...] = ()


def set_budget(storage: Storage, budget: Budget, now: dt.datetime | None = None) -> str | None:
    """Set a population's budget, once. Setting the same again does nothing.

    Returns:
        A warning about delta, or None.

    Raises:
        ValueError: if another budget is set already, or the dataset is derived from another.
    """

    def decide(rows: list[Row]) -> list[Row]:
        if parents := parents_of(rows, budget.dataset):
            raise ValueError(
                f"{budget.dataset} is derived from {', '.join(parents)}, and charges the budget there; set "
                "none of its own"
            )
        if (known := budget_of(rows, budget.dataset)) is not None:
            if known == budget:
                return []
            raise ValueError(
                f"the budget of {budget.dataset} is set to epsilon {known.epsilon:g}, delta {known.delta:g}, "
                f"{known.adjacency}, {known.composition}; the filter is fixed when it is set, and stays"
            )
        return [_budget_row(budget, now)]

    storage.transact(decide)
    return budget.warning


def look(rows: Sequence[Row], request: Request) -> Entry | None:
    """What `enter` would answer now: the entry of a request that was drawn before, or None where a new one fits.

    Raises:
        ValueError: as `enter`.
    """
    if (old := _same(rows, request)) is not None:
        return Entry(old["entry_id"], drawn=True)
    check(rows, request)
    return None


def enter(storage: Storage, request: Request, now: dt.datetime | None = None) -> Entry:
    """Charge a release to the budget of its population, before its noise is drawn.

    Returns:
        A new entry, to be drawn now and then marked by `mark_drawn`; or the old one of the same request,
        already drawn.

    Raises:
        ValueError: if there is no budget, the release does not fit in it, or the same request was entered and
            never drawn.
    """
    answer: list[Entry] = []

    def decide(rows: list[Row]) -> list[Row]:
        answer.clear()
        if (old := look(rows, request)) is not None:
            answer.append(old)
            return []
        row = _entry_row(request, now)
        answer.append(Entry(row["entry_id"], drawn=False, warnings=tuple(_content_warnings(rows, request))))
        return [row]

    storage.transact(decide)
    return answer[0]


def mark_drawn(storage: Storage, entry_id: str, now: dt.datetime | None = None) -> None:
    """Append the second row of an entry, after what was drawn has been stored.

    Raises:
        ValueError: if there is no such entry, or it is marked already.
    """

    def decide(rows: list[Row]) -> list[Row]:
        states = {r["state"]: r for r in rows if r["entry_id"] == entry_id}
        if ENTERED not in states:
            raise ValueError(f"the ledger has no entry {entry_id}")
        if DRAWN in states:
            raise ValueError(f"entry {entry_id} is marked as drawn already")
        return [states[ENTERED] | {"state": DRAWN, "entered_at": _now(now)}]

    storage.transact(decide)


def show(rows: Sequence[Row], dataset: str) -> dict[str, Any]:
    """The budget of a dataset's population, what was spent of it, and its entries.

    Raises:
        ValueError: if the dataset is unknown, or charges the budgets of several populations.
    """
    charged_to = roots(rows, dataset)
    if len(charged_to) > 1:
        raise ValueError(f"{dataset} charges the budgets of {' and '.join(charged_to)}; ask for one of them")
    root = charged_to[0]
    budget = budget_of(rows, root)
    if budget is None:
        known = sorted({r["dataset"] for r in rows if r["state"] == BUDGET})
        raise ValueError(f"no budget is set for {root}; the ledger has {', '.join(known) or 'none'}")
    drawn = {r["entry_id"] for r in rows if r["state"] == DRAWN}
    entries = [
        {**r, "state": DRAWN if r["entry_id"] in drawn else ENTERED}
        for r in rows
        if r["state"] == ENTERED and root in roots(rows, r["dataset"])
    ]
    limit: dict[str, Any] = {
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "adjacency": budget.adjacency,
        "protected_unit": budget.protected_unit,
        "n_declared": budget.n_declared,
    }
    return {
        "dataset": dataset,
        "charged_to": root,
        "budget": limit,
        "spent": spent(rows, root),
        "entries": entries,
    }


def _same(rows: Sequence[Row], request: Request) -> Row | None:
    identity = (request.dataset, request.run_id, request.guarantee.mechanism, _declared(request.parameters))
    for row in rows:
        if row["state"] != ENTERED:
            continue
        known = (row["dataset"], row["run_id"], row["mechanism"], _declared(json.loads(row["parameters"])))
        if known == identity:
            if any(r["entry_id"] == row["entry_id"] and r["state"] == DRAWN for r in rows):
                return row
            raise ValueError(
                f"run {request.run_id} was entered with these parameters and never drawn to the end: its "
                "budget is spent, "
                "and its noise may have been seen. Start again with another run id, which is a new charge"
            )
    return None


def _declared(parameters: Mapping[str, Any]) -> str:
    return json.dumps({k: v for k, v in parameters.items() if k != CONTENT}, sort_keys=True, allow_nan=False)


def _content_warnings(rows: Sequence[Row], request: Request) -> Iterable[str]:
    if request.content_hmac is None:
        return
    mine = roots(rows, request.dataset, request.derived_from)
    for row in rows:
        if row["state"] == ENTERED and json.loads(row["parameters"]).get(CONTENT) == request.content_hmac:
            if roots(rows, row["dataset"]) != mine:
                yield (
                    f"the content of {request.dataset} was released before as {row['dataset']}, on another "
                    "budget; if these "
                    "are the same persons, name derived_from"
                )
                return


def _budget_row(budget: Budget, now: dt.datetime | None) -> Row:
    said = {"n_declared": budget.n_declared, "composition": budget.composition}
    return dict.fromkeys(COLUMNS) | {
        "entry_id": uuid.uuid4().hex,
        "dataset": budget.dataset,
        "mechanism": BUDGET,
        "adjacency": budget.adjacency,
        "protected_unit": budget.protected_unit,
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "rho": budget.rho,
        "parameters": json.dumps(said, sort_keys=True),
        "entered_at": _now(now),
        "state": BUDGET,
    }


def _entry_row(request: Request, now: dt.datetime | None) -> Row:
    said = dict(request.parameters) | ({CONTENT: request.content_hmac} if request.content_hmac else {})
    return dict.fromkeys(COLUMNS) | {
        "entry_id": uuid.uuid4().hex,
        "dataset": request.dataset,
        "derived_from": ",".join(sorted(set(request.derived_from))) or None,
        "release_id": request.release_id,
        "run_id": request.run_id,
        **request.guarantee.as_dict(),
        "parameters": json.dumps(said, sort_keys=True, allow_nan=False),
        "entered_at": _now(now),
        "state": ENTERED,
    }


def _now(now: dt.datetime | None) -> dt.datetime:
    return now or dt.datetime.now(dt.UTC)

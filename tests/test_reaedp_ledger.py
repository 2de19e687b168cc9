"""Ledger rules on rows in memory: what fits, what is refused, and that an entry comes before its noise."""

from __future__ import annotations

import pytest

from rapid_spark.reaedp import ledger
from rapid_spark.reaedp.accounting import zcdp_epsilon
from rapid_spark.reaedp.budget import Guarantee
from rapid_spark.reaedp.filter import Budget, Request


class Memory:
    """Rows in a list."""

    def __init__(self):
        self.rows = []

    def read(self):
        return [dict(row) for row in self.rows]

    def transact(self, decide):
        made = decide(self.read())
        self.rows += made
        return made


def budget(dataset="people", epsilon=1.0, delta=1e-6, adjacency="add_remove", **options):
    return Budget(dataset, epsilon, delta, adjacency, 10_000, **options)


def guarantee(epsilon=0.5, delta=0.0, adjacency="add_remove", mechanism="discrete_laplace", rho=None, unit="record"):
    return Guarantee(epsilon, delta, adjacency, mechanism, 1.0, unit, rho)


def request(run="r1", dataset="people", parameters=None, **options):
    told = {k: options.pop(k) for k in ("derived_from", "content_hmac") if k in options}
    return Request(dataset, run, "release", guarantee(**options), parameters or {"tables": [["age"]]}, **told)


@pytest.fixture
def storage():
    made = Memory()
    ledger.set_budget(made, budget())
    return made


def test_entries_add_up_and_the_one_too_many_is_refused(storage):
    for run in ("r1", "r2"):
        ledger.enter(storage, request(run))
    with pytest.raises(ValueError, match="over budget: epsilon 1 spent"):
        ledger.enter(storage, request("r3", epsilon=0.001))
    assert ledger.show(storage.read(), "people")["spent"] == {"epsilon": 1.0, "delta": 0.0, "composition": "sum"}


def test_ten_tenths_fill_a_budget_of_one(storage):
    for i in range(10):
        ledger.enter(storage, request(f"r{i}", epsilon=0.1))
    assert ledger.show(storage.read(), "people")["spent"]["epsilon"] == 1.0


def test_delta_has_its_own_limit(storage):
    ledger.enter(storage, request("r1", epsilon=0.1, delta=9e-7))
    with pytest.raises(ValueError, match="over budget: delta"):
        ledger.enter(storage, request("r2", epsilon=0.1, delta=2e-7))


def test_the_same_request_returns_what_was_drawn_and_another_run_is_another_charge(storage):
    first = ledger.enter(storage, request("r1", epsilon=0.4))
    ledger.mark_drawn(storage, first.entry_id)
    again = ledger.enter(storage, request("r1", epsilon=0.4))
    assert (again.entry_id, again.drawn) == (first.entry_id, True)
    other = ledger.enter(storage, request("r2", epsilon=0.4))
    assert not other.drawn and other.entry_id != first.entry_id
    assert [r["state"] for r in storage.rows] == ["budget", "entered", "drawn", "entered"]


def test_a_crash_after_entry_leaves_it_spent_and_is_not_drawn_again(storage):
    ledger.enter(storage, request("r1"))
    with pytest.raises(ValueError, match="never drawn"):
        ledger.enter(storage, request("r1"))
    shown = ledger.show(storage.read(), "people")
    assert shown["spent"]["epsilon"] == 0.5
    assert [e["state"] for e in shown["entries"]] == ["entered"]


def test_marking_twice_or_nothing_is_refused(storage):
    entry = ledger.enter(storage, request("r1")).entry_id
    ledger.mark_drawn(storage, entry)
    for wrong, message in ((entry, "marked as drawn already"), ("nothing", "no entry")):
        with pytest.raises(ValueError, match=message):
            ledger.mark_drawn(storage, wrong)


def test_derived_datasets_charge_their_population(storage):
    ledger.enter(storage, request("r1", "people-2026", derived_from=("people",)))
    ledger.enter(storage, request("r2", "people-2026-north", derived_from=("people-2026",)))
    with pytest.raises(ValueError, match="over budget.*on people"):
        ledger.enter(storage, request("r3", epsilon=0.1))
    assert ledger.show(storage.read(), "people-2026-north")["charged_to"] == "people"
    with pytest.raises(ValueError, match="does not change"):
        ledger.enter(storage, request("r4", "people-2026", derived_from=("others",)))


def test_a_join_charges_every_population(storage):
    ledger.set_budget(storage, budget("others", epsilon=0.2))
    with pytest.raises(ValueError, match="over budget.*on others"):
        ledger.enter(storage, request("r1", "join", derived_from=("people", "others")))
    ledger.enter(storage, request("r2", "join", derived_from=("people", "others"), epsilon=0.2))
    assert [ledger.show(storage.read(), d)["spent"]["epsilon"] for d in ("people", "others")] == [0.2, 0.2]


def test_an_add_remove_entry_costs_twice_in_a_replace_budget_and_the_other_way_is_refused():
    storage = Memory()
    ledger.set_budget(storage, budget(adjacency="replace", delta=1e-5))
    ledger.enter(storage, request("r1", epsilon=0.5, delta=1e-6))
    spent = ledger.show(storage.read(), "people")["spent"]
    assert spent["epsilon"] == 1.0
    assert spent["delta"] == pytest.approx(2.6487212707e-6)
    other = Memory()
    ledger.set_budget(other, budget())
    with pytest.raises(ValueError, match="calibrated for replace"):
        ledger.enter(other, request("r1", adjacency="replace"))


def test_a_budget_of_rho_adds_rho_and_converts_once():
    storage = Memory()
    ledger.set_budget(storage, budget(composition="rho"))
    for run in ("r1", "r2"):
        ledger.enter(storage, request(run, epsilon=0.5, delta=1e-7, mechanism="discrete_gaussian", rho=0.005))
    ledger.enter(storage, request("r3", epsilon=0.1))  # pure: rho = epsilon^2 / 2
    spent = ledger.show(storage.read(), "people")["spent"]
    assert spent["rho"] == pytest.approx(0.015)
    assert spent["epsilon"] == pytest.approx(zcdp_epsilon(0.015, 1e-6))
    assert spent["epsilon"] < 1.1  # the sum of the three
    with pytest.raises(ValueError, match="over budget: rho"):
        ledger.enter(storage, request("r4", epsilon=1.0, mechanism="discrete_gaussian", delta=1e-7, rho=0.01))
    with pytest.raises(ValueError, match="composition 'sum' only"):
        ledger.enter(storage, request("r5", delta=1e-9, mechanism="plausible_deniability"))


def test_budgets_are_set_once(storage):
    assert ledger.set_budget(storage, budget()) is None
    assert len(storage.rows) == 1
    with pytest.raises(ValueError, match="fixed when it is set"):
        ledger.set_budget(storage, budget(epsilon=2.0))
    ledger.enter(storage, request("r1", "subset", derived_from=("people",)))
    with pytest.raises(ValueError, match="derived from people"):
        ledger.set_budget(storage, budget("subset"))


def test_a_derivation_cannot_go_in_a_circle(storage):
    ledger.enter(storage, request("r1", "a", derived_from=("people",), epsilon=0.1))
    with pytest.raises(ValueError, match="derived from itself"):
        ledger.enter(storage, request("r2", "b", derived_from=("b",), epsilon=0.1))


def test_without_a_budget_nothing_is_entered():
    with pytest.raises(ValueError, match="no budget is set for people; set one first"):
        ledger.enter(Memory(), request())


def test_the_protected_unit_must_be_the_budgets(storage):
    ledger.enter(storage, request("r1", unit="person"))  # a budget of records takes any
    persons = Memory()
    ledger.set_budget(persons, budget(protected_unit="person"))
    with pytest.raises(ValueError, match="protects a person, and the release a record"):
        ledger.enter(persons, request("r1"))


def test_known_content_under_a_new_name_is_warned_about(storage):
    ledger.set_budget(storage, budget("others"))
    ledger.enter(storage, request("r1", content_hmac="ab12"))
    derived = request("r2", "derived", derived_from=("people",), epsilon=0.1, content_hmac="ab12")
    assert ledger.enter(storage, derived).warnings == ()
    entry = ledger.enter(storage, request("r3", "others", content_hmac="ab12"))
    assert "released before as people" in entry.warnings[0]


@pytest.mark.parametrize(
    "change, message",
    [
        ({"epsilon": 0}, "epsilon"),
        ({"delta": 1e-4}, "below 1 / n_declared"),
        ({"adjacency": "both"}, "adjacency"),
        ({"composition": "minimum"}, "composition"),
        ({"composition": "rho", "delta": 0}, "delta is 0"),
        ({"dataset": "a b"}, "not an id"),
    ],
)
def test_wrong_budgets_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        budget(**change)

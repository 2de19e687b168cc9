"""Guarantees refuse what is none, and convert as the theory says."""

from __future__ import annotations

import math

import pytest

from rapid_spark.reaedp.budget import Guarantee, delta_rule, disjoint_parts

GOOD = {"epsilon": 1.0, "delta": 1e-6, "adjacency": "add_remove", "mechanism": "discrete_laplace", "sensitivity": 1.0}


@pytest.mark.parametrize(
    "change, word",
    [
        ({}, None),
        ({"delta": 0}, None),
        ({"adjacency": "replace", "rho": 0.1}, None),
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": -1}, "epsilon"),
        ({"epsilon": math.inf}, "epsilon"),
        ({"epsilon": "1"}, "epsilon"),
        ({"delta": 1}, "delta"),
        ({"delta": -1e-9}, "delta"),
        ({"delta": math.nan}, "delta"),
        ({"adjacency": "substitute"}, "add_remove, replace"),
        ({"sensitivity": math.nan}, "sensitivity"),
        ({"rho": 0}, "rho"),
        ({"mechanism": ""}, "mechanism"),
        ({"protected_unit": ""}, "protected_unit"),
    ],
)
def test_guarantee_takes_good_values_only(change, word):
    if word is None:
        assert Guarantee(**(GOOD | change)).as_dict()["protected_unit"] == "record"
    else:
        with pytest.raises(ValueError, match=word):
            Guarantee(**(GOOD | change))


def test_replace_is_two_changes():
    seen = Guarantee(**GOOD, rho=0.5).under_replace()
    assert (seen.epsilon, seen.rho, seen.adjacency) == (2.0, 2.0, "replace")
    assert seen.delta == pytest.approx((1 + math.e) * 1e-6)
    assert seen.under_replace() is seen


def test_a_guarantee_that_says_nothing_under_replace_is_refused():
    with pytest.raises(ValueError, match="promises nothing"):
        Guarantee(**(GOOD | {"epsilon": 20.0, "delta": 1e-6})).under_replace()


@pytest.mark.parametrize("delta, n, answer", [(1e-7, 10_000, None), (0, 5, None), (5e-5, 10_000, "close to"), (1e-4, 10_000, "refused")])
def test_delta_rule(delta, n, answer):
    if answer == "refused":
        with pytest.raises(ValueError, match="below 1 / n_declared"):
            delta_rule(delta, n)
    else:
        assert (delta_rule(delta, n) is None) == (answer is None)


@pytest.mark.parametrize(
    "adjacency, key_stays, total", [("add_remove", False, (3, 2e-6)), ("replace", True, (3, 2e-6)), ("replace", False, (5, 3e-6))]
)
def test_disjoint_parts_cost_the_largest_or_the_two_largest(adjacency, key_stays, total):
    parts = [(1, 0), (3, 1e-6), (2, 2e-6)]
    assert disjoint_parts(parts, adjacency, key_stays=key_stays) == pytest.approx(total)

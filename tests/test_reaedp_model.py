"""The Bayesian network: structure, conditionals, and draws that follow them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from rapid_spark.reaedp import model, noise
from rapid_spark.reaedp.domain import Categories, Edges

A, B, C = Categories("a", ("x", "y")), Categories("b", (1, 2, 3)), Categories("c", (True, False), missing=True)
CERTAIN = 1e-6


def records(n=4000, seed=0):
    """b follows a, c is on its own."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 2, n)
    b = np.where(rng.random(n) < 0.8, a, rng.integers(0, 3, n))
    return np.stack([a, b, rng.integers(0, 3, n)], axis=1)


def counts(rows, tables, names="abc"):
    return [
        np.bincount(np.ravel_multi_index([rows[:, names.index(c)] for c in t.columns], t.shape), minlength=t.cells)
        for t in tables
    ]


def test_association_is_cramers_v_and_zero_where_there_is_none():
    rows = records()
    pairs = counts(rows, model.pair_tables([A, B, C]))
    noisy = [noise.add_laplace(p, 3.0).astype(float) for p in pairs]
    found = model.associations([A, B, C], noisy, noise.laplace_variance(3.0), 6.0)
    v = stats.contingency.association(pairs[0].reshape(2, 3), method="cramer")
    assert found[0, 1] == found[1, 0] == pytest.approx(v, abs=0.05)
    assert found[0, 2] < 0.1 and found[1, 2] < 0.1


def test_noise_alone_seldom_looks_like_association():
    zero = np.zeros(6, dtype=np.int64) + 50
    found = [
        model.associations([A, B], [noise.add_laplace(zero, 20.0).astype(float)], noise.laplace_variance(20.0), 6.0)[0, 1]
        for _ in range(200)
    ]
    assert np.mean(np.array(found) > 0) < 0.15


def test_structure_finds_the_dependence_and_puts_kept_columns_first():
    association = np.array([[0, 0.8, 0], [0.8, 0, 0], [0, 0, 0]])
    free = model.choose_structure([A, B, C], association)
    assert free.columns == ("a", "b", "c") and free.parents == ((), (0,), ())
    kept = model.choose_structure([A, B, C], association, kept=["c", "b"])
    assert kept.columns == ("c", "b", "a") and kept.parents == ((), (), (1,))


@pytest.mark.parametrize("limits", [{"max_parents": 0}, {"max_parent_cells": 1}])
def test_limits_on_parents_hold(limits):
    association = np.full((3, 3), 0.5) - 0.5 * np.eye(3)
    assert model.choose_structure([A, B, C], association, **limits).parents == ((), (), ())


def test_a_structure_has_no_cycles():
    with pytest.raises(ValueError, match="come before"):
        model.Structure((A, B), ((1,), ()))


def fitted(rows, scale=1e-9):
    structure = model.Structure((A, B, C), ((), (0,), ()))
    families = [structure.family(i) for i in range(3)]
    return model.fit(structure, 0, counts(rows, families), scale)


def test_conditionals_and_draws_follow_the_records():
    rows = records()
    network = fitted(rows)
    drawn = network.redraw(np.zeros((4000, 3), dtype=np.int64), 0)
    table = counts(rows, [model.Table((A, B))])[0]
    expected = table + 1e-9
    assert stats.chisquare(counts(drawn, [model.Table((A, B))])[0], expected / expected.sum() * 4000).pvalue > CERTAIN
    direct = np.log([table.reshape(2, 3)[a, b] / table.reshape(2, 3)[a].sum() for a, b in rows[:20, :2]])
    assert network.log_probability(rows[:20], 1) == pytest.approx(direct, abs=5e-3)


def test_columns_before_the_start_are_kept():
    rows = records(500)
    starts = np.array([1, 2] * 250)
    drawn = fitted(rows).redraw(rows, starts)
    assert (drawn[:, 0] == rows[:, 0]).all()
    assert (drawn[starts == 2, 1] == rows[starts == 2, 1]).all()
    assert (drawn[starts == 1, 1] != rows[starts == 1, 1]).any()


def test_cells_without_records_follow_the_margin():
    rows = records()
    only_x = rows[rows[:, 0] == 0]
    network = fitted(only_x, scale=10.0)
    share = network.weights[1] / network.weights[1].sum(axis=1, keepdims=True)
    assert share[1] == pytest.approx(np.bincount(only_x[:, 1], minlength=3) / len(only_x), abs=0.01)


def test_columns_without_a_conditional_cannot_be_drawn():
    structure = model.Structure((A, B), ((), (0,)))
    network = model.fit(structure, 1, [np.ones(6)], 1.0)
    with pytest.raises(ValueError, match="no conditional"):
        network.redraw(np.zeros((2, 2), dtype=np.int64), 0)


def test_bins_become_values_of_their_kind():
    age = Edges("age", (0, 10, 20), integer=True)
    pay = Edges("pay", (0.0, 0.5, 2.0), missing=True)
    mixed = Categories("mixed", (1, "one"))
    rows = np.array([[0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1], [1, 2, 2, 1, 2, 0]])
    frame = model.decode([A, B, C, age, pay, mixed], rows)
    assert frame["a"].tolist() == ["x", "y", "y"]
    assert frame["b"].tolist() == [1, 2, 3] and frame["b"].dtype == "Int64"
    assert frame["c"].tolist()[:2] == [True, False] and frame["c"].isna().tolist() == [False, False, True]
    assert 0 <= frame["age"][0] <= 9 and 10 <= frame["age"][1] <= 20
    assert 0 <= frame["pay"][0] < 0.5 <= frame["pay"][1] < 2 and np.isnan(frame["pay"][2])
    assert frame["mixed"].tolist() == ["1", "one", "1"]


def test_numbers_are_uniform_within_their_bin():
    whole = model.decode([Edges("x", (0, 3, 6), integer=True)], np.ones((6000, 1), dtype=np.int64))["x"]
    assert sorted(set(whole)) == [3, 4, 5, 6]
    assert stats.chisquare(whole.value_counts()).pvalue > CERTAIN
    real = model.decode([Edges("x", (0, 3, 6))], np.ones((3000, 1), dtype=np.int64))["x"]
    assert stats.kstest((real - 3) / 3, "uniform").pvalue > CERTAIN


@pytest.mark.parametrize(
    "domain, word", [(Edges("x", (0, float("inf"))), "infinite edge"), (Edges("x", (0.2, 0.8, 3), integer=True), "no whole number")]
)
def test_bins_that_cannot_be_drawn_from_are_refused(domain, word):
    with pytest.raises(ValueError, match=word):
        model.check_drawable([domain])

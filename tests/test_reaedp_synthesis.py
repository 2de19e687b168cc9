"""Synthetic records by F and without seeds: plans, plausible seeds, and the law of what is drawn."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

from rapid_spark.reaedp import model, plausible, synthesis, synthesis_plan
from rapid_spark.reaedp.domain import Categories, Edges, Table

A, B, C = Categories("a", ("x", "y", "z")), Categories("b", (1, 2)), Categories("c", ("u", "v", "w"))
CERTAIN = 1e-6
N = 30_000


def plan(kept=("a",), records=50, epsilon=8.0, delta=1e-6, n=N, **options):
    return synthesis_plan.plan([A, B, C], records, epsilon, delta, n, kept=kept, **options)


def people(n=N, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.choice(3, n, p=[0.6, 0.3, 0.1])
    b = np.where(rng.random(n) < 0.8, a > 0, rng.integers(0, 2, n))
    return np.stack([a, b, rng.integers(0, 3, n)], axis=1), rng.choice(3, n, p=[0.2, 0.3, 0.5])


def counter(rows, part):
    def count(name, tables):
        mine = rows[part == synthesis.PARTS.index(name)]
        at = {c: mine[:, i] for i, c in enumerate("abc")}
        return [
            np.bincount(np.ravel_multi_index([at[c] for c in t.columns], t.shape), minlength=t.cells) for t in tables
        ]

    return count


def small_network():
    """a -> b -> c with uneven conditionals; b and c can be drawn."""
    structure = model.Structure((A, B, C), ((), (0,), (1,)))
    return model.Network(structure, 1, (np.array([[9, 1], [5, 5], [1, 3]]), np.array([[7, 2, 1], [1, 1, 2]])))


def test_plausible_seeds_by_counts_equal_a_direct_loop_over_seeds():
    rng = np.random.default_rng(0)
    network, starts, gamma = small_network(), (2, 1), 2.0
    database = np.stack([rng.integers(0, 3, 60), rng.integers(0, 2, 60), rng.integers(0, 3, 60)], axis=1)
    kept = np.bincount(database[:, 0] * 2 + database[:, 1], minlength=6)
    chosen = database[rng.integers(0, 60, 200)]
    drawn = network.redraw(chosen, np.array(starts)[rng.integers(0, 2, 200)])
    b, c = (w / w.sum(axis=1, keepdims=True) for w in network.weights)

    def p(seed, y):
        from_c = c[y[1], y[2]] if tuple(seed[:2]) == tuple(y[:2]) else 0
        from_b = b[y[0], y[1]] * c[y[1], y[2]] if seed[0] == y[0] else 0
        return (from_c + from_b) / 2

    def kind(value):
        return math.floor(-math.log(value, gamma)) if value > 0 else None

    found = synthesis.plausible_seeds(network, kept, starts, chosen, drawn, gamma)
    direct = [sum(kind(p(other, y)) == kind(p(s, y)) for other in database) for s, y in zip(chosen, drawn, strict=True)]
    assert found.tolist() == direct
    assert len(set(direct)) > 4


def test_plausible_seeds_by_spark_equal_a_direct_loop(spark):
    from rapid_spark.reaedp import histogram

    network, rows = small_network(), people(120)[0]
    values = [(A.levels[a], B.levels[b], C.levels[c]) for a, b, c in rows.tolist()]
    frame = spark.createDataFrame(values, "a string, b int, c string").repartition(3)
    kept = histogram.count_tables(frame, [Table((A, B))])[0]
    drawn = network.redraw(rows, 2)
    found = synthesis.plausible_seeds(network, kept, (2,), rows, drawn, 4.0)
    assert found.tolist() == [sum((rows[:, :2] == y[:2]).all(axis=1)) for y in drawn]


def exact_law(database, network, starts, test):
    """P(y | passed) over all y, from the definition of F."""
    b, c = (w / w.sum(axis=1, keepdims=True) for w in network.weights)
    cells = [(i, j, k) for i in range(3) for j in range(2) for k in range(3)]

    def p(seed, y):
        parts = {
            2: c[y[1], y[2]] * (tuple(seed[:2]) == tuple(y[:2])),
            1: b[y[0], y[1]] * c[y[1], y[2]] * (seed[0] == y[0]),
        }
        return sum(parts[s] for s in starts) / len(starts)

    def passing(count):
        x, q = count - test.k, math.exp(-test.epsilon0)
        return q**-x / (1 + q) if x < 0 else 1 - q ** (x + 1) / (1 + q)

    law = []
    for y in cells:
        kinds = [math.floor(-math.log(v, test.gamma)) if (v := p(s, y)) > 0 else None for s in database]
        law.append(sum(p(s, y) * passing(kinds.count(i)) for s, i in zip(database, kinds, strict=True) if i is not None))
    return np.array(law) / sum(law)


@pytest.mark.parametrize("starts", [(2,), (1,), (2, 1)])
def test_records_drawn_until_they_pass_follow_the_law_of_f(starts):
    database = people(80, seed=3)[0]
    network, test = small_network(), plausible.PrivacyTest(14, 3, 2.0, 0.4)
    names = ("a", "b")[: max(starts)]
    planned = dataclasses.replace(plan(names), test=test, records=3000, redrawn=tuple(3 - s for s in starts))
    kept = np.bincount(np.ravel_multi_index(database[:, : max(starts)].T, (3, 2)[: max(starts)]), minlength=3 * 2 ** (max(starts) - 1))
    drawn = synthesis.draw_until(planned, network, kept, 0.3)
    seen = np.bincount(np.ravel_multi_index(drawn.T, (3, 2, 3)), minlength=18)
    expected = exact_law(database.tolist(), network, starts, test) * 3000
    common = expected > 5
    pooled = np.append(expected[common], expected[~common].sum() + 1e-9)
    assert seen.sum() == 3000
    seen = np.append(seen[common], seen[~common].sum())
    assert stats.chisquare(seen, pooled / pooled.sum() * 3000).pvalue > CERTAIN


@pytest.mark.parametrize("kept, redrawn", [(("a",), None), ((), None), (("a", "b"), (1, 2))])
def test_exactly_n_records_over_the_declared_domains(kept, redrawn):
    planned = plan(kept, delta=1e-6 if kept else 0.0, redrawn=redrawn)
    result = synthesis.draw(planned, counter(*people()))
    assert len(result.frame) == 50 and list(result.frame.columns) == ["a", "b", "c"]
    assert set(result.frame["a"]) <= set(A.levels) and set(result.frame["b"]) <= {1, 2}
    assert (result.support is None) == (not kept)


def test_the_seedless_table_keeps_margins_and_dependence():
    rows, part = people()
    frame = synthesis.draw(plan((), records=20_000, delta=0.0), counter(rows, part)).frame
    assert (frame["a"] == "x").mean() == pytest.approx(0.6, abs=0.03)
    assert (frame["b"][frame["a"] == "x"] == 2).mean() == pytest.approx(0.1, abs=0.03)


def test_each_part_may_spend_all_under_add_remove_and_half_under_replace():
    one, two, kept_key = plan(), plan(adjacency="replace"), plan(adjacency="replace", key_stays=True)
    assert (one.structure_epsilon, two.structure_epsilon, kept_key.structure_epsilon) == (8.0, 4.0, 8.0)
    assert (one.structure_scale, two.structure_scale) == pytest.approx((3 / 8, 2 * 3 / 4))
    assert (one.parameters_scale, kept_key.parameters_scale) == pytest.approx((2 / 8, 2 * 2 / 8))
    assert [p.guarantee.epsilon for p in (one, two, kept_key)] == [8.0, 8.0, 8.0]
    assert one.test.k < kept_key.test.k < two.test.k


def test_the_seeds_part_stays_within_its_total():
    planned = plan()
    single = plausible.plan(50, 7.2, 1e-6 * (1 - 0.101), 4.0, 0.1)
    assert planned.test.k == single["k"]
    assert single["epsilon_total"] + planned.support_epsilon <= 8.0
    assert single["delta_total"] + planned.beta + planned.stop == pytest.approx(1e-6)


def test_a_support_that_is_too_small_stops_the_drawing():
    planned = plan()
    rows, part = people(2000)
    with pytest.raises(ValueError, match="no record is drawn"):
        synthesis.draw(planned, counter(rows, part))


def test_an_end_to_the_drawing_is_set():
    planned = dataclasses.replace(plan(), records=10)
    with pytest.raises(RuntimeError, match="nothing is released"):
        synthesis.draw_until(planned, small_network(), np.array([3, 0, 0]), 0.5)
    with pytest.raises(RuntimeError, match="nothing is released"):
        synthesis.draw_until(planned, small_network(), np.array([0, 0, 0]), 0.5)


@pytest.mark.parametrize(
    "change, word",
    [
        ({"records": 0}, "records"),
        ({"epsilon": 0}, "epsilon"),
        ({"delta": 0.0}, "drawing from seeds"),
        ({"delta": 1e-4}, "below 1 / n_declared"),
        ({"kept": (), "delta": 1e-6}, "without seeds none"),
        ({"kept": ("d",)}, "no declared domain"),
        ({"kept": ("a", "a")}, "twice"),
        ({"kept": ("a", "b", "c")}, "all columns are kept"),
        ({"gamma": 1}, "gamma"),
        ({"pass_probability": 0.6}, "at most 0.5"),
        ({"redrawn": (1,)}, "redrawn"),
        ({"shares": (0.5, 0.5, 0.0)}, "shares"),
        ({"shares": (0.5, 0.5, 0.5)}, "shares"),
        ({"n": 500, "delta": 1e-4, "records": 1000}, "cannot be carried"),
        ({"n": 3000, "delta": 1e-5, "pass_probability": 0.49}, "cannot be proved"),
        ({"adjacency": "swap"}, "adjacency"),
    ],
)
def test_wrong_plans_are_refused(change, word):
    with pytest.raises(ValueError, match=word):
        plan(**change)


def test_a_pass_probability_that_the_noisy_support_cannot_prove_is_refused():
    reasons = set()
    for chance in np.linspace(0.3, 0.5, 100):
        try:
            plan(records=1, n=300, delta=1e-4, pass_probability=float(chance))
        except ValueError as error:
            reasons.add("noisy support" if "noisy support of 300 persons" in str(error) else "n")
    assert reasons == {"noisy support", "n"}


def test_values_that_cannot_be_drawn_are_refused_before_anything_is_counted():
    with pytest.raises(ValueError, match="infinite edge"):
        synthesis_plan.plan([A, Edges("x", (0, math.inf))], 10, 1.0, 0.0, N)


def test_a_model_of_noise_is_announced():
    warnings = plan((), epsilon=0.01, delta=0.0, n=2000).warnings
    assert "2-way tables" in warnings[0] and "conditionals" in warnings[1]
    assert not plan().warnings

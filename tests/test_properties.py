"""Properties that hold for any data: bounds, monotone curves, ties, order of records and classes; without Spark."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain import error, normalized_gain, result

from rapid_spark import config
from rapid_spark.risk import class_threshold, prediction_error_array

FAST = {"intervals": {"bootstrap": 50, "permutations": 9}}
MEASURES = ("normalized_gain", "rcs_conditional", "nce")


@st.composite
def scored(draw):
    """Probabilities with ties and zeros, and classes in rank order, two at least."""
    k = draw(st.integers(2, 4))
    n = draw(st.integers(k, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    raw = rng.integers(0, draw(st.sampled_from([2, 5, 1000])) + 1, (n, k)).astype(float)
    raw[raw.sum(axis=1) == 0] = 1.0
    y = np.concatenate([np.arange(k), rng.integers(0, k, n - k)])
    y = np.argsort(np.argsort(-np.bincount(y), kind="stable"))[y]
    return raw / raw.sum(axis=1, keepdims=True), y


@settings(max_examples=20, deadline=None)
@given(scored(), st.sampled_from(MEASURES))
def test_rates_are_shares_and_curves_fall(data, measure):
    r, _ = result(*data, measure, **FAST)
    rates = [row["rapid"] for row in r.curve]
    assert all(0 <= x <= 1 for x in rates) and rates == sorted(rates, reverse=True)
    assert 0 <= r.baseline_rate <= 1 and 0 < r.null.p <= 1
    for row in r.curve:
        assert row["ci_low"] <= row["ci_high"] and 0 <= row["ci_low"] and row["ci_high"] <= 1
        assert row["ci_low"] <= row["rapid"] <= row["ci_high"]
    assert sum(c["n"] for c in r.classes) == r.n and sum(c["n_at_risk"] for c in r.classes) == r.n_at_risk
    at = next(row for row in r.curve if row["threshold"] == config.parse({}).threshold.tau[measure])
    assert (at["n_at_risk"], at["ci_low"], at["ci_high"]) == (r.n_at_risk, *r.ci)


@settings(max_examples=15, deadline=None)
@given(scored(), st.floats(0, 0.99))
def test_the_curve_is_the_definition_at_any_threshold(data, tau):
    p, y = data
    r, _ = result(p, y, threshold={"tau": tau}, intervals={"method": "wilson", "permutations": 0})
    assert r.n_at_risk == normalized_gain(p, y, tau).sum()
    for row in r.curve:
        assert row["n_at_risk"] == normalized_gain(p, y, row["threshold"]).sum()


@settings(max_examples=15, deadline=None)
@given(scored(), st.sampled_from(MEASURES), st.randoms(use_true_random=False))
def test_the_order_of_records_does_not_matter(data, measure, random):
    p, y = data
    order = list(range(len(y)))
    random.shuffle(order)
    one, other = result(p, y, measure, **FAST)[0], result(p[order], y[order], measure, **FAST)[0]
    assert [row["n_at_risk"] for row in one.curve] == [row["n_at_risk"] for row in other.curve]
    assert one.null == other.null and one.baseline_rate == other.baseline_rate
    assert one.ci == pytest.approx(other.ci, abs=1e-9)


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 50), st.integers(1, 50), st.floats(0, 0.99))
def test_a_tie_is_not_at_risk(a, b, tau):
    """g exactly on the class threshold, computed in the same order of operations."""
    share = np.array([a, b]) / (a + b)
    g = class_threshold(share, tau)
    assert not (g > share + tau * (1 - share)).any() and (g <= 1).all()


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20), st.floats(-1e6, 1e6),
    st.sampled_from(["symmetric", "stabilised_relative", "relative", "absolute", "normalised"]),
)
def test_errors_are_never_negative_and_a_right_guess_has_none(y, guess, kind):
    threshold = config.parse({"threshold": {"error": kind}}).threshold
    e = prediction_error_array(np.array(y), guess, threshold, 2.0)
    assert np.all((e >= 0) | np.isnan(e)) and (kind != "symmetric" or np.nanmax(e, initial=0.0) <= 2)
    assert np.isnan(e).tolist() == [kind == "relative" and v == 0 for v in y]
    right = prediction_error_array(np.array(y), np.array(y), threshold, 2.0)
    assert np.nanmax(right, initial=0.0) == 0
    if kind != "normalised":
        with np.errstate(over="ignore"):
            np.testing.assert_allclose(e, error(y, np.full(len(y), guess), kind), rtol=1e-12)


def test_a_negative_guess_is_no_hit():
    """A peer divides by the signed guess, so that every negative guess counts as right."""
    for kind in ("symmetric", "stabilised_relative", "relative"):
        threshold = config.parse({"threshold": {"error": kind}}).threshold
        assert prediction_error_array(np.array([100.0]), -50.0, threshold, None)[0] > 1


@pytest.mark.parametrize("measure", MEASURES)
def test_one_class_with_records_and_one_without(measure):
    r, _ = result(np.array([[0.8, 0.2]] * 12), np.zeros(12, dtype=int), measure, **FAST)
    assert r.n == 12 and [c["n"] for c in r.classes] == [12, 0]

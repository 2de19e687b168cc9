"""Utility: figures of other libraries and of small tables; a copy is perfect, noise is not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from rapid_spark.simulate import registry
from rapid_spark.utility import measures
from rapid_spark.utility.measures import Column

COLUMNS = [Column("age", True), Column("education", False), Column("gender", False), Column("income", True), Column("disease_status", False)]


@pytest.fixture(scope="module")
def people():
    return registry(800, kappa=5, seed=1), registry(800, kappa=5, seed=2)


def test_a_copy_is_perfect(people):
    original = people[0]
    found = measures.marginals(original, original, COLUMNS) + measures.associations(original, original, COLUMNS)
    assert all(u.value == 0.0 for u in found)
    assert measures.propensity(original, original, COLUMNS)[0].value == pytest.approx(0.0, abs=1e-12)
    assert measures.regression(original, original, COLUMNS, COLUMNS[3])[0].value == pytest.approx(1.0)


def test_an_independent_sample_is_near_and_shuffled_columns_are_not(people):
    original, fresh = people
    shuffled = pd.DataFrame({c: original[c].sample(frac=1, random_state=i).to_numpy() for i, c in enumerate(original)})
    near, far = (measures.associations(original, f, COLUMNS)[-1].value for f in (fresh, shuffled))
    assert near < 0.06 < far
    assert measures.marginals(original, shuffled, COLUMNS)[-1].value == 0.0
    ratio = measures.propensity(original, fresh, COLUMNS)[1].value
    assert 0.5 < ratio < 5  # 2 on average
    for target, name in ((COLUMNS[4], "tstr_auc"), (COLUMNS[3], "tstr_r2")):
        good, bad = (measures.tstr(original, f, COLUMNS, target, 1) for f in (fresh, shuffled))
        assert [u.measure for u in good] == [name, name.replace("tstr", "trtr")]
        assert good[0].value > bad[0].value + 0.2
        assert abs(good[0].value - good[1].value) < 0.1


def test_pmse_ratio_of_independent_samples_is_two_on_average():
    rng = np.random.default_rng(2)
    ratios = []
    for _ in range(60):
        a, b = (pd.DataFrame({"x": rng.normal(size=300), "y": rng.normal(size=300)}) for _ in range(2))
        ratios.append(measures.propensity(a, b, [Column("x", True), Column("y", True)])[1].value)
    assert np.mean(ratios) == pytest.approx(2.0, abs=4 * np.std(ratios) / np.sqrt(60))


def test_measures_equal_their_definitions(people):
    from scipy.stats import f_oneway
    from scipy.stats.contingency import association as cramer

    original = people[0]
    a, b = original["education"].to_numpy(), original["gender"].to_numpy()
    assert measures.cramers_v(a, b) == pytest.approx(cramer(pd.crosstab(a, b).to_numpy(), method="cramer"))
    eta = measures.correlation_ratio(a, original["income"].to_numpy())
    groups = [g["income"] for _, g in original.groupby("education")]
    f, k, n = f_oneway(*groups).statistic, len(groups), len(original)
    assert eta**2 == pytest.approx(f * (k - 1) / (f * (k - 1) + n - k))
    assert measures.total_variation(np.array(list("aab")), np.array(list("abc"))) == pytest.approx(1 / 3)
    assert measures.wasserstein(np.array([0.0, 1, 3]), np.array([5.0, 6, 8])) == pytest.approx(5 / np.std([0, 1, 3], ddof=1))
    assert measures.overlap((0, 2), (1, 3)) == 0.5 and measures.overlap((0, 1), (2, 3)) == 0.0
    assert measures.overlap((0, 4), (1, 2)) == pytest.approx((1 / 4 + 1) / 2)


def test_what_cannot_be_measured_has_a_reason(people):
    original = people[0].assign(one="x")
    found = measures.tstr(original, original, [COLUMNS[0], Column("one", False)], Column("one", False), 1)
    assert all(u.value is None and u.reason for u in found)
    found = measures.regression(original, original, [COLUMNS[0], Column("one", False)], Column("one", False))
    assert found[0].value is None and found[0].reason

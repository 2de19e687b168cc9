"""The maximum of a suite and the mean over replicates, with their intervals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

from rapid_spark.intervals import proportion
from rapid_spark.suite import interval_of_max, over_replicates, suite


def row(attacker="rf", replicate=1, rapid=0.5, n_effective=200.0):
    return {"qi_set": "all", "sensitive_attribute": "ill", "measure": "normalized_gain", "target_type": "categorical",
            "threshold": 0.3, "status": "ok", "scored_on": "original", "attacker": attacker, "replicate": replicate,
            "rapid": rapid, "n": 1000, "n_effective": n_effective, "confidence": 0.95}


def test_mean_of_replicates_is_a_t_interval():
    rates = [0.50, 0.52, 0.56]
    half = t.ppf(0.975, 2) * np.std(rates, ddof=1) / np.sqrt(3)
    assert over_replicates(rates, 0.95) == pytest.approx((np.mean(rates) - half, np.mean(rates) + half))
    assert over_replicates([0.5], 0.95) == (None, None)


def test_the_lower_end_of_a_maximum_pays_for_choosing():
    low, high = interval_of_max([row(), row("gbm", rapid=0.48, n_effective=20.0)])
    assert low == pytest.approx(proportion(100, 200, 0.975, "wilson")[0])
    assert high == pytest.approx(proportion(9.6, 20, 0.95, "wilson")[1]) and high > proportion(100, 200, 0.95, "wilson")[1]
    assert low < proportion(100, 200, 0.95, "wilson")[0]


def test_one_attacker_keeps_its_interval():
    assert interval_of_max([row()]) == pytest.approx(proportion(100, 200, 0.95, "wilson"))


def test_the_interval_stands_in_the_suite_and_pooled_rows_are_not_in_it():
    rows = [row(replicate=r, rapid=x) for r, x in ((1, 0.5), (2, 0.52), (0, 0.7))]
    found = suite(pd.DataFrame(rows)).iloc[0]
    assert (found["max_low"], found["max_high"]) == pytest.approx(over_replicates([0.5, 0.52], 0.95))
    assert found["rapid_max"] == pytest.approx(0.51) and found["rapid_pooled"] == 0.7


def test_largest_of_equal_attackers_is_covered():
    """Ten attackers of one true rate: the maximum of their rates is above it, its interval holds it."""
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(300):
        rows = [row(f"a{i}", rapid=rng.binomial(200, 0.4) / 200) for i in range(10)]
        low, high = interval_of_max(rows)
        held += low <= 0.4 <= high
    assert held >= 0.93 * 300

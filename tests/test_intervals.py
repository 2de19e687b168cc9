import numpy as np
import pytest
from scipy.stats import beta

from rapid_spark.intervals import proportion, wilson_neff


def test_wilson_by_its_formula():
    z, n, p = 1.959963984540054, 50, 0.3
    middle = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    assert proportion(15, 50, 0.95, "wilson") == pytest.approx((middle - half, middle + half))


def test_clopper_pearson_by_beta_quantiles():
    assert proportion(3, 20, 0.9, "clopper_pearson") == pytest.approx((beta.ppf(0.05, 3, 18), beta.ppf(0.95, 4, 17)))


@pytest.mark.parametrize("method", ["wilson", "clopper_pearson", "wald"])
def test_ends_stay_in_the_unit_interval(method):
    assert proportion(0, 7, 0.95, method)[0] == 0.0
    assert proportion(7, 7, 0.95, method)[1] == 1.0
    assert proportion(0, 0, 0.95, method) == (None, None)


def test_wilson_neff_with_binomial_variance_is_wilson():
    assert wilson_neff(0.3, 50, 0.3 * 0.7 / 50, 0.95) == pytest.approx(proportion(15, 50, 0.95, "wilson"))


def test_wilson_neff_at_zero_takes_n():
    assert wilson_neff(0.0, 50, 0.0, 0.95) == proportion(0, 50, 0.95, "wilson")

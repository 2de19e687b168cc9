"""The rates that the R package gives on the simulated registry at kappa 1, by every measure and error."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rapid_spark import config, evaluation, io
from rapid_spark.attackers import Feature, fit
from rapid_spark.risk import prediction_error_array

DATA = Path(__file__).parent / "data" / "simulated"
KNOWN = {"gender": "categorical", "age": "numeric", "education": "categorical", "income": "numeric", "health_score": "numeric"}


def tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Original and release."""
    return pd.read_csv(DATA / "k1_original.csv.gz"), pd.read_csv(DATA / "k1_release.csv.gz")


@pytest.fixture(scope="module")
def errors_of_income():
    """Incomes, and what lm guesses."""
    original, release = tables()
    features = [Feature(c, kind) for c, kind in KNOWN.items() if c != "income"]
    guess = fit("lm", {}, release, features, "income", "continuous", 1, 1).predict(original)
    return original["income"].to_numpy(), guess


@pytest.mark.parametrize(
    ("kind", "tolerance", "rate"), [("symmetric", 0.1, 0.101), ("stabilised_relative", 0.1, 0.098), ("absolute", 5000, 0.158)]
)
def test_continuous_errors_give_the_published_rates(errors_of_income, kind, tolerance, rate):
    y, guess = errors_of_income
    threshold = config.parse({"threshold": {"error": kind, "tolerance": tolerance}}).threshold
    assert np.mean(prediction_error_array(y, guess, threshold, None) < tolerance) == pytest.approx(rate, abs=0.0015)


def test_the_published_mean_absolute_error(errors_of_income):
    y, guess = errors_of_income
    assert np.mean(np.abs(y - guess)) == pytest.approx(20846.1, abs=0.05)


@pytest.mark.slow
def test_measures_give_the_published_rates_end_to_end(spark):
    original, release = tables()
    settings = config.parse({
        "qi_sets": {"ill": list(KNOWN)}, "sensitive_attributes": ["ill"], "attackers": ["logit"],
        "measures": ["normalized_gain", "rcs_conditional", "nce"], "intervals": {"bootstrap": 100, "permutations": 0},
        "drivers": {"subgroups": False, "patterns": 0, "attribution": False},
    })
    found = evaluation.evaluate(
        spark, io.from_frame(spark, original, "original"), {1: io.from_frame(spark, release, "release")}, settings, "run"
    ).summary.set_index("measure")
    assert found["threshold"].to_dict() == {"normalized_gain": 0.3, "rcs_conditional": 1.25, "nce": 0.6}
    assert found.loc["rcs_conditional", "rapid"] == pytest.approx(0.166, abs=0.002)
    assert found.loc["nce", "rapid"] == pytest.approx(0.347, abs=0.002)
    expected = pd.read_csv(DATA / "k1_expected_logit_ill.csv.gz")
    assert found.loc["normalized_gain", "rapid"] == pytest.approx(np.mean(expected["normalized_gain"] > 0.3), abs=0.002)

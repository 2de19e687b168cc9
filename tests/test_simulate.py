"""The simulated registries against the formulas of the paper's appendix, computed another way."""

from __future__ import annotations

import itertools
import math
import random
import statistics

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from rapid_spark.simulate import national_registries, registry

N = 20_000


def test_columns_types_and_ranges() -> None:
    frame = registry(500, 2.0, seed=1)
    assert list(frame) == ["gender", "age", "education", "income", "health_score", "disease_status"]
    assert frame["age"].between(18, 90).all() and frame["health_score"].between(0, 100).all()
    assert (frame["income"] > 0).all() and not frame.isna().any().any()
    assert set(frame["gender"]) == {"male", "female"}
    assert set(frame["education"]) == {"low", "medium", "high"}
    assert set(frame["disease_status"]) == {"healthy", "diabetic", "hypertensive"}


def test_same_seed_same_people_other_seed_others() -> None:
    pd.testing.assert_frame_equal(registry(50, 1, seed=3), registry(50, 1, seed=3))
    assert not registry(50, 1, seed=3).equals(registry(50, 1, seed=4))


def test_key_is_added_in_front_and_changes_nothing_else() -> None:
    keyed = registry(50, 1, seed=3, key=True)
    assert list(keyed)[0] == "record_id" and keyed["record_id"].tolist() == list(range(1, 51))
    pd.testing.assert_frame_equal(keyed.drop(columns="record_id"), registry(50, 1, seed=3))


@pytest.mark.parametrize(
    ("n", "kappa", "named"), [(0, 1, "n is 0"), (5, -1, "kappa is -1"), (5, math.nan, "kappa")]
)
def test_bad_arguments_are_refused(n: int, kappa: float, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        registry(n, kappa, seed=1)


def test_one_person_has_no_spread_and_no_missing_value() -> None:
    assert not registry(1, 3, seed=1).isna().any().any()


def test_without_dependence_every_variable_has_its_closed_form() -> None:
    frame = registry(N, 0, seed=11)
    truncated = stats.truncnorm((18 - 45) / 15, (90 - 45) / 15, 45, 15)
    assert stats.kstest(frame["age"], truncated.cdf).pvalue > 0.001
    assert stats.kstest(np.log(frame["income"]) - 10, "norm").pvalue > 0.001
    odds = frame["health_score"] / (100 - frame["health_score"])
    assert stats.kstest(np.log(odds), "norm").pvalue > 0.001
    low, medium = stats.norm.cdf(-0.3), stats.norm.cdf(0.7) - stats.norm.cdf(-0.3)
    _assert_shares(frame["education"], {"low": low, "medium": medium, "high": 1 - low - medium})
    total = 1 + math.exp(-1.5) + math.exp(-1.3)
    _assert_shares(
        frame["disease_status"],
        {"healthy": 1 / total, "diabetic": math.exp(-1.5) / total, "hypertensive": math.exp(-1.3) / total},
    )
    _assert_shares(frame["gender"], {"male": 0.5, "female": 0.5})


def test_disease_follows_the_logit_in_age_income_and_education() -> None:
    kappa = 2.0
    frame = registry(N, kappa, seed=5)
    age, income = _z(frame["age"]), _z(np.log(frame["income"]))
    school = frame["education"].map({"low": 0, "medium": 1, "high": 2})
    diabetic = np.exp(-1.5 + kappa * (0.8 * age - 0.3 * income - 0.2 * school))
    hypertensive = np.exp(-1.3 + kappa * (1.0 * age - 0.2 * income - 0.1 * school))
    for name, odds in {"diabetic": diabetic, "hypertensive": hypertensive}.items():
        expected = odds / (1 + diabetic + hypertensive)
        residual = (frame["disease_status"] == name) - expected
        for weight in (1, age, income, school):  # score equations: zero at the true coefficients
            assert abs((residual * weight).sum()) < 4 * np.sqrt((expected * (1 - expected) * weight**2).sum())


@pytest.mark.parametrize("kappa", [1.0, 9.0])
def test_dependence_equals_a_person_by_person_simulation(kappa: float) -> None:
    ours, other = _described(registry(N, kappa, seed=7)), _described(_brute_force(N, kappa, seed=8))
    assert set(ours) == set(other)
    for name, (value, error) in ours.items():
        assert abs(value - other[name][0]) < 4.5 * math.hypot(error, other[name][1]), name


def test_prevalence_shift_moves_the_odds_by_its_exponential() -> None:
    frame = registry(N, 0, seed=2, prevalence_shift=(1.0, -1.0))
    odds = frame["disease_status"].value_counts() / (frame["disease_status"] == "healthy").sum()
    assert odds["diabetic"] == pytest.approx(math.exp(-0.5), rel=0.06)
    assert odds["hypertensive"] == pytest.approx(math.exp(-2.3), rel=0.12)


def test_national_registries_differ_and_share_a_vocabulary() -> None:
    registries = national_registries(seed=1)
    assert [r.name for r in registries] == ["registry_a", "registry_b", "registry_c", "registry_d"]
    assert len({len(r.original) for r in registries}) == 4
    assert len({tuple(r.original.columns) for r in registries}) == 4
    for one in registries:
        assert one.original[one.key].is_unique
        common = one.harmonised(one.original)
        assert list(common) == list(registry(1, 1, seed=1, key=True))
        assert set(common["gender"]) == {"male", "female"}
        assert set(common["education"]) == {"low", "medium", "high"}
        assert set(common["disease_status"]) == {"healthy", "diabetic", "hypertensive"}


def test_national_registries_plan_three_dated_releases_each_and_one_too_revealing() -> None:
    plans = [plan for one in national_registries(seed=1) for plan in one.releases]
    assert len(plans) == 12 and sum(plan.too_revealing for plan in plans) == 1
    for one in national_registries(seed=1):
        dates = [plan.release_date for plan in one.releases]
        assert dates == sorted(set(dates))


def test_national_registries_come_from_the_seed() -> None:
    first, again, other = (national_registries(seed=s)[3].original for s in (1, 1, 2))
    pd.testing.assert_frame_equal(first, again)
    assert not first.equals(other)


def _assert_shares(values: pd.Series, expected: dict[str, float]) -> None:
    for level, share in expected.items():
        assert abs((values == level).mean() - share) < 4 * math.sqrt(share * (1 - share) / len(values)), level


def _z(values: pd.Series) -> pd.Series:
    return (values - values.mean()) / values.std(ddof=1)


def _described(frame: pd.DataFrame) -> dict[str, tuple[float, float]]:
    """Means and correlations with their standard errors."""
    numbers = pd.DataFrame(
        {
            "male": frame["gender"] == "male",
            "age": frame["age"],
            "school": frame["education"].map({"low": 0, "medium": 1, "high": 2}),
            "high": frame["education"] == "high",
            "income": np.log(frame["income"]),
            "health": frame["health_score"],
            "diabetic": frame["disease_status"] == "diabetic",
            "hypertensive": frame["disease_status"] == "hypertensive",
        }
    ).astype(float)
    n, told = len(frame), {}
    for name in numbers:
        told[f"mean {name}"] = (numbers[name].mean(), numbers[name].std() / math.sqrt(n))
        told[f"sd {name}"] = (numbers[name].std(), numbers[name].std() / math.sqrt(n))
    for a, b in itertools.combinations(numbers, 2):
        told[f"{a} {b}"] = (numbers[a].corr(numbers[b]), 1 / math.sqrt(n))
    return told


def _brute_force(n: int, kappa: float, seed: int) -> pd.DataFrame:
    """The appendix in plain Python: rejection for the age, lists for the sample's mean and deviation."""
    rng = random.Random(seed)
    ws, wn = math.sqrt(kappa / (1 + kappa)), math.sqrt(1 / (1 + kappa))
    ses = [rng.gauss(0, 1) for _ in range(n)]
    age: list[float] = []
    while len(age) < n:
        drawn = rng.gauss(45, 15)
        if 18 <= drawn <= 90:
            age.append(drawn)
    age_z = _standard(age)
    school = []
    for s, a in zip(ses, age_z, strict=True):
        latent = ws * (0.8 * s - 0.4 * a) + wn * rng.gauss(0, 1)
        school.append(0 if latent < -0.3 else 1 if latent < 0.7 else 2)
    people = list(zip(ses, age_z, school, strict=True))
    income = [10 + ws * (0.5 * s + 0.3 * a + 0.25 * e) + wn * rng.gauss(0, 1) for s, a, e in people]
    rows = []
    for (s, a, e), i, own_age, own_income in zip(people, _standard(income), age, income, strict=True):
        wellbeing = ws * (0.6 * s - 0.5 * a + 0.2 * e + 0.2 * i) + wn * rng.gauss(0, 1)
        weights = [
            1.0,
            math.exp(-1.5 + kappa * (0.8 * a - 0.3 * i - 0.2 * e)),
            math.exp(-1.3 + kappa * (1.0 * a - 0.2 * i - 0.1 * e)),
        ]
        male = rng.random() < 1 / (1 + math.exp(-ws * (0.3 * s - 0.2 * a + 0.2 * e)))
        rows.append(
            {
                "gender": "male" if male else "female",
                "age": own_age,
                "education": ("low", "medium", "high")[e],
                "income": math.exp(own_income),
                "health_score": 100 / (1 + math.exp(-wellbeing)),
                "disease_status": rng.choices(("healthy", "diabetic", "hypertensive"), weights)[0],
            }
        )
    return pd.DataFrame(rows)


def _standard(values: list[float]) -> list[float]:
    mean, spread = statistics.fmean(values), statistics.stdev(values)
    return [(value - mean) / spread for value in values]

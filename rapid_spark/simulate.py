"""Simulated registries: the population of the paper's appendix, and four national ones for the audit demo.

Source: Templ, Thees, Müller (2026), "Risk of Attribute Prediction-Induced Disclosure", arXiv:2602.09235,
appendix.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit, ndtr, ndtri

EDUCATION = ("low", "medium", "high")
GENDER = ("female", "male")
DISEASE = ("healthy", "diabetic", "hypertensive")

_AGE_MEAN, _AGE_SD, _AGE_MIN, _AGE_MAX = 45.0, 15.0, 18.0, 90.0


def registry(
    n: int,
    kappa: float,
    seed: int,
    *,
    key: bool = False,
    prevalence_shift: tuple[float, float] = (0.0, 0.0),
) -> pd.DataFrame:
    """Simulate the registry of the paper's appendix.

    A latent socio-economic status drives every variable. `kappa` sets how strongly the variables depend on
    each other: at 0 they are independent but for noise, and with growing kappa the disease follows from age
    and income.

    Args:
        n: number of people, at least 1.
        kappa: strength of dependence, finite and not negative.
        seed: seed of the random draws; the same seed gives the same frame.
        key: add a first column `record_id`, the integers 1..n.
        prevalence_shift: added to the log odds of diabetic and of hypertensive against healthy; the paper has
            none.

    Returns:
        One row per person: gender (text), age (years), education (text), income (currency units a year),
        health_score (0 to 100), disease_status (text).

    Raises:
        ValueError: if n or kappa is out of range.
    """
    if n < 1:
        raise ValueError(f"n is {n}; a registry needs at least 1 person")
    if not (np.isfinite(kappa) and kappa >= 0):
        raise ValueError(f"kappa is {kappa}; it must be a finite number of at least 0")
    rng = np.random.default_rng(seed)
    signal, noise = np.sqrt(kappa / (1 + kappa)), np.sqrt(1 / (1 + kappa))

    status = rng.standard_normal(n)
    age = _truncated_age(rng, n)
    age_z = _standardise(age)
    latent = signal * (0.8 * status - 0.4 * age_z) + noise * rng.standard_normal(n)
    education = np.digitize(latent, [-0.3, 0.7])
    shift = signal * (0.5 * status + 0.3 * age_z + 0.25 * education)
    log_income = 10 + shift + noise * rng.standard_normal(n)
    income_z = _standardise(log_income)
    wellbeing = 0.6 * status - 0.5 * age_z + 0.2 * education + 0.2 * income_z
    health = 100 * expit(signal * wellbeing + noise * rng.standard_normal(n))
    disease = _disease(rng, kappa, age_z, income_z, education, prevalence_shift)
    male = rng.random(n) < expit(signal * (0.3 * status - 0.2 * age_z + 0.2 * education))

    columns: dict[str, Any] = {"record_id": np.arange(1, n + 1)} if key else {}
    columns |= {
        "gender": _labels(GENDER, male.astype(int)),
        "age": age,
        "education": _labels(EDUCATION, education),
        "income": np.exp(log_income),
        "health_score": health,
        "disease_status": _labels(DISEASE, disease),
    }
    return pd.DataFrame(columns)


def _truncated_age(rng: np.random.Generator, n: int) -> np.ndarray:
    """Ages from N(45, 15) given that they lie in [18, 90], by inversion."""
    low, high = ndtr((_AGE_MIN - _AGE_MEAN) / _AGE_SD), ndtr((_AGE_MAX - _AGE_MEAN) / _AGE_SD)
    age = _AGE_MEAN + _AGE_SD * ndtri(low + rng.random(n) * (high - low))
    return np.clip(age, _AGE_MIN, _AGE_MAX)


def _standardise(values: np.ndarray) -> np.ndarray:
    """Mean 0 and standard deviation 1 (divisor n - 1) in this sample; all 0 when the values do not vary."""
    spread = values.std(ddof=1) if len(values) > 1 else 0.0
    return (values - values.mean()) / spread if spread > 0 else np.zeros(len(values))


def _disease(
    rng: np.random.Generator,
    kappa: float,
    age_z: np.ndarray,
    income_z: np.ndarray,
    education: np.ndarray,
    shift: tuple[float, float],
) -> np.ndarray:
    """Codes into DISEASE from the multinomial logit: the largest of three utilities with Gumbel noise."""
    logits = np.stack(
        [
            np.zeros(len(age_z)),
            -1.5 + shift[0] + kappa * (0.8 * age_z - 0.3 * income_z - 0.2 * education),
            -1.3 + shift[1] + kappa * (1.0 * age_z - 0.2 * income_z - 0.1 * education),
        ]
    )
    return np.argmax(logits + rng.gumbel(size=logits.shape), axis=0)


def _labels(labels: tuple[str, ...], codes: np.ndarray) -> np.ndarray:
    return np.array(labels, dtype=object)[codes]


@dataclass(frozen=True)
class PlannedRelease:
    """How a simulated registry makes a release.

    Attributes:
        release_id: name of the release.
        release_date: day of publication.
        synthesizer: kind of synthesizer.
        options: its options.
        too_revealing: whether an audit should stop it.
    """

    release_id: str
    release_date: dt.date
    synthesizer: str
    options: dict[str, Any]
    too_revealing: bool = False


@dataclass(frozen=True)
class NationalRegistry:
    """A simulated national registry with its own column names and codes.

    Attributes:
        name: the registry.
        key: the column that identifies a person.
        original: the microdata, one row a person, in the registry's own columns and codes.
        columns: common name by the registry's own name, where they differ.
        levels: for a common column, the common level by the registry's own code (as text), where they differ.
        releases: the releases it plans, in the order of their dates.
    """

    name: str
    key: str
    original: pd.DataFrame
    columns: dict[str, str]
    levels: dict[str, dict[str, str]]
    releases: tuple[PlannedRelease, ...]

    def harmonised(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The registry's original or release in the common names and levels."""
        common = frame.rename(columns=self.columns)
        for name, levels in self.levels.items():
            text = common[name].astype(str)
            common[name] = text.map(levels).fillna(text)
        return common


@dataclass(frozen=True)
class _Nation:
    """What sets one of the national registries apart; own names and codes are given by common ones."""

    name: str
    n: int
    kappa: float
    prevalence_shift: tuple[float, float]
    income_step: int
    names: dict[str, str] = field(default_factory=dict)
    codes: dict[str, dict[str, Any]] = field(default_factory=dict)
    planted: bool = False


_NATIONS = (
    _Nation("registry_a", 6000, 1.0, (0.0, 0.0), 1),
    _Nation(
        "registry_b",
        3000,
        0.8,
        (0.4, 0.3),
        10,
        names={"record_id": "person_no", "gender": "sex", "income": "annual_income"},
        codes={"gender": {"female": "f", "male": "m"}, "education": {"low": 1, "medium": 2, "high": 3}},
    ),
    _Nation(
        "registry_c",
        4500,
        1.2,
        (-0.3, -0.2),
        100,
        names={"record_id": "id", "education": "schooling", "disease_status": "diagnosis"},
        codes={
            "education": {"low": "primary", "medium": "secondary", "high": "tertiary"},
            "disease_status": {"healthy": "none", "diabetic": "E11", "hypertensive": "I10"},
        },
        planted=True,
    ),
    _Nation(
        "registry_d",
        1500,
        0.9,
        (-0.2, 0.3),
        100,
        names={
            "gender": "SEX",
            "age": "AGE",
            "education": "EDU_LEVEL",
            "income": "INCOME",
            "disease_status": "STATUS",
        },
        codes={
            "gender": {"female": 2, "male": 1},
            "education": {"low": "0-2", "medium": "3-4", "high": "5-8"},
            "disease_status": {"healthy": "H", "diabetic": "D", "hypertensive": "BP"},
        },
    ),
)


def national_registries(seed: int) -> list[NationalRegistry]:
    """Simulate four national registries for a demonstration of an audit.

    They differ in size, prevalences, dependence between variables, column names and codes, and plan three
    releases each. One release of one registry is the original with few values swapped, which is too
    revealing; the others are CART releases with more or fewer swapped values.

    Args:
        seed: seed of the random draws.

    Returns:
        The registries in the order of their names; ages are whole years, incomes whole units or coarser.
    """
    return [_national(nation, seed, place) for place, nation in enumerate(_NATIONS)]


def _national(nation: _Nation, seed: int, place: int) -> NationalRegistry:
    own_seed = int(np.random.SeedSequence([seed, place]).generate_state(1)[0])
    common = registry(nation.n, nation.kappa, own_seed, key=True, prevalence_shift=nation.prevalence_shift)
    common["age"] = common["age"].astype("int64")
    common["income"] = (np.rint(common["income"] / nation.income_step) * nation.income_step).astype("int64")
    common["health_score"] = common["health_score"].round(1)
    for name, codes in nation.codes.items():
        common[name] = common[name].map(codes)
    return NationalRegistry(
        name=nation.name,
        key=nation.names.get("record_id", "record_id"),
        original=common.rename(columns=nation.names),
        columns={own: name for name, own in nation.names.items()},
        levels={
            name: {str(code): level for level, code in codes.items()} for name, codes in nation.codes.items()
        },
        releases=_planned(nation.planted),
    )


def _planned(planted: bool) -> tuple[PlannedRelease, ...]:
    """Three yearly releases, the last one too revealing where planted."""
    swapped = {2024: 0.25, 2025: 0.2, 2026: 0.15}
    releases = [
        PlannedRelease(str(year), dt.date(year, 3, 1), "cart", {"min_leaf": 25, "swapped": share})
        for year, share in swapped.items()
    ]
    if planted:
        releases[-1] = PlannedRelease(
            "2026", dt.date(2026, 3, 1), "rows", {"swapped": 0.02}, too_revealing=True
        )
    return tuple(releases)

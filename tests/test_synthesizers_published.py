"""The CART synthesizer against published figures and a release of the reference: utility and risk."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.preprocessing import OrdinalEncoder

from rapid_spark.simulate import registry
from rapid_spark.synthesizers import CartSynthesizer, replicates

ADULT = Path(__file__).parent / "data" / "adult"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kappa", "published"),
    [
        (5, (0.803, 0.763, 0.722, 0.678)),
        (10, (0.887, 0.866, 0.838, 0.807)),
        (50, (0.962, 0.952, 0.941, 0.925)),
    ],
)
def test_risk_of_simulated_releases_is_near_the_paper(kappa: float, published: tuple[float, ...]) -> None:
    rates = []
    for rep in range(6):
        original = registry(1000, kappa, seed=100 + rep)
        release = CartSynthesizer(seed=rep).fit(original).sample(1000, seed=rep)
        gain = _gains(original, release, "disease_status", features=2, split=10)
        rates.append([(gain > tau).mean() for tau in (0.2, 0.3, 0.4, 0.5)])
    np.testing.assert_allclose(np.mean(rates, axis=0), published, atol=0.03)


@pytest.mark.slow
def test_adult_is_at_least_as_useful_as_a_release_of_the_reference_and_as_risky() -> None:
    original = pd.read_csv(ADULT / "original.csv.gz").drop(columns="record_id")
    reference = _utility(original, pd.read_csv(ADULT / "release_1.csv.gz"))
    releases = replicates(CartSynthesizer(), original, m=5, seed=1)
    ours = np.mean([_utility(original, release) for release in releases], axis=0)
    assert (ours <= reference).all(), (ours, reference)
    risks = [(_gains(original, r, "income", features=3, split=16) > 0.3).mean() for r in releases]
    assert min(risks) > 0.69 and max(risks) < 0.75


def _gains(
    original: pd.DataFrame, release: pd.DataFrame, target: str, features: int, split: int
) -> np.ndarray:
    """Normalised gain of a forest on ordinal codes, grown on the release and applied to the original."""
    columns = sorted(str(name) for name in original if name != target)
    words = [name for name in columns if not pd.api.types.is_numeric_dtype(original[name])]
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1).fit(release[words])
    told = [frame[columns].copy() for frame in (release, original)]
    for frame in told:
        for name, codes in zip(words, encoder.transform(frame[words]).T, strict=True):
            frame[name] = codes
    forest = RandomForestClassifier(
        100, min_samples_split=split, max_features=features, n_jobs=2, random_state=1
    ).fit(told[0].to_numpy(), release[target].to_numpy())
    g = forest.predict_proba(told[1].to_numpy())[
        np.arange(len(original)), pd.Index(forest.classes_).get_indexer(original[target])
    ]
    b = original[target].map(original[target].value_counts(normalize=True)).to_numpy()
    return (g - b) / (1 - b)


def _utility(original: pd.DataFrame, release: pd.DataFrame) -> list[float]:
    """Mean total variation of columns and of pairs, mean error of Cramer's V; numbers in twentieths."""
    told = [pd.DataFrame(index=frame.index) for frame in (original, release)]
    for name in original:
        cuts = None
        if pd.api.types.is_numeric_dtype(original[name]) and original[name].nunique() > 20:
            cuts = np.unique(np.quantile(original[name], np.arange(1, 20) / 20))
        for out, frame in zip(told, (original, release), strict=True):
            out[name] = frame[name] if cuts is None else np.searchsorted(cuts, frame[name])
    names = [str(name) for name in original]
    pairs = list(itertools.combinations(names, 2))
    single = [_distance(*(_shares(frame, [name]) for frame in told)) for name in names]
    double = [_distance(*(_shares(frame, list(pair)) for frame in told)) for pair in pairs]
    association = [abs(_cramer(told[0], *pair) - _cramer(told[1], *pair)) for pair in pairs]
    return [float(np.mean(part)) for part in (single, double, association)]


def _shares(frame: pd.DataFrame, names: list[str]) -> pd.Series:
    return frame.groupby(names).size() / len(frame)


def _distance(first: pd.Series, second: pd.Series) -> float:
    return float(first.sub(second, fill_value=0).abs().sum()) / 2


def _cramer(frame: pd.DataFrame, a: str, b: str) -> float:
    table = pd.crosstab(frame[a], frame[b]).to_numpy(dtype=float)
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    return float(np.sqrt(((table - expected) ** 2 / expected).sum() / table.sum() / (min(table.shape) - 1)))

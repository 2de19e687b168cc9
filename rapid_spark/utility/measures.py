"""Measures of utility on two samples: marginals, associations, propensity, prediction, regression.

They are computed on the driver from at most `disclosure.max_records` records of each table, from the original without
noise: for the custodian only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

Floats = npt.NDArray[np.float64]
BINS = 20  # of a numeric column without declared ones: quantiles of the original
MISSING, OTHER = "missing", "other"


@dataclass(frozen=True)
class Utility:
    """One figure: `columns` are those it is about; without a value a reason is given."""

    measure: str
    columns: tuple[str, ...]
    value: float | None
    reason: str | None = None


@dataclass(frozen=True)
class Column:
    """A column to compare: its name, whether it is numeric, and declared edges of its bins."""

    name: str
    numeric: bool
    edges: tuple[float, ...] | None = None


def total_variation(original: npt.NDArray[Any], release: npt.NDArray[Any]) -> float:
    """Half of the sum of absolute differences of two distributions of labels: 0 alike, 1 disjoint."""
    p, q = (pd.Series(v).value_counts(normalize=True) for v in (original, release))
    both = p.index.union(q.index)
    return float(np.abs(p.reindex(both, fill_value=0) - q.reindex(both, fill_value=0)).sum() / 2)


def wasserstein(original: Floats, release: Floats) -> float | None:
    """Wasserstein-1 distance of two samples of numbers over the standard deviation of the original."""
    from scipy.stats import wasserstein_distance

    a, b = (v[~np.isnan(v)] for v in (original, release))
    spread = float(np.std(a, ddof=1)) if len(a) > 1 else 0.0
    return float(wasserstein_distance(a, b)) / spread if spread > 0 and len(b) else None


def labels(frame: pd.DataFrame, column: Column, edges: Sequence[float] | None) -> npt.NDArray[Any]:
    """A column as labels: categories, or numbers of bins; `missing` where there is no value."""
    values = frame[column.name]
    if not column.numeric:
        return values.astype(object).where(values.notna(), MISSING).to_numpy()
    assert edges is not None
    numbers = pd.to_numeric(values).to_numpy(dtype=float, na_value=np.nan)
    return np.where(np.isnan(numbers), -1, np.searchsorted(np.asarray(edges), numbers, side="right"))


def edges_of(original: pd.DataFrame, column: Column) -> tuple[float, ...] | None:
    """Declared edges, else inner quantiles of the original; None for a category."""
    if not column.numeric:
        return None
    if column.edges is not None:
        return column.edges
    values = pd.to_numeric(original[column.name]).dropna().to_numpy(dtype=float)
    return tuple(np.unique(np.quantile(values, np.linspace(0, 1, BINS + 1)[1:-1]))) if len(values) else (0.0,)


def cramers_v(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> float:
    """Cramer's V of two columns of labels (Cramer 1946); 0 where either has one level."""
    table = pd.crosstab(a, b).to_numpy(dtype=float)
    n = table.sum()
    expected = np.outer(table.sum(1), table.sum(0)) / n
    smaller = min(table.shape) - 1
    return float(math.sqrt(((table - expected) ** 2 / expected).sum() / (n * smaller))) if smaller > 0 else 0.0


def correlation(a: Floats, b: Floats) -> float:
    """Pearson's correlation over rows with both values; 0 where either is constant."""
    both = ~(np.isnan(a) | np.isnan(b))
    if both.sum() < 2 or np.std(a[both]) == 0 or np.std(b[both]) == 0:
        return 0.0
    return float(np.corrcoef(a[both], b[both])[0, 1])


def correlation_ratio(groups: npt.NDArray[Any], values: Floats) -> float:
    """Eta: root of the share of a number's variance between the groups of a category (Pearson 1905)."""
    known = ~np.isnan(values)
    frame = pd.DataFrame({"g": groups[known], "v": values[known]})
    total = float(((frame["v"] - frame["v"].mean()) ** 2).sum())
    if total == 0:
        return 0.0
    means = frame.groupby("g")["v"].agg(["mean", "size"])
    return math.sqrt(float((means["size"] * (means["mean"] - frame["v"].mean()) ** 2).sum()) / total)


def association(frame: pd.DataFrame, one: Column, other: Column) -> float:
    """Correlation of two numbers, Cramer's V of two categories, correlation ratio of one of each."""
    if one.numeric and other.numeric:
        return correlation(_numbers(frame, one), _numbers(frame, other))
    if not one.numeric and not other.numeric:
        return cramers_v(labels(frame, one, None), labels(frame, other, None))
    number, category = (one, other) if one.numeric else (other, one)
    return correlation_ratio(labels(frame, category, None), _numbers(frame, number))


def marginals(original: pd.DataFrame, release: pd.DataFrame, columns: Sequence[Column]) -> list[Utility]:
    """Total variation of every column, Wasserstein distance of every number, and the mean total variation."""
    found = []
    for c in columns:
        edges = edges_of(original, c)
        apart = total_variation(labels(original, c, edges), labels(release, c, edges))
        found.append(Utility("total_variation", (c.name,), apart))
        if c.numeric:
            distance = wasserstein(_numbers(original, c), _numbers(release, c))
            found.append(Utility("wasserstein", (c.name,), distance, None if distance is not None else "constant or empty"))
    every = [u.value for u in found if u.measure == "total_variation" and u.value is not None]
    names = tuple(c.name for c in columns)
    return [*found, Utility("total_variation_mean", names, float(np.mean(every)))]


def associations(original: pd.DataFrame, release: pd.DataFrame, columns: Sequence[Column]) -> list[Utility]:
    """For every pair of columns the difference of their association, release less original; and the mean absolute one."""
    found = []
    for i, one in enumerate(columns):
        for other in columns[i + 1 :]:
            change = association(release, one, other) - association(original, one, other)
            found.append(Utility("association_difference", (one.name, other.name), change))
    if not found:
        return []
    mean = float(np.mean([abs(u.value or 0.0) for u in found]))
    return [*found, Utility("association_error_mean", tuple(c.name for c in columns), mean)]


def propensity(original: pd.DataFrame, release: pd.DataFrame, columns: Sequence[Column]) -> list[Utility]:
    """pMSE: mean squared distance of the propensity to be a release record from its share, by logistic regression.

    Beside it the ratio to what a release drawn from the right model, fitted to the original, has on average:
    p (1 - c)^2 c / N for p predictors and c the release's share of all N records (Snoke, Raab, Nowok, Dibben, Slavkovic
    2018). An independent sample of the same population has 1 / (1 - c) on average, 2 where both are of one size.
    """
    from sklearn.linear_model import LogisticRegression

    design = _design([original, release], columns)
    x = np.vstack(design)
    x = (x - x.mean(0)) / np.where(x.std(0) > 0, x.std(0), 1.0)
    side = np.repeat([0, 1], [len(original), len(release)])
    share, n = side.mean(), len(side)
    model = LogisticRegression(C=1e6, max_iter=500).fit(x, side)
    pmse = float(np.mean((model.predict_proba(x)[:, 1] - share) ** 2))
    parameters = np.linalg.matrix_rank(x)
    expected = parameters * (1 - share) ** 2 * share / n
    names = tuple(c.name for c in columns)
    return [Utility("pmse", names, pmse), Utility("pmse_ratio", names, pmse / expected if expected else None)]


def tstr(
    original: pd.DataFrame, release: pd.DataFrame, columns: Sequence[Column], target: Column, seed: int
) -> list[Utility]:
    """Train on synthetic, test on real: AUC (one against the rest, for categories) or R2 of a random forest on a random
    half of the original, fitted on the release and, beside it, on the other half of the original."""
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
    from sklearn.metrics import r2_score, roc_auc_score

    predictors = [c for c in columns if c.name != target.name]
    name = "tstr_r2" if target.numeric else "tstr_auc"
    about = (target.name,)
    if not predictors:
        return [Utility(name, about, None, "there is no other column to predict it from")]
    x, y = _design([original, release], predictors), [_target(f, target) for f in (original, release)]
    known = [np.array([v == v for v in values]) for values in y]
    x, y = [m[k] for m, k in zip(x, known, strict=True)], [v[k] for v, k in zip(y, known, strict=True)]
    test = np.random.default_rng(seed).permutation(len(x[0]))[: len(x[0]) // 2]
    train = np.setdiff1d(np.arange(len(x[0])), test)
    found = []
    for measure, (xs, ys) in {name: (x[1], y[1]), name.replace("tstr", "trtr"): (x[0][train], y[0][train])}.items():
        if len(set(ys)) < 2 or len(set(y[0][test])) < 2:
            found.append(Utility(measure, about, None, "the target has one value"))
            continue
        if target.numeric:
            forest = RandomForestRegressor(100, min_samples_leaf=5, random_state=seed, n_jobs=-1).fit(xs, ys)
            found.append(Utility(measure, about, float(r2_score(y[0][test], forest.predict(x[0][test])))))
            continue
        classifier = RandomForestClassifier(100, min_samples_leaf=5, random_state=seed, n_jobs=-1).fit(xs, ys)
        shown = classifier.predict_proba(x[0][test])
        areas, sizes = [], []
        for level in sorted(set(y[0][test])):
            at = np.flatnonzero(classifier.classes_ == level)
            score = shown[:, at[0]] if len(at) else np.zeros(len(test))
            areas.append(float(roc_auc_score(y[0][test] == level, score)))
            sizes.append(int(np.sum(y[0][test] == level)))
        found.append(Utility(measure, about, float(np.average(areas, weights=sizes))))
    return found


def overlap(one: tuple[float, float], other: tuple[float, float]) -> float:
    """Overlap of two intervals (Karr, Kohnen, Oganian, Reiter, Sanil 2006): mean share of each that both have, from 0."""
    width = min(one[1], other[1]) - max(one[0], other[0])
    if width <= 0:
        return 0.0
    return (width / (one[1] - one[0]) + width / (other[1] - other[0])) / 2


def regression(
    original: pd.DataFrame, release: pd.DataFrame, columns: Sequence[Column], target: Column, most_levels: int = 12
) -> list[Utility]:
    """Mean overlap of the 95 % intervals of a regression's coefficients: least squares for a number, logistic for the
    target's commonest class. Predictors are numbers and the commonest levels of categories; columns that are no use
    (constant, collinear) are left out in both tables alike."""
    import warnings

    import statsmodels.api as sm

    about = (target.name,)
    predictors = [c for c in columns if c.name != target.name]
    x = _design([original, release], predictors, most_levels)
    y = [_target(f, target) for f in (original, release)]
    if not target.numeric:
        common = pd.Series(y[0]).mode().iloc[0]
        y = [(v == common).astype(float) for v in y]
    known = [np.array([v == v for v in values]) for values in y]
    x, y = [m[k] for m, k in zip(x, known, strict=True)], [v[k].astype(float) for v, k in zip(y, known, strict=True)]
    if any(len(set(v)) < 2 for v in y):
        return [Utility("ci_overlap", about, None, "the target has one value")]
    keep: list[int] = []
    for i in range(x[0].shape[1]):
        keep += [i] if all(_independent(m[:, [*keep, i]]) for m in x) else []
    limits = []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for m, v in zip(x, y, strict=True):
                design = sm.add_constant(m[:, keep] / np.maximum(np.abs(x[0][:, keep]).max(0), 1e-12), has_constant="add")
                model = sm.OLS(v, design) if target.numeric else sm.Logit(v, design)
                limits.append(np.asarray((model.fit() if target.numeric else model.fit(disp=0, maxiter=100)).conf_int()))
    except Exception as error:  # separation, one class: the analysis itself cannot be made
        return [Utility("ci_overlap", about, None, f"the regression cannot be fitted ({type(error).__name__})")]
    shares = [overlap(tuple(a), tuple(b)) for a, b in zip(*limits, strict=True)]
    if not np.isfinite(np.vstack(limits)).all():
        return [Utility("ci_overlap", about, None, "a coefficient has no interval")]
    return [Utility("ci_overlap", about, float(np.mean(shares)))]


def _independent(x: Floats) -> bool:
    """Whether the columns and a constant are linearly independent."""
    return bool(np.linalg.matrix_rank(np.column_stack([np.ones(len(x)), _scaled(x)])) == x.shape[1] + 1)


def _scaled(x: Floats) -> Floats:
    spread = x.std(0)
    return (x - x.mean(0)) / np.where(spread > 0, spread, 1.0)


def _numbers(frame: pd.DataFrame, column: Column) -> Floats:
    return pd.to_numeric(frame[column.name]).to_numpy(dtype=float, na_value=np.nan)


def _target(frame: pd.DataFrame, column: Column) -> npt.NDArray[Any]:
    return _numbers(frame, column) if column.numeric else labels(frame, column, None).astype(str)


def _design(frames: Sequence[pd.DataFrame], columns: Sequence[Column], most_levels: int = 30) -> list[Floats]:
    """Predictors of both tables: numbers (the original's median where missing, and an indicator) and the original's
    commonest levels but the first, others together."""
    parts: list[list[Floats]] = [[] for _ in frames]
    for c in columns:
        if c.numeric:
            values = [_numbers(f, c) for f in frames]
            middle = float(np.nanmedian(values[0])) if not np.isnan(values[0]).all() else 0.0
            for part, v in zip(parts, values, strict=True):
                part += [np.where(np.isnan(v), middle, v), np.isnan(v).astype(float)]
            continue
        shown = [labels(f, c, None) for f in frames]
        levels = list(pd.Series(shown[0]).value_counts().index[:most_levels])
        for part, v in zip(parts, shown, strict=True):
            part += [(v == level).astype(float) for level in levels[1:]]
            part.append(np.asarray(~np.isin(v, levels), dtype=np.float64))
    return [np.column_stack(part) for part in parts]

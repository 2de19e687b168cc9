"""Which quasi-identifiers carry the risk: a logistic regression of at_risk, and RAPID with each alone or left out.

The regression is a binomial one on counts by pattern (statsmodels), with every quasi-identifier as levels: a numeric one
by its quantile bins, a missing value as a level. Standard errors treat flags as independent given the pattern; release
and fitted attacker are held fixed. As the link is canonical, the fitted model reproduces the counts at risk of exactly
those levels (and pairs of levels) that have a term, so coefficients tell nothing that a table of these would not: a
level whose own count must not be told goes in under the label SUPPRESSED.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

INTERCEPT = "intercept"
OTHER = "other levels"  # rare ones, taken together
SUPPRESSED = "suppressed levels"  # those whose own counts must not be told, taken together
MAX_LEVELS = 30  # levels of one quasi-identifier with a term of their own; the others are pooled
MAX_INTERACTIONS = 200
MAX_DESIGN = 20_000_000  # numbers of the design matrix; beyond that a seeded sample of patterns
MIN_PATTERNS = 1000  # of such a sample
_ALIASED = 1e-9  # share of a column's squares that the columns before it do not explain
_NOTHING = 1e-6  # of a direction of separation, whose largest entry is 1
_SUSPICIOUS = 12.0  # a linear predictor as far out as this calls for a check of separation

Pair = tuple[str, str]  # a column and a level
Row = dict[str, str | float | None]


@dataclass
class Attribution:
    """Rows of risk_attribution without their keys, and what the reader must know of them.

    Attributes:
        rows: term, kind ('coefficient' on the log odds, 'marginal_effect' as a difference of shares), estimate,
            std_error, ci_low, ci_high; figures are None where the data do not determine them, for a reason in `notes`.
        notes: what was pooled, left out, sampled, aliased or separated.
    """

    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def regress(
    patterns: pd.DataFrame,
    n: np.ndarray,
    hits: np.ndarray,
    confidence: float = 0.95,
    interactions: Iterable[tuple[Pair, Pair]] = (),
    seed: int = 0,
) -> Attribution:
    """Logistic regression of at_risk on the levels of the quasi-identifiers.

    The reference of each quasi-identifier is its most frequent level; a term is named `column=level (vs reference)`.
    A marginal effect is the mean, over the records, of the change in the fitted probability when everybody's level
    is set to this one instead of the reference; its standard error is by the delta method.

    A term that is a linear combination of those before it is aliased: no figures. Where terms separate records at
    risk from the others perfectly, their maximum likelihood estimate is infinite: no figures either, and the other
    terms are estimated from the records that are not separated (the limiting conditional model: Geyer, Electronic
    Journal of Statistics 3, 2009, 259-289; separation is found by linear programming: Konis, thesis, Oxford 2007).

    Args:
        patterns: one column per quasi-identifier, holding level labels; one row per pattern.
        n: records of each pattern.
        hits: records at risk of each pattern.
        confidence: of the intervals (normal).
        interactions: pairs of levels that get a product term, most important first.
        seed: of the sample of patterns, where the design would be too large.

    Returns:
        Coefficients, marginal effects, notes; no rows where all or none are at risk.
    """
    result = Attribution()
    n, hits = np.asarray(n, dtype=float), np.asarray(hits, dtype=float)
    frame = patterns.astype(str).reset_index(drop=True)
    frame, n, hits = frame.loc[n > 0].reset_index(drop=True), n[n > 0], hits[n > 0]
    if not 0 < hits.sum() < n.sum():
        result.notes.append("no regression: none or all of the records are at risk")
        return result
    terms, references = _terms(frame, n, interactions, result.notes)
    frame, n, hits = _sampled(frame, n, hits, len(terms) + 1, seed, result.notes)
    if not 0 < hits.sum() < n.sum():
        result.notes.append("no regression: none or all of the sampled records are at risk")
        return result
    design = _design(frame, terms)
    names = [INTERCEPT, *(_name(t, references) for t in terms)]
    model = _fit(design, n, hits, names, result.notes)
    result.rows += _rows(names, "coefficient", model.estimate, model.std_error, model.shown, confidence)
    effects, errors = _marginal_effects(design, n, terms, model)
    main = [j for j, term in enumerate(terms) if len(term) == 1]
    result.rows += _rows([names[1 + j] for j in main], "marginal_effect", effects[main], errors[main],
                         model.shown[1:][main], confidence)
    return result


def _terms(
    frame: pd.DataFrame, n: np.ndarray, interactions: Iterable[tuple[Pair, Pair]], notes: list[str]
) -> tuple[list[tuple[Pair, ...]], dict[str, str]]:
    """Terms of the model and the reference levels; rare levels in `frame` are pooled."""
    terms: list[tuple[Pair, ...]] = []
    references: dict[str, str] = {}
    for column in frame.columns:
        sizes = pd.Series(n).groupby(frame[column].to_numpy()).sum()
        ranked = sorted(sizes.index, key=lambda level: (level in (OTHER, SUPPRESSED), -sizes[level], level))
        if len(ranked) > MAX_LEVELS:
            kept = ranked[: MAX_LEVELS - 1]
            frame[column] = frame[column].where(frame[column].isin(kept), OTHER)
            notes.append(f"regression: all levels of {column!r} but the {len(kept)} most frequent are taken together")
            ranked = [*kept, OTHER]
        references[column] = ranked[0]
        terms += [((column, level),) for level in sorted(ranked[1:])]
    single = {term[0] for term in terms}
    products = [(a, b) for a, b in interactions if a in single and b in single]
    if len(products) > MAX_INTERACTIONS:
        notes.append(f"regression: {MAX_INTERACTIONS} of {len(products)} interactions are in the model, the largest ones")
    return terms + products[:MAX_INTERACTIONS], references


def _name(term: tuple[Pair, ...], references: Mapping[str, str]) -> str:
    if len(term) == 1:
        column, level = term[0]
        return f"{column}={level} (vs {references[column]})"
    return " : ".join(f"{column}={level}" for column, level in term)


def _sampled(
    frame: pd.DataFrame, n: np.ndarray, hits: np.ndarray, width: int, seed: int, notes: list[str]
) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Patterns merged after pooling; beyond the limit those with the smallest seeded content hash."""
    counts = frame.assign(_n=n, _hits=hits).groupby(list(frame.columns), sort=True, as_index=False)[["_n", "_hits"]].sum()
    limit = max(MIN_PATTERNS, MAX_DESIGN // width)
    if len(counts) > limit:
        content = counts[list(frame.columns)].astype(object)
        spread = pd.util.hash_pandas_object(content, index=False, hash_key=f"{seed:016d}"[:16])
        notes.append(f"regression: fitted on a seeded sample of {limit:,} of {len(counts):,} patterns")
        counts = counts.loc[spread.sort_values(kind="stable").index[:limit]].sort_index()
    return counts[list(frame.columns)], counts["_n"].to_numpy(), counts["_hits"].to_numpy()


def _design(frame: pd.DataFrame, terms: Sequence[tuple[Pair, ...]]) -> np.ndarray:
    """Intercept and one 0/1 column per term."""
    design = np.ones((len(frame), 1 + len(terms)))
    values = {column: frame[column].to_numpy(dtype=object) for column in frame.columns}
    for j, term in enumerate(terms, start=1):
        for column, level in term:
            design[:, j] *= values[column] == level
    return design


@dataclass
class _Model:
    """Estimates of all terms (0 where not estimated), their covariance, which are shown, which patterns count."""

    estimate: np.ndarray
    covariance: np.ndarray
    shown: np.ndarray
    used: np.ndarray

    @property
    def std_error(self) -> np.ndarray:
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))


def _fit(design: np.ndarray, n: np.ndarray, hits: np.ndarray, names: Sequence[str], notes: list[str]) -> _Model:
    """Maximum likelihood; without aliased terms, and in the limit where terms separate."""
    k = design.shape[1]
    used, kept = np.ones(len(design), dtype=bool), _independent(design, n)
    _note(notes, "aliased with terms before them", names, ~kept)
    infinite, lost = np.zeros(k, dtype=bool), np.zeros(k, dtype=bool)
    estimate, covariance = np.zeros(0), np.zeros((0, 0))
    while kept.any():
        x = design[np.ix_(used, kept)]
        estimate, covariance, suspicious = _maximum_likelihood(x, n[used], hits[used])
        direction = _separation(x, n[used], hits[used]) if suspicious else None
        if direction is None:
            break
        infinite[np.flatnonzero(kept)[np.abs(direction) > _NOTHING]] = True
        used[np.flatnonzero(used)[np.abs(x @ direction) > _NOTHING]] = False
        kept &= ~infinite
        still = kept.copy()
        still[kept] = _independent(design[np.ix_(used, kept)], n[used])
        lost |= kept & ~still
        kept = still
    _note(notes, "infinite, as they separate records at risk from the others perfectly", names, infinite)
    _note(notes, "not determined by the records that are not separated", names, lost)
    full, spread = np.zeros(k), np.zeros((k, k))
    if kept.any():
        full[kept], spread[np.ix_(kept, kept)] = estimate, covariance
    return _Model(full, spread, kept, used)


def _note(notes: list[str], what: str, names: Sequence[str], which: np.ndarray) -> None:
    terms = [name for name, chosen in zip(names, which, strict=True) if chosen]
    if terms:
        listed = "; ".join(terms[:10]) + (f"; and {len(terms) - 10} more" if len(terms) > 10 else "")
        notes.append(f"regression: no figures for terms {what}: {listed}")


def _independent(design: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Columns that those before them do not explain: the pivots of the matrix of their products, in order."""
    products = design.T @ (design * n[:, None])
    size = np.diag(products).copy()
    kept = np.zeros(len(size), dtype=bool)
    for j in range(len(size)):
        pivot = products[j, j]
        kept[j] = size[j] > 0 and pivot > _ALIASED * size[j]
        if kept[j]:
            products -= np.outer(products[:, j], products[j]) / pivot
    return kept


def _maximum_likelihood(design: np.ndarray, n: np.ndarray, hits: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
    """Estimates, covariance, and whether they may be on their way to infinity."""
    import statsmodels.api as sm

    start = np.zeros(design.shape[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # separation and convergence are judged below
        # Newton's steps solve k equations; statsmodels' IRLS takes a singular value decomposition of all patterns each
        fitted = sm.GLM(np.column_stack([hits, n - hits]), design, family=sm.families.Binomial()).fit(
            method="newton", start_params=start, max_start_irls=0, maxiter=30, disp=0
        )
        covariance = np.asarray(fitted.cov_params())
    estimate = np.asarray(fitted.params)
    finite = bool(np.all(np.isfinite(covariance)) and np.all(np.isfinite(estimate)))
    far = not finite or np.abs(design @ estimate).max() > _SUSPICIOUS
    return estimate, covariance, far or not fitted.mle_retvals["converged"]


def _separation(design: np.ndarray, n: np.ndarray, hits: np.ndarray) -> np.ndarray | None:
    """A direction in which the likelihood never falls and somewhere rises; None where there is none."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    side = np.where(hits >= n, 1.0, np.where(hits <= 0, -1.0, 0.0))
    rows, index = np.unique(np.column_stack([side, design]), axis=0, return_index=True)
    side, x = side[index], rows[:, 1:]
    pure = side != 0
    if not pure.any():
        return None
    signed = csr_array(x[pure] * side[pure, None])
    mixed = csr_array(x[~pure]) if (~pure).any() else None
    found = linprog(
        -np.asarray(signed.sum(axis=0)).ravel(), A_ub=-signed, b_ub=np.zeros(signed.shape[0]), A_eq=mixed,
        b_eq=None if mixed is None else np.zeros(mixed.shape[0]), bounds=(-1.0, 1.0), method="highs",
    )
    if found.x is None or -found.fun < _NOTHING:
        return None
    return np.asarray(found.x)


def _marginal_effects(
    design: np.ndarray, n: np.ndarray, terms: Sequence[tuple[Pair, ...]], model: _Model
) -> tuple[np.ndarray, np.ndarray]:
    """Average change in probability from the reference to each main level, and its standard error."""
    effects, errors = np.zeros(len(terms)), np.zeros(len(terms))
    x = design[model.used]
    if not len(x):
        return effects, errors
    weight = n[model.used] / n[model.used].sum()
    position = {term[0]: 1 + j for j, term in enumerate(terms) if len(term) == 1}
    for column in dict.fromkeys(term[0][0] for term in terms):
        levels = [term[0][1] for term in terms if len(term) == 1 and term[0][0] == column]
        involved = [1 + j for j, term in enumerate(terms) if any(c == column for c, _ in term)]
        own: list[list[tuple[int, int | None]]] = [[]]  # the reference has no column
        for level in levels:
            mine = [(1 + j, term) for j, term in enumerate(terms) if (column, level) in term]
            own.append([
                (j, None if len(term) == 1 else position[next(p for p in term if p != (column, level))])
                for j, term in mine
            ])
        mean, gradient = _mean_probabilities(x, weight, model.estimate, involved, own)
        for i, level in enumerate(levels, start=1):
            j = position[column, level] - 1
            step = gradient[i] - gradient[0]
            effects[j], errors[j] = mean[i] - mean[0], np.sqrt(max(0.0, float(step @ model.covariance @ step)))
    return effects, errors


def _mean_probabilities(
    x: np.ndarray, weight: np.ndarray, beta: np.ndarray, involved: Sequence[int],
    own: Sequence[Sequence[tuple[int, int | None]]],
) -> tuple[np.ndarray, np.ndarray]:
    """Mean fitted probability with one quasi-identifier set to each of its levels for everybody, and the gradients.

    Args:
        x: design.
        weight: share of the records per pattern.
        beta: coefficients.
        involved: columns of the design that speak of this quasi-identifier.
        own: per level, those that are then not 0, each with the column it then equals (None: the constant 1).
    """
    from scipy.special import expit

    base = x @ beta - x[:, involved] @ beta[involved]
    predictors = np.array([base + sum(beta[j] * (1.0 if o is None else x[:, o]) for j, o in level) for level in own])
    p = expit(predictors)
    slope = weight * p * (1.0 - p)
    gradient = slope @ x
    gradient[:, involved] = 0.0
    for i, level in enumerate(own):
        for j, other in level:
            gradient[i, j] = slope[i].sum() if other is None else slope[i] @ x[:, other]
    return p @ weight, gradient


def _rows(
    names: Sequence[str], kind: str, estimate: np.ndarray, std_error: np.ndarray, shown: np.ndarray, confidence: float
) -> list[Row]:
    from scipy.stats import norm

    z = float(norm.ppf(0.5 + confidence / 2.0))
    rows: list[Row] = []
    for name, b, s, known in zip(names, estimate, std_error, shown, strict=True):
        figures = (float(b), float(s), float(b - z * s), float(b + z * s)) if known else (None, None, None, None)
        rows.append({"term": name, "kind": kind,
                     **dict(zip(("estimate", "std_error", "ci_low", "ci_high"), figures, strict=True))})
    return rows


@dataclass(frozen=True)
class Refit:
    """One quasi-identifier alone or left out.

    Attributes:
        qi_set: the set that is taken apart.
        term: the quasi-identifier.
        kind: 'alone' or 'left_out'.
        fitted_as: name of the extra quasi-identifier set whose RAPID it is.
    """

    qi_set: str
    term: str
    kind: str
    fitted_as: str


def refit_sets(sets: Mapping[str, Sequence[str]]) -> tuple[dict[str, tuple[str, ...]], list[Refit]]:
    """The quasi-identifier sets to fit besides, each once, and what each is for.

    Args:
        sets: quasi-identifiers by set name.

    Returns:
        Extra sets by name (a set of one is not taken apart; a subset that is a set already keeps that set's name and is
        not among the extra ones), and one `Refit` per set, quasi-identifier and kind.
    """
    known = {tuple(sorted(columns)): name for name, columns in reversed(list(sets.items()))}
    extra: dict[str, tuple[str, ...]] = {}
    refits = []
    for qi_set, columns in sets.items():
        if len(columns) < 2:
            continue
        for kind in ("alone", "left_out"):
            for column in sorted(columns):
                subset = (column,) if kind == "alone" else tuple(sorted(c for c in columns if c != column))
                if subset not in known:
                    known[subset] = _unused(f"{qi_set}:{kind}:{column}", {*sets, *extra})
                    extra[known[subset]] = subset
                refits.append(Refit(qi_set, column, kind, known[subset]))
    return extra, refits


def _unused(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "'"
    return name


def refit_rows(refits: Iterable[Refit], summary: pd.DataFrame) -> pd.DataFrame:
    """RAPID with each quasi-identifier alone and left out, as rows of risk_attribution.

    Args:
        refits: of `refit_sets`.
        summary: rows as in risk_summary of the extra sets (and of the configured ones, where a subset is one of them).

    Returns:
        The rows of `summary` once per refit, with `qi_set` the set taken apart, and term, kind, estimate (RAPID of the
        subset; null where undefined), std_error (null), ci_low, ci_high.
    """
    parts = []
    for refit in refits:
        rows = summary[summary["qi_set"] == refit.fitted_as]
        parts.append(rows.assign(qi_set=refit.qi_set, term=refit.term, kind=refit.kind, estimate=rows["rapid"],
                                 std_error=None))
    return pd.concat(parts, ignore_index=True) if parts else summary.iloc[:0].assign(
        term=None, kind=None, estimate=None, std_error=None)

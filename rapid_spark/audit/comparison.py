"""Registries side by side: raw rates, rates standardised to one distribution of quasi-identifiers, and differences.

Raw rates of two registries differ also because other people are in them. Direct standardisation weights each
registry's rate within strata of the quasi-identifiers by one common distribution, the mean of the registries' own (so
that a large one does not decide it). Only strata that every registry fills count; how much of the common distribution
they hold is `coverage`.

Intervals hold release, attacker and baselines fixed, as all here do. Variance of a standardised rate:
sum over strata of w^2 p (1 - p) / n, with p from (hits + 1/2) / (n + 1), times the factor by which the interval of the
raw rate is wider than Wilson's (the baselines are estimated). Interval of a difference by recovery of variance from
the two single intervals (Zou and Donner, Statistics in Medicine 27, 2008, 1693-1702; for two rates it is Newcombe's).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import brentq

from rapid_spark.intervals import proportion, wilson_neff
from rapid_spark.wording import percent

from .settings import Compare

GROUP = ("qi_set", "sensitive_attribute", "measure", "attacker")
COLUMNS = (
    "run_id", "registry", "release_id", *GROUP, "n", "rapid", "ci_low", "ci_high", "standardised", "standardised_low",
    "standardised_high", "coverage", "compared_with", "difference", "difference_low", "difference_high",
    "standardised_difference", "standardised_difference_low", "standardised_difference_high", "note", "evaluated_at",
)  # fmt: skip
OTHERS = "mean of the others"


@dataclass(frozen=True)
class Rate:
    """A rate with its interval, shares."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Side:
    """One registry's figures of one combination.

    Attributes:
        registry, release_id: whose.
        n: records with a defined outcome.
        raw: rate over them; a mean over copies.
        strata: index stratum, columns `n` and `hits` (means over copies); None where there are none.
        settings: what has to be alike for a fair comparison.
    """

    registry: str
    release_id: str
    n: int
    raw: Rate
    strata: pd.DataFrame | None
    settings: str = field(default="", repr=False)


def difference(one: Rate, others: Sequence[Rate]) -> Rate:
    """One rate less the mean of others, with the interval recovered from the single ones; shares."""
    share = 1.0 / len(others)
    mean = share * sum(o.value for o in others)
    low = math.hypot(one.value - one.low, *(share * (o.high - o.value) for o in others))
    high = math.hypot(one.high - one.value, *(share * (o.value - o.low) for o in others))
    point = one.value - mean
    return Rate(point, max(-1.0, point - low), min(1.0, point + high))


def effective_n(rate: Rate, n: int, confidence: float) -> float:
    """The number of records whose Wilson interval is as wide as the one given, at most n."""

    def excess_width(size: float) -> float:
        low, high = proportion(rate.value * size, size, confidence, "wilson")
        return float((high or 0.0) - (low or 0.0)) - (rate.high - rate.low)

    if excess_width(float(n)) >= 0:
        return float(n)
    return 1.0 if excess_width(1.0) <= 0 else float(brentq(excess_width, 1.0, float(n), xtol=1e-6))


def common_weights(strata: Sequence[pd.DataFrame], fewest: int) -> tuple[pd.Series, float]:
    """Weights of the strata that every registry fills, summing to 1, and their share of the common distribution."""
    sizes = pd.concat([s["n"] for s in strata], axis=1).fillna(0.0)
    shares = (sizes / sizes.sum()).mean(axis=1)
    filled = shares[(sizes >= fewest).all(axis=1)]
    coverage = float(filled.sum())
    return (filled / coverage if coverage > 0 else filled), coverage


def standardised(strata: pd.DataFrame, weights: pd.Series, inflation: float, confidence: float) -> Rate:
    """A registry's rate under common weights.

    Args:
        strata: its `n` and `hits` by stratum.
        weights: by stratum, summing to 1; each is one the registry fills.
        inflation: factor on the variance.
        confidence: of the interval.
    """
    part = strata.loc[weights.index]
    n, hits, w = part["n"].to_numpy(float), part["hits"].to_numpy(float), weights.to_numpy(float)
    value = float(w @ (hits / n))
    smooth = (hits + 0.5) / (n + 1.0)
    variance = float(inflation * (w**2 @ (smooth * (1 - smooth) / n)))
    low, high = wilson_neff(value, int(n.sum()), variance, confidence)
    return Rate(value, float(low or 0.0), float(1.0 if high is None else high))


def compare(sides: Sequence[Side], settings: Compare) -> list[dict[str, Any]]:
    """Compare registries on one combination.

    Args:
        sides: one per registry.
        settings: minimal sizes, reference, confidence.

    Returns:
        A row per registry with the columns of COLUMNS but the keys of the combination and run.
    """
    enough = [s for s in sides if s.n >= settings.min_n]
    alike = len({s.settings for s in enough}) <= 1
    fair = enough if alike else []
    levelled, coverage, why = _standardise(fair, settings)
    rows = []
    for side in sides:
        row: dict[str, Any] = {
            "registry": side.registry, "release_id": side.release_id, "n": side.n, "rapid": side.raw.value,
            "ci_low": side.raw.low, "ci_high": side.raw.high, "coverage": coverage if side in fair else None,
        }  # fmt: skip
        notes = []
        if side.n < settings.min_n:
            notes.append(f"{side.n:,} records: fewer than {settings.min_n:,}, too few to compare")
        elif not alike:
            notes.append("attackers, thresholds or attributes are set differently in another registry: not compared")
        else:
            notes += [why] if why else []
            row |= _against(side, fair, levelled, settings, notes)
        rows.append(row | {"note": "; ".join(notes) or None})
    return rows


def _standardise(fair: Sequence[Side], settings: Compare) -> tuple[dict[str, Rate], float | None, str | None]:
    """Standardised rate by registry, coverage, and why there are none."""
    strata = [s.strata for s in fair if s.strata is not None]
    if len(fair) < 2:
        return {}, None, None
    if len(strata) < len(fair):
        return {}, None, "no strata of common quasi-identifiers, raw rates only (compare.by)"
    weights, coverage = common_weights(strata, settings.min_stratum)
    if coverage < settings.min_coverage:
        text = f"strata that all registries fill hold {percent(coverage)} of the common distribution, raw rates only"
        return {}, coverage, text
    found = {}
    for side, part in zip(fair, strata, strict=True):
        inflation = side.n / effective_n(side.raw, side.n, settings.confidence)
        found[side.registry] = standardised(part, weights, inflation, settings.confidence)
    return found, coverage, None


def _against(
    side: Side, fair: Sequence[Side], levelled: Mapping[str, Rate], settings: Compare, notes: list[str]
) -> dict[str, Any]:
    row: dict[str, Any] = {}
    mine = levelled.get(side.registry)
    if mine is not None:
        row |= {"standardised": mine.value, "standardised_low": mine.low, "standardised_high": mine.high}
    if side.registry == settings.reference:
        return row
    others = [s for s in fair if s is not side and settings.reference in (None, s.registry)]
    if not others:
        notes.append("there is no other registry to compare with")
        return row
    raw = difference(side.raw, [s.raw for s in others])
    row |= {
        "compared_with": settings.reference or (others[0].registry if len(others) == 1 else OTHERS),
        "difference": raw.value, "difference_low": raw.low, "difference_high": raw.high,
    }  # fmt: skip
    if mine is not None:
        level = difference(mine, [levelled[s.registry] for s in others])
        row |= {
            "standardised_difference": level.value, "standardised_difference_low": level.low,
            "standardised_difference_high": level.high,
        }  # fmt: skip
    return row


def mean_over_copies(rows: pd.DataFrame) -> Rate:
    """Mean of rates and of their ends over copies: as if the copies erred together, which is no less than they do."""
    rapid, low, high = (float(np.mean([float(v) for v in rows[c]])) for c in ("rapid", "ci_low", "ci_high"))
    return Rate(rapid, low, high)


def table(
    summaries: Mapping[str, pd.DataFrame], strata: Mapping[str, pd.DataFrame], texts: Mapping[str, str], settings: Compare
) -> pd.DataFrame:
    """Compare the latest release of each registry.

    Args:
        summaries: by registry, rows of `risk_summary` of that release.
        strata: by registry, counts of `strata.count`; registries without are absent.
        texts: by registry, `settings.attack_settings`.
        settings: of the comparison.

    Returns:
        A row per combination and registry, all of COLUMNS but run_id and evaluated_at, which stay empty.
    """
    parts = []
    for registry, summary in summaries.items():
        keep = (summary["scored_on"] == "original") & (summary["status"] == "ok") & summary["weighting"].isin(["none"])
        parts.append(summary[keep & (summary["replicate"] != 0) & summary["ci_low"].notna()].assign(registry=registry))
    rows = pd.concat(parts) if parts else pd.DataFrame(columns=["registry", *GROUP])
    found = []
    for key, part in rows.groupby(list(GROUP), sort=False):
        names = dict(zip(GROUP, key, strict=True))
        sides = [
            Side(str(registry), str(mine["release_id"].iloc[0]), int(mine["n"].min()), mean_over_copies(mine),
                 _strata_of(strata.get(str(registry)), names), texts.get(str(registry), ""))
            for registry, mine in part.groupby("registry", sort=False)
        ]  # fmt: skip
        found += [names | row for row in compare(sides, settings)]
    return pd.DataFrame(found, columns=list(COLUMNS), dtype=object)


def _strata_of(counts: pd.DataFrame | None, names: Mapping[str, Any]) -> pd.DataFrame | None:
    if counts is None:
        return None
    mine = counts[(counts[list(GROUP)] == pd.Series(names)[list(GROUP)]).all(axis=1) & (counts["replicate"] != 0)]
    if not len(mine):
        return None
    copies = mine["replicate"].nunique()
    return mine.groupby("stratum")[["n", "hits"]].sum() / copies

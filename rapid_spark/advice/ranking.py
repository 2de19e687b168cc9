"""Which steps are worth taking: rates against limits, cost beside gain, ranks. Pure: rows of risk_summary in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from ..suite import rows_of, suite
from .steps import Step, combine
from .utility import Loss

LARGEST = {"excess": "excess", "interval_upper": "ci_high", "sensitive_levels_rate": "sensitive_levels_rate"}
MOST_COMBINED = 5
TIE = 1e-9


@dataclass(frozen=True)
class Limit:
    """A policy's limit on one figure of an attribute (None: every attribute)."""

    rule: str
    attribute: str | None
    value: float


@dataclass(frozen=True)
class Result:
    """A step and what became of the release.

    Attributes:
        step: the step; the release as it is has none.
        rates: figure to decide by per attribute: the larger of maximum and pooled.
        excess: largest excess over chance per attribute.
        loss: what it cost.
        over: limits that are still exceeded, in words.
        reason: why there is no figure; None where there is one.
        seconds: of its evaluation.
        rank: from 1.
        on_front: whether no other step has both a lower rate and a lower loss of information.
    """

    step: Step | None
    rates: Mapping[str, float]
    excess: Mapping[str, float]
    loss: Loss
    over: tuple[str, ...] = ()
    reason: str | None = None
    seconds: float = 0.0
    rank: int = 0
    on_front: bool = False

    @property
    def rapid(self) -> float | None:
        """The largest rate over attributes."""
        return max(self.rates.values(), default=None)

    @property
    def highest_excess(self) -> float:
        """The largest excess over attributes, not below 0."""
        return max([0.0, *self.excess.values()])


def figures(summary: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Figures of the policy's rules, by attribute, from rows of risk_summary of one release.

    An attribute with a combination that has no figure, other than of an attacker that does not serve it, is absent: what is
    not known cannot be under a limit.
    """
    rows = summary[summary["scored_on"] == "original"]
    found: dict[str, dict[str, float]] = {}
    for attribute, part in rows.groupby("sensitive_attribute", sort=False):
        asked = part[~((part["status"] == "undefined") & part["reason"].astype(str).str.contains("does not serve"))]
        if not len(asked) or not (asked["status"] == "ok").all():
            continue
        groups = rows_of(suite(asked))
        rates = [float(g[c]) for g in groups for c in ("rapid_max", "rapid_pooled") if _known(g[c])]
        tops = [float(g["rapid_max"]) for g in groups if _known(g["rapid_max"])]
        values = {"rapid": max(rates), "rapid_max": max(tops or rates), "rapid_pooled": max(rates)}
        for rule, column in LARGEST.items():
            known = [float(v) for v in asked[column] if _known(v)]
            values |= {rule: max(known)} if known else {}
        found[str(attribute)] = values
    return found


def _known(value: Any) -> bool:
    return value is not None and value == value


def exceeded(
    found: Mapping[str, Mapping[str, float]], limits: Sequence[Limit], attributes: Sequence[str]
) -> tuple[str, ...]:
    """Limits that are exceeded, or that cannot be judged, in words."""
    over = []
    for limit in limits:
        for attribute in attributes if limit.attribute is None else (limit.attribute,):
            value = found.get(attribute, {}).get(limit.rule)
            if value is None:
                over.append(f"{limit.rule} of {attribute} is not known")
            elif value > limit.value:
                over.append(f"{limit.rule} of {attribute}: {value:.3f} over {limit.value:g}")
    return tuple(dict.fromkeys(over))


def benefit(result: Result, before: Result) -> float:
    """Share of the excess over chance that a step removes, less the share of information it costs."""
    start = before.highest_excess
    removed = (start - result.highest_excess) / start if start > 0 else 0.0
    return removed - result.loss.information


def ranked(results: Sequence[Result], before: Result, limited: bool) -> list[Result]:
    """Results in the order in which they should be considered, with rank and front.

    Where there are limits: first those that meet all of them, the least loss of information first. The others, and all
    where there is no limit, by `benefit`. Steps without a figure come last.
    """
    known = [r for r in results if r.reason is None]

    def order(r: Result) -> tuple[Any, ...]:
        meets = limited and not r.over
        worth = -round(benefit(r, before), 9)
        cost = round(r.loss.information, 9)
        return (not meets, cost if meets else worth, worth, r.step.text if r.step else "")

    ordered = sorted(known, key=order) + [r for r in results if r.reason is not None]
    front = {id(r) for r in known if not any(_better(other, r) for other in known)}
    return [replace(r, rank=i, on_front=id(r) in front) for i, r in enumerate(ordered, 1)]


def _better(a: Result, b: Result) -> bool:
    rate_a, rate_b = a.rapid or 0.0, b.rapid or 0.0
    no_worse = rate_a <= rate_b + TIE and a.loss.information <= b.loss.information + TIE
    return no_worse and (rate_a < rate_b - TIE or a.loss.information < b.loss.information - TIE)


def combinations(results: Sequence[Result], before: Result) -> list[Step]:
    """Steps to try together, from steps tried alone: the best of each column by benefit, two to five of them; and likewise
    the strongest of each column (the lowest rate), where these differ.
    """
    helpful = [r for r in results if r.step and r.reason is None and r.highest_excess < before.highest_excess - TIE]
    found: dict[Any, Step] = {}
    for key in (lambda r: -benefit(r, before), lambda r: (r.highest_excess, r.loss.information)):
        chosen: dict[tuple[str, ...], Result] = {}
        for result in sorted(helpful, key=key):
            assert result.step is not None
            chosen.setdefault(result.step.columns or ("replicates",), result)
        steps = [r.step for r in chosen.values() if r.step]
        for n in range(2, min(MOST_COMBINED, len(steps)) + 1):
            together = combine(steps[:n])
            found.setdefault((repr(sorted((k, repr(v)) for k, v in together.recode.items())), together.replicates), together)
    return list(found.values())

"""A policy's limits against the figures of a release: pass, review, fail or not_evaluated, each with its reason.

Pure rules on result rows. What is not known never passes: a combination without a figure, a subgroup that is withheld,
a missing holdout or an attack too weak to tell make `not_evaluated`, unless what is known is over the limit already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import pandas as pd

from rapid_spark.config.policy import Limit, Limits, Policy
from rapid_spark.suite import rows_of, suite
from rapid_spark.wording import NOT_KNOWN, count, name, number, percent, plain, points

from .figures import MOST_NAMED, RULES, SIGNED, Case, Figure, Previous, asked, has_figure, of_people, values

VERDICTS = ("pass", "review", "not_evaluated", "fail")  # from the mildest to the gravest
OVERALL = "overall"
Judged = tuple[float | None, float | None, str, str]  # limit that decided, figure, verdict, reason
COLUMNS = (
    "run_id", "registry", "release_id", "sensitive_attribute", "rule", "audience", "purpose", "limit", "figure", "verdict",
    "reason", "valid_until", "evaluated_at",
)  # fmt: skip


@dataclass(frozen=True)
class Verdict:
    """What one rule says of one release.

    Attributes:
        registry, release_id: of the release.
        sensitive_attribute: attribute it is about; None for the whole release.
        rule: name of the rule, or `overall`.
        limit: the limit that decided; None where the rule has none.
        figure: what was compared; None where it is not known.
        verdict: one of VERDICTS.
        reason: in words.
    """

    registry: str
    release_id: str
    sensitive_attribute: str | None
    rule: str
    limit: float | None
    figure: float | None
    verdict: str
    reason: str


def judge(
    policy: Policy,
    summary: pd.DataFrame,
    subgroups: pd.DataFrame | None = None,
    previous: Previous | None = None,
    comparable: bool | None = None,
    on: date | None = None,
) -> list[Verdict]:
    """Judge one release.

    Args:
        policy: its limits.
        summary: rows of `risk_summary` of one registry and release; those of the holdout and weighted ones do not count.
        subgroups: rows of `risk_subgroups` of the same release.
        previous: the registry's release before; left out: there is none.
        comparable: whether holdout and original look like a random split of one population; None: not known.
        on: the day to judge on, today when left out.

    Returns:
        One verdict per attribute and rule, those about the whole release, and `overall`, the gravest of all, last.

    Raises:
        ValueError: rows of no or of several releases.
    """
    frame = of_people(summary)
    releases = frame[["registry", "release_id"]].drop_duplicates()
    if len(releases) != 1:
        raise ValueError(f"rows of {len(releases)} releases; one is judged at a time")
    registry, release_id = (str(v) for v in releases.iloc[0])
    parts = subgroups if subgroups is not None and len(subgroups) else pd.DataFrame(columns=["sensitive_attribute"])
    found: list[Verdict] = []

    def say(attribute: str | None, rule: str, limit: float | None, figure: float | None, verdict: str, reason: str) -> None:
        found.append(Verdict(registry, release_id, attribute, rule, limit, figure, verdict, reason))

    for attribute, part in frame.groupby("sensitive_attribute", sort=False):
        case = Case(
            asked(rows_of(part)), rows_of(suite(part)), parts[parts["sensitive_attribute"] == attribute],
            previous or Previous(), comparable,
        )  # fmt: skip
        for rule, judged in _of_attribute(case, policy.limits_for(str(attribute))):
            say(str(attribute), rule, *judged)
    if policy.valid_until is not None:
        say(None, "valid_until", *_expiry(policy.valid_until, on or date.today()))
    say(None, OVERALL, None, None, *_overall(found))
    return found


def unevaluated(registry: str, release_id: str, reason: str) -> list[Verdict]:
    """The verdicts on a release that could not be evaluated at all."""
    found = Verdict(registry, release_id, None, "evaluation", None, None, "not_evaluated", plain(reason, 400))
    return [found, Verdict(registry, release_id, None, OVERALL, None, None, *_overall([found]))]


def cleared(verdicts: Sequence[Verdict]) -> bool:
    """Whether every rule passes; nothing judged is not cleared, and neither is what a person has yet to review."""
    return bool(verdicts) and all(v.verdict == "pass" for v in verdicts)


def gravest(verdicts: Iterable[str]) -> str:
    """The gravest of several verdicts."""
    return max(verdicts, key=VERDICTS.index, default="not_evaluated")


def _of_attribute(case: Case, limits: Limits) -> Iterable[tuple[str, Judged]]:
    """Each rule that applies, with what it says."""
    gaps = case.gaps
    missing = len([r for r in case.rows if not has_figure(r)])
    if not case.rows:
        yield "complete", (None, None, "not_evaluated", "no attacker of the suite serves this kind of attribute")
    else:
        reason = gaps[0] if gaps else f"each of {count(len(case.rows))} combinations has a figure"
        yield "complete", (0.0, float(missing), "not_evaluated" if gaps else "pass", reason)
    limited = False
    for rule, figure_of in RULES.items():
        limit = getattr(limits, rule)
        figure = None if limit is None else figure_of(case)
        if limit is not None and figure is not None:
            limited = True
            yield rule, compare(figure, limit, signed=rule in SIGNED)
    if not limited:
        yield "limits", (None, None, "not_evaluated", "the policy sets no limit on the risk of this attribute")
    if limits.min_n is not None:
        yield "min_n", _least(float(limits.min_n), values(case.ok, "n"), min, "records with a defined outcome", 0)
    quality = limits.attacker_quality
    for kind, low in (dict(quality) if quality else {}).items():
        if low is not None and (kind == "r2") == case.continuous:
            yield f"attacker_quality.{kind}", _quality(case, kind, low)


def compare(figure: Figure, limit: Limit, signed: bool = False) -> Judged:
    """(limit that decided, figure, verdict, reason).

    Args:
        figure: with its doubts.
        limit: fail and review, shares.
        signed: the figure is a difference, in percentage points.
    """
    value, show = figure.value, (lambda x: f"{points(x)} points") if signed else percent
    doubt = "; ".join(figure.doubts)
    strictest = limit.review if limit.review is not None else limit.fail
    if value is None:
        return strictest, None, "not_evaluated", doubt or "there is no figure"
    whose = f" ({figure.source})" if figure.source else ""
    if limit.fail is not None and value > limit.fail:
        also = f"; besides, {doubt}" if doubt else ""
        return limit.fail, value, "fail", f"{show(value)}{whose} is over the limit of {show(limit.fail)}{also}"
    known = f"{show(value)}{whose}"
    if doubt:
        return strictest, value, "not_evaluated", f"{known}, but {doubt}"
    if limit.review is not None and value > limit.review:
        return limit.review, value, "review", f"{known} is over {show(limit.review)}, from which a person has to look at it"
    return strictest, value, "pass", f"{known} is within {show(strictest)}"


def _least(
    low: float, values: Sequence[float], pick: Callable[[Sequence[float]], float], what: str, digits: int = 3
) -> Judged:
    """A figure that has to reach a limit for anything to be judged."""
    if not values:
        return low, None, "not_evaluated", f"{what}: there is no figure"
    value = pick(values)
    shown, least = f"{value:,.{digits}f}", f"{low:,.{digits}f}"
    if value < low:
        return low, value, "not_evaluated", f"{what}: {shown}, {least} are needed for a verdict"
    return low, value, "pass", f"{what}: {shown}, at least {least} are needed"


def _quality(case: Case, kind: str, low: float) -> Judged:
    rows = [{**r, "accuracy_gain": _gain(r)} for r in case.ok]
    what = {"auc": "AUC", "accuracy_gain": "accuracy over the most frequent class", "r2": "R²"}[kind]
    limit, value, verdict, reason = _least(low, values(rows, kind), max, f"best attacker's {what}")
    weak = "; an attack that failed does not show that the release is safe" if verdict != "pass" else ""
    return limit, value, verdict, reason + weak


def _gain(row: Mapping[str, Any]) -> float | None:
    accuracy, majority = number(row.get("accuracy")), number(row.get("majority_rate"))
    return None if accuracy is None or majority is None else accuracy - majority


def _expiry(until: date, on: date) -> Judged:
    days = float((on - until).days)
    if days > 0:
        return 0.0, days, "fail", f"the policy held until {until}, {days:.0f} days ago: it has to be renewed"
    return 0.0, days, "pass", f"the policy holds until {until}"


def _overall(found: Sequence[Verdict]) -> tuple[str, str]:
    verdict = gravest(v.verdict for v in found)
    if verdict == "pass":
        return verdict, f"each of {len(found)} rules passes"
    behind = [v for v in found if v.verdict == verdict]
    names = [f"{v.rule} of {name(v.sensitive_attribute)}" if v.sensitive_attribute else v.rule for v in behind]
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return verdict, f"{', '.join(names[:MOST_NAMED])}{more}"


def as_text(rule: str, value: Any) -> str:
    """A figure or limit as its rule speaks of it: points, percent, or a plain number."""
    known = number(value)
    if known is None:
        return NOT_KNOWN
    if rule in SIGNED:
        return f"{points(known)} points"
    return percent(known) if rule in RULES else f"{known:,.4g}"


def rows(verdicts: Iterable[Verdict], policy: Policy, run_id: str, evaluated_at: Any) -> pd.DataFrame:
    """Verdicts as rows of `audit_verdicts`."""
    common = {
        "run_id": run_id, "audience": policy.context.audience, "purpose": policy.context.purpose,
        "valid_until": policy.valid_until, "evaluated_at": evaluated_at,
    }  # fmt: skip
    return pd.DataFrame([{**common, **vars(v)} for v in verdicts], columns=list(COLUMNS), dtype=object)

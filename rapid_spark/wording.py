"""Findings in plain words, from rows of risk_summary alone: for the report, the terminal and the notebook.

A finding is three sentences: what the number is, how sure it is, and how it stands against chance; a fourth
where a holdout was given. None of them is a verdict: what is too much is for a policy to say.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from .glossary import INTERVAL_MEANING as INTERVAL_MEANING
from .glossary import LIMITS as LIMITS
from .glossary import MEASURES as MEASURES
from .glossary import P_MEANING as P_MEANING
from .glossary import TERMS as TERMS
from .suite import GROUP, over_replicates, rows_of, suite

NOT_KNOWN = "–"
POOLED = 0
LONGEST_NAME = 60  # characters of a name in a sentence
_HIDDEN = re.compile("[\u202a-\u202e\u2066-\u2069\ufeff]")  # would reorder the text around them
_SHOWN_COLUMNS = 5  # quasi-identifiers named in a sentence


@dataclass(frozen=True)
class Finding:
    """What was found for one attribute, set of quasi-identifiers and measure of one release.

    Attributes:
        key: registry, release_id and the columns of `suite.GROUP`.
        rate: the figure to decide by, a share: the largest over attackers (mean over replicates), or the
            pooled attacker's where that is larger. None where no combination has a figure.
        low, high: its interval; for a mean over replicates, that of the replicate with the highest rate.
        attacker: whose figure it is.
        basis: 'single', 'mean' (over replicates) or 'pooled'.
        rows: the rows of risk_summary behind the figure.
        outcome: 'above_chance', 'no_better_than_chance', 'chance_unknown' or 'undefined'.
        sentences: what the number is, how sure, against chance.
        control: in comparison with people not in the data; None without a holdout.
    """

    key: dict[str, str]
    rate: float | None
    low: float | None
    high: float | None
    attacker: str | None
    basis: str
    rows: tuple[dict[str, Any], ...]
    outcome: str
    sentences: tuple[str, str, str]
    control: str | None = None

    @property
    def row(self) -> dict[str, Any]:
        """The row behind the figure; of several replicates the one with the highest rate."""
        return max(self.rows, key=lambda row: number(row.get("rapid")) or 0.0)

    @property
    def text(self) -> str:
        """All sentences."""
        return " ".join([*self.sentences, *([self.control] if self.control else [])])


def findings(summary: pd.DataFrame, comparable: bool | None = None) -> list[Finding]:
    """Findings of a run, the largest figure first, those without a figure last.

    Args:
        summary: rows of `risk_summary`; only those scored on the original, unweighted, count.
        comparable: whether holdout and original look like a random split of one population; None: not known.

    Returns:
        One per registry, release, attribute, set and measure that was asked for.
    """
    unweighted = summary["weighting"].isin(["none"]) | summary["weighting"].isna()
    rows = summary[(summary["scored_on"] == "original") & unweighted]
    found = []
    for (registry, release), part in rows.groupby(["registry", "release_id"], sort=False):
        best = {tuple(g[c] for c in GROUP): g for g in rows_of(suite(part))}
        for key, group in part.groupby(list(GROUP), sort=False):
            values = (registry, release, *key)
            names = dict(zip(("registry", "release_id", *GROUP), map(str, values), strict=True))
            records = rows_of(group)
            if key in best:
                found.append(_finding(names, records, best[key], comparable))
            else:
                found.append(_undefined(names, records))
    return sorted(found, key=lambda f: -1.0 if f.rate is None else f.rate, reverse=True)


def _finding(
    key: dict[str, str], records: Sequence[dict[str, Any]], best: Mapping[str, Any], comparable: bool | None
) -> Finding:
    usable = [r for r in records if r["status"] == "ok" and number(r["rapid"]) is not None]
    top, pooled = number(best.get("rapid_max")), number(best.get("rapid_pooled"))
    is_pooled = pooled is not None and (top is None or pooled > top)
    attacker = str(best["pooled_attacker"] if is_pooled else best["worst_attacker"])
    own = [r for r in usable if r["attacker"] == attacker and (int(r["replicate"]) == POOLED) == is_pooled]
    others = [r for r in usable if all(r is not mine for mine in own)]
    rate = pooled if is_pooled else top
    basis = "pooled" if is_pooled else ("mean" if len(own) > 1 else "single")
    highest = max(own, key=lambda r: float(r["rapid"]))
    chance, outcome = _chance(own, others)
    sentences = (_what(own, float(rate or 0.0), basis), _how_sure(own, highest), chance)
    low, high = number(highest.get("ci_low")), number(highest.get("ci_high"))
    control = _control(own, others, comparable)
    return Finding(key, rate, low, high, attacker, basis, tuple(own), outcome, sentences, control)


def _undefined(key: dict[str, str], records: Sequence[dict[str, Any]]) -> Finding:
    what = "could not be computed" if all(r["status"] == "failed" for r in records) else "is undefined"
    reasons = "; ".join(dict.fromkeys(_reason(r) for r in records))
    sentences = (
        f"The risk that {name(key['sensitive_attribute'])} is predicted {what}: {plain(reasons, 300)}.",
        "So there is no interval either.",
        "This is neither a low nor a high risk: nothing was found out.",
    )
    return Finding(key, None, None, None, None, "single", tuple(records), "undefined", sentences)


def _what(own: Sequence[dict[str, Any]], rate: float, basis: str) -> str:
    row = own[0]
    how = "confidently and rightly" if row["target_type"] == "categorical" else "closely"
    who = "records" if number(row.get("n_persons")) is not None else "people"
    remark = {"mean": f" (mean over the {len(own)} published copies)", "pooled": " (all copies together)"}
    has_hits = basis != "mean" and number(row.get("n_at_risk")) is not None
    hits = f", {count(row['n_at_risk'])} of them" if has_hits else ""
    return (
        f"An attacker ({name(row['attacker'])}) who knows "
        f"{known(row.get('quasi_identifiers'), row['qi_set'])} and learns from the release alone predicts "
        f"{name(row['sensitive_attribute'])} {how} for {percent(rate)} of the {count(row['n'])} "
        f"{who}{hits}{remark.get(basis, '')}: {rule(row)}."
    )


def _how_sure(own: Sequence[dict[str, Any]], highest: dict[str, Any]) -> str:
    inside = interval(highest.get("ci_low"), highest.get("ci_high"))
    meaning = (
        "it holds release and fitted attacker fixed and says only how the rate would vary if the original "
        "were a random sample of a larger population; for a complete register there is no such error"
    )
    if len(own) == 1:
        if not inside:
            return "No interval was computed, so how sure the figure is was not found out."
        return f"The {confidence(highest)}interval is {inside}: {meaning}."
    rates = pd.Series([float(r["rapid"]) for r in own])
    spread = points(rates.std(ddof=1), signed=False)
    span = f"{percent(rates.min())} to {percent(rates.max())}"
    start = f"The copies gave {span} (standard deviation {spread} points)"
    among = interval(*over_replicates(list(rates), number(highest.get("confidence")) or 0.95))
    if among:
        start += f", so for releases made in the same way the mean lies in {among} with {confidence(highest)}confidence"
    sure = f"; the {confidence(highest)}interval of the highest is {inside}: {meaning}"
    return f"{start}{sure if inside else ''}."


def exceeds_chance(row: Mapping[str, Any]) -> bool | None:
    """Whether a row's rate is more than chance gives; None where chance is not known.

    More than chance is: above the 95 % quantile of the permutation null. Without one, and for a continuous
    attribute besides, the whole interval has to be above the baseline_rate.
    """
    rate, q95, base, low = (number(row.get(c)) for c in ("rapid", "null_q95", "baseline_rate", "ci_low"))
    if rate is None or (q95 is None and base is None):
        return None
    above_base = base is None or (rate if low is None else low) > base
    if q95 is None:
        return above_base
    return rate > q95 and (above_base or row.get("target_type") != "continuous")


def _chance(own: Sequence[dict[str, Any]], others: Sequence[dict[str, Any]]) -> tuple[str, str]:
    continuous = own[0]["target_type"] == "continuous"
    answers = [exceeds_chance(r) for r in own]
    base = next((m for m in (_mean(own, "baseline_rate"), _mean(own, "null_mean")) if m is not None), None)
    if base is None or all(a is None for a in answers):
        return "What chance alone would give was not computed, so the figure stands alone.", "chance_unknown"
    if continuous:
        chance = f"the best guess that is the same for everybody comes as close for {percent(base)}"
    else:
        chance = f"the same predictions dealt out to people at random would be right for {percent(base)}"
    if any(answers):
        excess = (_mean(own, "rapid") or 0.0) - base
        adds = f", so knowing these columns adds {points(excess, signed=False)} percentage points"
        return f"Against chance: {chance}{adds if excess > 0 else ''}.", "above_chance"
    start = f"This is no better than chance: {chance}"
    better = [r for r in others if exceeds_chance(r) and (number(r.get("excess")) or 0.0) > 0]
    if better:
        other = max(better, key=lambda r: float(r["excess"]))
        return (
            f"{start}; but attacker {name(other['attacker'])} is right for {percent(other['rapid'])}, "
            f"{points(other['excess'], signed=False)} percentage points more than its own chance."
        ), "above_chance"
    end = "which is a plain low-risk result for the attackers tried and no failure of the assessment"
    return f"{start}, {end}.", "no_better_than_chance"


def _control(
    own: Sequence[dict[str, Any]], others: Sequence[dict[str, Any]], comparable: bool | None
) -> str | None:
    held = [r for r in own if number(r.get("holdout_difference")) is not None]
    if not held:
        return None
    row = max(held, key=lambda r: float(r["holdout_difference"]))
    bounds = interval(row.get("holdout_difference_low"), row.get("holdout_difference_high"), signed=True)
    difference = f"{points(row['holdout_difference'])} percentage points{bounds and ' ' + bounds}"
    rate = f"{percent(row['holdout_rate'])} (difference {difference})"
    if comparable is False:
        return (
            f"People who are not in the data are predicted for {rate}, but they are not comparable with "
            "those who are: this is a difference between populations."
        )
    hedge = "" if comparable else ", if the two are a random split of one population"
    if _more_than_outsiders(row):
        return f"People not in the data are predicted for {rate}: being in the data adds to the risk{hedge}."
    start = f"The risk is no more than that of people who are not in the data: they are predicted for {rate}"
    worse = [r for r in others if _more_than_outsiders(r)]
    if worse:
        other = max(worse, key=lambda r: float(r["holdout_difference"]))
        return (
            f"{start}; but for attacker {name(other['attacker'])} being in the data adds "
            f"{points(other['holdout_difference'], signed=False)} percentage points{hedge}."
        )
    end = "so being in the data adds no risk that could be seen, which is a plain low-risk result"
    return f"{start}, {end}{hedge}."


def _more_than_outsiders(row: Mapping[str, Any]) -> bool:
    return (number(row.get("holdout_difference_low")) or 0.0) > 0


def rule(row: Mapping[str, Any]) -> str:
    """When a record counts as at risk, in words."""
    measure, threshold = str(row["measure"]), float(row["threshold"])
    share, figure = f"{100 * threshold:.10g} %", f"{threshold:,.10g}"
    return {
        "normalized_gain": "the probability given to the true answer covers more than "
        f"{share} of the way from that answer's share in the original to certainty",
        "rcs_conditional": f"the true answer is given more than {figure} times the probability usual for it",
        "nce": f"the normalised cross-entropy score of the true answer is above {figure}",
        "symmetric": f"guess and truth differ by less than {share} of their mean size",
        "stabilised_relative": f"the guess is off by less than {share} of the true value (smoothed near 0)",
        "relative": f"the guess is off by less than {share} of the true value",
        "absolute": f"the guess is off by less than {figure}, in the unit of the attribute",
        "normalised": f"the guess is off by less than {figure} of the spread of the attribute",
    }.get(measure, f"{measure} at threshold {figure}")


def known(columns: Any, qi_set: str) -> str:
    """The quasi-identifiers of a sentence: the first few by name, the others by number."""
    listed = isinstance(columns, Iterable) and not isinstance(columns, str)
    names = [name(c) for c in columns] if listed else []
    if not names:
        return f"the quasi-identifiers of set {name(qi_set)}"
    more = len(names) - _SHOWN_COLUMNS
    if more > 1:
        return f"{', '.join(names[:_SHOWN_COLUMNS])} and {more} more columns"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def not_computed(summary: pd.DataFrame) -> list[tuple[str, str, list[str]]]:
    """Status, reason and names of what has no figure; combinations with the same reason stand together."""
    varying = {c for c in ("qi_set", "measure", "replicate", "scored_on") if summary[c].nunique() > 1}
    found: dict[tuple[str, str], list[str]] = {}
    for row in rows_of(summary[summary["status"] != "ok"]):
        parts = [name(row["sensitive_attribute"]), name(row["attacker"])]
        parts += [name(row["measure"])] if "measure" in varying else []
        parts += [f"set {name(row['qi_set'])}"] if "qi_set" in varying else []
        parts += [replicate(row["replicate"])] if "replicate" in varying else []
        parts += [name(row["scored_on"])] if "scored_on" in varying else []
        found.setdefault((str(row["status"]), _reason(row)), []).append(", ".join(parts))
    return [(status, reason, names) for (status, reason), names in found.items()]


def _reason(row: Mapping[str, Any]) -> str:
    reason = row.get("reason")
    missing = reason is None or reason != reason or not str(reason)
    return "no reason was recorded" if missing else plain(reason, 300)


def replicate(value: Any) -> str:
    """'copy 2', or 'all copies together'."""
    return "all copies together" if int(value) == POOLED else f"copy {int(value)}"


def number(value: Any) -> float | None:
    """A finite number, or None for every kind of missing."""
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    found = float(value)
    return found if math.isfinite(found) else None


def percent(value: Any) -> str:
    """A share as percent with one decimal; what is neither none nor all is never shown as that."""
    share = number(value)
    if share is None:
        return NOT_KNOWN
    if 0 < share < 0.0005:
        return "< 0.1 %"
    if 0.9995 <= share < 1:
        return "> 99.9 %"
    return f"{100 * share:.1f} %"


def points(value: Any, signed: bool = True) -> str:
    """A difference of shares in percentage points with one decimal; a minus sign, not a hyphen."""
    difference = number(value)
    if difference is None:
        return NOT_KNOWN
    tenths = round(1000 * difference)
    size = f"{abs(tenths) / 10:.1f}"
    if not signed or not tenths:
        return "< 0.1" if not tenths and difference and not signed else size
    return ("+" if tenths > 0 else "−") + size


def interval(low: Any, high: Any, signed: bool = False) -> str:
    """'[71.4 %, 72.5 %]', or in points '[−0.2, +0.9]'; empty where not known."""
    if number(low) is None or number(high) is None:
        return ""
    shown = points if signed else percent
    return f"[{shown(low)}, {shown(high)}]"


def p_value(value: Any) -> str:
    """A p-value; below a thousandth no more is said, as it is no measure of size."""
    p = number(value)
    if p is None:
        return NOT_KNOWN
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def count(value: Any) -> str:
    """A whole number with thousands separated."""
    found = number(value)
    return NOT_KNOWN if found is None else f"{round(found):,}"


def confidence(row: Mapping[str, Any]) -> str:
    """'95 % ' before the word interval, or nothing where it is not known."""
    level = number(row.get("confidence"))
    return "" if level is None else f"{100 * level:.10g} % "


def name(text: Any) -> str:
    """A name as it stands in a sentence."""
    return plain(text, LONGEST_NAME)


def plain(text: Any, longest: int | None = None) -> str:
    """A label without what cannot be shown (control characters, lone surrogates), cut where too long."""
    kept = (
        "\N{REPLACEMENT CHARACTER}" if unicodedata.category(c) in ("Cc", "Cs") else c
        for c in _HIDDEN.sub("", re.sub(r"\s+", " ", str(text)))
    )
    shown = "".join(kept)
    return shown if longest is None or len(shown) <= longest else shown[: longest - 1].rstrip() + "…"


def _mean(rows: Sequence[Mapping[str, Any]], column: str) -> float | None:
    present = [x for x in (number(r.get(column)) for r in rows) if x is not None]
    return sum(present) / len(present) if present else None

"""The figure of each rule, from the result rows of one attribute of one release, and what puts it in doubt."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from rapid_spark.suite import GROUP, rows_of, suite
from rapid_spark.wording import name, number, plain, replicate

NOT_SERVED = "does not serve"  # an attacker that is not made for this kind of attribute was not asked for it
MOST_NAMED = 3
Group = tuple[str, str, str]  # the columns of suite.GROUP


@dataclass(frozen=True)
class Previous:
    """The registry's release before the one that is judged.

    Attributes:
        release_id: which; None where there is none, so that nothing could increase.
        rates: its figure to decide by (`decisive`), by group; groups without a figure are absent.
        problem: why it is not known which release came before, or what its figures are.
    """

    release_id: str | None = None
    rates: Mapping[Group, float] = field(default_factory=dict)
    problem: str | None = None


@dataclass(frozen=True)
class Figure:
    """A figure to compare with a limit.

    Attributes:
        value: None where there is none.
        source: whose figure it is.
        doubts: why the true figure may be larger; with any of them it cannot pass.
    """

    value: float | None
    source: str = ""
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Case:
    """One attribute of one release, as the rules see it.

    Attributes:
        rows: rows of risk_summary that were asked for: on the original, unweighted.
        groups: `suite` of them.
        subgroups: rows of risk_subgroups of the attribute.
        previous: the release before.
        comparable: whether holdout and original look like a random split; None: not known.
    """

    rows: Sequence[Mapping[str, Any]]
    groups: Sequence[Mapping[str, Any]]
    subgroups: pd.DataFrame
    previous: Previous
    comparable: bool | None

    @property
    def ok(self) -> list[Mapping[str, Any]]:
        """Rows with a figure."""
        return [r for r in self.rows if has_figure(r)]

    @property
    def continuous(self) -> bool:
        return any(r.get("target_type") == "continuous" for r in self.rows)

    @property
    def gaps(self) -> tuple[str, ...]:
        """One doubt about the combinations without a figure, if there are any."""
        without = [r for r in self.rows if not has_figure(r)]
        if not without:
            return ()
        reasons = dict.fromkeys(f"{r['attacker']}: {plain(r.get('reason') or r['status'], 80)}" for r in without)
        named = "; ".join(list(reasons)[:MOST_NAMED])
        of = f"{len(without)} of {len(self.rows)} combinations"
        return (f"{of} {'has' if len(without) == 1 else 'have'} no figure ({named})",)


def of_people(summary: pd.DataFrame) -> pd.DataFrame:
    """Rows about the people of the original, unweighted."""
    unweighted = summary["weighting"].isin(["none"]) | summary["weighting"].isna()
    return summary[(summary["scored_on"] == "original") & unweighted]


def asked(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Rows that count as asked for: an attacker of the suite that is made for another kind of attribute is not one."""
    return [r for r in rows if not (r["status"] == "undefined" and NOT_SERVED in str(r.get("reason") or ""))]


def decisive(summary: pd.DataFrame) -> dict[Group, float]:
    """The figure to decide by per group: the larger of maximum and pooled. Groups that are not complete are absent."""
    frame = of_people(summary)
    rates = {}
    for key, part in frame.groupby(list(GROUP), sort=False):
        rows = asked(rows_of(part))
        if rows and all(has_figure(r) for r in rows):
            rates[_group(dict(zip(GROUP, key, strict=True)))] = max(_rates(rows_of(suite(part))[0]))
    return rates


def _rapid_max(case: Case) -> Figure:
    best = max(case.groups, key=lambda g: number(g["rapid_max"]) or 0.0, default=None)
    if best is None or number(best["rapid_max"]) is None:
        return Figure(None, "", case.gaps or ("no attacker of a single copy has a figure",))
    return Figure(number(best["rapid_max"]), str(best["worst_attacker"]), case.gaps)


def _rapid_pooled(case: Case) -> Figure:
    copies = {int(r["replicate"]) for r in case.rows}
    if 0 not in copies:
        if len(copies) > 1:
            return Figure(None, "", ("the attacker who trains on all copies together was not computed",))
        single = _rapid_max(case)
        return Figure(single.value, f"{single.source}, one copy" if single.source else "", single.doubts)
    best = max(case.groups, key=lambda g: number(g["rapid_pooled"]) or 0.0, default=None)
    value = None if best is None else number(best["rapid_pooled"])
    whose = "" if best is None or value is None else f"{best['pooled_attacker']}, all copies together"
    return Figure(value, whose, case.gaps)


def _interval_upper(case: Case) -> Figure:
    known = [r for r in case.ok if number(r.get("ci_high")) is not None]
    doubts = case.gaps + (("an interval is missing",) if len(known) < len(case.ok) else ())
    if not known:
        return Figure(None, "", doubts or ("there is no interval",))
    top = max(known, key=lambda r: float(r["ci_high"]))
    return Figure(float(top["ci_high"]), _whose(top), doubts)


def _largest_mean(case: Case, column: str, none: str) -> Figure:
    """Largest over attackers of the mean over copies, or of the attacker on all copies together."""
    known = [r for r in case.ok if number(r.get(column)) is not None]
    doubts = case.gaps + ((none,) if len(known) < len(case.ok) else ())
    means: dict[tuple[Any, ...], list[float]] = {}
    for r in known:
        kind = (*(r[c] for c in GROUP), str(r["attacker"]), int(r["replicate"]) == 0)
        means.setdefault(kind, []).append(float(r[column]))
    if not means:
        return Figure(None, "", doubts or (none,))
    value, top = max((sum(x) / len(x), key) for key, x in means.items())
    return Figure(value, f"{top[-2]}{', all copies together' if top[-1] else ''}", doubts)


def _excess(case: Case) -> Figure:
    return _largest_mean(case, "excess", "what chance gives was not computed")


def _sensitive_levels_rate(case: Case) -> Figure | None:
    if case.continuous:  # it has no levels
        return None
    return _largest_mean(case, "sensitive_levels_rate", "no record has a level that was declared sensitive")


def _holdout_difference(case: Case) -> Figure:
    found = _largest_mean(case, "holdout_difference", "there is no holdout to compare with")
    if found.value is None or case.comparable is not False:
        return found
    doubt = "the holdout is not comparable with the original, so this is a difference between populations"
    return Figure(found.value, found.source, (*found.doubts, doubt))


def _subgroup_rapid(case: Case) -> Figure:
    frame = case.subgroups
    if not len(frame):
        return Figure(None, "", (*case.gaps, "no subgroups were computed (drivers.subgroups)"))
    frame = frame[frame["scored_on"].isin(["original"])]
    rows = rows_of(frame)
    shown = [r for r in rows if not r["suppressed"] and number(r["rapid"]) is not None]
    doubts = list(case.gaps)
    if len(shown) < len(rows):
        doubts.append(f"{len(rows) - len(shown)} of {len(rows)} subgroup figures are withheld")
    have = {(r["qi_set"], r["measure"], r["attacker"], r["replicate"]) for r in rows}
    lacking = [r for r in case.ok if (r["qi_set"], r["measure"], r["attacker"], r["replicate"]) not in have]
    if lacking:
        doubts.append(f"{len(lacking)} of {len(case.ok)} combinations have no subgroups")
    if not shown:
        return Figure(None, "", tuple(doubts))
    top = max(shown, key=lambda r: float(r["rapid"]))
    by = " and ".join(name(c) for c in top["columns"])
    return Figure(float(top["rapid"]), f"{_whose(top)}, a subgroup by {by}", tuple(doubts))


def _increase(case: Case) -> Figure:
    before = case.previous
    if before.problem:
        return Figure(None, "", (before.problem,))
    if before.release_id is None:
        return Figure(0.0, "the first release of this registry, nothing to compare with")
    doubts, known = list(case.gaps), []
    for g in case.groups:
        key = _group(g)
        if key in before.rates:
            known.append((max(_rates(g)) - before.rates[key], str(g["worst_attacker"] or g["pooled_attacker"])))
        else:
            doubts.append(f"release {before.release_id} has no complete figure to compare with")
    if not known:
        return Figure(None, "", tuple(doubts))
    value, _ = max(known)
    return Figure(value, f"against release {before.release_id}", tuple(dict.fromkeys(doubts)))


RULES: dict[str, Callable[[Case], Figure | None]] = {
    "rapid_max": _rapid_max,
    "rapid_pooled": _rapid_pooled,
    "interval_upper": _interval_upper,
    "excess": _excess,
    "sensitive_levels_rate": _sensitive_levels_rate,
    "holdout_difference": _holdout_difference,
    "subgroup_rapid": _subgroup_rapid,
    "increase_over_previous": _increase,
}
SIGNED = ("excess", "holdout_difference", "increase_over_previous")


def has_figure(row: Mapping[str, Any]) -> bool:
    """Whether a row of risk_summary has a rate."""
    return row["status"] == "ok" and number(row.get("rapid")) is not None


def values(rows: Iterable[Mapping[str, Any]], column: str) -> list[float]:
    """The known values of a column."""
    return [value for r in rows if (value := number(r.get(column))) is not None]


def _rates(group: Mapping[str, Any]) -> list[float]:
    return values([group], "rapid_max") + values([group], "rapid_pooled")


def _group(row: Mapping[str, Any]) -> Group:
    qi_set, attribute, measure = (str(row[c]) for c in GROUP)
    return qi_set, attribute, measure


def _whose(row: Mapping[str, Any]) -> str:
    return f"{row['attacker']}, {replicate(row['replicate'])}" if int(row["replicate"]) != 1 else str(row["attacker"])



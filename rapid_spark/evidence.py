"""What was tested and what was not, read off the tables and settings of a run: nothing is claimed that has no row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pandas as pd

from .suite import rows_of
from .wording import count, name, number

TESTED, PARTLY, NOT_TESTED = "tested", "partly", "not tested"


class Evaluated(Protocol):
    """A run, as far as evidence needs it: the report's data."""

    @property
    def run_id(self) -> str: ...  # noqa: D102
    @property
    def tables(self) -> Mapping[str, pd.DataFrame]: ...  # noqa: D102
    @property
    def settings(self) -> Mapping[str, Any]: ...  # noqa: D102
    @property
    def comparable(self) -> bool | None: ...  # noqa: D102


@dataclass(frozen=True)
class Item:
    """One thing that a reader may take for tested.

    Attributes:
        what: in words.
        state: 'tested', 'partly' or 'not tested'.
        detail: how, or what is lacking.
    """

    what: str
    state: str
    detail: str


def tested(run: Evaluated) -> list[Item]:
    """Everything a disclosure review asks about, with what this run has to show for it.

    Args:
        run: the report's data of a run or an audit.
    """
    summary = run.tables["risk_summary"]
    return [
        *_attributes(summary), *_controls(run, summary), *_people(run, summary), *_judged(run), *_release(run),
        *_elsewhere(run),
    ]  # fmt: skip


def _attributes(summary: pd.DataFrame) -> list[Item]:
    """Inference of each sensitive attribute."""
    items = []
    mine = summary[summary["scored_on"] == "original"] if len(summary) else summary
    for attribute, part in mine.groupby("sensitive_attribute", sort=False):
        asked = part[~((part["status"] == "undefined") & part["reason"].astype(str).str.contains("does not serve"))]
        ok = asked[asked["status"] == "ok"]
        attackers = ", ".join(dict.fromkeys(map(str, ok["attacker"])))
        sets = ok["qi_set"].nunique()
        detail = f"by {attackers}" if attackers else "no combination has a figure"
        detail += f", {sets} sets of known columns" if sets > 1 else ""
        lacking = asked[asked["status"] != "ok"]
        if len(lacking):
            why = "; ".join(sorted({f"{r['attacker']}: {r['reason']}" for r in rows_of(lacking)})[:3])
            detail += f"; {len(lacking)} of {len(asked)} combinations have no figure ({why})"
        state = NOT_TESTED if not len(ok) else PARTLY if len(lacking) else TESTED
        items.append(Item(f"inference of {name(attribute)}", state, detail))
    return items or [Item("inference of a sensitive attribute", NOT_TESTED, "nothing was evaluated")]


def _controls(run: Evaluated, summary: pd.DataFrame) -> list[Item]:
    held = _known(summary, "holdout_rate")
    if held and run.comparable is False:
        holdout = Item("effect of being in the data (holdout)", PARTLY,
                       "the holdout is not comparable with the original: a difference between populations")  # fmt: skip
    else:
        holdout = _item("effect of being in the data (holdout)", held, "people who were not used to make the release",
                        "no holdout was given")  # fmt: skip
    copies = sorted({int(r) for r in summary["replicate"]}) if len(summary) else []
    each = [r for r in copies if r]
    if len(each) > 1 or 0 in copies:
        pooled = _item("all published copies together", 0 in copies, f"{len(each) or 'all'} copies, and all together",
                       "training.replicates: each")  # fmt: skip
    else:
        pooled = Item("all published copies together", TESTED, "there is one copy")
    intervals = dict(run.settings.get("intervals") or {})
    methods = ", ".join(sorted(set(summary["ci_method"].dropna().astype(str)))) if len(summary) else ""
    return [
        holdout,
        _item("what can be said of people outside the data", _known(summary, "population_reference"),
              "population reference and copy of the original", "training.references is off"),
        pooled,
        _item("sampling error of the rates", bool(methods), f"intervals by {methods}", "no interval"),
        _item("whether a rate exceeds chance", _known(summary, "permutation_p"),
              f"permutation null, {intervals.get('permutations', 'some')} draws", "intervals.permutations: 0; "
              "the exact mean under chance stands beside each rate"),
    ]  # fmt: skip


def _people(run: Evaluated, summary: pd.DataFrame) -> list[Item]:
    settings = run.settings
    columns = dict(settings.get("columns") or {})
    attributes = list(settings.get("sensitive_attributes") or ())
    harmful = [a["name"] for a in attributes if isinstance(a, Mapping) and a.get("sensitive_levels")]
    groups = run.tables.get("risk_subgroups")
    withheld = 0 if groups is None or not len(groups) else int(groups["suppressed"].astype(bool).sum())
    shown = f"{count(len(groups))} figures, {count(withheld)} of them withheld" if groups is not None and len(groups) else ""
    weighted = len(summary) and (summary["weighting"] == "survey").any()
    items = [
        _item("subgroups", bool(shown), shown, "drivers.subgroups is off"),
        _item("answers that would harm", bool(harmful), f"levels declared for {', '.join(map(name, harmful))}",
              "no sensitive_levels were declared: every answer counts alike"),
    ]  # fmt: skip
    for role, what in (("person", "people with several records"), ("household", "households")):
        if columns.get(role):
            items.append(_item(what, _known(summary, f"n_{role}s"), f"by {columns[role]}", "no figure"))
    if columns.get("weight"):
        items.append(_item("population beyond the file", bool(weighted), f"weights {columns['weight']}", "no weighted rate"))
    return items


def _judged(run: Evaluated) -> list[Item]:
    verdicts, decisions = run.tables.get("audit_verdicts"), run.tables.get("release_decisions")
    judged = verdicts is not None and len(verdicts) > 0
    detail, state = "no policy was given", NOT_TESTED
    if judged and verdicts is not None:
        sizes = verdicts["verdict"].value_counts()
        detail = ", ".join(f"{n} {v}" for v, n in sizes.items())
        state = PARTLY if "not_evaluated" in sizes else TESTED
    decided = decisions is not None and len(decisions) > 0
    last = rows_of(decisions.sort_values("decided_at"))[-1] if decided and decisions is not None else {}
    return [
        Item("limits of a policy", state, detail),
        _item("decision of a person", decided, f"{last.get('outcome')} by {last.get('decided_by')}", "nobody has decided"),
    ]


def _release(run: Evaluated) -> list[Item]:
    recode = {k: v for k, v in dict(run.settings.get("recode") or {}).items() if isinstance(v, Mapping)}
    if not recode:
        return []
    return [Item("coarser columns of the release", TESTED,
                 f"the original was treated likewise: {', '.join(map(name, recode))}")]  # fmt: skip


ATTACKS = {
    "membership": ("whether somebody is in the data (membership)", "rapid-spark attack membership"),
    "linkage": ("re-identification and singling out (linkage)", "rapid-spark attack linkage"),
    "test-epsilon": ("a claimed privacy guarantee", "rapid-spark attack test-epsilon"),
}


def _elsewhere(run: Evaluated) -> list[Item]:
    """What other commands test, as far as their rows are about this run."""
    attacks = run.tables.get("risk_attacks")
    found = set() if attacks is None or not len(attacks) else set(attacks["attack"].astype(str))
    items = [
        _item(what, any(a.startswith(kind.split("-")[0]) for a in found), "in risk_attacks", f"not in this run: {command}")
        for kind, (what, command) in ATTACKS.items()
    ]
    utility = run.tables.get("release_utility")
    items.append(_item("utility of the release", utility is not None and len(utility) > 0, "in release_utility",
                       "not in this run"))  # fmt: skip
    items.append(Item("columns that no one named", NOT_TESTED, "rapid-spark search guesses every column from the others"))
    return items


def _item(what: str, is_tested: bool, how: str, lacking: str) -> Item:
    return Item(what, TESTED if is_tested else NOT_TESTED, how if is_tested else lacking)


def _known(summary: pd.DataFrame, column: str) -> bool:
    return column in summary and any(number(v) is not None for v in summary[column])


def digests(summary: pd.DataFrame) -> Sequence[tuple[str, str]]:
    """What ties the figures to files and settings: pairs of what and value."""
    found: list[tuple[str, str]] = []
    if not len(summary):
        return found
    for row in rows_of(summary.drop_duplicates(["registry", "release_id", "replicate"])):
        copy = f", copy {row['replicate']}" if int(row["replicate"]) > 1 else ", all copies" if not row["replicate"] else ""
        found.append((f"release {row['release_id']} of {row['registry']}{copy}", str(row["release_digest"])))
    for column, what in (("original_digest", "original"), ("settings_digest", "settings")):
        found += [(what, str(v)) for v in summary[column].dropna().drop_duplicates()]
    seeds = summary["seed"].dropna().drop_duplicates()
    found += [("seed", str(int(v))) for v in seeds]
    found += [("rapid-spark", str(v)) for v in summary["package_version"].dropna().drop_duplicates()]
    return found

"""What a decision needs, and whether decisions clear a release: pure rules on rows of the store's tables."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

OUTCOMES = ("approve", "approve_with_conditions", "reject")
APPROVALS = OUTCOMES[:2]
OVERALL = "overall"
MOST_NAMED = 4

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """A release as a run judged it.

    Attributes:
        run_id, registry, release_id: of the release.
        digests: of its content, by replicate (0: all copies together).
        verdicts: rows of audit_verdicts of this run and release.
        decisions: rows of release_decisions on it, the oldest first.
        approvals: different people who must approve, as the policy asks.
        audience: to whom it goes, as the policy's context says.
        policy: the policy as plain data; empty where there was none.
        command: of the run.
    """

    run_id: str
    registry: str
    release_id: str
    digests: Mapping[int, str]
    verdicts: Sequence[Row] = ()
    decisions: Sequence[Row] = ()
    approvals: int = 1
    audience: str | None = None
    policy: Mapping[str, Any] | None = None
    command: str = ""

    @property
    def digest(self) -> str | None:
        """Of the release as a whole: its only copy's, or one over those of all copies, as `Aligned.release_digest`."""
        copies = [self.digests[r] for r in sorted(self.digests) if r]
        if len(copies) == 1:
            return copies[0]
        return self.digests.get(0) or (hashlib.sha256("".join(copies).encode()).hexdigest() if copies else None)

    @property
    def verdict(self) -> str | None:
        """What the policy says of it as a whole; None where none judged it."""
        order = ("pass", "review", "not_evaluated", "fail")
        whole = [str(v["verdict"]) for v in self.verdicts if v["rule"] == OVERALL]
        found = whole or [str(v["verdict"]) for v in self.verdicts]
        return max(found, key=order.index) if found else None

    def overridden(self, today: date) -> str | None:
        """What an approval would override, in words; None where the policy cleared the release."""
        bad = [v for v in self.verdicts if v["verdict"] in ("fail", "not_evaluated") and v["rule"] != OVERALL]
        if bad:
            names = list(dict.fromkeys(f"{v['verdict']} of {v['rule']}" for v in bad))
            more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
            return ", ".join(names[:MOST_NAMED]) + more
        if self.verdict is None:
            return "no policy has judged it"
        if self.verdict in ("fail", "not_evaluated"):
            return f"verdict {self.verdict}"
        ended = [v["valid_until"] for v in self.verdicts if day(v["valid_until"]) and day(v["valid_until"]) < today]
        return f"the verdict held until {min(map(day, ended))}" if ended else None


@dataclass(frozen=True)
class Decision:
    """A person's decision, as it is asked for."""

    outcome: str
    decided_by: str
    reason: str | None = None
    valid_until: date | None = None
    audience: str | None = None


def faults(case: Case, decision: Decision, today: date) -> list[str]:
    """What is missing or wrong with a decision; nothing where it may be recorded."""
    found = []
    if decision.outcome not in OUTCOMES:
        found.append(f"--outcome {decision.outcome!r}: one of {', '.join(OUTCOMES)} is expected")
    if not decision.decided_by.strip():
        found.append("--by: name the person who decides")
    if decision.valid_until is not None and decision.outcome == "reject":
        found.append("--valid-until: a rejection has no end; leave it out")
    elif decision.valid_until is not None and decision.valid_until < today:
        found.append(f"--valid-until {decision.valid_until}: that day is over (today is {today})")
    reason = (decision.reason or "").strip()
    if not reason and decision.outcome == "reject":
        found.append("--reason: a rejection needs a reason")
    if not reason and decision.outcome == "approve_with_conditions":
        found.append("--reason: state the conditions")
    overridden = case.overridden(today) if decision.outcome in APPROVALS else None
    if not reason and overridden and decision.outcome == "approve":
        found.append(f"--reason: this approval overrides the policy ({overridden}): say why")
    if decision.audience and case.audience and decision.audience != case.audience:
        found.append(
            f"--audience {decision.audience!r}: run {case.run_id} judged the release for {case.audience!r}; judge it for "
            f"{decision.audience!r} first"
        )
    return found


@dataclass(frozen=True)
class Standing:
    """Whether decisions clear a release.

    Attributes:
        cleared: whether a valid approval covers it.
        reason: in words.
        decisions: the rows that count, the oldest first.
        valid_until: last day of the approval; None where it has no end.
        conditions: reasons of approvals with conditions.
    """

    cleared: bool
    reason: str
    decisions: tuple[Row, ...] = ()
    valid_until: date | None = None
    conditions: tuple[str, ...] = ()


def standing(case: Case, today: date, audience: str | None = None) -> Standing:
    """Whether a release is cleared today.

    A rejection ends what was approved before it. After it, as many different people must have approved as the policy
    asks for, for this audience, and the end of the earliest of their approvals, and of the policy's verdict, is the end of
    all.

    Args:
        case: the release and the decisions on it.
        today: the day asked about.
        audience: to whom it is to go; the one that was judged when left out.
    """
    wanted = audience or case.audience
    rows = list(case.decisions)
    last = max((i for i, row in enumerate(rows) if row["outcome"] == "reject"), default=-1)
    if not rows:
        return Standing(False, "nobody has decided on it")
    since = rows[last + 1 :]
    if not since:
        return Standing(False, f"rejected by {rows[last]['decided_by']}", (rows[last],))
    fitting = [r for r in since if _audience(r, case) == wanted]
    if not fitting:
        others = sorted({_audience(r, case) or "no audience named" for r in since})
        return Standing(False, f"approved for {', '.join(others)}, not for {wanted or 'others'}", tuple(since))
    open_ = [r for r in fitting if day(r["valid_until"]) is None or day(r["valid_until"]) >= today]
    newest = {str(r["decided_by"]).strip().casefold(): r for r in open_}  # a person's later approval is in place of theirs
    if not newest:
        ended = max(day(r["valid_until"]) for r in fitting)
        return Standing(False, f"the approval ended on {ended}", tuple(fitting))
    people = ", ".join(str(r["decided_by"]) for r in newest.values())
    counting = tuple(newest.values())
    if len(newest) < case.approvals:
        return Standing(
            False, f"approved by {people} alone: the policy asks for {case.approvals} different people", counting
        )
    ends = [day(v["valid_until"]) for v in case.verdicts] + [day(r["valid_until"]) for r in counting]
    end = min((e for e in ends if e is not None), default=None)
    if end is not None and end < today:
        return Standing(False, f"the policy's verdict ended on {end}", counting, end)
    conditions = tuple(str(r["reason"]) for r in counting if r["outcome"] == "approve_with_conditions")
    return Standing(True, f"approved by {people}{f', until {end}' if end else ''}", counting, end, conditions)


def _audience(row: Row, case: Case) -> str | None:
    found = row.get("audience")
    return str(found) if isinstance(found, str) and found else case.audience


def day(value: Any) -> Any:
    """A date of a row; None where there is none (null, NaT)."""
    if value is None or value != value:
        return None
    return value.date() if hasattr(value, "date") and callable(value.date) else value

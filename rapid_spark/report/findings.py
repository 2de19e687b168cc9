"""Sections: the finding in words, what the reader must know, the table of combinations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd

from .. import wording
from ..suite import rows_of
from ..wording import count, interval, percent, plain, points
from .cells import any_of, claims, rate, text_of
from .markup import Html, join, listing, note, prose, tag
from .page import MOST_FINDINGS, MOST_ROWS, Page, title, usable

MUCH_NEAR_THRESHOLD = 0.1  # share of predictions
_VERDICT = ("sensitive_attribute", "rule", "verdict", "figure", "limit", "reason")
_DECISION = ("outcome", "decided_by", "reason", "decided_at", "valid_until")


def finding(page: Page) -> Html:
    cards = []
    for f in [*page.told, *[f for f in page.found if f.rate is None][:MOST_FINDINGS]]:
        single = interval(f.low, f.high) if f.basis != "mean" else ""
        figure = tag("p", percent(f.rate), tag("span", f" {single}") if single else None, class_="figure")
        said = [tag("p", prose(s)) for s in (*f.sentences, f.control) if s]
        cards.append(tag("article", tag("h3", title(f, page)), figure, *said, class_=f"card {f.outcome}"))
    more = len(page.found) - len(cards)
    rest = note(f"{more} more are in the table of combinations.") if more else None
    verdicts = stated(page, "audit_verdicts", "Verdict of the policy", _VERDICT)
    decisions = stated(page, "release_decisions", "Decisions", _DECISION)
    none = None if verdicts else note("No policy was given, so this report holds figures and no verdict.")
    return join([*cards, rest, none, verdicts, decisions])


def stated(page: Page, which: str, caption: str, columns: Sequence[str]) -> Html | None:
    """A table of statements as it is; None where the run has none."""
    frame = page.data.tables.get(which)
    if frame is None or not len(frame):
        return None
    rows = [[text_of(r.get(c)) for c in columns] for r in rows_of(frame.head(MOST_ROWS))]
    heads = [c.replace("_", " ") for c in columns]
    return listing(caption, heads, rows, len(columns), len(frame) - len(rows))


def warnings_section(page: Page) -> Html | None:
    """What the reader must know."""
    if not page.data.warnings:
        return None
    items = (tag("li", plain(w, 600)) for w in dict.fromkeys(page.data.warnings))
    return tag("ul", *items, class_="warnings")


def combinations(page: Page) -> Html:
    ok = usable(page)
    if not len(ok):
        return join([note("No combination has a figure."), _without_figure(page)])
    if len(ok) > MOST_ROWS:
        highest = ok["rapid"].astype(float).sort_values(ascending=False, kind="stable")
        ok = ok.loc[highest.index]
    level = {wording.confidence(r) for r in rows_of(ok[["confidence"]].drop_duplicates())}
    columns: dict[str, Callable[[dict[str, Any]], str]] = {
        f"at risk [{level.pop() if len(level) == 1 else ''}interval]": rate,
        "of": lambda r: count(r["n"]),
        "chance": lambda r: percent(r.get("baseline_rate")),
        "excess, points": lambda r: points(r.get("excess")),
        "p": lambda r: wording.p_value(r.get("permutation_p")),
        "claims right": claims,
    }
    if any(a.get("sensitive_levels") for a in page.data.settings.get("sensitive_attributes", ())):
        columns["harmful answers"] = lambda r: percent(r.get("sensitive_levels_rate"))
    for who in ("person", "household"):
        if any_of(ok, f"{who}_rapid"):
            names = (f"{who}_ci_low", f"{who}_ci_high", f"{who}_rapid")
            columns[f"by {who}"] = lambda r, names=names: rate(r, *names)  # type: ignore[misc]
    if any_of(ok, "rapid_within_strata"):
        columns["within strata"] = lambda r: percent(r.get("rapid_within_strata"))
    methods = ", ".join(dict.fromkeys(map(str, ok["ci_method"].dropna())))
    means = note(f"{wording.INTERVAL_MEANING} Method: {methods}. {wording.P_MEANING}")
    return join([page.table("Combinations with a figure", ok, columns), means, _near(ok), _without_figure(page)])


def _near(ok: pd.DataFrame) -> Html | None:
    """Where many predictions are at a threshold, no bootstrap is consistent: say so."""
    if not any_of(ok, "near_threshold"):
        return None
    share = pd.to_numeric(ok["near_threshold"]).max()
    if share < MUCH_NEAR_THRESHOLD:
        return None
    return note(
        f"For at least one attacker {percent(share)} of the predictions are within two standard deviations of a "
        "threshold. Where many of them share one value, no bootstrap is consistent: intervals may be too short."
    )


def _without_figure(page: Page) -> Html | None:
    rows = [
        [status, reason, str(len(names)), "; ".join(names[:8]) + (" …" if len(names) > 8 else "")]
        for status, reason, names in wording.not_computed(page.data.summary)
    ]
    if not rows:
        return None
    heads, left = ["status", "reason", "how many", "which"], max(0, len(rows) - MOST_ROWS)
    table = listing("Combinations without a figure", heads, rows[:MOST_ROWS], 4, left)
    return join([table, note("Undefined is neither low nor high: these are in no figure and no average.")])

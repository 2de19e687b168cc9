"""The tables of a run, protected for publication."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from .audits import WITHHELD, published_comparison, published_verdict
from .columns import COUNTS, FREE, HIGHS, LOWS, OF_HITS, OF_HOLDOUT, PARTS, PUBLISHED, SHARES
from .groups import fully_shown, published_classes, published_groups
from .rows import Kept, claims, clear, digits, frame_like, key_of, plain, rates
from .rule import Rule

REGRESSION = ("coefficient", "marginal_effect")


@dataclass(frozen=True)
class Published:
    """Protected tables.

    Attributes:
        tables: by name, pandas frames in the columns they came in.
        withheld: per table, how many rows have been left out or have figures withheld.
    """

    tables: dict[str, pd.DataFrame]
    withheld: dict[str, int] = field(default_factory=dict)


def protect(tables: Mapping[str, pd.DataFrame], rule: Rule) -> Published:
    """Protect the tables of a run for publication.

    Args:
        tables: result tables by name, as the store holds them; those not in `PUBLISHED` are left out, and so are
            figures in columns that are not listed there.
        rule: limits.

    Returns:
        The protected tables; the frames given are not altered.
    """
    done: dict[str, pd.DataFrame] = {}
    withheld: dict[str, int] = {}
    summary = plain(tables["risk_summary"])
    kept = {key_of(row): row for row in summary}
    protected = [_summary_row(row, kept, rule) for row in summary]
    secret = {key_of(row) for row, out in zip(summary, protected, strict=True) if _withheld(row, out)}
    done["risk_summary"] = frame_like(protected, tables["risk_summary"])
    withheld["risk_summary"] = len(secret)
    for name, work in (("risk_curve", _curve), ("risk_classes", published_classes), ("risk_subgroups", published_groups)):
        if name in tables:
            rows = plain(tables[name])
            out, withheld[name] = work(rows, kept, rule)
            done[name] = frame_like(out, tables[name])
    if "risk_attribution" in tables:
        open_ones = fully_shown(tables.get("risk_subgroups"), done.get("risk_subgroups"))
        rows = plain(tables["risk_attribution"])
        out = [_attribution_row(row, kept, rule) for row in rows if _may_tell(row, open_ones, secret)]
        withheld["risk_attribution"] = len(rows) - len(out)
        done["risk_attribution"] = frame_like(out, tables["risk_attribution"])
    if "audit_verdicts" in tables:
        rows = plain(tables["audit_verdicts"])
        out = [published_verdict(row, kept.values(), secret, rule) for row in rows]
        withheld["audit_verdicts"] = sum(o["reason"] == WITHHELD for o in out)
        done["audit_verdicts"] = frame_like(out, tables["audit_verdicts"])
    if "audit_comparison" in tables:
        out, withheld["audit_comparison"] = published_comparison(plain(tables["audit_comparison"]), rule)
        done["audit_comparison"] = frame_like(out, tables["audit_comparison"])
    for name, frame in done.items():
        frame[[c for c in frame.columns if c not in PUBLISHED[name]]] = None
    return Published(done, withheld)


def _summary_row(row: dict[str, Any], kept: Mapping[tuple[Any, ...], dict[str, Any]], rule: Rule) -> dict[str, Any]:
    out = dict(row)
    for name in COUNTS:
        if out.get(name) is not None:
            out[name] = None if rule.is_small(out[name]) else rule.count(out[name])
    n, hits = row.get("n"), row.get("n_at_risk")
    if n is None or hits is None:
        return out
    if rule.is_small(n):
        clear(out, ("n", *OF_HITS, *SHARES, *FREE, "n_confident_claims", "claims_correct"))
        n = None
    elif rule.hides(n, hits):
        clear(out, OF_HITS)
    holdout = kept.get(key_of(row | {"scored_on": "holdout"}))
    if holdout is not None and holdout.get("n") and (
        rule.is_small(holdout["n"]) or rule.hides(holdout["n"], holdout.get("n_at_risk") or 0)
    ):
        clear(out, OF_HOLDOUT)
    claims(out, rule)
    for part in PARTS:
        _part(out, *part, rule=rule)
    if n and rule.rounding:
        _round_summary(out, n, rule)
    return out


def _round_summary(out: dict[str, Any], n: int, rule: Rule) -> None:
    rates(out, n, out.get("n_at_risk"), rule)
    for name in SHARES:
        if out.get(name) is not None:
            out[name] = rule.share(out[name], n)
    for names, up in ((LOWS, False), (HIGHS, True)):
        for name in names:
            if out.get(name) is not None:
                out[name] = rule.bound(out[name], n, up)
    for name in FREE:
        out[name] = digits(out.get(name), 3)
    if out.get("excess") is not None:
        out["excess"] = None if out.get("baseline_rate") is None else out["rapid"] - out["baseline_rate"]


def _part(out: dict[str, Any], size: str, rate: str, *interval: str, rule: Rule) -> None:
    n, share = out.get(size), out.get(rate)
    if n is None or share is None:
        return
    if rule.is_small(n):
        clear(out, (size, rate, *interval))
        return
    out[size] = rule.count(n)
    if rule.hides(n, round(share * n)):
        clear(out, (rate, *interval))
        return
    out[rate] = rule.share(share, n)
    for end, up in zip(interval, (False, True), strict=False):
        out[end] = None if out.get(end) is None else rule.bound(out[end], n, up)


def _curve(rows: list[dict[str, Any]], kept: Kept, rule: Rule) -> tuple[list[dict[str, Any]], int]:
    done, withheld = [], 0
    for row in rows:
        out = dict(row)
        n, hits = kept.get(key_of(row), {}).get("n"), row.get("n_at_risk")
        if n is None or hits is None or rule.is_small(n) or rule.hides(n, hits):
            clear(out, ("n_at_risk", "rapid", "ci_low", "ci_high"))
            withheld += 1
        else:
            size: dict[str, Any] = dict(out)
            rates(size, n, hits, rule)
            out |= {k: size[k] for k in ("n_at_risk", "rapid", "ci_low", "ci_high")}
        if out.get("baseline_rate") is not None:
            out["baseline_rate"] = None if n is None or rule.is_small(n) else rule.share(out["baseline_rate"], n)
        done.append(out)
    return done, withheld


def _may_tell(row: dict[str, Any], fully_shown: set[tuple[Any, ...]], secret: set[tuple[Any, ...]]) -> bool:
    key = key_of(row)
    return key not in secret and (row["kind"] not in REGRESSION or key in fully_shown)


def _attribution_row(row: dict[str, Any], kept: Kept, rule: Rule) -> dict[str, Any]:
    out = dict(row)
    n = kept.get(key_of(row), {}).get("n")
    if not rule.rounding:
        return out
    for name in ("estimate", "std_error", "ci_low", "ci_high"):
        if out.get(name) is None:
            continue
        if row["kind"] in REGRESSION or not n:
            out[name] = digits(out[name], 2)
        else:
            out[name] = rule.share(out[name], n)
    return out


def _withheld(row: dict[str, Any], out: dict[str, Any]) -> bool:
    return row.get("n_at_risk") is not None and out.get("n_at_risk") is None

"""Verdicts of audits, and their comparison of registries."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .rows import clear, digits, grouped, key_of
from .rule import Rule

COMPARED = ("run_id", "qi_set", "sensitive_attribute", "measure", "attacker")
WITHHELD = "figures are withheld in this publication"


def published_verdict(
    row: dict[str, Any], summaries: Iterable[dict[str, Any]], secret: set[tuple[Any, ...]], rule: Rule
) -> dict[str, Any]:
    """A verdict; its figure and reason name exact rates, so both go where these are withheld or rounded."""
    out = dict(row)
    same = [s for s in summaries if (s["registry"], s["release_id"]) == (row["registry"], row["release_id"])
            and row.get("sensitive_attribute") in (None, s["sensitive_attribute"])]
    if any(key_of(s) in secret for s in same):
        out["figure"], out["reason"] = None, WITHHELD
    elif rule.rounding:
        n = max((s["n"] for s in same if s.get("n")), default=None)
        figure = out.get("figure")
        if figure is not None:
            is_share = n is not None and -1 <= figure <= 1
            out["figure"] = rule.share(figure, n) if n is not None and is_share else digits(figure, 2)
        if any(character.isdigit() for character in out.get("reason") or ""):
            out["reason"] = None
    return out


def published_comparison(rows: list[dict[str, Any]], rule: Rule) -> tuple[list[dict[str, Any]], int]:
    """Rows of audit_comparison; where one registry's rate is withheld, differences would tell it, so there are none."""
    done: list[dict[str, Any]] = []
    withheld = 0
    for same in grouped(rows, lambda row: tuple(row.get(k) for k in COMPARED)).values():
        hidden = [r["n"] is not None and (rule.is_small(r["n"]) or r["rapid"] is not None and rule.hides(
            r["n"], round(r["rapid"] * r["n"]))) for r in same]  # fmt: skip
        for row, is_hidden in zip(same, hidden, strict=True):
            out = dict(row)
            if is_hidden:
                clear(out, ("rapid", "ci_low", "ci_high", "standardised", "standardised_low", "standardised_high"))
            if any(hidden):
                clear(out, [name for name in out if "difference" in name])
            n = row["n"]
            if n is not None and rule.rounding and not rule.is_small(n):
                for name in [c for c in out if c.startswith(("rapid", "ci_", "standardised", "difference"))]:
                    if out[name] is not None:
                        up = name.endswith("_high")
                        exact = up or name.endswith("_low")
                        out[name] = rule.bound(out[name], n, up) if exact else rule.share(out[name], n)
            out["n"] = None if n is None or rule.is_small(n) else rule.count(n)
            withheld += is_hidden
            done.append(out)
    return done, withheld

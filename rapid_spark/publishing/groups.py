"""Classes and groups of people: which of them may be told, so that those withheld do not follow from a total."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from .rows import Kept, claims, digits, grouped, key_of, plain, rates
from .rule import Rule


def published_classes(rows: list[dict[str, Any]], kept: Kept, rule: Rule) -> tuple[list[dict[str, Any]], int]:
    done: list[dict[str, Any]] = []
    for key, of_combination in grouped(rows, key_of).items():
        total = kept.get(key)
        shown = _shown(of_combination, [of_combination], [total], rule)
        n_all = sum(row["n"] or 0 for row in of_combination)
        for row in shown:
            out = dict(row)
            rates(out, row["n"], row["n_at_risk"], rule)
            claims(out, rule)
            if rule.rounding:
                out["prevalence"] = rule.share(row["prevalence"], n_all) if row.get("prevalence") is not None else None
                out["mean_true_prob"] = digits(row.get("mean_true_prob"), 3)
            done.append(out)
    return done, len(rows) - len(done)


def published_groups(rows: list[dict[str, Any]], kept: Kept, rule: Rule) -> tuple[list[dict[str, Any]], int]:
    done: list[dict[str, Any]] = []
    for key, of_combination in grouped(rows, key_of).items():
        total = kept.get(key)
        families = grouped(of_combination, lambda row: tuple(row["columns"]))
        singles: dict[tuple[str, str], dict[str, Any]] = {}
        for columns, family in sorted(families.items(), key=lambda item: len(item[0])):
            if len(columns) == 1:
                shown = _shown(family, [family], [total], rule)
                singles |= {(columns[0], row["level"][0]): row for row in shown}
            else:
                lines = _lines(columns, family, singles)
                inside = [r for r in family if all(place in singles for place in zip(columns, r["level"], strict=True))]
                shown = _shown(inside, list(lines.values()), [singles[place] for place in lines], rule)
            for row in shown:
                out = dict(row)
                rates(out, row["n"], row["n_at_risk"], rule)
                done.append(out)
    return done, len(rows) - len(done)


def _lines(columns: Iterable[str], family: list[dict[str, Any]], singles: Mapping[tuple[str, str], Any]) -> dict[Any, Any]:
    """The cells of each level of either column that is itself told: they add up to it."""
    lines: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in family:
        for place in zip(columns, row["level"], strict=True):
            if place in singles:
                lines.setdefault(place, []).append(row)
    return lines


def _shown(
    rows: list[dict[str, Any]], lines: list[list[dict[str, Any]]], totals: Iterable[dict[str, Any] | None], rule: Rule
) -> list[dict[str, Any]]:
    """The rows that may be told: not withheld themselves, and not needed so that those withheld stay open.

    Args:
        rows: candidates; those the store suppressed have null counts.
        lines: rows that add up to a total.
        totals: its row, per line.
        rule: limits.
    """
    hidden = {id(row) for row in rows if row["n"] is None or row["n_at_risk"] is None
              or rule.is_small(row["n"]) or row["n"] == 0 or rule.hides(row["n"], row["n_at_risk"])}
    candidates = {id(row) for row in rows}
    known = [(line, t) for line, t in zip(lines, totals, strict=True) if t and None not in (t["n"], t["n_at_risk"])]
    changed = True
    while changed:
        changed = False
        for line, total in known:
            told = [row for row in line if id(row) in candidates and id(row) not in hidden]
            n_hidden = len(line) - len(told)
            n = total["n"] - sum(row["n"] for row in told)
            hits = total["n_at_risk"] - sum(row["n_at_risk"] for row in told)
            if n_hidden and told and (n_hidden < 2 or hits < rule.limit or n - hits < rule.limit):
                hidden.add(id(min(told, key=_cheapest)))
                changed = True
    return [row for row in rows if id(row) not in hidden]


def _cheapest(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """What to withhold besides: the smallest, but none without hits, which opens nothing."""
    return row["n_at_risk"] == 0, row["n"], str(row.get("level") or row.get("class_label"))


def fully_shown(before: pd.DataFrame | None, after: pd.DataFrame | None) -> set[tuple[Any, ...]]:
    """Combinations of which every group that the store shows is published: their regression tells nothing more."""
    if before is None or after is None:
        return set()
    counted: dict[tuple[Any, ...], int] = {}
    for row in plain(before):
        counted[key_of(row)] = counted.get(key_of(row), 0) + (not row["suppressed"])
    for row in plain(after):
        counted[key_of(row)] -= 1
    return {key for key, left in counted.items() if left == 0}

"""Sections: which people and which columns carry the risk, and people who are not in the data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .. import plots, wording
from ..suite import rows_of
from ..wording import count, interval, name, number, percent, plain, points
from .cells import LONGEST_CELL, Columns, any_of, rate
from .markup import Html, fold, join, listing, note
from .page import MOST_ROWS, Page, behind, usable

MOST_SUBGROUP_FIGURES = 6
_RELATIONS: Columns = {
    "column": lambda r: plain(r["quasi_identifier"], LONGEST_CELL), "level": lambda r: plain(r["level"], LONGEST_CELL),
    "answer": lambda r: plain(r["class_label"], LONGEST_CELL), "known": lambda r: "yes" if _true(r["known"]) else "",
    "people": lambda r: count(r["n"]), "at risk": lambda r: percent(r["rapid"]),
    "share of all at risk": lambda r: percent(r["share_of_flags"]),
}
_CONTROL = {
    "holdout_rate": "not in the data", "population_reference": "population reference",
    "copy_ceiling": "copy of the original",
}


def drivers(page: Page) -> Html | None:
    data, parts = page.data, []
    kinds = data.inputs.get("columns", {})
    for f in page.told:
        drawings = [plots.draw_attribution(data, f), plots.draw_refits(data, f)]
        for column in plots.subgroup_columns(data, f)[:MOST_SUBGROUP_FIGURES]:
            drawings.append(plots.draw_subgroups(data, f, column, kinds.get(column) == "numeric"))
        parts.append(page.figures(drawings))
    for which, (caption, columns, texts) in _DRIVERS.items():
        rows = behind(page, plots.table(data, which))
        if len(rows):
            parts.append(fold(f"{caption}: all figures", page.table(caption, rows, columns, texts)))
    parts += [_relations(page), _without_known(page)]
    if not any(parts):
        return None
    return join([*parts, note(
        "Withheld: fewer records than the smallest cell shown, or so few (or all but a few) at risk that the "
        f"figure could tell of a person. Bars are intervals. {wording.INTERVAL_MEANING}"
    )])


def _relations(page: Page) -> Html | None:
    """The (level, class) pairs that carry most records at risk."""
    rows = behind(page, plots.table(page.data, "relations"))
    if not len(rows):
        return None
    caption = "Answers that go with a level and carry most of the people at risk"
    return fold(f"{caption}: all figures", page.table(caption, rows, _RELATIONS, 3))


def _without_known(page: Page) -> Html | None:
    """Both rates, where relations that everybody knows were left out of one."""
    ok = usable(page)
    if not any_of(ok, "n_without_known"):
        return None
    given = (page.data.settings.get("drivers") or {}).get("exclude_relations") or ()
    table = page.table("With and without what everybody knows", ok[ok["n_without_known"].notna()], {
        "at risk": lambda r: percent(r["rapid"]), "of": lambda r: count(r["n"]),
        "without": lambda r: percent(r["rapid_without_known"]), "of these": lambda r: count(r["n_without_known"]),
    })
    listed = f" ({'; '.join(plain(text, 120) for text in given)})" if given else ""
    return join([table, note(f"Without: people in none of the relations that everybody knows{listed}.")])


def joint(page: Page) -> Html | None:
    """Section: records at risk in any, all and how many of several outcomes."""
    rows = page.data.tables.get("risk_joint")
    if rows is None or not len(rows):
        return None
    order = {"everything": 0, "replicates": 1, "attackers": 2, "attributes": 3}
    rows = rows.iloc[rows["across"].map(order).fillna(9).argsort(kind="stable")]
    several = rows["qi_set"].nunique() > 1
    columns: Columns = {
        "taken together": lambda r: f"{plain(r['across'])} ({count(r['combinations'])})", "with": _held,
        **({"known": lambda r: plain(r["qi_set"], LONGEST_CELL)} if several else {}),
        "at risk in any": lambda r: percent(r["share_any"]), "in all": lambda r: percent(r["share_all"]),
        "in how many, mean": lambda r: f"{float(r['mean_count']):.2f}" if number(r["mean_count"]) is not None else "",
        "of": lambda r: count(r["n"]),
    }
    shown = [[text(row) for text in columns.values()] for row in rows_of(rows.head(MOST_ROWS))]
    caption, more = "The same people under several attacks", len(rows) - len(shown)
    table = listing(caption, list(columns), shown, 3 if several else 2, more)
    return join([table, note(
        "In any: people at risk in at least one of the outcomes taken together, so what an attacker who tries them all "
        "can reach. In all: people at risk in every one. The attacker who learns from all copies together is no copy of "
        "its own here. Of several measures the first counts."
    )])


def _held(row: Mapping[str, Any]) -> str:
    """What is held fixed."""
    parts = [name(row[c]) for c in ("sensitive_attribute", "attacker") if isinstance(row.get(c), str)]
    copy = number(row.get("replicate"))
    return ", ".join([*parts, *([wording.replicate(int(copy))] if copy is not None else [])]) or "all"


def _group(row: Mapping[str, Any]) -> str:
    pairs = zip(row["columns"], row["level"], strict=True)
    return plain("; ".join(f"{column} = {level}" for column, level in pairs), LONGEST_CELL)


def _true(value: Any) -> bool:
    return value is not None and value == value and bool(value)


def _estimate(row: Mapping[str, Any]) -> str:
    estimate, low, high = (number(row.get(c)) for c in ("estimate", "ci_low", "ci_high"))
    kind = row["kind"]
    if estimate is None:
        return "not determined"
    if kind == "coefficient":
        bounds = f" [{low:+.3f}, {high:+.3f}]" if low is not None and high is not None else ""
        return f"{estimate:+.3f}{bounds}"
    if kind == "marginal_effect":
        return f"{points(estimate)} points {interval(low, high, signed=True)}".strip()
    return rate({"rapid": estimate, "ci_low": low, "ci_high": high})


def _unless_withheld(shown: Callable[[dict[str, Any]], str]) -> Callable[[dict[str, Any]], str]:
    return lambda row: "withheld" if _true(row.get("suppressed")) else shown(row)


_GROUPS: Columns = {
    "group": _group, "people": _unless_withheld(lambda r: count(r["n"])),
    "at risk [interval]": _unless_withheld(rate),
}
_DRIVERS: dict[str, tuple[str, Columns, int]] = {
    "subgroups": ("By level of the quasi-identifiers", _GROUPS, 1),
    "patterns": ("Patterns that carry most risk", _GROUPS, 1),
    "attribution": ("Attribution", {
        "term": lambda r: plain(r["term"], LONGEST_CELL),
        "kind": lambda r: plain(r["kind"]).replace("_", " "), "estimate [interval]": _estimate,
    }, 2),
}


def holdout(page: Page) -> Html | None:
    ok = usable(page)
    named = [c for c in _CONTROL if any_of(ok, c)]
    if not named:
        return None
    rows = ok[ok[named].notna().any(axis=1)]
    columns: dict[str, Callable[[dict[str, Any]], str]] = {"in the data": lambda r: percent(r["rapid"])}
    for c in named:
        columns[_CONTROL[c]] = lambda r, c=c: percent(r.get(c))  # type: ignore[misc]
    if "holdout_rate" in named:
        columns["difference, points [interval]"] = _difference
    if any_of(rows, "holdout_difference_own"):
        columns["difference, own baselines"] = lambda r: points(r.get("holdout_difference_own"))
    drawn = page.figures(plots.draw_holdout(page.data, f) for f in page.told)
    return join([drawn, page.table("People in the data and not in it", rows, columns), note(
        "Not in the data: people who were not used to make the release, judged by the original's baselines. "
        "Population reference: an attacker who learns from other people of the original. Copy of the original: "
        "one who learns from the original itself. The difference is the effect of being in the data only if both "
        f"are a random split without shared persons or households. Intervals: {wording.INTERVAL_MEANING}"
    )])


def _difference(row: Mapping[str, Any]) -> str:
    bounds = interval(row.get("holdout_difference_low"), row.get("holdout_difference_high"), signed=True)
    return f"{points(row.get('holdout_difference'))} {bounds}".strip()

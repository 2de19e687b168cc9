"""The HTML report of an audit: what is cleared, what is not and why, registries compared, releases over time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from rapid_spark import report, wording
from rapid_spark.policy import OVERALL, VERDICTS, as_text
from rapid_spark.policy.figures import asked, decisive, has_figure, of_people
from rapid_spark.report import Html, Page, ReportData, fold, join, listing, note, tag
from rapid_spark.suite import rows_of
from rapid_spark.wording import count, interval, name, number, percent, plain, points

from . import figures
from .comparison import OTHERS

TABLES = ("audit_verdicts", "audit_comparison")
MOST_ROWS = 250


def is_audit(data: ReportData) -> bool:
    """Whether a run is an audit: it judged several releases."""
    verdicts = data.tables.get("audit_verdicts")
    return verdicts is not None and len(verdicts[["registry", "release_id"]].drop_duplicates()) > 1


def render(data: ReportData) -> str:
    """The report of an audit as one HTML document."""
    return report.render(data, SECTIONS, f"Audit: {_counted(data)}")


def _counted(data: ReportData) -> str:
    overall = _overall(data)
    blocked = int((overall["verdict"] != "pass").sum())
    many = f"{overall['registry'].nunique()} registries, {len(overall)} releases"
    return f"{many}, {f'{blocked} not cleared' if blocked else 'all cleared'}"


def _verdicts(data: ReportData) -> pd.DataFrame:
    return data.tables["audit_verdicts"]


def _overall(data: ReportData) -> pd.DataFrame:
    verdicts = _verdicts(data)
    return verdicts[verdicts["rule"] == OVERALL].sort_values(["registry", "release_id"], kind="stable")


def _spoken(verdict: Any) -> str:
    return str(verdict).replace("_", " ")


def _first(page: Page) -> Html:
    overall = _overall(page.data)
    sentences = []
    for verdict in reversed(VERDICTS):
        mine = overall[overall["verdict"] == verdict]
        if len(mine):
            listed = ", ".join(f"{r['registry']} {r['release_id']}" for r in rows_of(mine.head(12)))
            more = f" and {len(mine) - 12} more" if len(mine) > 12 else ""
            sentences.append(tag("p", tag("strong", f"{_spoken(verdict)}: {len(mine)}"), f" ({listed}{more})"))
    context = overall.iloc[0]
    to_whom = [f"for {context['audience']}"] if context.get("audience") else []
    to_whom += [f"purpose: {context['purpose']}"] if context.get("purpose") else []
    blocked = overall[overall["verdict"] != "pass"]
    kind = "card" if len(blocked) else "card no_better_than_chance"
    figure = tag("p", f"{len(overall) - len(blocked)} of {len(overall)} releases are cleared", class_="figure")
    card = tag("article", figure, tag("p", "; ".join(to_whom)) if to_whom else None, *sentences, class_=kind)
    rows = [[r["registry"], r["release_id"], _spoken(r["verdict"]), plain(r["reason"], 200)] for r in rows_of(overall)]
    table = listing("Verdict on each release", ["registry", "release", "verdict", "reason"], rows[:MOST_ROWS], 4,
                    len(rows) - MOST_ROWS)  # fmt: skip
    meaning = note(
        "Pass: every rule of the policy passes. Review: a person has to look. Not evaluated: something that the policy "
        "asks for is not known, which is never a pass. Fail: a limit is exceeded. A policy's pass is no proof of safety."
    )
    return join([card, table, meaning])


def _open_rules(page: Page) -> Html | None:
    verdicts = _verdicts(page.data)
    mine = verdicts[(verdicts["rule"] != OVERALL) & (verdicts["verdict"] != "pass")]
    if not len(mine):
        return None
    return _rules("Rules that do not pass", mine)


def _all_rules(page: Page) -> Html:
    verdicts = _verdicts(page.data)
    return fold("Every rule of every release", _rules("Rules", verdicts[verdicts["rule"] != OVERALL]))


def _rules(caption: str, frame: pd.DataFrame) -> Html:
    rows = [
        [r["registry"], r["release_id"], plain(r["sensitive_attribute"] or ""), r["rule"], _spoken(r["verdict"]),
         plain(r["reason"], 300), as_text(r["rule"], r["figure"]), as_text(r["rule"], r["limit"])]
        for r in rows_of(frame.head(MOST_ROWS))
    ]  # fmt: skip
    heads = ["registry", "release", "attribute", "rule", "verdict", "reason", "figure", "limit"]
    return listing(caption, heads, rows, 6, len(frame) - len(rows))


def _comparison(page: Page) -> Html | None:
    frame = page.data.tables.get("audit_comparison")
    if frame is None or not len(frame):
        return None
    drawn = page.figures(figures.draw_comparison(part) for _, part in frame.groupby("sensitive_attribute", sort=False))
    ordered = frame.sort_values(["sensitive_attribute", "qi_set", "measure", "attacker", "registry"], kind="stable")
    several = [c for c in ("qi_set", "measure") if frame.groupby("sensitive_attribute")[c].nunique().max() > 1]
    several += ["attacker"] + (["note"] if frame["note"].notna().any() else [])
    heads = ["registry", "release", "attribute", *(c.replace("_", " ") for c in several), "records",
             "at risk [interval]", "standardised [interval]", "difference, points [interval]",
             "standardised difference, points [interval]", "coverage"]  # fmt: skip
    rows = [
        [r["registry"], r["release_id"], plain(r["sensitive_attribute"]), *(plain(r[c] or "", 200) for c in several),
         count(r["n"]), _rate(r, "rapid", "ci"), _rate(r, "standardised", "standardised"),
         _change(r, "difference"), _change(r, "standardised_difference"), percent(r["coverage"])]
        for r in rows_of(ordered.head(MOST_ROWS))
    ]  # fmt: skip
    table = listing("Latest release of each registry", heads, rows, 3 + len(several), len(ordered) - len(rows))
    compared = sorted({f"the {c}" if c == OTHERS else str(c) for c in frame["compared_with"].dropna()})
    said = note(
        "The same attackers, thresholds and attributes everywhere. Standardised: the rate that the registry would have "
        "if its people were distributed over the quasi-identifiers as in the mean of all registries compared. Coverage: "
        "how much of that distribution lies in strata which every registry fills. Differences are to "
        f"{' or '.join(compared) or 'the mean of the others'}. One in twenty such intervals misses a difference of zero "
        f"by chance. Prevalences differ, and a class's threshold with them. {wording.INTERVAL_MEANING}"
    )
    return join([drawn, table, said])


def _rate(row: Mapping[str, Any], column: str, ends: str) -> str:
    return f"{percent(row[column])} {interval(row[f'{ends}_low'], row[f'{ends}_high'])}".strip()


def _change(row: Mapping[str, Any], column: str) -> str:
    bounds = interval(row[f"{column}_low"], row[f"{column}_high"], signed=True)
    return f"{points(row[column])} {bounds}".strip()


def _over_time(page: Page) -> Html | None:
    rates = _rates(page.data)
    if not len(rates):
        return None
    parts = rates.groupby("sensitive_attribute", sort=False)
    drawn = page.figures(figures.draw_releases(part, str(attribute)) for attribute, part in parts)
    rows = [
        [r["registry"], r["release_id"], plain(r["sensitive_attribute"]), _spoken(r["verdict"]), percent(r["rate"])]
        for r in rows_of(rates.head(MOST_ROWS))
    ]
    heads = ["registry", "release", "attribute", "verdict on the release", "at risk"]
    table = listing("Figure to decide by", heads, rows, 4, len(rates) - len(rows))
    return join([drawn, fold("Figures of each release", table)])


def _rates(data: ReportData) -> pd.DataFrame:
    """The figure to decide by, of each release and attribute: the largest over sets and measures."""
    verdict = {(r["registry"], r["release_id"]): r["verdict"] for r in rows_of(_overall(data))}
    found = []
    for registry, of_registry in of_people(data.summary).groupby("registry", sort=True):
        dated = of_registry.assign(release_date=pd.to_datetime(of_registry["release_date"]))
        order = dated.groupby("release_id", sort=True)["release_date"].min().sort_values(kind="stable", na_position="last")
        for place, release in enumerate(order.index):
            mine = of_registry[of_registry["release_id"] == release]
            best: dict[str, float] = {}
            for (_, attribute, _), rate in decisive(mine).items():
                best[attribute] = max(rate, best.get(attribute, 0.0))
            found += [
                {"registry": registry, "release_id": release, "place": place, "sensitive_attribute": a,
                 "rate": best.get(a), "verdict": verdict.get((registry, release), "not_evaluated")}
                for a in mine["sensitive_attribute"].drop_duplicates()
            ]  # fmt: skip
    columns = ["registry", "release_id", "place", "sensitive_attribute", "rate", "verdict"]
    return pd.DataFrame(found, columns=columns).sort_values(["sensitive_attribute", "registry", "place"], kind="stable")


def _tested(page: Page) -> Html:
    """What was tested and what was not, release by release."""
    rows = []
    for (registry, release), part in of_people(page.data.summary).groupby(["registry", "release_id"], sort=True):
        wanted = asked(rows_of(part))
        without = [r for r in wanted if not has_figure(r)]
        held = any(number(r.get("holdout_difference")) is not None for r in wanted)
        reasons = "; ".join(dict.fromkeys(plain(r["reason"] or r["status"], 120) for r in without))
        rows.append([
            registry, release, ", ".join(dict.fromkeys(name(r["attacker"]) for r in wanted)),
            ", ".join(dict.fromkeys(name(r["sensitive_attribute"]) for r in wanted)), "yes" if held else "no",
            reasons or "nothing", f"{len(wanted) - len(without)} of {len(wanted)}",
        ])  # fmt: skip
    heads = ["registry", "release", "attackers", "attributes", "holdout", "without a figure", "combinations with one"]
    table = listing("What was tested", heads, rows[:MOST_ROWS], 6, len(rows) - MOST_ROWS)
    return join([table, tag("ul", *(tag("li", text) for text in wording.LIMITS))])


def _evidence(page: Page) -> Html:
    data, summary = page.data, page.data.summary
    keep = summary.drop_duplicates(["registry", "release_id", "replicate"])
    rows = [
        [r["registry"], r["release_id"], wording.replicate(r["replicate"]), plain(r["release_digest"]),
         plain(r["original_digest"]), plain(r["settings_digest"]), count(r["n_release"])]
        for r in rows_of(keep.head(MOST_ROWS))
    ]  # fmt: skip
    heads = ["registry", "release", "copy", "digest of the release", "of the original", "of the settings", "rows"]
    digests = listing("What was judged", heads, rows, 6, len(keep) - len(rows))
    versions = [[k, v] for k, v in data.versions.items()]
    settings = [[path, plain(value, 400)] for path, value in report.leaves(data.settings)]
    return join([
        fold("Digests", digests),
        fold("Settings of the audit", listing("Settings", ["setting", "value"], settings[:MOST_ROWS], 2)),
        fold("Versions", listing("Versions", ["what", "version"], versions, 2)),
    ])


SECTIONS: tuple[tuple[str, str, report.Section], ...] = (
    ("verdict", "Verdict", _first),
    ("rules", "What is not cleared, and why", _open_rules),
    ("compared", "Registries compared", _comparison),
    ("time", "Releases over time", _over_time),
    ("warnings", "What the reader must know", report.warnings_section),
    ("tested", "What was tested, and what was not", _tested),
    ("policy", "The policy, rule by rule", _all_rules),
    ("evidence", "Evidence", _evidence),
)

"""Singling out, linkability and inference: the three criteria of the European guidance (Article 29 Working Party, Opinion
05/2014 on anonymisation techniques), each with the evidence at hand or `not tested`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from ..config import ConfigError, suggest
from ..store import Store
from ..strictjson import strict
from ..tables import quoted

CRITERIA: Mapping[str, tuple[str, tuple[str, ...]]] = {
    # criterion: (question, figures that answer it)
    "singling_out": (
        "Can a person's record be isolated?",
        ("singling_out", "replicated_uniques", "population_uniqueness", "k_anonymity"),
    ),
    "linkability": (
        "Can records of one person be linked, or a person be told to be in the data?",
        ("linkability", "re_identification", "membership_records", "dcr_holdout_ratio", "identical_match_share"),
    ),
    "inference": (
        "Can an attribute be inferred from what is known of a person?",
        ("rapid", "rapid_excess", "attribute_linkage", "dcap", "tcap", "disco", "weap", "l_diversity", "t_closeness"),
    ),
}


def page(measures: Sequence[Mapping[str, Any]], attacks: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One row per criterion and figure, in the order of CRITERIA; a figure that nobody computed is `not tested`.

    Args:
        measures: rows of `disclosure_measures`.
        attacks: rows of `risk_attacks`.

    Returns:
        Rows of criterion, question, evidence (name), about (attribute, set, attacker), value, low, high, compared_with,
        reference, verdict ('leak', 'no_leak_found', 'figure', 'not_tested') and reason.
    """
    rows: list[dict[str, Any]] = []
    for criterion, (question, names) in CRITERIA.items():
        for name in names:
            found = [_of_attack(a) for a in attacks if a["attack"] == name]
            found += [_of_measure(m) for m in measures if m["name"] == name]
            found = found or [{"value": None, "verdict": "not_tested", "reason": "nothing of this kind was run"}]
            rows += [{"criterion": criterion, "question": question, "evidence": name, **row} for row in found]
    return rows


def read(store: Store, registry: str, release_id: str) -> list[dict[str, Any]]:
    """The page of one release from its store: of every measure and attack the newest finished run's figures.

    RAPID is among the measures of `disclosure`; where that was not run, it is taken from the newest evaluation.
    """
    which = f"registry = {quoted(registry)} and release_id = {quoted(release_id)}"
    there = set(store.names())
    found: dict[str, list[dict[str, Any]]] = {"disclosure_measures": [], "risk_attacks": [], "risk_summary": []}
    kinds = {"disclosure_measures": "name", "risk_attacks": "attack", "risk_summary": "scored_on"}
    for table, kind in kinds.items():
        if table not in there:
            continue
        rows = store.query(
            f"select * from {table} where {which} and run_id in (select run_id from runs where state = 'finished')"
        ).toPandas()
        if len(rows):
            newest = rows.groupby(kind)["evaluated_at"].transform("max")
            last = rows[rows["evaluated_at"] == newest].groupby(kind)["run_id"].transform("max")
            rows = rows[rows["run_id"] == last.reindex(rows.index)]
            found[table] = [{str(k): strict(v) for k, v in row.items()} for row in rows.to_dict("records")]
    measures = found["disclosure_measures"]
    if not any(m["name"] == "rapid" for m in measures):
        measures += [
            {**row, "name": "rapid", "value": row["rapid"], "definition": "share of original records at risk"}
            for row in found["risk_summary"] if row["scored_on"] == "original" and row["status"] == "ok"
        ]  # fmt: skip
    return page(measures, found["risk_attacks"])


def html(rows: Sequence[Mapping[str, Any]]) -> str:
    """The page as a section of HTML: one table per criterion; every value escaped, nothing loaded from elsewhere."""
    words = {"leak": "leak found", "no_leak_found": "no leak found", "not_tested": "not tested", "figure": "figure"}
    found = conclusions(rows)
    parts = ['<section id="criteria"><h2>Singling out, linkability, inference</h2>',
             "<p>The three criteria of the European guidance on anonymisation (Opinion 05/2014). An attack that found "
             "nothing proves nothing; what was not tested is said.</p>"]  # fmt: skip
    for criterion, (question, _) in CRITERIA.items():
        title = criterion.replace("_", " ").capitalize()
        conclusion = "figures, no attack" if found[criterion] == "figure" else words[found[criterion]]
        parts.append(f"<h3>{title}: {conclusion}</h3><p>{escape(question)}</p>")
        parts.append("<table><thead><tr><th>Evidence</th><th>About</th><th>Figure</th><th>95 % interval</th>"
                     "<th>Compared with</th><th>Verdict</th><th>Note</th></tr></thead><tbody>")  # fmt: skip
        for row in (r for r in rows if r["criterion"] == criterion):
            interval = "" if row.get("low") is None else f"{row['low']:.3f} to {row['high']:.3f}"
            against = row.get("compared_with")
            against = f"{against} {row['reference']:.3f}" if against else ""
            value = "" if row["value"] is None else f"{row['value']:.4g}"
            cells = (row["evidence"].replace("_", " "), row.get("about") or "", value, interval, against,
                     words.get(row["verdict"], row["verdict"]), row.get("reason") or "")  # fmt: skip
            parts.append("<tr>" + "".join(f"<td>{escape(str(c))}</td>" for c in cells) + "</tr>")
        parts.append("</tbody></table>")
    return "\n".join([*parts, "</section>"])


STYLE = """body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color:#1f2328}
table{border-collapse:collapse;width:100%;font-size:13px;display:block;overflow-x:auto}
th,td{text-align:left;vertical-align:top;padding:.35rem .6rem;border-bottom:1px solid #d0d7de}th{background:#f6f8fa}
@media print{body{margin:0}table{display:table}}"""


def document(rows: Sequence[Mapping[str, Any]], about: str) -> str:
    """The page as one self-contained HTML document."""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(about)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head>'
        f"<body><h1>{escape(about)}</h1>{html(rows)}"
        "<p>Computed from the original without noise: for the custodian only.</p></body></html>\n"
    )


def conclusions(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Per criterion 'leak' where an attack found one, 'no_leak_found' where one was run, 'figure', or 'not_tested'."""
    result = {}
    for criterion in CRITERIA:
        verdicts = {row["verdict"] for row in rows if row["criterion"] == criterion}
        result[criterion] = next((v for v in ("leak", "no_leak_found", "figure") if v in verdicts), "not_tested")
    return result


def check_limits(limits: Mapping[str, float]) -> None:
    """Refuse limits of something that no criterion knows.

    Raises:
        ConfigError: with every fault found.
    """
    known = [name for _, names in CRITERIA.values() for name in names]
    faults = [f"limit: no figure {n!r}.{suggest(n, known)} Known: {', '.join(known)}" for n in limits if n not in known]
    if faults:
        raise ConfigError("\n".join(faults))


def judge(rows: Sequence[Mapping[str, Any]], limits: Mapping[str, float]) -> list[dict[str, Any]]:
    """Hold figures against limits, by name of the evidence; what was not tested is `not_evaluated`, never a pass.

    Args:
        rows: of `page`.
        limits: largest allowed value by evidence; for k_anonymity, l_diversity the smallest.

    Returns:
        Rows of rule, limit, figure (the worst), verdict ('pass', 'fail', 'not_evaluated') and reason.

    Raises:
        ConfigError: a limit of something that no criterion knows.
    """
    check_limits(limits)
    result = []
    for name, limit in limits.items():
        figures = [float(r["value"]) for r in rows if r["evidence"] == name and r["value"] is not None]
        least = name in ("k_anonymity", "l_diversity")
        if not figures:
            reasons = [str(r["reason"]) for r in rows if r["evidence"] == name]
            result.append({"rule": name, "limit": limit, "figure": None, "verdict": "not_evaluated", "reason": reasons[0]})
            continue
        worst = min(figures) if least else max(figures)
        kept = worst >= limit if least else worst <= limit
        words = f"{worst:.4g} against {'at least' if least else 'at most'} {limit:g}"
        verdict = "pass" if kept else "fail"
        result.append({"rule": name, "limit": limit, "figure": worst, "verdict": verdict, "reason": words})
    return result


def _of_attack(a: Mapping[str, Any]) -> dict[str, Any]:
    control = a.get("control")
    reference = control if control is not None else a.get("chance")
    return {
        "about": _about(a), "value": a.get("accuracy"), "low": a.get("accuracy_low"), "high": a.get("accuracy_high"),
        "compared_with": None if reference is None else "holdout" if control is not None else "chance",
        "reference": reference, "verdict": a.get("verdict") or "not_tested", "reason": a.get("reason"),
    }  # fmt: skip


def _of_measure(m: Mapping[str, Any]) -> dict[str, Any]:
    ok = m["status"] == "ok"
    return {
        "about": _about(m), "value": m["value"], "low": None, "high": None, "compared_with": None, "reference": None,
        "verdict": "figure" if ok else "not_tested", "reason": m["definition"] if ok else m["reason"],
    }  # fmt: skip


def _about(row: Mapping[str, Any]) -> str:
    parts = (row.get("sensitive_attribute"), row.get("qi_set"), row.get("attacker"))
    return ", ".join(str(p) for p in parts if p)

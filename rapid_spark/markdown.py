"""A run as Markdown, for a file in a records system: findings, rates, verdicts, evidence. Every value is escaped."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from .evidence import digests, tested
from .suite import rows_of
from .wording import (
    INTERVAL_MEANING,
    LIMITS,
    count,
    findings,
    interval,
    name,
    not_computed,
    number,
    percent,
    plain,
    points,
    replicate,
)

MOST_ROWS = 400
LONGEST = 300
SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#~!&$])")


def safe(value: Any) -> str:
    """A value as text that Markdown does not read as markup, on one line."""
    text = plain("" if value is None else value, LONGEST)
    text = " ".join(text.split())
    return SPECIAL.sub(r"\\\1", text)


def table(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Rows as a pipe table; nothing where there are none. Rows beyond MOST_ROWS are counted."""
    listed = [list(row) for row in rows]
    if not listed:
        return ""
    lines = [f"| {' | '.join(map(safe, heads))} |", f"|{' --- |' * len(heads)}"]
    lines += [f"| {' | '.join(safe(cell) for cell in row)} |" for row in listed[:MOST_ROWS]]
    more = f"\n\n{len(listed) - MOST_ROWS:,} more rows are in the store." if len(listed) > MOST_ROWS else ""
    return "\n".join(lines) + more


def render(data: Any) -> str:
    """The document.

    Args:
        data: the report's data, of one evaluation or of an audit.
    """
    summary = data.tables["risk_summary"]
    about = sorted({f"{r['release_id']} of {r['registry']}" for r in rows_of(summary)}) if len(summary) else []
    title = f"# RAPID: release {safe(', '.join(about[:6]))}{f' and {len(about) - 6} more' if len(about) > 6 else ''}"
    when = f", {safe(pd.Timestamp(data.evaluated_at).strftime('%Y-%m-%d %H:%M'))} UTC" if _given(data.evaluated_at) else ""
    parts = [title, f"Run {safe(data.run_id)}{f' ({safe(data.command)})' if data.command else ''}{when}."]
    for heading, body in _sections(data, summary):
        if body:
            parts += [f"## {heading}", body]
    return "\n\n".join(parts) + "\n"


def _sections(data: Any, summary: pd.DataFrame) -> Iterable[tuple[str, str]]:
    yield "Verdicts", _verdicts(data)
    yield "Decisions", _decisions(data)
    yield "Findings", _findings(data, summary)
    yield "What the reader must know", "\n".join(f"- {safe(w)}" for w in data.warnings)
    yield "Rates", _rates(summary)
    yield "Not computed", "\n".join(
        f"- {safe(status)}: {safe('; '.join(names))} ({safe(reason)})" for status, reason, names in not_computed(summary)
    )
    yield "What was tested, and what was not", table(
        ["what", "state", "how, or what is lacking"], [[i.what, i.state, i.detail] for i in tested(data)]
    )
    yield "Digests, seed and version", table(["what", "value"], digests(summary))
    yield "Inputs", table(["table", "name", "rows", "Delta version"], _inputs(data.inputs))
    yield "Versions", table(["library", "version"], sorted(data.versions.items()))
    yield "Settings", table(["setting", "value"], leaves(data.settings))
    yield "What the interval means", safe(INTERVAL_MEANING)
    yield "What the figures do not say", "\n".join(f"- {safe(text)}" for text in LIMITS)


def _given(value: Any) -> bool:
    return value is not None and value == value


def _findings(data: Any, summary: pd.DataFrame) -> str:
    if not len(summary):
        return "Nothing was evaluated."
    said = []
    for key, part in summary.groupby(["registry", "release_id"], sort=False):
        several = f"{key[1]} of {key[0]}: " if summary.groupby(["registry", "release_id"]).ngroups > 1 else ""
        for finding in findings(part, data.comparable):
            if finding.rate is not None:
                sentences = [*finding.sentences, *([finding.control] if finding.control else [])]
                said.append(f"- {safe(several)}{' '.join(map(safe, sentences))}")
    return "\n".join(said) or "No combination could be computed."


def _rates(summary: pd.DataFrame) -> str:
    ok = summary[summary["status"] == "ok"] if len(summary) else summary
    keys = ["registry", "release_id", "sensitive_attribute", "qi_set", "scored_on", "replicate", "attacker"]
    shown = [k for k in keys if k in ("sensitive_attribute", "attacker") or (len(ok) and ok[k].nunique() > 1)]
    heads = [{"sensitive_attribute": "attribute", "qi_set": "known", "release_id": "release"}.get(k, k) for k in shown]
    rows = [
        [replicate(r[k]) if k == "replicate" else name(r[k]) for k in shown]
        + [percent(r["rapid"]), interval(r["ci_low"], r["ci_high"]), percent(r["baseline_rate"]), points(r["excess"]),
           f"{count(r['n_at_risk'])} of {count(r['n'])}"]
        for r in rows_of(ok)
    ]  # fmt: skip
    return table([*heads, "RAPID", "interval", "chance", "excess", "people at risk"], rows)


def _verdicts(data: Any) -> str:
    frame = data.tables.get("audit_verdicts")
    if frame is None or not len(frame):
        return ""
    columns = ["registry", "release_id", "sensitive_attribute", "rule", "figure", "limit", "verdict", "reason"]
    order = frame.assign(_o=frame["rule"] != "overall").sort_values(["registry", "release_id", "_o"], kind="stable")
    return table(
        ["registry", "release", "attribute", "rule", "figure", "limit", "verdict", "why"],
        [[_cell(r[c]) for c in columns] for r in rows_of(order)],
    )


def _decisions(data: Any) -> str:
    frame = data.tables.get("release_decisions")
    if frame is None or not len(frame):
        return ""
    columns = ["decided_at", "registry", "release_id", "outcome", "decided_by", "audience", "valid_until", "reason"]
    rows = rows_of(frame.sort_values("decided_at", kind="stable"))
    heads = ["when", "registry", "release", "outcome", "by", "audience", "until", "why"]
    return table(heads, [[_cell(r.get(c)) for c in columns] for r in rows])


def _cell(value: Any) -> str:
    if not _given(value) or value is pd.NaT:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, pd.Timestamp):
        return value.strftime("%Y-%m-%d %H:%M")
    return str(value)


def _inputs(inputs: Mapping[str, Any]) -> list[list[Any]]:
    places = {"original": inputs.get("original"), "holdout": inputs.get("holdout")}
    places |= {f"release, copy {k}": v for k, v in dict(inputs.get("releases") or {}).items()}
    return [
        [place, found.get("name"), count(found["rows"]) if number(found.get("rows")) is not None else "",
         _cell(found.get("version"))]
        for place, found in places.items() if isinstance(found, Mapping)
    ]  # fmt: skip


def leaves(value: Any, path: str = "") -> list[tuple[str, str]]:
    """Settings as pairs of path and value; those that are empty are left out."""
    if isinstance(value, Mapping) and value:
        return [pair for k, inner in value.items() for pair in leaves(inner, f"{path}.{k}" if path else str(k))]
    if value in (None, [], {}, ()):
        return []
    return [(path, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))]


def write(data: Any, path: str | Path) -> Path:
    """Write the document to a file, UTF-8; the folder is made at need."""
    place = Path(path)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(render(data), encoding="utf-8")
    return place

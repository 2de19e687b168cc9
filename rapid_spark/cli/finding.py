"""An evaluation as a finding that can be read: sentences and a table, from rows of risk_summary alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table

from rapid_spark.suite import suite

PLAIN_WIDTH = 160  # columns, where the output is no terminal
INTERVAL_MEANS = (
    "Intervals hold the release and the fitted attacker fixed: they say how the rate would vary if the original were a "
    "random sample of a larger population. For a complete register there is no such error."
)


def console() -> Console:
    """Where results are written: standard output, wide enough to keep rows on one line when it is no terminal."""
    out = Console(highlight=False)
    return out if out.is_terminal else Console(highlight=False, width=PLAIN_WIDTH, soft_wrap=False)


def show(summary: pd.DataFrame, out: Console) -> None:
    """Print sentences, the table of combinations, and what was not computed."""
    ok = summary[summary["status"] == "ok"]
    for line in sentences(summary):
        out.print(line, soft_wrap=True, markup=False)
    if len(ok):
        out.print()
        out.print(combinations(ok))
        for line in suite_lines(summary):
            out.print(line, soft_wrap=True, markup=False)
        out.print(_interval_note(ok), style="dim", soft_wrap=True, markup=False)
    for line in not_computed(summary):
        out.print(line, soft_wrap=True, markup=False)


def sentences(summary: pd.DataFrame) -> list[str]:
    """One sentence per attribute and quasi-identifier set: what the strongest attacker can do, beside chance."""
    found = []
    for group in suite(summary).to_dict("records"):
        row = _strongest(summary, group)
        known = ", ".join(row["quasi_identifiers"])
        who = f"Knowing {known}, attacker {row['attacker']}"
        n, rate = f"{int(row['n']):,}", percent(row["rapid"])
        if row["target_type"] == "categorical":
            what = (
                f"{who} predicts {row['sensitive_attribute']} confidently and rightly for {rate} of {n} people "
                f"({_threshold(row)})"
            )
        else:
            what = (
                f"{who} predicts {row['sensitive_attribute']} closely enough for {rate} of {n} people ({_threshold(row)})"
            )
        chance = _number(row["baseline_rate"])
        if chance is not None:
            what += f"; {_chance(row)} {percent(chance)}"
        found.append(what + ".")
    return found or ["No combination could be computed."]


def suite_lines(summary: pd.DataFrame) -> list[str]:
    """Maximum and mean over attackers, and over replicates where there are several."""
    lines = []
    groups = suite(summary).to_dict("records")
    for group in groups:
        several = group["replicates"] > 1
        if group["attackers"] < 2 and not several:
            continue
        name = _group_name(group, groups)
        if _number(group["rapid_max"]) is not None:
            over = f" over {group['attackers']} attackers" if group["attackers"] > 1 else ""
            line = f"{name}: maximum {percent(group['rapid_max'])} ({group['worst_attacker']}), mean " \
                   f"{percent(group['rapid_mean'])}{over}"
            if several:
                line += f"; over {group['replicates']} replicates (sd of that mean {percent(group['rapid_sd'], 2)})"
        else:
            line = f"{name}:"
        if _number(group["rapid_pooled"]) is not None:
            line += f"; trained on all replicates together {percent(group['rapid_pooled'])} ({group['pooled_attacker']})"
        lines.append(line + ".")
    return lines


def not_computed(summary: pd.DataFrame) -> list[str]:
    """Undefined and failed combinations with their reasons, those with one reason on one line."""
    missing = summary[summary["status"] != "ok"]
    lines = []
    for (status, reason), part in missing.groupby(["status", "reason"], sort=False, dropna=False):
        names = dict.fromkeys(f"{r['attacker']} for {r['sensitive_attribute']}" for r in part.to_dict("records"))
        lines.append(f"{status}: {', '.join(names)} ({reason})")
    return lines


def combinations(ok: pd.DataFrame) -> Table:
    """The table of combinations that were computed."""
    rows = ok.to_dict("records")
    named = [c for c in ("qi_set", "replicate") if ok[c].nunique() > 1 or (c == "replicate" and 0 in set(ok[c]))]
    many_measures = ok.groupby("sensitive_attribute")["measure"].nunique().max() > 1
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("attribute", *({"qi_set": "known", "replicate": "replicate"}[c] for c in named), "attacker"):
        table.add_column(name, overflow="fold")
    if many_measures:
        table.add_column("measure")
    intervals = {_confidence(row) for row in rows}
    for name in ("at risk", f"{intervals.pop() if len(intervals) == 1 else ''} interval".strip(), "chance", "excess",
                 "confident claims right", "quality (without attacker)"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        labels = [_replicate(row[c]) if c == "replicate" else str(row[c]) for c in named]
        table.add_row(
            _safe(row["sensitive_attribute"]), *map(_safe, labels), _safe(row["attacker"]),
            *([row["measure"]] if many_measures else []),
            percent(row["rapid"]), f"{percent(row['ci_low'])} to {percent(row['ci_high'])}",
            percent(row["baseline_rate"]), points(row["excess"]), _claims(row), _quality(row),
        )
    return table


def frame_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    """Any result of a query."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in columns:
        table.add_column(_safe(name), overflow="fold")
    for row in rows:
        table.add_row(*(_safe(_cell(value)) for value in row))
    return table


def percent(value: Any, digits: int = 1) -> str:
    """A share as percent; a dash where it is not known."""
    number = _number(value)
    return "–" if number is None else f"{100 * number:.{digits}f} %"


def points(value: Any) -> str:
    """A difference of shares in percentage points."""
    number = _number(value)
    return "–" if number is None else f"{100 * number:+.1f}"


def _strongest(summary: pd.DataFrame, group: dict[str, Any]) -> dict[str, Any]:
    rows = summary[(summary["status"] == "ok") & (summary["scored_on"] == "original")]
    for column in ("qi_set", "sensitive_attribute", "measure"):
        rows = rows[rows[column] == group[column]]
    row: dict[str, Any] = rows.loc[rows["rapid"].astype(float).idxmax()].to_dict()
    return row


def _threshold(row: dict[str, Any]) -> str:
    threshold = f"{float(row['threshold']):g}"
    if row["target_type"] == "categorical":
        return f"{row['measure']} above {threshold}"
    return f"{row['measure']} error below {threshold}"


def _chance(row: dict[str, Any]) -> str:
    if row["target_type"] == "continuous":
        return "the best constant guess does so for"
    return "predictions shuffled among people would do so for"


def _claims(row: dict[str, Any]) -> str:
    if _number(row["claims_correct"]) is None:
        return "–"
    return f"{percent(row['claims_correct'])} of {int(row['n_confident_claims']):,}"


def _quality(row: dict[str, Any]) -> str:
    if row["target_type"] == "continuous":
        r2 = _number(row["r2"])
        return "–" if r2 is None else f"R2 {r2:.3f} (0)"
    accuracy = _number(row["accuracy"])
    return "–" if accuracy is None else f"accuracy {percent(accuracy)} ({percent(row['majority_rate'])})"


def _interval_note(ok: pd.DataFrame) -> str:
    methods = ", ".join(dict.fromkeys(str(m) for m in ok["ci_method"] if m))
    return f"{INTERVAL_MEANS} Method: {methods}."


def _confidence(row: dict[str, Any]) -> str:
    number = _number(row["confidence"])
    return "" if number is None else f"{100 * number:g} %"


def _group_name(group: dict[str, Any], groups: list[dict[str, Any]]) -> str:
    parts = [str(group["sensitive_attribute"])]
    parts += [str(group[c]) for c in ("qi_set", "measure")
              if len({g[c] for g in groups if g["sensitive_attribute"] == group["sensitive_attribute"]}) > 1]
    return ", ".join(parts)


def _replicate(value: Any) -> str:
    return "all together" if int(value) == 0 else str(value)


def _number(value: Any) -> float | None:
    if value is None:
        return None
    number = float(value)
    return number if math.isfinite(number) else None


def _cell(value: Any) -> str:
    if value is None or value != value:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, (list, tuple)):
        return ", ".join(str(v) for v in value)
    return str(value)


def _safe(text: Any) -> str:
    """Text without the markup that square brackets would be."""
    from rich.markup import escape

    return escape(str(text))

"""An evaluation as a finding that can be read: sentences and a table, from rows of risk_summary alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from rapid_spark.suite import rows_of, suite
from rapid_spark.wording import (
    INTERVAL_MEANING,
    NOT_KNOWN,
    confidence,
    count,
    findings,
    interval,
    name,
    not_computed,
    number,
    percent,
    points,
    replicate,
)

PLAIN_WIDTH = 160  # columns, where the output is no terminal
WIDE = 130  # columns that rates and quality need beside each other
HEADS = {"qi_set": "known", "replicate": "release", "scored_on": "scored on", "measure": "measure",
         "weighting": "weights"}  # fmt: skip


def console() -> Console:
    """Where results are written: standard output, wide enough to keep rows on one line when it is no terminal."""
    out = Console(highlight=False)
    return out if out.is_terminal else Console(highlight=False, width=PLAIN_WIDTH)


def say(out: Console, text: str = "", style: str | None = None) -> None:
    """A line as it is: no markup, wrapped by the terminal only."""
    out.print(text, style=style, markup=False, soft_wrap=True)


def show(summary: pd.DataFrame, out: Console) -> None:
    """Print sentences, the table of combinations, the suites, and what was not computed."""
    ok = summary[summary["status"] == "ok"]
    found = [f for f in findings(summary) if f.rate is not None]
    for finding in found:
        what, _, chance = finding.sentences
        say(out, " ".join([what, chance, *([finding.control] if finding.control else [])]))
    if not found:
        say(out, "No combination could be computed.")
    if len(ok):
        say(out)
        for table in combinations(ok, out.width):
            out.print(table)
        for line in suite_lines(summary):
            say(out, line)
        methods = ", ".join(dict.fromkeys(str(m) for m in ok["ci_method"].dropna()))
        say(out, f"Intervals ({methods}): {INTERVAL_MEANING}", "dim")
    for status, reason, names in not_computed(summary):
        say(out, f"{status}: {'; '.join(names)} ({reason})")


def suite_lines(summary: pd.DataFrame) -> list[str]:
    """Maximum and mean over attackers, and over replicates where there are several."""
    groups = rows_of(suite(summary))
    lines = []
    for group in groups:
        several = group["replicates"] > 1
        if group["attackers"] < 2 and not several:
            continue
        parts = []
        if number(group["rapid_max"]) is not None:
            over = f" over {group['attackers']} attackers" if group["attackers"] > 1 else ""
            inside = interval(group["max_low"], group["max_high"])
            # over copies it is another interval than the one that is explained below the table
            whose = " for releases made in the same way" if several else ""
            sure = f", interval {inside}{whose}" if inside else ""
            parts.append(f"maximum {percent(group['rapid_max'])} ({name(group['worst_attacker'])}{sure})")
            parts.append(f"mean {percent(group['rapid_mean'])}{over}")
        if several:
            spread = points(group["rapid_sd"], signed=False)
            parts.append(f"both as means over {group['replicates']} copies (standard deviation {spread} points)")
        if number(group["rapid_pooled"]) is not None:
            parts.append(
                f"trained on all copies together {percent(group['rapid_pooled'])} ({name(group['pooled_attacker'])})"
            )
        lines.append(f"{_group_name(group, groups)}: {', '.join(parts)}.")
    return lines


def combinations(ok: pd.DataFrame, width: int) -> list[Table]:
    """The combinations that were computed: rates, and the attackers' quality; one table where the width allows it."""
    rows = rows_of(ok)
    varying = [c for c in ("qi_set", "scored_on", "replicate", "weighting") if c in ok and ok[c].nunique() > 1]
    if ok.groupby("sensitive_attribute")["measure"].nunique().max() > 1:
        varying.append("measure")
    levels = {confidence(row) for row in rows}
    level = levels.pop() if len(levels) == 1 else ""
    rates = ("RAPID", f"{level}interval", "chance", "excess")
    quality = ("confident\nclaims right", "quality", "without\nattacker")
    parts = [(*rates, *quality)] if width >= WIDE else [rates, quality]
    tables = []
    for heads in parts:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for head in ("attribute", *(HEADS[c] for c in varying), "attacker"):
            table.add_column(head, overflow="fold")
        for head in heads:
            table.add_column(head, justify="right", no_wrap=True)
        for row in rows:
            labels = [replicate(row[c]) if c == "replicate" else name(row[c]) for c in varying]
            figures = dict(zip((*rates, *quality), (*_rates(row), _claims(row), *_quality(row)), strict=True))
            cells = [name(row["sensitive_attribute"]), *labels, name(row["attacker"]), *(figures[h] for h in heads)]
            table.add_row(*map(escape, cells))
        tables.append(table)
    return tables


def frame_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    """Any result of a query."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for head in columns:
        table.add_column(escape(str(head)), overflow="fold")
    for row in rows:
        table.add_row(*(escape(_cell(value)) for value in row))
    return table


def _rates(row: dict[str, Any]) -> tuple[str, str, str, str]:
    inside = interval(row["ci_low"], row["ci_high"]) or NOT_KNOWN
    return percent(row["rapid"]), inside, percent(row["baseline_rate"]), points(row["excess"])


def _claims(row: dict[str, Any]) -> str:
    if number(row["claims_correct"]) is None:
        return NOT_KNOWN
    return f"{percent(row['claims_correct'])} of {count(row['n_confident_claims'])}"


def _quality(row: dict[str, Any]) -> tuple[str, str]:
    """How good the attacker is, and what needs none: naming the largest class, or the mean."""
    if row["target_type"] == "continuous":
        r2 = number(row["r2"])
        return (NOT_KNOWN, NOT_KNOWN) if r2 is None else (f"R² {r2:.3f}", "0")
    return f"accuracy {percent(row['accuracy'])}", percent(row["majority_rate"])


def _group_name(group: dict[str, Any], groups: list[dict[str, Any]]) -> str:
    alike = [g for g in groups if g["sensitive_attribute"] == group["sensitive_attribute"]]
    varying = [c for c in ("qi_set", "measure") if len({g[c] for g in alike}) > 1]
    return ", ".join(name(group[c]) for c in ("sensitive_attribute", *varying))


def _cell(value: Any) -> str:
    if value is None or value != value:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, (list, tuple)):
        return ", ".join(str(v) for v in value)
    return str(value)

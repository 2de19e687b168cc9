"""What the `dp` commands print: the plan before anything is drawn, and the release with its guarantee."""

from __future__ import annotations

from typing import Any

import click
import pandas as pd

from rapid_spark.strictjson import dumps

from . import finding

HEADS = {
    "expected_error_before_post_processing": "error before",
    "standard_error_after_consistency": "sd after",
    "records_added_to_empty_cells_by_clipping": "clipping adds",
    "expected_error": "error after",
    "mean_count": "mean count",
    "noise_squared_error": "noise error²",
    "noise_root_mean_squared_error": "noise error",
    "expected_error_bits": "error, bits",
    "total_variation": "total variation",
    "observed_error": "observed error",
}
SHOWN = 40


def promise(guarantee: Any) -> str:
    """A guarantee in one line."""
    return (
        f"epsilon {guarantee.epsilon:g}, delta {guarantee.delta:g}; "
        f"{guarantee.adjacency} of one {guarantee.protected_unit}; "
        f"{guarantee.mechanism.replace('_', ' ')}, sensitivity {guarantee.sensitivity:.4g}"
    )


def plan_line(planned: Any) -> str:
    """The plan in one line, for standard error."""
    parts = "; ".join(
        ", ".join(f"{k} {_short(v)}" for k, v in row.items() if v is not None) for row in planned.plan()[:SHOWN]
    )
    return f"plan: {promise(planned.guarantee)}. {parts}"


def show_plan(planned: Any, output: str) -> None:
    """The plan as the command's result (`--dry-run`), or before the drawing."""
    rows = planned.plan()
    if output == "json":
        document = {"plan": rows, "guarantee": planned.guarantee.as_dict(), "warnings": list(planned.warnings)}
        click.echo(dumps(document))
    elif output == "csv":
        click.echo(pd.DataFrame(rows).to_csv(index=False), nl=False)
    else:
        out = finding.console()
        finding.say(out, f"Plan: {promise(planned.guarantee)}.")
        _table(out, rows)


def show(outcome: Any, output: str) -> None:
    """A release: JSON as one document, CSV as its main table, or for readers."""
    if output == "json":
        click.echo(dumps(outcome.document()))
        return
    if output == "csv":
        main = next(iter(outcome.frames.values()))
        click.echo(main.to_csv(index=False), nl=False)
        return
    out = finding.console()
    if outcome.drawn_before:
        finding.say(out, f"Run {outcome.run_id} was drawn before: this is what was stored then. Nothing was charged.")
    told = dict(outcome.told)
    rows = told.pop("tables", None)
    if isinstance(rows, list):
        _table(out, rows)
    single = {k: v for k, v in told.items() if not isinstance(v, (list, dict))}
    if single:
        finding.say(out, ", ".join(f"{k.replace('_', ' ')} {_short(v)}" for k, v in single.items() if v is not None))
    if outcome.evaluation is not None:
        _evaluation(out, outcome.evaluation)
    finding.say(out, f"guarantee  {promise(outcome.guarantee)}")
    finding.say(out, f"ledger     entry {outcome.entry_id} of {outcome.dataset}, in {outcome.store}")
    for name, place in outcome.output.items():
        finding.say(out, f"{name:<10} {place}")
    finding.say(out, f"run        {outcome.run_id}  ({sum(outcome.seconds.values()):.0f} s)")


def _evaluation(out: Any, evaluation: dict[str, Any]) -> None:
    finding.say(out, f"Evaluation of a separate draw, discarded ({evaluation['label']}):")
    rest = {k: v for k, v in evaluation.items() if k != "label"}
    rows = rest.pop("tables", None)
    if rows:
        _table(out, rows)
    for key, value in rest.items():
        parts = ", ".join(f"{k} {_short(v)}" for k, v in value.items()) if isinstance(value, dict) else _short(value)
        finding.say(out, f"{key.replace('_', ' ')}: {parts}")


def _table(out: Any, rows: list[dict[str, Any]]) -> None:
    columns = list(dict.fromkeys(k for row in rows for k in row))
    columns = [c for c in columns if any(row.get(c) is not None for row in rows)]
    heads = [HEADS.get(c, c.replace("_", " ")) for c in columns]
    out.print(finding.frame_table(heads, [[_round(row.get(c)) for c in columns] for row in rows[:SHOWN]]))
    if len(rows) > SHOWN:
        finding.say(out, f"{len(rows) - SHOWN:,} of {len(rows):,} rows are not shown; --format json gives all.")


def _round(value: Any) -> Any:
    return _short(value) if isinstance(value, float) else value


def _short(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"

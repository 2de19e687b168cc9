"""`rapid-spark evaluate` and `check`."""

from __future__ import annotations

from typing import Any

import click

from rapid_spark.config import Config
from rapid_spark.strictjson import dumps

from .options import (
    input_options,
    output_options,
    settings,
    store_option,
    together,
    tracking_options,
)
from .terminal import Terminal


@click.command()
@together(input_options, store_option, tracking_options, output_options)
@click.option("--run-id", metavar="ID", help="The same id again replaces its rows.  [default: time and a random suffix]")
@click.pass_obj
def evaluate(terminal: Terminal, output: str, run_id: str | None, **values: Any) -> int:
    """RAPID of one release: every replicate, attribute, quasi-identifier set and attacker.

    Results go to Delta tables in the store and to MLflow; the finding goes to standard output.
    """
    return evaluate_and_show(terminal, settings(values), output, run_id)


def evaluate_and_show(terminal: Terminal, config: Config, output: str, run_id: str | None, command: str = "evaluate") -> int:
    """Run an evaluation, print its result in the form asked for, and return the exit code."""
    from rapid_spark import run
    from rapid_spark.evaluation import new_run_id

    terminal.configure_logging()
    terminal.run_id = run_id = run_id or new_run_id()
    outcome = run.evaluate(config, run_id, command=command, debug=terminal.debug, say=terminal.stage, watch=terminal.watch)
    terminal.close()
    for warning in outcome.warnings:
        terminal.warn(warning)
    if output == "json":
        click.echo(dumps(outcome.document()))
    elif output == "csv":
        click.echo(outcome.summary.to_csv(index=False), nl=False)
    else:
        _show(outcome)
    # results without the tracking that was asked for are not all that was asked for
    return 3 if outcome.status == "failed" or outcome.untracked else 0


def _show(outcome: Any) -> None:
    from . import finding

    out = finding.console()
    finding.show(outcome.summary, out)
    finding.say(out)
    finding.say(out, f"run     {outcome.run_id}  ({sum(outcome.seconds.values()):.0f} s)")
    finding.say(out, f"store   {outcome.store}")
    run = f"{outcome.mlflow_run_id} in" if outcome.mlflow_run_id else "no run:"
    finding.say(out, f"MLflow  {run} {outcome.tracking}")


@click.command()
@together(input_options, store_option, tracking_options, output_options)
@click.pass_obj
def check(terminal: Terminal, output: str, **values: Any) -> None:
    """Validate configuration and inputs, fit nothing; every fault at once.

    Prints what the columns were taken for and the combinations that `evaluate` would compute.
    """
    import pandas as pd

    from rapid_spark import preparation

    terminal.configure_logging()
    found = preparation.check(settings(values), debug=terminal.debug, say=terminal.stage, watch=terminal.watch)
    terminal.close()
    for warning in found["warnings"]:
        terminal.warn(warning)
    if output == "json":
        click.echo(dumps(found))
        return
    if output == "csv":
        click.echo(pd.DataFrame(found["combinations"]).to_csv(index=False), nl=False)
        return
    from . import finding

    out = finding.console()
    for title in ("tables", "columns", "combinations"):
        rows = found[title]
        out.print(f"{len(rows)} {title}", style="bold")
        out.print(finding.frame_table(list(rows[0]), [list(row.values()) for row in rows]))
    out.print("No fault found.")

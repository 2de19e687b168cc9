"""`rapid-spark evaluate` and `check`."""

from __future__ import annotations

from typing import Any

import click

from rapid_spark.config import Config
from rapid_spark.strictjson import dumps

from . import verdicts
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
@verdicts.on_fail_option
@click.pass_obj
def evaluate(terminal: Terminal, output: str, run_id: str | None, on_fail: str, **values: Any) -> int:
    """RAPID of one release: every replicate, attribute, quasi-identifier set and attacker.

    Results go to Delta tables in the store and to MLflow; the finding goes to standard output.
    A policy in the configuration judges them: exit code 1 unless every rule of it passes.
    """
    config = settings(values)
    if config.search.active:
        from .search import search_and_show

        return search_and_show(terminal, config, output, run_id)
    return evaluate_and_show(terminal, config, output, run_id, on_fail=on_fail)


def evaluate_and_show(
    terminal: Terminal, config: Config, output: str, run_id: str | None, command: str = "evaluate", on_fail: str = "exit"
) -> int:
    """Run an evaluation, print its result in the form asked for, and return the exit code."""
    from rapid_spark import run
    from rapid_spark.underway import new_run_id

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
        _show(outcome, on_fail)
    if outcome.untracked:
        return 3  # results without the tracking that was asked for are not all that was asked for
    return verdicts.exit_code(outcome.status, outcome.cleared, on_fail)


def _show(outcome: Any, on_fail: str) -> None:
    from . import finding

    out = finding.console()
    finding.show(outcome.summary, out)
    if outcome.verdicts is not None:
        finding.say(out)
        verdicts.show(outcome.verdicts, out)
        code = verdicts.exit_code(outcome.status, outcome.cleared, on_fail)
        finding.say(out, verdicts.closing(outcome.verdicts, code))
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

    config = settings(values)
    if config.search.active:
        from .search import search_and_show

        search_and_show(terminal, config, output, None, only_plan=True)
        return
    terminal.configure_logging()
    found = preparation.check(config, debug=terminal.debug, say=terminal.stage, watch=terminal.watch)
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

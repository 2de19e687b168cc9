"""`rapid-spark track`."""

from __future__ import annotations

import click

from rapid_spark.strictjson import dumps

from .options import output_options, store_option
from .query import opened_store
from .terminal import Terminal


@click.command()
@click.option("--run", "run_id", required=True, help="Run to track, as runs and latest_runs name it.")
@click.option("--tracking-uri", metavar="URI", help="MLflow tracking.  [default: as the run was to be tracked]")
@click.option("--experiment", metavar="NAME", help="MLflow experiment, by name or id.  [default: likewise]")
@click.option("--again", is_flag=True, help="Also where a closed MLflow run is there, as one that broke off half-way.")
@store_option
@output_options
@click.pass_obj
def track(
    terminal: Terminal, run_id: str, tracking_uri: str | None, experiment: str | None, again: bool, store: str | None,
    output: str,
) -> None:  # fmt: skip
    """Give a finished run the MLflow run it lacks, from the store's tables: where MLflow could not be reached."""
    from rapid_spark import latetracking
    from rapid_spark.tracking import databricks_user

    with opened_store(terminal, store) as opened:
        user = databricks_user(opened.warehouse.spark)
        terminal.stage("tracking")
        found = latetracking.track(opened, run_id, {"uri": tracking_uri, "experiment": experiment}, user, again)
    terminal.close()
    if output == "json":
        click.echo(dumps(found))
    elif output == "csv":
        click.echo(",".join(found) + "\n" + ",".join(map(str, found.values())))
    else:
        done = "was tracked before" if found["status"] == "already tracked" else "is tracked"
        click.echo(f"run {run_id} {done}: MLflow run {found['mlflow_run_id']} in {found['tracking']}")

"""`rapid-spark advise` and `recode`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rapid_spark.strictjson import dumps

from .options import input_options, output_options, settings, store_option, together
from .query import opened_store
from .terminal import Terminal

SHOWN = 20
YAML, PNG, AUDIT, COARSER = "advice.yml", "advice.png", "audit.yml", "coarser"


@click.command()
@click.option("--run", "run_id", required=True, metavar="RUN", help="Evaluation or audit of the release.")
@click.option("--registry", metavar="ID", help="Which registry, where the run judged several.")
@click.option("--release-id", metavar="ID", help="Which release, where the run judged several.")
@click.option("--limit", type=click.FloatRange(0, 1), metavar="SHARE",
              help="Rate to get below.  [default: the limits of the policy that judged the release]")
@click.option("--attacker", "attackers", multiple=True, metavar="NAME",
              help="Try steps against these of the run's attackers alone. Repeatable.  [default: all]")
@click.option("--most", type=click.IntRange(1), default=60, show_default=True, help="Steps tried at most.")
@click.option("--step", type=int, metavar="RANK", help="Step that the configuration takes.  [default: 1]")
@click.option("--output", "folder", type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER",
              help="Where configuration and plot go.  [default: advice-RUN]")
@store_option
@output_options
@click.pass_obj
def advise(terminal: Terminal, run_id: str, step: int | None, folder: Path | None, store: str | None, output: str,
           **values: Any) -> None:
    """What to change in a release: steps, each applied to it and evaluated again, ranked.

    Bands, rounding, top and bottom codes, merged levels, masked codes, dropped columns and fewer copies; beside each the
    rate that remains and the information that is lost. Nothing is written but a plot and a configuration that takes a step.
    """
    from rapid_spark.advice.advise import advise as try_steps
    from rapid_spark.advice.advise import audit_configuration, configuration
    from rapid_spark.advice.picture import draw_steps, save

    folder = folder or Path(f"advice-{run_id}")
    with opened_store(terminal, store) as opened:
        found = try_steps(opened, run_id, say=terminal.stage, note=terminal.note, **values)
    terminal.close()
    for warning in found.warnings:
        terminal.warn(warning)
    usable = [r.rank for r in found.results if r.reason is None]
    files: dict[str, str | None] = {"configuration": None, "plot": None, "audit": None}
    if usable:
        chosen = found.result(step or usable[0])
        folder.mkdir(parents=True, exist_ok=True)
        (folder / YAML).write_text(configuration(found, chosen), encoding="utf-8")
        save(draw_steps(found.rows(), found.highest), folder / PNG)
        files |= {"configuration": str(folder / YAML), "plot": str(folder / PNG)}
        if found.audited is not None:
            (folder / AUDIT).write_text(audit_configuration(found, chosen, folder / COARSER), encoding="utf-8")
            files["audit"] = str(folder / AUDIT)
    document = found.document() | files | {"chosen": step or (usable[0] if usable else None)}
    if output == "json":
        click.echo(dumps(document))
    elif output == "csv":
        click.echo(_csv(found.rows()), nl=False)
    else:
        _show(document)


def _csv(rows: list[dict[str, Any]]) -> str:
    import json

    import pandas as pd

    def flat(value: Any) -> Any:
        return json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list)) else value

    return str(pd.DataFrame([{k: flat(v) for k, v in row.items()} for row in rows]).to_csv(index=False))


def _show(document: dict[str, Any]) -> None:
    from rapid_spark.wording import percent, points

    from . import finding

    out = finding.console()
    before, *steps = document["steps"]
    limits = "; ".join(
        f"{x['rule']}{' of ' + x['sensitive_attribute'] if x['sensitive_attribute'] else ''} at most {percent(x['limit'])}"
        for x in document["limits"]
    )
    finding.say(out, f"Release {document['release_id']} of {document['registry']}, run {document['run_id']}: RAPID "
                     f"{percent(before['rapid'])}{'; ' + limits if limits else ''}")  # fmt: skip
    heads = ["rank", "step", "RAPID", "change", "information lost", "associations changed"]
    limited = before["meets_limits"] is not None
    heads += ["within limits"] if limited else []
    rows = []
    for row in steps[:SHOWN]:
        if row["status"] != "ok":
            rows.append([row["rank"], row["step"], row["reason"], *[""] * (len(heads) - 3)])
            continue
        cells = [row["rank"], row["step"], percent(row["rapid"]), points(row["change"]), percent(row["information_lost"]),
                 percent(row["association_change"])]  # fmt: skip
        rows.append(cells + (["yes" if row["meets_limits"] else "no"] if limited else []))
    out.print(finding.frame_table(heads, rows))
    if len(steps) > SHOWN:
        finding.say(out, f"{len(steps) - SHOWN} more steps: --format csv gives all.")
    finding.say(out, document["not_offered"])
    if document["configuration"]:
        finding.say(out)
        finding.say(out, f"step {document['chosen']}  {document['configuration']}")
        finding.say(out, f"plot    {document['plot']}")
        where = str(Path(document["configuration"]).parent / COARSER)
        finding.say(out, f"next    rapid-spark recode --config {document['configuration']} --output {where}")
        if document["audit"]:
            finding.say(out, f"        rapid-spark audit --config {document['audit']}")


@click.command()
@together(input_options, output_options)
@click.option("--output", "folder", required=True, type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER",
              help="Where the coarser release goes.")
@click.option("--as", "form", type=click.Choice(["csv", "parquet"]), default="csv", show_default=True,
              help="CSV (gzip) or Parquet.")
@click.option("--new-release-id", metavar="ID", help="Of the coarser release.  [default: the old one's, -recoded]")
@click.pass_obj
def recode(terminal: Terminal, folder: Path, form: str, new_release_id: str | None, output: str, **values: Any) -> None:
    """Make a release coarser as `recode` in the configuration says, and write a configuration to evaluate it.

    The original is not touched: an evaluation with the same `recode` treats it likewise before it is scored.
    """
    from rapid_spark import session
    from rapid_spark.advice.write import write_recoded

    terminal.configure_logging()
    config = settings(values)
    terminal.stage("starting Spark")
    spark = session.get(config.session, terminal.debug, config.tables)
    terminal.watch(spark)
    found = write_recoded(spark, config, folder, form, new_release_id, terminal.stage)
    terminal.close()
    if output == "json":
        click.echo(dumps(found))
        return
    if output == "csv":
        click.echo("file,rows")
        for file, n in zip(found["releases"], found["rows"], strict=True):
            click.echo(f"{file},{n}")
        return
    click.echo(f"recoded {', '.join(found['columns'])}")
    for file, n in zip(found["releases"], found["rows"], strict=True):
        click.echo(f"release {file}  ({n:,} rows)")
    click.echo(f"next    rapid-spark evaluate --config {found['config']}")

"""`rapid-spark study`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pandas as pd

from rapid_spark.strictjson import dumps

from .options import output_options
from .terminal import Terminal

SEED = 20260


@click.command()
@click.argument("number", type=click.IntRange(1, 4), metavar="1|2|3|4")
@click.option("--repetitions", type=int, metavar="R", help="Simulated registries at each kappa.  [default: the paper's]")
@click.option("--kappa", "kappas", type=float, multiple=True, metavar="K", help="Only this dependence. Repeatable.")
@click.option("--tau", "taus", type=float, multiple=True, metavar="SHARE", help="Only this threshold. Repeatable.")
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=SEED, show_default=True, help="Of every random step.")
@click.option(
    "--figure", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
    help="Where the figure goes (.png, .svg, .pdf).  [default: none]",
)  # fmt: skip
@output_options
@click.pass_obj
def study(
    terminal: Terminal, number: int, repetitions: int | None, kappas: tuple[float, ...], taus: tuple[float, ...],
    seed: int, figure: Path | None, output: str,
) -> int:  # fmt: skip
    """The paper's simulation studies, on this package's simulator, synthesizer and attackers.

    1: RAPID against kappa, the strength of dependence. 2: against the threshold. 3: each quasi-identifier alone and
    left out. 4: attackers compared. Every task is 1,000 simulated people and their CART release; tasks are spread
    over Spark. The published figures stand beside ours.
    """
    from rapid_spark import session
    from rapid_spark.interruption import interruptible
    from rapid_spark.studies import comparison, figures, simulation
    from rapid_spark.underway import new_run_id

    terminal.configure_logging()
    plan = simulation.plan(number, repetitions, kappas, taus)
    if figure:
        figures.check_place(figure)
    terminal.stage("starting Spark")
    spark = session.get(debug=terminal.debug)
    terminal.watch(spark)
    with interruptible(spark, new_run_id()):
        terminal.stage(f"study {number}: {plan.repetitions} repetitions at {len(plan.kappas)} kappa")
        outcome = simulation.run(spark, plan, seed)
    checks = comparison.checks(outcome) if outcome.results else []
    rows = comparison.with_limits(outcome)
    if figure and outcome.results:
        terminal.stage("drawing")
        figures.save(figures.draw(outcome), figure)
    terminal.close()
    for text in outcome.failed:
        terminal.warn(f"failed: {text}")
    if output == "json":
        click.echo(dumps(_document(outcome, rows, checks, seed, figure)))
    elif output == "csv":
        click.echo(pd.DataFrame(rows).drop(columns="values", errors="ignore").to_csv(index=False), nl=False)
    else:
        _show(outcome, rows, checks, figure)
    return 0 if outcome.results else 3


def _document(outcome: Any, rows: list[dict[str, Any]], checks: list[Any], seed: int, figure: Path | None) -> dict[str, Any]:
    from rapid_spark.studies import comparison

    attacker = outcome.study.attackers[0]
    return {
        "study": outcome.study.number,
        "title": outcome.study.title,
        "repetitions": outcome.study.repetitions,
        "seed": seed,
        "results": rows,
        "checks": [check.row() for check in checks],
        "notes": comparison.notes(outcome),
        "open": comparison.open_questions(checks),
        "curves": [
            {"kappa": kappa, "attacker": attacker, "tau": tau, "mean": mean}
            for kappa in outcome.study.kappas if (kappa, "all", "all", attacker) in outcome.rates
            for tau, mean in outcome.curve(kappa, attacker)
        ],
        "failed": outcome.failed,
        "figure": str(figure) if figure else None,
    }  # fmt: skip


def _show(outcome: Any, rows: list[dict[str, Any]], checks: list[Any], figure: Path | None) -> None:
    from rapid_spark.studies import comparison

    from . import finding

    out = finding.console()
    study = outcome.study
    finding.say(out, f"Study {study.number}: {study.title}. {study.repetitions} repetitions, 1,000 people each.")
    varying = [c for c in ("kappa", "tau", "variable", "setting", "attacker") if len({r.get(c) for r in rows}) > 1]
    heads = [*varying, "mean", "sd", "published", "difference", "limit", "accuracy", "published accuracy"]
    cells = [
        [*(_word(row[c]) for c in varying), _share(row["mean"]), _share(row["sd"]), _published(row),
         _signed(row["difference"]), _share(row["limit"]), _share(row["accuracy"]), _share(row["published_accuracy"])]
        for row in rows
    ]  # fmt: skip
    kept = [i for i in range(len(heads)) if any(line[i] for line in cells)]
    out.print(finding.frame_table([heads[i] for i in kept], [[line[i] for i in kept] for line in cells]))
    for check in checks:
        finding.say(out, f"{'holds  ' if check.holds else 'DIFFERS'}  {check.about}: {check.detail}")
    for note in comparison.notes(outcome):
        finding.say(out, f"note     {note}", "dim")
    if figure:
        finding.say(out, f"figure {figure}")


def _word(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value).replace("_", " ")


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _signed(value: float | None) -> str:
    return "" if value is None else f"{value:+.3f}"


def _published(row: dict[str, Any]) -> str:
    if row["published_mean"] is None:
        return ""
    about = "about " if row["published_about"] else ""
    spread = f" ({row['published_sd']:.3f})" if row["published_sd"] is not None else ""
    return f"{about}{row['published_mean']:.3f}{spread}"

"""`rapid-spark disclosure`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from rapid_spark.config import Config, ConfigError
from rapid_spark.strictjson import dumps

from .options import input_options, output_options, settings, store_option, together, tracking_options
from .terminal import Terminal

RUN_ID = "The same id again replaces its rows.  [default: time and a random suffix]"


@click.command()
@together(input_options, store_option, tracking_options, output_options)
@click.option("--bins", multiple=True, metavar="COLUMN=E0,E1,..", help="Edges of a numeric column's bins. Repeatable.  "
              "[default: each value is its own bin]")
@click.option("--sampling-fraction", type=float, metavar="SHARE",
              help="Share of the population in the original; 1 for a complete register. For population_uniqueness.")
@click.option("--rapid/--no-rapid", default=True, show_default=True, help="Compute RAPID beside the classical measures.")
@click.option("--utility/--no-utility", default=False, show_default=True, help="Measure utility too (release_utility).")
@click.option("--limit", multiple=True, metavar="NAME=VALUE",
              help="A rule: the largest value allowed of a measure or attack of this release (the smallest of k_anonymity "
              "and l_diversity). Repeatable.")
@click.option("--on-fail", type=click.Choice(["exit", "report"]), default="exit", show_default=True,
              help="Whether a rule that is not met, or not evaluated, is exit code 1, or only a result.")
@click.option("--page", type=click.Path(dir_okay=False, path_type=Path),
              help="HTML page on singling out, linkability and inference, with the attacks that were run.")
@click.option("--run-id", metavar="ID", help=RUN_ID)
@click.pass_obj
def disclosure(terminal: Terminal, output: str, bins: tuple[str, ...], sampling_fraction: float | None, rapid: bool,
               utility: bool, limit: tuple[str, ...], on_fail: str, page: Path | None, run_id: str | None,
               **values: Any) -> int:
    """Classical measures of a release (k-anonymity, DCAP, TCAP, DiSCO, distances, ..), and RAPID beside them.

    Key cells are combinations of the quasi-identifiers. Figures are computed from the original without noise: for the
    custodian only.
    """
    config = with_options(settings(values), bins, sampling_fraction)
    limits = _limits(limit)
    from rapid_spark import shared_columns
    from rapid_spark.disclosure import assessment
    from rapid_spark.recording import recording

    terminal.configure_logging()
    needs = ("disclosure_measures", *(["release_utility"] if utility else []))
    measured: list[dict[str, Any]] = []
    with recording(config, "disclosure", run_id, debug=terminal.debug, needs=needs,
                   say=terminal.stage, watch=terminal.watch) as run:  # fmt: skip
        assert run.tables is not None
        with run.clock.stage("checking tables"):
            tables = shared_columns.lay(run.tables.original, run.tables.releases, run.config, run.tables.holdout)
        run.warnings += tables.warnings
        try:
            found = assessment.assess(tables, run.config, run.clock.stage, run.cores)
            if utility:
                measured = _utility(tables, run)
        finally:
            tables.close()
        if rapid:
            found += _rapid(run)
        rows = [m.row() for m in found]
        now = datetime.now(UTC)
        run.write("disclosure_measures", [{**row, "evaluated_at": now} for row in rows])
        if measured:
            run.write("release_utility", [{**u, "evaluated_at": now} for u in measured])
        run.track({"disclosure_measures": rows, "release_utility": measured}, _figures(rows))
    verdicts = _judged(terminal, run, limits, page) if limits or page else []
    terminal.close()
    for warning in run.warnings:
        terminal.warn(warning)
    more: dict[str, Any] = {"utility": measured} if utility else {}
    more |= {"verdicts": verdicts} if limits else {}
    footer = [f"{v['verdict'].replace('_', ' ')}: {v['rule']} ({v['reason']})" for v in verdicts]
    footer += [f"page    {page}"] if page else []
    footer += [f"run     {run.run_id}", f"store   {run.store}"]
    show(rows, output, run.document(measures=rows, **more), "\n".join(footer))
    return 1 if on_fail == "exit" and any(v["verdict"] != "pass" for v in verdicts) else 0


def with_options(config: Config, bins: tuple[str, ...], fraction: float | None) -> Config:
    """The configuration with the options of `disclosure` laid over it.

    Raises:
        ConfigError: bins that are none, a fraction out of range.
    """
    from rapid_spark.config import Disclosure, parse_as

    data = config.disclosure.model_dump()
    for text in bins:
        name, equals, edges = text.rpartition("=")
        try:
            data["bins"] = {**data["bins"], name: [float(e) for e in edges.split(",")]}
        except ValueError:
            equals = ""
        if not (equals and name):
            raise ConfigError(f"--bins {text!r}: expected COLUMN=E0,E1,.., e.g. age=0,18,65,120")
    if fraction is not None:
        data["sampling_fraction"] = fraction
    return config.model_copy(update={"disclosure": parse_as(Disclosure, data, "the options of disclosure")})


def _limits(texts: tuple[str, ...]) -> dict[str, float]:
    """Rules by name.

    Raises:
        ConfigError: not of the form NAME=VALUE, or a name that is no figure.
    """
    from rapid_spark.disclosure import criteria

    found = {}
    for text in texts:
        name, _, value = text.partition("=")
        try:
            found[name.strip()] = float(value)
        except ValueError:
            raise ConfigError(f"--limit {text!r}: expected NAME=VALUE, e.g. dcap=0.6") from None
    criteria.check_limits(found)
    return found


def _judged(terminal: Terminal, run: Any, limits: dict[str, float], page: Path | None) -> list[dict[str, Any]]:
    """Rules held against the newest figures of this release in the store, attacks too; and the page."""
    from rapid_spark.disclosure import criteria

    terminal.stage("judging")
    rows = criteria.read(run.store, run.config.registry, run.config.release_id)
    if page is not None:
        page.write_text(criteria.document(rows, f"{run.config.registry}, {run.config.release_id}"), encoding="utf-8")
    return criteria.judge(rows, limits)


def _rapid(run: Any) -> list[Any]:
    """RAPID rows of the same tables, with no more than the rates needs."""
    from rapid_spark import evaluation
    from rapid_spark.disclosure.assessment import of_rapid

    none = {"subgroups": False, "patterns": 0, "attribution": False, "refits": False}
    drivers = run.config.drivers.model_copy(update=none)
    intervals = run.config.intervals.model_copy(update={"permutations": 0, "method": "wilson"})
    config = run.config.model_copy(update={"drivers": drivers, "intervals": intervals})
    found = evaluation.evaluate(run.spark, run.tables.original, run.tables.releases, config, run.run_id, None, run.cores,
                                run.clock.say)  # fmt: skip
    try:
        run.clock.seconds.update(found.seconds)
        return of_rapid(found)
    finally:
        found.close()


def _utility(tables: Any, run: Any) -> list[dict[str, Any]]:
    """Utility of the first replicate, as rows of `release_utility`; what cannot be computed has no value."""
    from rapid_spark.utility import assessment

    found = assessment.assess(tables, run.config, run.clock.stage)
    run.warnings += [f"utility: {u.measure} of {', '.join(u.columns)}: {u.reason}" for u in found if u.reason]
    return [{"measure": u.measure, "columns": list(u.columns), "value": u.value} for u in found]


def _figures(rows: list[dict[str, Any]]) -> dict[str, float | None]:
    """Figures by name for MLflow; attribute, set and attacker in the name where there are any."""
    from rapid_spark.tracked import key_part

    parts = ("sensitive_attribute", "qi_set", "replicate", "attacker")
    names = ["/".join([row["name"], *(key_part(row[p]) for p in parts if row.get(p) is not None)]) for row in rows]
    return dict(zip(names, (row["value"] for row in rows), strict=True))


SHOWN = {"name": "measure", "qi_set": "known", "sensitive_attribute": "attribute", "replicate": "release",
         "attacker": "attacker", "value": "value", "n": "records", "direction": "direction"}  # fmt: skip


def show(rows: list[dict[str, Any]], output: str, document: dict[str, Any], footer: str) -> None:
    """Print measures in the form asked for."""
    if output == "json":
        click.echo(dumps(document))
        return
    import pandas as pd

    if output == "csv":
        click.echo(pd.DataFrame(rows).to_csv(index=False), nl=False)
        return
    from . import finding

    out = finding.console()
    several = {c for c in ("replicate", "qi_set") if len({str(r[c]) for r in rows if r[c] is not None}) > 1}
    columns = [c for c in SHOWN if c not in ("replicate", "qi_set") or c in several]
    listed = [[_cell(row, c) for c in columns] for row in rows if row["status"] == "ok"]
    out.print(finding.frame_table([SHOWN[c] for c in columns], listed))
    for row in rows:
        if row["status"] != "ok":
            about = f" of {row['sensitive_attribute']}" if row["sensitive_attribute"] else ""
            finding.say(out, f"{row['status']}: {row['name']}{about} ({row['reason']})")
    finding.say(out, "Computed from the original without noise: for the custodian only.", "dim")
    finding.say(out, footer)


def _cell(row: dict[str, Any], column: str) -> Any:
    value = row[column]
    if column == "value":
        return f"{value:.0f}" if row["name"] in ("k_anonymity", "l_diversity") else f"{value:.4f}"
    return "" if value is None else value

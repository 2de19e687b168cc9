"""`rapid-spark dp`: releases with differential privacy. What is drawn is charged to the ledger first."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from rapid_spark.config import ConfigError, parse_set
from rapid_spark.strictjson import dumps

from .options import _commas, output_options, store_option, table, together
from .terminal import Terminal

PLAN_KEYS = ("feasible", "k", "epsilon_per_record", "delta_per_record", "epsilon_total", "delta_total", "reason")


@click.group()
def dp() -> None:
    """Releases with differential privacy; see `rapid-spark ledger` for what was spent.

    Columns have declared domains (levels or edges) in the configuration file: nothing is read off the data. No command
    takes a seed.
    """


release_options = together(
    click.option("--config", "config_file", metavar="FILE", help="YAML; every option below overrides it."),
    click.option("--original", metavar="TABLE", help="Table of people, as in evaluate."),
    click.option("--dataset", metavar="ID", help="Population whose budget is charged."),
    click.option("--release-id", metavar="ID", help="Name of the release.  [default: the run id]"),
    click.option("--run-id", metavar="ID", help="The same id and settings again return what was drawn.  [default: new]"),
    click.option("--n-declared", type=int, metavar="N", help="Declared number of persons; never counted for you."),
    click.option("--epsilon", type=float, metavar="E", help="Total of this release, as the ledger enters it."),
    click.option("--delta", type=float, metavar="D", help="Total delta.  [default: 0]"),
    click.option(
        "--adjacency",
        type=click.Choice(["add_remove", "replace"]),
        help="One record more or less, or one changed with their number public.",
    ),
    click.option("--public", is_flag=True, default=None, help="The data are public or simulated."),
    click.option(
        "--output", "place", metavar="PLACE", help="Folder of the release, or table:NAME.  [default: in the store]"
    ),
    click.option("--evaluate", is_flag=True, help="Also errors of a separate, discarded draw; for --public data only."),
    click.option("--dry-run", is_flag=True, help="Show the plan, read and charge nothing."),
    click.option("--set", "sets", metavar="PATH=VALUE", multiple=True, help="Any setting by its path. Repeatable."),
    store_option,
    output_options,
)


@dp.command()
@click.option("--table", "tables", metavar="COLUMNS", multiple=True, help="Columns of one table, with commas. Repeatable.")
@click.option("--mechanism", type=click.Choice(["laplace", "gaussian"]), help="Noise.  [default: laplace]")
@click.option("--records", type=int, metavar="N", help="Also draw N synthetic records from the noisy tables.")
@release_options
@click.pass_obj
def histogram(terminal: Terminal, **values: Any) -> int:
    """Noisy 1-, 2- and k-way tables over declared domains, made consistent, with their guarantee."""
    from rapid_spark.releases.histogram import HistogramRelease

    more = {
        "mechanism": values["mechanism"],
        "histogram.records": values["records"],
        "histogram.tables": [list(_split(t)) for t in values["tables"]] or None,
    }
    return _release(terminal, HistogramRelease, values, more)


@dp.command()
@click.option("--columns", metavar="COLUMNS", multiple=True, callback=_commas, help="Columns of the table.")
@click.option("--order", type=float, metavar="A", help="Of Renyi's entropy.  [default: Shannon's]")
@click.option("--bound", type=click.Choice(["exact", "theorem3"]), help="Sensitivity.  [default: exact]")
@click.option("--target-error", type=float, metavar="BITS", help="In place of --epsilon: the smallest that meets it.")
@release_options
@click.pass_obj
def entropy(terminal: Terminal, **values: Any) -> int:
    """The entropy of a column or a table, in bits, under replace."""
    from rapid_spark.releases.entropy import EntropyRelease

    more = {
        "entropy.columns": list(values["columns"]) or None,
        "entropy.order": values["order"],
        "entropy.bound": values["bound"],
        "entropy.target_error": values["target_error"],
    }
    return _release(terminal, EntropyRelease, values, more)


@dp.command()
@click.option("--records", type=int, metavar="N", help="How many records, fixed beforehand.")
@click.option(
    "--kept", metavar="COLUMNS", multiple=True, callback=_commas, help="Columns copied from a seed; none: seedless."
)
@click.option("--gamma", type=float, metavar="G", help="Width of the classes of the privacy test.  [default: 4]")
@click.option("--pass-probability", type=float, metavar="P", help="What the noisy support must prove.  [default: 0.1]")
@release_options
@click.pass_obj
def synthetic(terminal: Terminal, **values: Any) -> int:
    """Synthetic records by mechanism F (plausible deniability), or without seeds by a private Bayesian network."""
    from rapid_spark.releases.synthetic import SyntheticRelease

    more = {
        "synthetic.records": values["records"],
        "synthetic.kept": list(values["kept"]) or None,
        "synthetic.gamma": values["gamma"],
        "synthetic.pass_probability": values["pass_probability"],
    }
    return _release(terminal, SyntheticRelease, values, more)


@dp.command()
@click.option("--penalty", type=float, metavar="RHO", help="Larger means less noise and more bias.  [default: 0.01]")
@click.option("--norm-limit", type=float, metavar="L", help="Largest L2 norm of a curve; longer ones are scaled down.")
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), help="Write a picture of the released curve.")
@release_options
@click.pass_obj
def curve(terminal: Terminal, plot: Path | None, **values: Any) -> int:
    """The mean of curves on [0, 1] in Wiener kernel space, under replace."""
    from rapid_spark.releases.curve import CurveRelease

    more = {"curve.penalty": values["penalty"], "curve.norm_limit": values["norm_limit"]}
    return _release(terminal, CurveRelease, values, more, plot)


@dp.command()
@click.option("--records", type=int, required=True, metavar="N", help="How many records, fixed beforehand.")
@click.option("--epsilon", type=float, required=True, metavar="E", help="Total of all records.")
@click.option("--delta", type=float, required=True, metavar="D", help="Total of all records.")
@click.option("--gamma", type=float, default=4.0, show_default=True, metavar="G", help="Width of the classes.")
@click.option("--pass-probability", type=float, metavar="P", help="Until N pass, with this P.  [default: N single shots]")
@click.option(
    "--bound",
    type=click.Choice(["theorem1", "tight"]),
    default="theorem1",
    show_default=True,
    help="Theorem 1 as printed, or the smaller delta proved in rapid_spark.reaedp.plausible.",
)
@click.option("--n-declared", type=int, metavar="N", help="Number of persons: also say whether they can carry it.")
@output_options
@click.pass_obj
def plan(terminal: Terminal, output: str, **values: Any) -> None:
    """Which k mechanism F needs for N records within (epsilon, delta), from declared constants alone; reads no data."""
    from rapid_spark.reaedp import plausible
    from rapid_spark.releases.desk import told

    with told():
        found = plausible.plan(
            values["records"], values["epsilon"], values["delta"], values["gamma"], values["pass_probability"],
            bound=values["bound"], n_declared=values["n_declared"],
        )  # fmt: skip
        if found["k"] is not None:
            found |= _remedies(found, values)
    if output == "json":
        click.echo(dumps(found))
    elif output == "csv":
        import pandas as pd

        click.echo(pd.DataFrame([found]).to_csv(index=False), nl=False)
    else:
        _say_plan(found, values)


def _remedies(found: dict[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """The least number of persons that could carry the plan, for `--n-declared` or without."""
    chance = values["pass_probability"]
    persons = found["k"] + 1 if chance is None else None
    if chance is not None and chance < 0.5:
        persons = int(found["k"] / (1 - 2 * chance)) + 1
    return {"persons_needed": persons, "adjacency": "add_remove"}


def _say_plan(found: dict[str, Any], values: Mapping[str, Any]) -> None:
    from . import finding

    out = finding.console()
    way = (
        "single shots, by Theorem 1 as printed"
        if values["pass_probability"] is None
        else (f"until {values['records']:,} pass, with probability {values['pass_probability']:g} each")
    )
    finding.say(out, f"{values['records']:,} records, {way}; adjacency add_remove, unit: one record.")
    if found["k"] is not None:
        rows = [[k, found[k]] for k in ("k", "t", "gamma", "epsilon0", *PLAN_KEYS[2:6])]
        out.print(finding.frame_table(["quantity", "value"], rows))
    if found["feasible"]:
        least = f" with more than {found['persons_needed'] - 1:,} persons" if found.get("persons_needed") else ""
        finding.say(out, f"Feasible: k = {found['k']:,} plausible seeds{least}.")
    else:
        finding.say(out, f"Not feasible: {found['reason']}.")


def _split(text: str) -> list[str]:
    import csv

    return [word.strip() for word in next(csv.reader([text], skipinitialspace=True))]


def _settings(values: Mapping[str, Any], more: Mapping[str, Any]) -> Any:
    from rapid_spark.releases.settings import load_release

    same = ("dataset", "release_id", "n_declared", "epsilon", "delta", "adjacency", "public")
    overrides: dict[str, Any] = {name: values[name] for name in same} | dict(more)
    overrides |= {"store.location": values["store"], "output": values["place"]}
    if values["original"]:
        overrides["original"] = table(values["original"])
    overrides = {k: v for k, v in overrides.items() if v is not None}
    for text in values["sets"]:
        path, value = parse_set(text)
        overrides.pop(path, None)
        overrides[path] = value
    return load_release(values["config_file"], overrides)


def _release(
    terminal: Terminal, kind: Any, values: Mapping[str, Any], more: Mapping[str, Any], plot: Path | None = None
) -> int:
    from rapid_spark.releases import desk

    from . import dp_finding

    terminal.configure_logging()
    config = _settings(values, more)
    planned = kind.of(config)
    for warning in planned.warnings:
        terminal.warn(warning)
    if values["dry_run"]:
        dp_finding.show_plan(planned, values["output"])
        return 0
    if values["output"] == "table":
        dp_finding.show_plan(planned, "table")  # before anything is drawn
    else:
        terminal.note(dp_finding.plan_line(planned))
    outcome = desk.release(
        planned, config, values["run_id"], evaluate=values["evaluate"], debug=terminal.debug, say=terminal.stage,
        watch=terminal.watch,
    )  # fmt: skip
    terminal.close()
    for warning in outcome.warnings[len(planned.warnings) :]:
        terminal.warn(warning)
    if plot is not None:
        from rapid_spark.releases.curve import draw_plot

        try:
            outcome.told["plot"] = str(draw_plot(outcome.frames["curve"], plot))
        except OSError as error:
            raise ConfigError(
                f"--plot {plot} cannot be written: {error.strerror}; the release is in {outcome.output}"
            ) from None
    dp_finding.show(outcome, values["output"])
    return 0

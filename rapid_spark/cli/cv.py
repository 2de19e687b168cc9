"""`rapid-spark cv`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pandas as pd

from rapid_spark.config import Config, ConfigError, suggest
from rapid_spark.strictjson import dumps

from .options import input_options, output_options, settings, together
from .synthesize import made
from .terminal import Terminal

_LEFT_OUT = {"--release", "--holdout", "--measure", "--release-id", "--registry"}


def _shared(function: Any) -> Any:
    """The options of an evaluation that make sense without a release."""
    together(input_options)(function)
    function.__click_params__ = [p for p in function.__click_params__ if not _LEFT_OUT & set(p.opts)]
    return function


@click.command()
@_shared
@click.option(
    "--generator", "--synthesizer", "texts", multiple=True, default=("cart",), show_default=True,
    metavar="NAME[:OPTION=VALUE,..]",
    help="cart, rows, sdv:model=GaussianCopula, 'command:program {original} {release} {n} {seed}', or a class by its "
    "import path; the last two with --allow-code. Repeat to compare.",
)  # fmt: skip
@click.option("--folds", type=click.IntRange(2, 100), default=5, show_default=True, help="Number of folds k.")
@click.option(
    "--max-rows", type=click.IntRange(20), default=500_000, show_default=True,
    help="Records used; of a larger original a seeded sample.",
)  # fmt: skip
@click.option(
    "--figure", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
    help="Where the figure goes (.png, .svg, .pdf).  [default: none]",
)  # fmt: skip
@output_options
@click.pass_obj
def cv(
    terminal: Terminal, texts: tuple[str, ...], folds: int, max_rows: int, figure: Path | None, output: str, **values: Any
) -> int:
    """Cross-validation of synthesizers: RAPID of people the release was not made from, and of those it was.

    The original is dealt into k folds, stratified by a categorical attribute. Each generator makes a release from all
    folds but one; an attacker trained on it is scored on the fold held out and, beside it, on the folds used, both
    against the whole original's prevalences. Folds are spread over Spark. One sensitive attribute and one attacker.
    """
    from rapid_spark import io, microdata, session
    from rapid_spark.interruption import interruptible
    from rapid_spark.studies import figures, validation
    from rapid_spark.underway import new_run_id

    terminal.configure_logging()
    config = _checked(settings(values), texts)
    seed, allow_code = config.training.seed, config.allow_code
    generators = tuple(made(text, {}, allow_code, seed)[0] for text in texts)
    if figure:
        figures.check_place(figure)
    assert config.original is not None
    terminal.stage("starting Spark")
    spark = session.get(config.session, terminal.debug, config.tables)
    terminal.watch(spark)
    with interruptible(spark, new_run_id()):
        terminal.stage("reading the original")
        roles = (getattr(config.columns, role) for role in ("person", "household", "weight", "stratum", "psu"))
        drop = [*config.columns.key, *(r for r in roles if r)]
        people = microdata.read(io.read(spark, config.original), drop, config.columns.missing_codes, max_rows, seed)
        question = _question(config, people)
        threshold = (
            config.threshold.tau["normalized_gain"] if question.target_type == "categorical" else config.threshold.tolerance
        )
        plan = validation.Plan(
            generators, question, config.attackers[0], threshold, folds, seed, config.intervals.confidence, allow_code
        )
        terminal.stage(f"{folds} folds, {len(generators)} generator{'s' if len(generators) > 1 else ''}")
        found = validation.run(spark, people.frame, plan)
    if figure:
        terminal.stage("drawing")
        figures.save(figures.draw_folds(found, threshold, question.target), figure)
    terminal.close()
    for warning in people.warnings:
        terminal.warn(warning)
    at_fault = [summary.pop("input_at_fault") for summary in found]
    document = {
        **{k: v for k, v in found[0].items() if k != "generator"}, "generators": found, "k": folds,
        "confidence": plan.confidence, "sensitive_attribute": question.target, "target_type": question.target_type,
        "quasi_identifiers": sorted(question.kinds), "attacker": plan.attacker.name, "threshold": threshold, "seed": seed,
        "n": people.n, "n_used": len(people.frame), "figure": str(figure) if figure else None,
        "warnings": list(people.warnings),
    }  # fmt: skip
    _show(document, output)
    if any(summary["status"] != "failed" for summary in found):
        return 0
    return 2 if all(at_fault) else 3


def _checked(config: Config, texts: tuple[str, ...]) -> Config:
    """What can be said before Spark starts."""
    from rapid_spark.preparation import attacker_faults

    faults = []
    if config.original is None:
        faults.append("original: name a table, in the file or by --original")
    if len(config.sensitive_attributes) != 1:
        n = len(config.sensitive_attributes)
        faults.append(f"sensitive_attributes: cross-validation takes one, found {n}: name it by --sensitive-attribute")
    elif config.sensitive_attributes[0].missing not in (None, "class", "drop"):
        faults.append("sensitive_attributes: cross-validation takes missing: class or drop")
    if len(config.sets) > 1:
        faults.append("qi_sets: cross-validation takes one set of quasi-identifiers: name it by --quasi-identifiers")
    if not config.all_quasi_identifiers:
        faults.append("quasi_identifiers: name what an attacker may know, by --quasi-identifiers")
    if len(config.attackers) != 1:
        faults.append(f"attackers: cross-validation takes one, found {len(config.attackers)}: name it by --attacker")
    if config.measures != ("normalized_gain",):
        faults.append("measures: cross-validation knows normalized_gain only")
    if len(set(texts)) < len(texts):
        faults.append("--generator: one is named twice")
    faults += attacker_faults(config)
    if faults:
        raise ConfigError("\n".join(faults))
    return config


def _question(config: Config, people: Any) -> Any:
    """Kinds of the quasi-identifiers and of the attribute, decided as an evaluation does."""
    from rapid_spark import attackers
    from rapid_spark.studies import local

    attribute = config.sensitive_attributes[0]
    named = {"quasi_identifiers": config.all_quasi_identifiers, "sensitive_attributes": (attribute.name,)}
    faults = [
        f"{setting}: {config.original and config.original.name} has no column {name!r}.{suggest(name, people.kinds)}"
        for setting, names in named.items() for name in names if name not in people.kinds
    ]  # fmt: skip
    if faults:
        raise ConfigError("\n".join(faults))
    numeric = ("integer", "number", "date", "timestamp")
    kinds = {
        name: config.columns.types.get(name) or ("numeric" if people.kinds[name] in numeric else "categorical")
        for name in config.all_quasi_identifiers
    }
    kind = people.kinds[attribute.name]
    if kind in ("date", "timestamp") and attribute.type != "categorical":
        raise ConfigError(f"sensitive_attributes: {attribute.name!r} holds dates: declare it categorical")
    target_type = attribute.type or ("continuous" if kind in ("integer", "number") else "categorical")
    if target_type == "continuous" and kind not in ("integer", "number"):
        raise ConfigError(f"sensitive_attributes: {attribute.name!r} holds no numbers: declare it categorical")
    values = people.frame[attribute.name]
    levels = int(values.nunique())
    if levels < 2:
        raise ConfigError(f"sensitive_attributes: {attribute.name!r} has {levels} distinct values: nothing to guess")
    if target_type == "categorical" and levels > attribute.max_levels:
        raise ConfigError(
            f"sensitive_attributes: {attribute.name!r} has {levels:,} levels, more than max_levels ({attribute.max_levels})"
        )
    if not attackers.serves(config.attackers[0].name, target_type, config.allow_code):
        raise ConfigError(f"attackers: {config.attackers[0].name} does not serve a {target_type} attribute")
    missing = attribute.missing or ("class" if target_type == "categorical" else "drop")
    return local.Question(kinds, attribute.name, target_type, missing, config.threshold)


def _show(document: dict[str, Any], output: str) -> None:
    if output == "json":
        click.echo(dumps(document))
        return
    rows = [{"generator": g["generator"], **fold} for g in document["generators"] for fold in g["folds"]]
    if output == "csv":
        click.echo(pd.DataFrame(rows).to_csv(index=False), nl=False)
        return
    from . import finding

    out = finding.console()
    finding.say(
        out, f"RAPID of {document['sensitive_attribute']} at threshold {document['threshold']:g}, attacker "
        f"{document['attacker']}, {document['k']} folds of {document['n_used']:,} records:",
    )  # fmt: skip
    level = f"{100 * document['confidence']:g} % interval"
    heads = ["generator", "held out", "sd", "se", level, "used", "used - held out", level.replace("interval", "interval "),
             "folds"]  # fmt: skip
    cells = []
    for g in document["generators"]:
        good = sum(fold["status"] == "ok" for fold in g["folds"])
        cells.append([
            g["generator"], _share(g["mean"]), _share(g["sd"]), _share(g["se"]), _between(g["ci_low"], g["ci_high"]),
            _share(g["mean_used"]), _share(g["difference"], "+"), _between(g["difference_low"], g["difference_high"], "+"),
            f"{good} of {len(g['folds'])}",
        ])  # fmt: skip
    out.print(finding.frame_table(heads, cells))
    for g in document["generators"]:
        for reason in dict.fromkeys(f["reason"] for f in g["folds"] if f["reason"]):
            finding.say(out, f"{g['generator']}: {reason}")
    finding.say(
        out, "Held out: people the release was not made from. Intervals allow for folds that share their records (Nadeau "
        "and Bengio); they speak of this generator on such people, not of one release.", "dim",
    )  # fmt: skip
    if document["figure"]:
        finding.say(out, f"figure {document['figure']}")


def _share(value: float | None, sign: str = "") -> str:
    return "–" if value is None else f"{value:{sign}.3f}"


def _between(low: float | None, high: float | None, sign: str = "") -> str:
    return "–" if low is None or high is None else f"[{low:{sign}.3f}, {high:{sign}.3f}]"

"""Options that commands share, and how they lie over the configuration file."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from rapid_spark.config import ERRORS, MEASURES, Config, load, parse_set

from .terminal import Terminal

F = TypeVar("F", bound=Callable[..., Any])
FORMATS = ("table", "json", "csv")
_DATA_SUFFIXES = ("csv", "gz", "txt", "tsv", "parquet", "delta", "sav", "dta", "sas7bdat", "xpt")
_DEFAULTS = Config()


def together(*decorators: Callable[[F], F]) -> Callable[[F], F]:
    """Several options as one decorator, shown in this order."""

    def apply(function: F) -> F:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return apply


def _tell_terminal(ctx: click.Context, param: click.Parameter, value: bool) -> bool:
    terminal = ctx.find_object(Terminal)
    if terminal is not None and value:
        setattr(terminal, str(param.name), value)
    return value


def _switch(name: str, text: str) -> Callable[[F], F]:
    return click.option(name, is_flag=True, is_eager=True, expose_value=False, callback=_tell_terminal, help=text)


def _commas(ctx: click.Context, param: click.Parameter, value: Any) -> tuple[str, ...]:
    """Split `a,b,"c,d"`; an option that is given several times is one list."""
    texts = [value] if isinstance(value, str) else list(value or ())
    try:
        return tuple(word.strip() for row in csv.reader(texts, skipinitialspace=True, strict=True) for word in row)
    except csv.Error:
        raise click.BadParameter("expected names separated by commas; a name with a comma stands in quotes") from None


def output_as(formats: Sequence[str], text: str) -> Callable[[F], F]:
    """`--format` with these choices, the first by default, and the switches of every command."""
    return together(
        click.option("--format", "output", type=click.Choice(formats), default=formats[0], show_default=True, help=text),
        _switch("--quiet", "No progress."),
        _switch("--debug", "Traces and Spark's own log on standard error; they may show values of the tables."),
        _switch("--log-json", "Progress and messages as JSON lines on standard error."),
    )


output_options = output_as(FORMATS, "Form of the result on standard output.")
store_option = click.option(
    "--store",
    metavar="PLACE",
    help="Directory (with a / or a leading .), or schema:[catalog.]schema.  [default: ./rapid-store]",
)
tracking_options = together(
    click.option("--tracking-uri", metavar="URI", help="MLflow tracking.  [default: SQLite in the store's directory]"),
    click.option("--experiment", metavar="NAME", help="MLflow experiment, by name or id.  [default: rapid-spark]"),
    click.option("--no-tracking", is_flag=True, help="No MLflow run."),
)
input_options = together(
    click.option("--config", "config_file", metavar="FILE", help="YAML; every option below overrides it."),
    click.option(
        "--original", metavar="TABLE", help="File, folder, Delta path, or table of the catalog ([catalog.]schema.table)."
    ),
    click.option("--release", metavar="TABLE", multiple=True, help="As --original. Repeat for the replicates of a release."),
    click.option("--holdout", metavar="TABLE", help="Real people who were not used to make the release."),
    click.option(
        "--key",
        metavar="COLUMNS",
        multiple=True,
        callback=_commas,
        help="Record key, one or several columns.  [default: line number of a single file]",
    ),
    click.option(
        "--quasi-identifiers",
        metavar="COLUMNS",
        multiple=True,
        callback=_commas,
        help="What the attacker knows, separated by commas.",
    ),
    click.option(
        "--sensitive-attribute",
        metavar="NAME[:KIND]",
        multiple=True,
        help="What they would like to know; KIND is categorical or continuous, read from the data when left "
        "out. Repeatable.",
    ),
    click.option(
        "--attacker",
        metavar="NAME",
        multiple=True,
        help="rf, gbm, cart, logit, lm, or an estimator's import path (with --allow-code). Repeatable.  [default: rf]",
    ),
    click.option("--allow-code", is_flag=True, default=None, help="Allow estimators by import path."),
    click.option(
        "--measure",
        type=click.Choice(list(MEASURES)),
        multiple=True,
        help="Of a categorical attribute. Repeatable.  [default: normalized_gain]",
    ),
    click.option(
        "--tau",
        type=float,
        metavar="SHARE",
        help="Threshold of the measure.  [default: "
        + ", ".join(f"{default:g} for {m}" for m, (default, _, _) in MEASURES.items())
        + "]",
    ),
    click.option(
        "--error",
        type=click.Choice(ERRORS),
        help=f"Error of a continuous attribute.  [default: {_DEFAULTS.threshold.error}]",
    ),
    click.option(
        "--tolerance",
        "--epsilon",
        type=float,
        metavar="SHARE",
        help="Error that still counts as a right guess: a share, or units of the attribute with --error "
        f"absolute.  [default: {_DEFAULTS.threshold.tolerance:g}]",
    ),
    click.option("--registry", metavar="ID", help=f"Name of the registry.  [default: {_DEFAULTS.registry}]"),
    click.option("--release-id", metavar="ID", help=f"Name of the release.  [default: {_DEFAULTS.release_id}]"),
    click.option("--seed", type=int, metavar="N", help=f"Seed of every random step.  [default: {_DEFAULTS.training.seed}]"),
    click.option(
        "--set",
        "sets",
        metavar="PATH=VALUE",
        multiple=True,
        help="Any setting by its path, e.g. training.max_train_rows=100000. Repeatable; overrides the rest.",
    ),
)

# for commands whose --epsilon is a privacy budget
attack_input_options = together(
    click.option("--config", "config_file", metavar="FILE", help="YAML; every option below overrides it."),
    click.option("--original", metavar="TABLE", help="File, folder, Delta path, or table of the catalog."),
    click.option("--release", metavar="TABLE", multiple=True, help="As --original. Repeat for the replicates of a release."),
    click.option("--holdout", metavar="TABLE", help="Real people who were not used to make the release."),
    click.option("--key", metavar="COLUMNS", multiple=True, callback=_commas, help="Record key, one or several columns."),
    click.option("--quasi-identifiers", metavar="COLUMNS", multiple=True, callback=_commas, help="What the attacker knows."),
    click.option("--sensitive-attribute", metavar="NAME[:KIND]", multiple=True, help="What they would like to know."),
    click.option("--tolerance", type=float, metavar="SHARE", help="Error that still counts as a right guess of a number."),
    click.option("--registry", metavar="ID", help=f"Name of the registry.  [default: {_DEFAULTS.registry}]"),
    click.option("--release-id", metavar="ID", help=f"Name of the release.  [default: {_DEFAULTS.release_id}]"),
    click.option("--seed", type=int, metavar="N", help=f"Seed of every random step.  [default: {_DEFAULTS.training.seed}]"),
    click.option("--set", "sets", metavar="PATH=VALUE", multiple=True, help="Any setting by its path. Repeatable."),
)


def settings(values: Mapping[str, Any]) -> Config:
    """The configuration: the file, over it the options, over them --set.

    Raises:
        ConfigError: with every fault found.
    """
    overrides: dict[str, Any] = {}
    plain = {
        "registry": "registry",
        "release_id": "release_id",
        "measure": "measures",
        "tau": "threshold.tau",
        "error": "threshold.error",
        "tolerance": "threshold.tolerance",
        "seed": "training.seed",
        "attacker": "attackers",
        "allow_code": "allow_code",
        "sensitive_attribute": "sensitive_attributes",
        "key": "columns.key",
        "store": "store.location",
        "tracking_uri": "tracking.uri",
        "experiment": "tracking.experiment",
    }
    for option, path in plain.items():
        value = values.get(option)
        if value is not None and value != ():
            overrides[path] = list(value) if isinstance(value, tuple) else value
    for option in ("original", "holdout"):
        if values.get(option):
            overrides[option] = table(values[option])
    if values.get("release"):
        overrides["release"] = [table(text) for text in values["release"]]
    if values.get("quasi_identifiers"):
        overrides |= {"quasi_identifiers": list(values["quasi_identifiers"]), "qi_sets": {}}
    if values.get("no_tracking"):
        overrides["tracking.enabled"] = False
    for text in values.get("sets") or ():
        path, value = parse_set(text)
        overrides.pop(path, None)  # the last word is --set's, also in the order of laying
        overrides[path] = value
    return load(values.get("config_file"), overrides)


def table(text: str) -> dict[str, str]:
    """A table given as one word: `table:NAME` or a dotted name that is no file is a table of the catalog."""
    if text.startswith("table:"):
        return {"table": text.removeprefix("table:")}
    parts = text.split(".")
    dotted = len(parts) in (2, 3) and all(re.fullmatch(r"\w+", part) for part in parts)
    if dotted and parts[-1].lower() not in _DATA_SUFFIXES and not Path(text).exists():
        return {"table": text}
    return {"path": text}


def names(values: Sequence[Any], most: int = 8) -> str:
    """A short list in words."""
    texts = [str(v) for v in values]
    return ", ".join(texts[:most]) + (f" and {len(texts) - most} more" if len(texts) > most else "")

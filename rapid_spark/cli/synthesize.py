"""`rapid-spark synthesize`."""

from __future__ import annotations

import time
from typing import Any

import click
import pandas as pd

from rapid_spark.config import Config, ConfigError, load
from rapid_spark.strictjson import dumps

from .options import _commas as commas
from .options import output_options, table, together
from .terminal import Terminal

SEED = 20260
_SEEDS = click.IntRange(0, 2**31 - 1)

cart_options = together(
    click.option("--min-leaf", type=int, metavar="N", help="Fewest records of the original in a leaf (cart).  [default: 5]"),
    click.option(
        "--visit-order", metavar="COLUMNS", multiple=True, callback=commas,
        help="Columns in the order of synthesis; those not named follow (cart).",
    ),
    click.option("--smoothing", is_flag=True, help="Move numbers and dates among their neighbours (cart)."),
    click.option("--proper", is_flag=True, help="Learn from a bootstrap of the records, anew for each copy (cart)."),
)  # fmt: skip


@click.command()
@click.option("--original", required=True, metavar="TABLE", help="File, folder, Delta path, or table of the catalog.")
@click.option(
    "--output", "place", required=True, metavar="FILE",
    help="Where the copy goes: .csv, .csv.gz, .parquet, or a folder (.delta or no ending) for Delta. Several copies get "
    "_1, _2, .. before the ending.",
)  # fmt: skip
@click.option("--key", metavar="COLUMNS", multiple=True, callback=commas, help="Record key: not synthesised.")
@click.option("--drop", metavar="COLUMNS", multiple=True, callback=commas, help="Further columns to leave out.")
@click.option("--replicates", type=click.IntRange(1, 1000), default=1, show_default=True, help="Number of copies.")
@click.option("--records", type=click.IntRange(1), metavar="N", help="Records of a copy.  [default: as the original]")
@click.option(
    "--generator", "--synthesizer", "text", default="cart", show_default=True, metavar="NAME[:OPTION=VALUE,..]",
    help="cart, rows, sdv:model=GaussianCopula, 'command:program {original} {release} {n} {seed}', or a class by its "
    "import path; the last two with --allow-code.",
)  # fmt: skip
@cart_options
@click.option("--allow-code", is_flag=True, help="Allow generators that are commands or import paths.")
@click.option(
    "--max-rows", type=click.IntRange(10), default=500_000, show_default=True,
    help="Records to learn from; of a larger original a seeded sample.",
)  # fmt: skip
@click.option("--seed", type=_SEEDS, default=SEED, show_default=True, help="Seed of sample, learning and draws.")
@click.option("--force", is_flag=True, help="Replace files that exist.")
@output_options
@click.pass_obj
def synthesize(
    terminal: Terminal, original: str, place: str, key: tuple[str, ...], drop: tuple[str, ...], replicates: int,
    records: int | None, text: str, allow_code: bool, max_rows: int, seed: int, force: bool, output: str, **cart: Any,
) -> None:  # fmt: skip
    """Make synthetic copies of a table: a CART synthesizer, or any other generator.

    A release made here is not safe because it is synthetic: evaluate it, and only then decide.
    """
    from rapid_spark import generation, io, microdata, session
    from rapid_spark.interruption import interruptible
    from rapid_spark.underway import new_run_id

    terminal.configure_logging()
    started = time.perf_counter()
    where = generation.place(place, replicates, force)
    generator, synthesizer = made(text, cart, allow_code, seed)
    config: Config = load(None, {"original": table(original)})
    if config.original is None:
        raise ConfigError("--original: name a table")
    terminal.stage("starting Spark")
    spark = session.get(config.session, terminal.debug, config.tables)
    terminal.watch(spark)
    with interruptible(spark, new_run_id()):
        terminal.stage("reading the original")
        people = microdata.read(io.read(spark, config.original), [*key, *drop], None, max_rows, seed)
        n = records or people.n
        terminal.stage(f"making {replicates} {'copy' if replicates == 1 else 'copies'} of {n:,} records")
        generation.generate(spark, people, synthesizer, n, seed, where)
    terminal.close()
    for warning in people.warnings:
        terminal.warn(warning)
    document = {
        "original": config.original.name, "generator": generator.text, "options": dict(generator.options), "seed": seed,
        "n_original": people.n, "n_learned_from": len(people.frame), "columns": list(people.kinds), "records": n,
        "releases": generation.paths_of(where), "warnings": list(people.warnings),
        "seconds": round(time.perf_counter() - started, 3),
    }  # fmt: skip
    _show(document, output)


def made(text: str, cart: dict[str, Any], allow_code: bool, seed: int | None) -> tuple[Any, Any]:
    """A generator as it is named, with the options that have flags of their own; and it built, unfitted.

    Raises:
        ConfigError: what is wrong with it.
    """
    from rapid_spark.synthesizers import Generator

    said = {k: v for k, v in cart.items() if v is not None and v is not False and v != ()}
    given = {k: list(v) if isinstance(v, tuple) else v for k, v in said.items()}
    try:
        generator = Generator.parse(text)
        if given and generator.kind != "cart":
            flags = ", ".join(f"--{name.replace('_', '-')}" for name in given)
            raise ConfigError(f"{flags}: for generator cart only, not for {generator.kind}")
        generator = Generator(generator.text, generator.kind, {**generator.options, **given})
        return generator, generator.make(allow_code, seed)
    except ConfigError:
        raise
    except (ValueError, TypeError) as error:
        raise ConfigError(f"--generator: {error}") from None


def _show(document: dict[str, Any], output: str) -> None:
    if output == "json":
        click.echo(dumps(document))
    elif output == "csv":
        rows = [{"replicate": j, "release": path, "records": document["records"]} for j, path in
                enumerate(document["releases"], 1)]  # fmt: skip
        click.echo(pd.DataFrame(rows).to_csv(index=False), nl=False)
    else:
        click.echo(
            f"{document['generator']} learned {len(document['columns'])} columns from "
            f"{document['n_learned_from']:,} of {document['n_original']:,} records; {document['records']:,} records a copy:"
        )
        for path in document["releases"]:
            click.echo(f"  {path}")
        click.echo("Synthetic is not the same as safe: rapid-spark evaluate says what a copy gives away.")

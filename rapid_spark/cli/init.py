"""`rapid-spark init`: write a commented configuration to start from."""

from __future__ import annotations

from pathlib import Path

import click

from rapid_spark.config import ConfigError

from .template import template


@click.command()
@click.argument("file", default="rapid-spark.yml", metavar="[FILE]")
@click.option("--force", is_flag=True, help="Replace a file that exists.")
def init(file: str, force: bool) -> None:
    """Write a commented configuration to FILE (rapid-spark.yml when left out, standard output for -)."""
    text = template()
    if file == "-":
        click.echo(text, nl=False)
        return
    path = Path(file)
    try:
        with path.open("w" if force else "x", encoding="utf-8") as out:
            out.write(text)
    except FileExistsError:
        raise ConfigError(f"{file} exists: name another file, or replace it with --force") from None
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}") from None
    click.echo(f"{file} written. Edit it, then: rapid-spark check --config {file}")

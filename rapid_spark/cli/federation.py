"""`rapid-spark export` and `import`."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from rapid_spark.config import ConfigError
from rapid_spark.strictjson import dumps

from .options import output_options, store_option
from .query import opened_store
from .terminal import Terminal

KEY_VARIABLE = "RAPID_SPARK_EXPORT_KEY"

key_option = click.option(
    "--key-env", metavar="NAME",
    help=f"Variable of the environment that holds the signing key.  [default: {KEY_VARIABLE}, where it is set]",
)  # fmt: skip


@click.command()
@click.option("--run", "run_id", required=True, help="Run to export, as runs and latest_runs name it.")
@click.option("--output", "path", type=click.Path(dir_okay=False, path_type=Path),
              help="File to write; rapid-RUN.json in the current folder when left out.")
@click.option("--rounding", type=click.IntRange(min=2), metavar="BASE",
              help="Round counts to multiples of it.  [default, and least: the run's publish.rounding]")
@click.option("--min-cell-count", type=click.IntRange(min=2), metavar="N",
              help="Withhold counts of fewer people.  [default, and least: the run's drivers.min_cell_count]")
@key_option
@store_option
@output_options
@click.pass_obj
def export(
    terminal: Terminal, run_id: str, path: Path | None, rounding: int | None, min_cell_count: int | None,
    key_env: str | None, store: str | None, output: str,
) -> None:
    """Write a finished run's aggregates as one file: no record, no key, no small count leaves the store."""
    from rapid_spark.federation import document, outgoing, published

    key = _key(key_env)
    with opened_store(terminal, store) as opened:
        terminal.stage("reading run")
        found = outgoing.collect(opened, run_id, rounding, min_cell_count)
        content = document.encode(found.document, key)
        target = path or Path(f"rapid-{run_id}.json")
        terminal.stage("writing file")
        with replacing(target) as temporary:
            temporary.write_bytes(content)
            # entered first: what is published must be known when the next file is
            published.enter(opened, found.document, content)
    terminal.close()
    for warning in found.warnings:
        terminal.warn(warning)
    rows = {name: len(frame) for name, frame in found.document.tables.items()}
    if output == "json":
        click.echo(dumps({"run_id": run_id, "file": str(target), "signed": key is not None, "rows": rows,
                          "withheld": found.withheld, "warnings": found.warnings}))  # fmt: skip
        return
    if output == "table":
        click.echo(f"export {target}, {'signed' if key else f'not signed (set {KEY_VARIABLE} to sign)'}")
    _show(rows, found.withheld, output)


@click.command(name="import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--run-id", metavar="ID", help="Store it under another id.  [default: the file's own]")
@click.option("--allow-unverified", is_flag=True,
              help="Take a file without signature though a key is set, or a signed one without the key.")
@key_option
@store_option
@output_options
@click.pass_obj
def import_(
    terminal: Terminal, file: Path, run_id: str | None, allow_unverified: bool, key_env: str | None, store: str | None,
    output: str,
) -> None:
    """Verify an exported file and load it into this store, where the views show it beside the others."""
    from rapid_spark.federation import checks, document, incoming

    key = _key(key_env)
    try:
        if file.stat().st_size > document.LARGEST:
            raise ConfigError(f"{file}: too large for an export")
        content = file.read_bytes()
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}") from None
    try:
        found = document.decode(content, key, allow_unverified)
        checks.check(found)
    except ConfigError as error:
        raise ConfigError(f"{file}: {error}") from None
    with opened_store(terminal, store, create=True) as opened:
        terminal.stage("writing tables")
        rows = incoming.load(opened, found, run_id)
    terminal.close()
    target = run_id or found.manifest["run_id"]
    if output == "json":
        click.echo(dumps({"run_id": target, "store": str(opened), "signed": found.signed, "rows": rows,
                          "protection": found.manifest.get("protection")}))  # fmt: skip
        return
    if output == "table":
        click.echo(f"imported run {target}, {'signature verified' if found.signed else 'digests verified, no signature'}")
    _show(rows, {}, output)


def _show(rows: Mapping[str, int], withheld: Mapping[str, int], output: str) -> None:
    """Rows by table, and how many of them have no figures or were left out."""
    if output == "csv":
        click.echo("table,rows,withheld")
    for name, n in rows.items():
        hidden = withheld.get(name, 0)
        told = f", {hidden:,} withheld" if hidden else ""
        click.echo(f"{name},{n},{hidden}" if output == "csv" else f"  {name}: {n:,} rows{told}")


def _key(variable: str | None) -> bytes | None:
    value = os.environ.get(variable or KEY_VARIABLE)
    if value:
        return value.encode("utf-8")
    if variable:
        raise ConfigError(f"--key-env: there is no variable {variable} in the environment, or it is empty")
    return None


@contextlib.contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A temporary file, readable by its owner only, that takes a target's place when all went well."""
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}-")
    except OSError as error:
        raise ConfigError(f"--output {target} cannot be written: {error.strerror}") from None
    os.close(handle)
    try:
        yield Path(name)
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise

"""Synthetic copies of a table into files: on the driver while they are small, on Spark's workers where they are large."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame, SparkSession

from .config import ConfigError
from .microdata import Microdata
from .scoring import ship
from .synthesizers import CartSynthesizer, Synthesizer

CHUNK = 200_000  # records drawn at once; more are drawn in such pieces, by the workers
DELTA_REFUSES = set(" ,;{}()\n\t=")  # in column names
ENDINGS = {".csv": "csv", ".csv.gz": "csv", ".parquet": "parquet", ".delta": "delta", "": "delta"}


@dataclass(frozen=True)
class Place:
    """Where the copies go.

    Attributes:
        paths: one per copy.
        form: 'csv', 'parquet' or 'delta'.
        force: replace what is there.
    """

    paths: tuple[Path, ...]
    form: str
    force: bool = False


def place(output: str, m: int, force: bool = False) -> Place:
    """Where m copies go: OUTPUT itself for one; its name with _1, _2, .. before the ending for several.

    Raises:
        ConfigError: an unknown ending, no such folder, or something is there already (without force).
    """
    path = Path(output).expanduser().absolute()
    ending = "".join(path.suffixes[-2:]).lower() if path.name.lower().endswith(".csv.gz") else path.suffix.lower()
    if ending not in ENDINGS:
        raise ConfigError(f"--output {output}: the ending must be .csv, .csv.gz, .parquet, or .delta or none for Delta")
    if not path.parent.is_dir():
        raise ConfigError(f"--output {output}: there is no folder {path.parent}")
    stem = path.name[: len(path.name) - len(ending)]
    names = [path.name] if m == 1 else [f"{stem}_{j}{path.name[len(stem):]}" for j in range(1, m + 1)]
    paths = tuple(path.parent / name for name in names)
    there = [p.name for p in paths if p.exists()]
    if there and not force:
        raise ConfigError(f"--output: {', '.join(there)} exists in {path.parent}: name another place, or give --force")
    return Place(paths, ENDINGS[ending], force)


def generate(
    spark: SparkSession, people: Microdata, synthesizer: Synthesizer, n: int, seed: int, where: Place
) -> list[int]:
    """Learn from the records and write one copy to every place.

    Copy j hangs on the seed and j alone. A generator with a true attribute `proper` learns anew for every copy. Copies
    of more than CHUNK records are drawn in pieces by the workers, and CSV and Parquet are then folders of files.

    Args:
        spark: session.
        people: what is learned from.
        synthesizer: the generator, unfitted.
        n: records of each copy.
        seed: of the draws.
        where: places of the copies.

    Returns:
        Number of records of each copy.

    Raises:
        ConfigError: the generator cannot learn from the table, or a place cannot be written.
    """
    odd = [name for name in people.kinds if set(name) & DELTA_REFUSES]
    if where.form == "delta" and odd:
        names = ", ".join(map(repr, odd[:8]))
        raise ConfigError(f"--output: Delta takes no spaces, commas or brackets in column names ({names}): write CSV")
    proper = bool(getattr(synthesizer, "proper", False))
    written = []
    try:
        if not proper:
            synthesizer.fit(people.frame)
        for j, path in enumerate(where.paths, 1):
            own = int(np.random.SeedSequence([seed, j]).generate_state(1)[0])
            if proper:
                synthesizer = synthesizer.reseeded(own)  # type: ignore[attr-defined]
                synthesizer.fit(people.frame)
            if n <= CHUNK or not _by_pieces(synthesizer):
                frame = synthesizer.sample(n, own)
                _write_small(spark, frame, people, path, where)
            else:
                _write_large(drawn_on_spark(spark, people, synthesizer, n, own), people, path, where)
            written.append(n)
    except ConfigError:
        raise
    except ValueError as error:
        raise ConfigError(str(error)) from None
    except OSError as error:
        raise ConfigError(f"--output: {where.paths[0].parent} cannot be written: {error.strerror}") from None
    return written


def drawn_on_spark(
    spark: SparkSession, people: Microdata, synthesizer: Synthesizer, n: int, seed: int
) -> DataFrame:
    """n records of a fitted generator, drawn by the workers in pieces of at most CHUNK, each with a seed of its own.

    The pieces, and so the records, are the same for any number of workers.
    """
    carrier = ship(spark, synthesizer)
    pieces = -(-n // CHUNK)
    sizes = [min(CHUNK, n - i * CHUNK) for i in range(pieces)]

    def draw(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        drawer: Any = carrier.load()
        for batch in batches:
            for piece in batch["id"]:
                yield drawer.sample(sizes[int(piece)], [seed, int(piece)])

    return spark.range(0, pieces, 1, pieces).mapInPandas(draw, people.spark_frame.schema)


def _by_pieces(synthesizer: Synthesizer) -> bool:
    """Whether records drawn in pieces are as good as those drawn at once, and a piece costs only its own draw."""
    return isinstance(synthesizer, CartSynthesizer)


def _write_small(spark: SparkSession, frame: pd.DataFrame, people: Microdata, path: Path, where: Place) -> None:
    if where.form == "delta":
        _write_large(spark.createDataFrame(frame, people.spark_frame.schema), people, path, where)
        return
    # the name's ending decides on compression, so the partial file has it too
    handle, name = tempfile.mkstemp(prefix=".partial-", suffix="".join(path.suffixes[-2:]), dir=path.parent)
    os.close(handle)
    partial = Path(name)
    try:
        if where.form == "csv":
            _as_text(frame, people).to_csv(partial, index=False)
        else:
            frame.to_parquet(partial, index=False)
        _move(partial, path, where.force)
    finally:
        partial.unlink(missing_ok=True)


def _write_large(frame: DataFrame, people: Microdata, path: Path, where: Place) -> None:
    folder = Path(tempfile.mkdtemp(prefix=".partial-", dir=path.parent))
    try:
        inner = folder / "table"
        writer = frame.write
        if where.form == "csv":
            writer = writer.options(header=True, escape='"', emptyValue="")
            if path.name.lower().endswith(".gz"):
                writer = writer.option("compression", "gzip")
        writer.format(where.form).save(str(inner))
        _move(inner, path, where.force)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _move(done: Path, path: Path, force: bool) -> None:
    if path.is_dir() and force:
        shutil.rmtree(path)
    elif path.exists() and not force:
        raise ConfigError(f"--output: {path.name} exists by now: name another place, or give --force")
    os.replace(done, path)


def _as_text(frame: pd.DataFrame, people: Microdata) -> pd.DataFrame:
    """Booleans as true and false, as CSV files have them."""
    booleans = [name for name in frame.columns if people.kinds[str(name)] == "boolean"]
    words = {name: frame[name].map({True: "true", False: "false"}) for name in booleans}
    return frame.assign(**words)


def paths_of(where: Place) -> Sequence[str]:
    """The places as text."""
    return [str(path) for path in where.paths]

"""Write a release with its columns recoded, and a configuration that evaluates what was written."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import functions as F

from ..config import Config, ConfigError, Recode, Table, check_identifier, parse_as
from ..io import Source, quoted, read
from .advise import dumped
from .trial import file_names, recoded

EVALUATE = "evaluate.yml"


def write_recoded(
    spark: Any, config: Config, folder: Path, form: str, release_id: str | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Apply `recode` to every file of the release and write the results into a folder.

    Values of columns that are not recoded stay as they are. A file is complete or not there.

    Args:
        spark: session.
        config: with release and recode.
        folder: where to write; made at need.
        form: 'csv' (gzip) or 'parquet'.
        release_id: of the coarser release; the old one's with '-recoded' when left out.
        say: called with the name of each stage.

    Returns:
        `{"releases", "config", "columns", "rows"}`.

    Raises:
        ConfigError: nothing to recode, a column is missing, a record is broken, or a file is there already; then nothing
            is written.
    """
    if not config.release:
        raise ConfigError("release: name a table, in the file or by --release")
    if not any(r.changes or r.drop for r in config.recode.values()):
        raise ConfigError("recode: nothing is recoded; say what becomes of which column, e.g. recode: {age: {bands: 10}}")
    new_id = check_identifier(release_id or f"{config.release_id}-recoded"[:128])
    places = [folder / name for name in file_names(config.release, form)]
    there = [p for p in (*places, folder / EVALUATE) if p.exists()]
    if there:
        raise ConfigError(f"--output: {there[0]} is there already: name another folder")
    changed = {n: r for n, r in config.recode.items() if r.changes or r.drop}
    frames = []
    for table in config.release:  # all of them before anything is written
        say(f"checking {table.name}")
        frames.append(_recoded(read(spark, table), changed, config))
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for table, frame, place in zip(config.release, frames, places, strict=True):
        say(f"recoding {table.name}")
        rows.append(_write(frame, place, form))
    config_file = folder / EVALUATE
    releases = [
        Table(path=str(p), replicate_column=t.replicate_column) for t, p in zip(config.release, places, strict=True)
    ]
    evaluating = parse_as(Config, {
        **config.model_dump(mode="json"), "release": [t.model_dump(mode="json") for t in releases], "release_id": new_id,
    })
    config_file.write_text(
        f"# Release {new_id}: {config.release_id} with the columns under recode made coarser.\n" + dumped(evaluating),
        encoding="utf-8",
    )
    return {"release_id": new_id, "releases": [str(p) for p in places], "config": str(config_file),
            "columns": sorted(changed), "rows": rows}


def _recoded(source: Source, changed: Mapping[str, Recode], config: Config) -> Any:
    """The rows of a file as they are to be written; its faults are told now."""
    lower = {c.lower() for c in source.columns}
    missing = [n for n in changed if n.lower() not in lower]
    if missing:
        raise ConfigError(f"recode: {source.name} has no column {missing[0]!r}")
    source.check_records()
    done = recoded(source, changed, config)
    return done.frame.select(*(F.col(quoted(c)) for c in done.columns))


def _write(frame: Any, place: Path, form: str) -> int:
    """Write a frame as one file, under its name only once it is complete; the number of rows."""
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=".recoding-") as scratch:
        out = frame.coalesce(1).write.mode("overwrite")
        if form == "csv":
            options = {"header": True, "compression": "gzip", "escape": '"', "nullValue": "", "emptyValue": "",
                       "ignoreLeadingWhiteSpace": False, "ignoreTrailingWhiteSpace": False}  # fmt: skip
            out.options(**options).csv(f"{scratch}/out")
        else:
            out.parquet(f"{scratch}/out")
        part = next(p for p in Path(scratch, "out").iterdir() if p.name.startswith("part-"))
        shutil.move(str(part), str(place))
    with contextlib.suppress(OSError):
        place.chmod(0o600)
    return int(frame.count())

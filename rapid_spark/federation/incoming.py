"""Into a store: a verified document becomes a finished run, under its own id or another."""

from __future__ import annotations

from datetime import date
from typing import Any

import pandas as pd

from rapid_spark.config import ConfigError, check_identifier
from rapid_spark.publishing import TABLES
from rapid_spark.store import Store
from rapid_spark.strictjson import dumps
from rapid_spark.tables import tables

from .checks import check
from .document import Document

COMMAND = "import"


def load(store: Store, document: Document, run_id: str | None = None) -> dict[str, int]:
    """Write a document's rows into a store as one finished run.

    Nothing is written before everything has been checked. An import that broke off shows in no view, and is completed by
    importing the file again.

    Args:
        store: central store.
        document: as decoded.
        run_id: another id, where the store has one like the file's from elsewhere.

    Returns:
        Rows written by table.

    Raises:
        ConfigError: the rows are not what an export holds; the run is in the store already.
    """
    places = check(document)
    manifest = document.manifest
    target = run_id or str(manifest["run_id"])
    try:
        check_identifier(target)
    except ValueError as error:
        raise ConfigError(f"--run-id: {error}") from None
    _refuse_duplicates(store, document, target)
    attempt = store.begin(
        target,
        COMMAND,
        dumps(document.settings),
        str(manifest.get("settings_digest") or ""),
        {
            "imported": {
                "run_id": manifest["run_id"],
                "manifest_sha256": document.sha256,
                "command": manifest.get("command"),
                "exported_at": manifest.get("exported_at"),
                "evaluated": {"started_at": manifest.get("started_at"), "ended_at": manifest.get("ended_at")},
                "signed": document.signed,
                "protection": manifest.get("protection"),
            }
        },
        document.package_versions,
        quasi_identifiers=manifest.get("quasi_identifiers"),
        release_date=_date(manifest.get("release_date")),
        n_release=manifest.get("n_release"),
    )
    versions: dict[str, int | None] = {}
    written: dict[str, int] = {}
    try:
        left = _left_over(store, target) if attempt.number > 1 else set()
        for name in TABLES:
            rows = document.tables.get(name)
            if rows is None:
                if name not in left:
                    continue
                rows = pd.DataFrame(columns=list(tables()[name].columns))
            for registry, release in places:
                part = rows[(rows["registry"] == registry) & (rows["release_id"] == release)]
                if len(part) or name in left:
                    versions[name] = store.write(attempt, name, part.reset_index(drop=True), registry, release)
            written[name] = len(rows)
    except BaseException:
        store.end(attempt, "failed", table_versions=versions)
        raise
    store.end(attempt, "finished", table_versions=versions)
    return written


def _refuse_duplicates(store: Store, document: Document, run_id: str) -> None:
    rows = store.query(
        "SELECT run_id, command, get_json_object(inputs, '$.imported.manifest_sha256') AS sha256 FROM finished_runs "
        f"WHERE run_id = '{run_id}' OR get_json_object(inputs, '$.imported.manifest_sha256') = '{document.sha256}'"
    ).collect()
    for row in rows:
        if row["sha256"] == document.sha256:
            raise ConfigError(f"the file has been imported already, as run {row['run_id']}: nothing was written")
        raise ConfigError(
            f"{store} has another finished run {run_id}, of command {row['command']!r}: "
            "import under another id with --run-id; nothing was written"
        )


def _left_over(store: Store, run_id: str) -> set[str]:
    """Tables in which an import that broke off has left rows."""
    there = store.warehouse.existing()
    counts = " UNION ALL ".join(
        f"SELECT '{name}' AS name, count(*) AS n FROM {name} WHERE run_id = '{run_id}'" for name in TABLES if name in there
    )
    return {row["name"] for row in store.query(f"SELECT name FROM ({counts}) WHERE n > 0").collect()}


def _date(text: Any) -> date | None:
    return None if text is None else date.fromisoformat(str(text)[:10])

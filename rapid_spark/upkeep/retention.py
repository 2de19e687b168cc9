"""Retention: which runs go, and taking them out of a store. The rule works on plain values; Spark only reads and deletes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd

from ..config import ConfigError, check_identifier
from ..locks import FileLock
from ..store import Store
from ..strictjson import dumps
from ..tables import quoted, tables
from . import files, guard

UNFINISHED = timedelta(days=1)  # how long a run without results may be at work where no age is given
SAFE = timedelta(days=7)  # files younger than this may be a running writer's or reader's
AT_A_TIME = 200  # runs named in one statement
Subject = tuple[str, ...]


@dataclass(frozen=True)
class Run:
    """The latest attempt at a run.

    Attributes:
        run_id: the run.
        finished: whether this attempt is finished, so that the run's figures count.
        at: its end, or its start where it has no end; UTC.
        subjects: what the run is about: registry, release and settings, several for an audit.
        evidence: whether an append-only row (a decision, an entry of the ledger) rests on it.
    """

    run_id: str
    finished: bool
    at: datetime
    subjects: frozenset[Subject] = frozenset()
    evidence: bool = False


@dataclass(frozen=True)
class Rule:
    """What may go: runs older than an age, runs beyond the newest ones of their subject; with both, what both say.

    Attributes:
        older_than: age from which a run may go.
        keep_last: finished runs that stay per registry, release and settings, at least 1.
    """

    older_than: timedelta | None = None
    keep_last: int | None = None

    def __post_init__(self) -> None:
        if self.older_than is None and self.keep_last is None:
            raise ConfigError("vacuum: say what may go: --older-than DAYS, --keep-last RUNS, or both")
        if self.keep_last is not None and self.keep_last < 1:
            raise ConfigError(f"--keep-last {self.keep_last}: the latest finished run always stays, so 1 is the least")
        if self.older_than is not None and self.older_than < timedelta(0):
            raise ConfigError("--older-than: an age in days, 0 or more")


@dataclass
class Kept:
    """Outcome of a rule: `going` in order of age, and why others stay that the rule alone would take."""

    going: list[str] = field(default_factory=list)
    latest: list[str] = field(default_factory=list)
    evidence: list[str] = field(default_factory=list)


def choose(runs: Iterable[Run], rule: Rule, now: datetime) -> Kept:
    """Apply a rule.

    The latest finished run of each registry, release and settings stays whatever its age, and so does a run on which a
    decision or an entry of the ledger rests. A run that is not finished goes by age alone, one day where none is given.
    """
    newest_first = sorted(runs, key=lambda r: (r.at, r.run_id), reverse=True)
    place: dict[Subject, int] = {}
    kept = Kept()
    for run in newest_first:
        rank = 0
        if run.finished:
            ranks = []
            for subject in run.subjects:
                place[subject] = place.get(subject, 0) + 1
                ranks.append(place[subject])
            rank = min(ranks, default=1)
        old = rule.older_than is None or now - run.at > rule.older_than
        if run.finished:
            beyond = rule.keep_last is None or rank > rule.keep_last
        else:
            beyond, old = True, now - run.at > (rule.older_than if rule.older_than is not None else UNFINISHED)
        if not (old and beyond):
            continue
        if run.evidence:
            kept.evidence.append(run.run_id)
        elif run.finished and rank == 1:
            kept.latest.append(run.run_id)
        else:
            kept.going.append(run.run_id)
    kept.going.reverse()
    return kept


def vacuum(
    store: Store,
    rule: Rule,
    run_id: str,
    keep_versions: timedelta | None = None,
    dry_run: bool = False,
    force: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Take runs out of a store by a rule, then remove files that only old versions need.

    Rows in `runs` go first: from then on no view shows the run. What is interrupted is completed by the next call. The
    call itself is a run of the command `vacuum`. Tables whose rows are only ever added are left alone.

    Args:
        store: the store.
        rule: which runs.
        run_id: of the call.
        keep_versions: how long old versions of tables stay readable; the tables' own setting (7 days) when None.
        dry_run: say what would go, change nothing.
        force: see `guard.alone`; it matters where keep_versions is under 7 days.
        say: called with the name of each stage.

    Returns:
        Plain data: `removed` (runs), `kept_latest`, `kept_evidence`, `at_work`, and `tables` with `rows` removed and the
        recorded versions of the runs that stay, `readable` and `unreadable`; null in a dry run.

    Raises:
        ConfigError: another run is at work, where files of running writers are at stake.
    """
    check_identifier(run_id)
    if keep_versions is not None:
        keep_versions = timedelta(hours=keep_versions // timedelta(hours=1))  # as Delta counts it
    say("reading runs")
    found = _read(store)
    kept = choose(found.runs, rule, datetime.now(UTC))
    names = files.result_tables(store.warehouse)
    document: dict[str, Any] = {
        "store": str(store), "run_id": None if dry_run else run_id, "dry_run": dry_run, "removed": kept.going, "at_work": [],
        "kept_latest": kept.latest, "kept_evidence": kept.evidence, "tables": [],
    }  # fmt: skip
    if dry_run:
        unknown = {"readable": None, "unreadable": None}
        document["tables"] = [{"table": n, "rows": _count(store, n, kept.going)} | unknown for n in ["runs", *names]]
        return document
    settings = dumps({"older_than_days": _days(rule.older_than), "keep_last": rule.keep_last,
                      "keep_versions_days": _days(keep_versions)})  # fmt: skip
    digest = hashlib.sha256(settings.encode()).hexdigest()
    attempt = store.begin(run_id, "vacuum", settings, digest, {"runs": kept.going}, {})
    try:
        if keep_versions is not None and keep_versions < SAFE:
            with guard.alone(store, run_id, force):
                _apply(store, document, found, names, keep_versions, say)
        else:
            _apply(store, document, found, names, keep_versions, say)
    except BaseException:
        store.end(attempt, "failed")
        raise
    store.end(attempt, "finished")
    return document


def _apply(
    store: Store, document: dict[str, Any], found: _Found, names: Sequence[str], keep_versions: timedelta | None,
    say: Callable[[str], None],
) -> None:  # fmt: skip
    going = [*document["removed"], *found.orphans]
    locks = _locked(store, going)
    document["at_work"] = [r for r in going if r not in locks]
    going = [r for r in going if r in locks]
    document["removed"] = [r for r in document["removed"] if r in locks]
    try:
        for table in ["runs", *names]:
            say(f"removing runs from {table}")
            rows = _count(store, table, going)
            if rows or table == "runs":
                _delete(store, table, going)
            document["tables"].append({"table": table, "rows": rows})
    finally:
        for lock in locks.values():
            if lock is not None:
                lock.release()
    for entry in document["tables"]:
        table = entry["table"]
        say(f"removing files of {table}")
        applied = files.remove_files(store.warehouse, table, keep_versions)
        versions = {v for r, of_run in found.versions.items() if r not in going for v in of_run.get(table, ())}
        since = max([datetime.now(UTC) - applied, *(at for of, at in found.horizons if of in (None, table))])
        left = files.readable(store.warehouse, table, versions, since)
        entry |= {"readable": sorted(left), "unreadable": sorted(versions - left)}


def _locked(store: Store, runs: Iterable[str]) -> dict[str, FileLock | None]:
    """Locks of the runs, those left out that are at work."""
    if store.directory is None:
        return dict.fromkeys(runs)
    locks = {run: FileLock(store.directory / ".locks" / f"run-{run}") for run in runs}
    return {run: lock for run, lock in locks.items() if lock.acquire(wait=False)}


@dataclass
class _Found:
    """What a store holds.

    Attributes:
        runs: the latest attempts.
        orphans: run ids that have rows, but none in `runs`: left behind by a call that was interrupted.
        versions: per run, the versions it recorded by table.
        horizons: of earlier upkeep, (table, or None for all, time): files that no version after it needs are gone.
    """

    runs: list[Run] = field(default_factory=list)
    orphans: list[str] = field(default_factory=list)
    versions: dict[str, dict[str, set[int]]] = field(default_factory=dict)
    horizons: list[tuple[str | None, datetime]] = field(default_factory=list)


def _read(store: Store) -> _Found:
    subjects, evidence, there = _subjects(store)
    spark = store.warehouse.spark
    columns = (
        "run_id", "attempt", "state", "command", "settings_digest", "table_versions",
        "unix_micros(coalesce(ended_at, started_at, timestamp'1970-01-01')) AS at",
        "CASE WHEN command IN ('vacuum', 'forget') THEN config END AS config",
    )  # fmt: skip
    rows: pd.DataFrame = spark.table(store.qualified("runs")).selectExpr(*columns).toPandas()
    result = _Found()
    for run_id, events in rows.groupby("run_id"):
        latest = events[events["attempt"] == events["attempt"].max()]
        ended = latest[latest["state"] != "started"]
        row = (ended if len(ended) else latest).iloc[-1]
        at = files.moment(row["at"])
        about: set[Subject] = {
            (registry, release, digest or str(row["settings_digest"]), str(row["command"]) if digest is None else "")
            for registry, release, digest in subjects.get(str(run_id), ())
        }
        about = about or {(str(row["command"]), str(row["settings_digest"]))}
        finished = bool((latest["state"] == "finished").any())
        result.runs.append(Run(str(run_id), finished, at, frozenset(about), run_id in evidence))
        result.versions[str(run_id)] = _versions(events["table_versions"])
        if isinstance(row["config"], str) and len(ended):
            kept = json.loads(row["config"]).get("keep_versions_days")
            if row["command"] == "forget":
                result.horizons.append(("risk_records", at))
            elif kept is not None:
                result.horizons.append((None, at - timedelta(days=kept)))
    result.orphans = sorted(there - {run.run_id for run in result.runs})
    return result


def _versions(texts: Iterable[Any]) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for text in texts:
        for table, version in (json.loads(text) if isinstance(text, str) else {}).items():
            if version is not None:
                found.setdefault(table, set()).add(int(version))
    return found


def _subjects(store: Store) -> tuple[dict[str, set[tuple[str, str, str | None]]], set[str], set[str]]:
    """Per run (registry, release, settings_digest) of its rows; runs that append-only rows name; runs with any row."""
    spark, there = store.warehouse.spark, store.warehouse.existing()
    subjects: dict[str, set[tuple[str, str, str | None]]] = {}
    evidence: set[str] = set()
    with_rows: set[str] = set()
    for name, table in tables().items():
        if name not in there or name == "runs" or "run_id" not in table.columns:
            continue
        frame = spark.table(store.qualified(name))
        if files.is_append_only(table):
            evidence |= {row["run_id"] for row in frame.select("run_id").distinct().collect()}
        elif name != "risk_records" and {"registry", "release_id"} <= set(table.columns):
            digest = "settings_digest" if "settings_digest" in table.columns else "cast(null as string)"
            found = frame.selectExpr("run_id", "registry", "release_id", f"{digest} as digest").distinct().collect()
            for row in found:
                with_rows.add(row["run_id"])
                subjects.setdefault(row["run_id"], set()).add((row["registry"], row["release_id"], row["digest"]))
        else:
            with_rows |= {row["run_id"] for row in frame.select("run_id").distinct().collect()}
    # where a row with settings tells the subject, one without adds nothing
    for run_id, found in subjects.items():
        if any(digest is not None for _, _, digest in found):
            subjects[run_id] = {s for s in found if s[2] is not None}
    return subjects, evidence, with_rows


def _among(runs: Collection[str]) -> str:
    return f"run_id IN ({', '.join(quoted(run) for run in runs)})"


def _count(store: Store, table: str, runs: Sequence[str]) -> int:
    if not runs:
        return 0
    rows = store.warehouse.spark.table(store.qualified(table))
    return sum(rows.where(_among(part)).count() for part in _parts(runs))


def _delete(store: Store, table: str, runs: Sequence[str]) -> None:
    for part in _parts(runs):
        statement = f"DELETE FROM {store.qualified(table)} WHERE {_among(part)}"
        store.warehouse.commit(table, lambda statement=statement: store.warehouse.spark.sql(statement))  # type: ignore[misc]


def _parts(runs: Sequence[str]) -> Iterable[Sequence[str]]:
    return (runs[i : i + AT_A_TIME] for i in range(0, len(runs), AT_A_TIME))


def _days(age: timedelta | None) -> float | None:
    return None if age is None else age / timedelta(days=1)

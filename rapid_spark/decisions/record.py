"""Read what was judged and decided from a store, and append a decision to `release_decisions`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any

import pandas as pd

from ..config import ConfigError, check_identifier, suggest
from ..store import Store
from ..tables import arrow, quoted, tables
from .rules import APPROVALS, Case, Decision, faults

TABLE = "release_decisions"
COPIES = "select distinct run_id, registry, release_id, replicate, release_digest from risk_summary"


def cases(store: Store, where: str) -> list[Case]:
    """Releases as finished runs judged them, the oldest run first.

    Args:
        store: the store.
        where: an SQL condition on columns of risk_summary, built from checked ids or digests.
    """
    copies = _rows(store, f"{COPIES} where release_digest is not null and {where}")
    runs = {}
    if copies:
        listed = ", ".join(quoted(r) for r in sorted({c["run_id"] for c in copies}))
        for row in _rows(store, f"select * from runs where run_id in ({listed}) order by attempt, ended_at nulls first"):
            runs[row["run_id"]] = row  # the last state of the last attempt
    finished = {run_id: row for run_id, row in runs.items() if row["state"] == "finished"}
    verdicts, decisions = _about(store, "audit_verdicts", finished), _about(store, TABLE, finished)
    found: dict[tuple[str, str, str], dict[int, str]] = {}
    for row in copies:
        if row["run_id"] in finished:
            key = (row["run_id"], row["registry"], row["release_id"])
            found.setdefault(key, {})[int(row["replicate"])] = row["release_digest"]
    ordered = sorted(found, key=lambda key: (str(finished[key[0]]["started_at"]), key))
    return [_case(key, found[key], finished[key[0]], verdicts, decisions) for key in ordered]


def _about(store: Store, table: str, runs: Any) -> list[dict[str, Any]]:
    if not runs or table not in store.warehouse.existing():
        return []
    listed = ", ".join(quoted(run_id) for run_id in sorted(runs))
    order = " order by decided_at" if table == TABLE else ""
    return _rows(store, f"select * from {table} where run_id in ({listed}){order}")


def _case(
    key: tuple[str, str, str], digests: dict[int, str], run: dict[str, Any], verdicts: Sequence[dict[str, Any]],
    decisions: Sequence[dict[str, Any]],
) -> Case:
    def of_it(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        return [r for r in rows if (r["run_id"], r["registry"], r["release_id"]) == key]

    policy = _policy(run.get("config"))
    judged = of_it(verdicts)
    audience = next((v["audience"] for v in judged if isinstance(v.get("audience"), str)), None)
    audience = audience or (policy.get("context") or {}).get("audience")
    return Case(
        *key, digests, judged, of_it(decisions), int(policy.get("approvals") or 1), audience, policy,
        str(run.get("command") or ""),
    )


def _policy(config: Any) -> dict[str, Any]:
    data = json.loads(config) if isinstance(config, str) and config else {}
    found = data.get("policy") or (data.get("defaults") or {}).get("policy") or {}
    return found if isinstance(found, dict) else {}


def _rows(store: Store, sql: str) -> list[dict[str, Any]]:
    store.warehouse.use()  # tables only: no view has to be made for them
    return [row.asDict(recursive=True) for row in store.warehouse.spark.sql(sql).collect()]


def find(store: Store, run_id: str, registry: str | None = None, release_id: str | None = None) -> Case:
    """The one release of a run that a decision is about.

    Raises:
        ConfigError: there is no such run or release, it is not finished, or several fit.
    """
    for flag, value in (("--run", run_id), ("--registry", registry), ("--release-id", release_id)):
        if value is not None:
            try:
                check_identifier(value)
            except ValueError as error:
                raise ConfigError(f"{flag}: {error}") from None
    there = cases(store, f"run_id = {quoted(run_id)}")
    if not there:
        states = _rows(store, f"select state from runs where run_id = {quoted(run_id)}")
        if states:
            raise ConfigError(f"--run {run_id}: it is not finished or judged no release, so nothing can be decided on it")
        known = [r["run_id"] for r in _rows(store, "select distinct run_id, started_at from runs order by started_at desc")]
        latest = f" The latest are {', '.join(dict.fromkeys(known[:5]))}" if known else ""
        raise ConfigError(f"--run {run_id}: there is no such run in {store}.{suggest(run_id, known)}{latest}")
    fit = [c for c in there if registry in (None, c.registry) and release_id in (None, c.release_id)]
    if len(fit) == 1:
        return fit[0]
    names = [f"--registry {c.registry} --release-id {c.release_id}" for c in (fit or there)]
    what = "judged several releases; name one" if fit else "judged no such release; it judged"
    raise ConfigError(f"--run {run_id} {what}: " + "; ".join(names[:10]))


def decide(store: Store, case: Case, decision: Decision, today: date) -> dict[str, Any]:
    """Append a decision; the row as it stands in the table.

    Raises:
        ConfigError: what the decision lacks, all faults at once; nothing is written then.
    """
    wrong = faults(case, decision, today)
    if wrong:
        raise ConfigError("\n".join(wrong))
    row = {
        "run_id": case.run_id,
        "registry": case.registry,
        "release_id": case.release_id,
        "outcome": decision.outcome,
        "decided_by": decision.decided_by.strip(),
        "reason": (decision.reason or "").strip() or None,
        "audience": decision.audience or case.audience,
        "valid_until": decision.valid_until if decision.outcome in APPROVALS else None,
        "release_digest": case.digest,
        "decided_at": datetime.now(UTC),
    }
    store.need(TABLE)
    frame = pd.DataFrame({key: pd.Series([value], dtype=object) for key, value in row.items()})
    warehouse = store.warehouse
    rows = warehouse.spark.createDataFrame(arrow(tables()[TABLE], frame)).coalesce(1)
    note = f"run_id={case.run_id}; registry={case.registry}; release_id={case.release_id}; {decision.outcome}"
    warehouse.commit(TABLE, rows.writeTo(store.qualified(TABLE)).option("userMetadata", note).append)
    return row

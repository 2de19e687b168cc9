"""Whether a file is one that was judged, and whether an approval covers it today."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any

from pyspark.sql import functions as F

from ..config import Table
from ..io import Source, read
from ..schema import content_digest
from ..store import Store
from ..tables import quoted
from .record import cases
from .rules import Case, Standing, standing


@dataclass(frozen=True)
class Match:
    """A judged release with the file's content.

    Attributes:
        case: what was judged.
        replicate: which of its copies the file is.
        standing: whether decisions clear it.
    """

    case: Case
    replicate: int
    standing: Standing

    def document(self) -> dict[str, Any]:
        """As plain data."""
        case = self.case
        judged = [
            {k: v[k] for k in ("rule", "sensitive_attribute", "limit", "figure", "verdict", "reason")} for v in case.verdicts
        ]
        decisions = [
            {k: d[k] for k in ("outcome", "decided_by", "reason", "audience", "valid_until", "decided_at")}
            for d in case.decisions
        ]
        return {
            "run_id": case.run_id, "registry": case.registry, "release_id": case.release_id, "replicate": self.replicate,
            "audience": case.audience, "verdict": case.verdict, "policy": case.policy or None, "verdicts": judged,
            "decisions": decisions, "approvals_needed": case.approvals, "cleared": self.standing.cleared,
            "reason": self.standing.reason, "valid_until": self.standing.valid_until,
            "conditions": list(self.standing.conditions),
        }  # fmt: skip


def digests_of(source: Source) -> dict[int, str]:
    """Digests of a file's content by replicate; 1 where it has no column that numbers them.

    Raises:
        ConfigError: the file turned out to be unreadable.
    """
    if source.replicate_column is None:
        return {1: content_digest(source)}
    column = F.trim(source.column(source.replicate_column).cast("string"))
    numbers = sorted(int(float(r["r"])) for r in source.frame.select(column.alias("r")).distinct().collect() if r["r"])
    return {
        r: content_digest(
            Source(
                source.frame.where(column.try_cast("double") == r), source.columns, source.name, source.is_text,
                source.version, source.replicate_column,
            )  # fmt: skip
        )
        for r in numbers
    }


def matches(store: Store, digest: str, today: date, audience: str | None = None) -> list[Match]:
    """Judged releases with this content, the latest run first."""
    found = []
    having = f"select run_id from risk_summary where release_digest = {quoted(digest)}"
    for case in cases(store, f"run_id in ({having})"):
        copies = sorted((r for r, d in case.digests.items() if d == digest), reverse=True)
        if copies:
            found.append(Match(case, copies[0], standing(case, today, audience)))
    return found[::-1]


def verify(spark: Any, store: Store, table: Table, today: date, audience: str | None = None) -> dict[str, Any]:
    """Whether valid approvals cover a file's content.

    Returns:
        `{"file", "digest", "cleared", "reason", "matches"}`; every replicate in the file must be covered. `matches` tells
        run, policy, verdicts and decisions of each judged release with this content, the latest first.

    Raises:
        ConfigError: the file or the store cannot be read.
    """
    source = read(spark, table)
    digests = digests_of(source)
    by_copy = {copy: matches(store, digest, today, audience) for copy, digest in digests.items()}
    lacking = {copy: found for copy, found in by_copy.items() if not any(m.standing.cleared for m in found)}
    if not lacking:
        best = next(m for m in next(iter(by_copy.values())) if m.standing.cleared)
        reason = f"run {best.case.run_id}: {best.standing.reason}"
    else:
        copy, found = next(iter(lacking.items()))
        which = f"replicate {copy}: " if len(digests) > 1 else ""
        reason = f"{which}run {found[0].case.run_id}: {found[0].standing.reason}" if found else (
            f"{which}no finished run of this store judged this content"
        )
    listed = [m.document() for found in by_copy.values() for m in found]
    digest = next(iter(digests.values())) if len(digests) == 1 else None
    return {"file": table.name, "digest": digest, "digests": {str(r): d for r, d in digests.items()},
            "cleared": not lacking, "reason": reason, "audience": audience, "matches": listed}

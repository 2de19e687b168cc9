"""The sweep itself: releases made, measured and stored a mechanism at a time, so that a stopped one goes on where it was."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
from pyspark.sql import functions as F

from .. import io, shared_columns
from ..config import Config, settings_json
from ..recording import Recording, recording
from ..strictjson import dumps
from ..underway import quiet
from . import figures, makers
from .figures import Cell, pareto, safe

MARK = (
    "sweep_cell"  # measure of the row that says that a release is done: digest of settings, row of the map
)


def sweep(
    configs: Sequence[Config],
    names: tuple[str, ...],
    budgets: tuple[float, ...],
    delta: float = 0.0,
    run_id: str | None = None,
    *,
    debug: bool = False,
    say: Callable[[str], None] = quiet,
    watch: Callable[[Any], None] = lambda _: None,
) -> dict[str, Any]:
    """The risk-utility map of one or several datasets, stored and tracked; the same run id goes on where it stopped.

    Mechanisms read the domains off the original, and every figure is computed from it without noise: only for data that
    are public or simulated.

    Args:
        configs: one a dataset, each with a registry name of its own; releases they name are measured, too.
        names: mechanisms, of `makers.check`.
        budgets: their epsilons.
        delta: total delta of mechanism_f.
        run_id: of every row; a new one when left out.
        debug, say, watch: as for evaluations.

    Returns:
        `run_id`, `store`, `results` (a row per release: utility, RAPID, membership, linkage, Pareto front) and more.

    Raises:
        ConfigError: no table named, an unusable store, an id that is none.
    """
    with recording(configs[0], "sweep", run_id, reads=False, needs=("risk_attacks", "release_utility"), debug=debug,
                   say=say, watch=watch) as run:  # fmt: skip
        rows: list[dict[str, Any]] = []
        for config in configs:
            rows += dataset(run, config, names, budgets, delta)
        mark_front(rows)
        run.track({"risk_utility": rows}, {
            f"{r['release_id']}/{k}": r[k] for r in rows for k in ("utility", "rapid_excess", "membership_auc")
        })  # fmt: skip
    return run.document(results=rows)


def dataset(
    run: Recording, config: Config, names: tuple[str, ...], budgets: tuple[float, ...], delta: float
) -> list[dict[str, Any]]:
    """All releases of one dataset, a mechanism at a time; what an earlier attempt finished is read, not made again."""
    digest = hashlib.sha256(settings_json(_bare(config)).encode()).hexdigest()
    done = _done(run, config.registry, digest)
    assert config.original is not None
    original = io.read(run.spark, config.original)
    holdout = io.read(run.spark, config.holdout) if config.holdout is not None else None
    batches = [[Cell(config.registry, m, e, f"{config.registry}-{m}-{e:g}") for e in budgets] for m in names]
    listed = [Cell(config.registry, "listed", None, f"{config.registry}-listed-{i + 1}") for i in range(len(config.release))]
    points: list[dict[str, Any]] = []
    for batch in [*batches, *([listed] if listed else [])]:
        wanted = [c for c in batch if c.release_id not in done]
        points += [done[c.release_id] for c in batch if c.release_id in done]
        if not wanted:
            continue
        releases, histogram = _releases(run, config, wanted, original, delta)
        if releases:
            figures.measure(run.spark, original, holdout, releases, config, run.run_id, run.clock.stage, run.cores)
        for cell in wanted:
            if cell.epsilon is not None and histogram is not None and cell.reason is None:
                with run.clock.stage("attacking the noise"):
                    figures.of_noise(cell, histogram)
                cell.point = figures.point(cell)
            points.append(_stored(run, cell, digest))
    return points


def _releases(run: Recording, config: Config, wanted: list[Any], original: Any, delta: float) -> tuple[dict[str, Any], Any]:
    """The releases of some cells as tables, and the histogram of the first sensitive attribute."""
    if wanted[0].epsilon is None:
        sources = [io.read(run.spark, table) for table in config.release]
        at = {c.release_id: int(c.release_id.rpartition("-")[2]) - 1 for c in wanted}
        return {c.release_id: (c, sources[at[c.release_id]]) for c in wanted}, None
    with run.clock.stage("making releases"):
        # a release of the original beside itself: its columns normalised, nothing matched
        bare = config.model_copy(update={"holdout": None})
        tables = shared_columns.lay(original, {1: original}, bare)
        try:
            named = {*config.all_quasi_identifiers, *(a.name for a in config.sensitive_attributes)}
            columns = [s for s in tables.columns if s.name in named]
            people = tables.original.select(*(s.column for s in columns)).toPandas()
        finally:
            tables.close()
        people.columns = [s.name for s in columns]
        domains = makers.domains_of(people, config.disclosure.bins)
        target = config.sensitive_attributes[0].name
        releases = {}
        for cell in wanted:
            try:
                frame = makers.MAKERS[cell.mechanism](people, domains, target, float(cell.epsilon), delta)
            except ValueError as error:
                cell.reason = str(error)
                continue
            releases[cell.release_id] = (cell, figures.frame_source(run.spark, frame, cell.release_id))
        own = [d for d in domains if d.column == target]
        histogram = np.bincount(makers.codes(people, own)[:, 0], minlength=own[0].size).astype(np.int64)
    return releases, histogram


def _stored(run: Recording, cell: Any, digest: str) -> dict[str, Any]:
    """Write one release's rows, its mark last; returns its row of the map."""
    now = datetime.now(UTC)
    row = {"dataset": cell.dataset, "mechanism": cell.mechanism, "epsilon": cell.epsilon, "release_id": cell.release_id,
           **cell.point, "reason": cell.reason}  # fmt: skip
    if cell.attacks:
        run.write("risk_attacks", [{**a, "evaluated_at": now} for a in cell.attacks], cell.release_id, cell.dataset)
    mark = {"measure": MARK, "columns": [digest, dumps(row)], "value": 1.0}
    run.write("release_utility", [{**u, "evaluated_at": now} for u in [*cell.utility, mark]], cell.release_id, cell.dataset)
    return row


def _done(run: Recording, dataset: str, digest: str) -> dict[str, dict[str, Any]]:
    """Rows of the map that an earlier attempt at this run finished with the same settings, by release."""
    if run.attempt.number == 1:
        return {}
    marks = run.spark.table(run.store.qualified("release_utility")).where(
        (F.col("run_id") == run.run_id) & (F.col("measure") == MARK)
    )  # fmt: skip
    found = {}
    for mark in marks.select("release_id", "columns").collect():
        if mark["columns"][0] == digest:
            row = json.loads(mark["columns"][1])
            if row["dataset"] == dataset:
                found[mark["release_id"]] = row
    return found


def _bare(config: Config) -> Config:
    """What decides the figures."""
    return config.model_copy(update={
        "store": type(config.store)(), "tracking": type(config.tracking)(), "session": type(config.session)(),
    })  # fmt: skip


def mark_front(rows: list[dict[str, Any]]) -> None:
    """Say of each row whether it is on the Pareto front of its dataset, in utility against RAPID less chance."""
    for dataset in {r["dataset"] for r in rows}:
        mine = [r for r in rows if r["dataset"] == dataset and safe(r.get("utility")) and safe(r.get("rapid_excess"))]
        for r, best in zip(mine, pareto([(r["utility"], r["rapid_excess"]) for r in mine]), strict=True):
            r["pareto"] = best

"""A search from a configuration to ranked tables: the cheap attacker over all, then evaluations of the worst."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from .. import attackers, run, session
from ..config import Config, ConfigError, Search, check_identifier, parse_as
from ..evaluation import new_run_id
from ..interruption import interruptible
from ..preparation import open_tables, ready
from ..store import Store
from ..suite import rows_of
from ..tables import quoted
from .figures import Rate, by_target, ranked, worst
from .plan import FIRST_GUESS, estimate, surfaces
from .progress import Progress
from .search import Found, go_over, scope

PROGRESS, TABLE, PLOT = "progress.jsonl", "surfaces.csv", "surfaces.png"


@dataclass
class Outcome:
    """What a search came to.

    Attributes:
        run_id: of the search; those of the evaluations of the worst surfaces begin with it.
        found: what the cheap attacker found.
        worst: rows of risk_summary of the evaluations, as plain data.
        runs: their run ids.
        folder: where progress, table and plot are.
        seconds: by stage.
        warnings: what the reader must know.
    """

    run_id: str
    found: Found
    worst: list[dict[str, Any]] = field(default_factory=list)
    runs: list[str] = field(default_factory=list)
    folder: Path = Path()
    seconds: dict[str, float] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    @property
    def ranked(self) -> list[Rate]:
        """All surfaces, the worst first."""
        return ranked(self.found.rates)

    def rows(self) -> list[dict[str, Any]]:
        """Ranked surfaces as plain rows."""
        return [{"rank": i, **r.row()} for i, r in enumerate(self.ranked, 1)]

    def document(self) -> dict[str, Any]:
        """As `search --format json` gives it."""
        return {
            "run_id": self.run_id, "fits": len(self.found.rates), "resumed": self.found.resumed, "surfaces": self.rows(),
            "worst": self.worst, "runs": self.runs, "table": str(self.folder / TABLE), "plot": str(self.folder / PLOT),
            "seconds": self.seconds, "warnings": self.warnings,
        }  # fmt: skip


def plan(config: Config, *, debug: bool = False, watch: Callable[[Any], None] = lambda _: None) -> dict[str, Any]:
    """What a search would do: attributes, columns, fits and a first guess of the time; nothing is fitted.

    Raises:
        ConfigError: the tables do not fit, or the surfaces are too many.
    """
    searched, _, cores = _opened(config, debug, watch)
    wanted = surfaces(searched.targets, searched.pool, searched.config.search)
    kinds = {kind: sum(s.kind == kind for s in wanted) for kind in ("rest", "set", "alone")}
    return {
        "attributes": list(searched.targets), "columns": list(searched.pool), "fits": len(wanted), "fits_by_kind": kinds,
        "estimate": estimate(len(wanted), FIRST_GUESS, cores), "cheap": searched.config.search.cheap,
        "attackers": [a.name for a in config.attackers], "worst": config.search.worst,
    }  # fmt: skip


def search(
    config: Config, folder: Path | None = None, run_id: str | None = None, *, debug: bool = False,
    say: Callable[[str], None] = lambda _: None, note: Callable[[str], None] = lambda _: None,
    watch: Callable[[Any], None] = lambda _: None,
) -> Outcome:
    """Search for the worst surface.

    Args:
        config: with `sensitive_attributes: all`, or `qi_sets` with sizes.
        folder: where progress, table and plot go; the same one again goes on where a search was stopped.
        run_id: the same id again goes on with the evaluations, too.
        debug: show Spark's log.
        say: called with the name of each stage.
        note: called with fits and estimate before it starts.
        watch: called once with the session.

    Raises:
        ConfigError, SchemaError, AttackerError: the user's input is at fault.
    """
    run_id = run_id or new_run_id()
    try:
        check_identifier(f"{run_id}-0")
    except ValueError as error:
        raise ConfigError(f"--run-id: {error}") from None
    folder = folder or Path(f"search-{run_id}")
    say("starting Spark")
    searched, tables, cores = _opened(config, debug, watch)
    spark = session.get(config.session, debug)
    started = time.perf_counter()
    with interruptible(spark, run_id) as interruption:

        def stage(name: str) -> None:
            interruption.check()
            say(name)

        found = go_over(spark, tables, searched, lambda what: Progress(folder / PROGRESS, what), cores, stage, note)
    outcome = Outcome(run_id, found, folder=folder, warnings=list(found.warnings))
    outcome.seconds["cheap attacker"] = time.perf_counter() - started
    _write(outcome)
    started = time.perf_counter()
    _evaluate_worst(config, outcome, spark, debug, say)
    outcome.seconds["all attackers on the worst"] = time.perf_counter() - started
    return outcome


def _opened(config: Config, debug: bool, watch: Callable[[Any], None]) -> Any:
    if not config.search.active:
        raise ConfigError(
            "nothing to search: write sensitive_attributes: all, or qi_sets: {sizes: [2, 3], from: [..]}"
        )
    attackers.check(config.search.cheap, {}, False)
    ready(config.model_copy(update={"search": Search()}))
    spark = session.get(config.session, debug, config.tables)
    watch(spark)
    tables = open_tables(spark, config)
    return scope(config, tables), tables, config.session.cores or session.cores()


def _write(outcome: Outcome) -> None:
    from .picture import draw_heat, save

    outcome.folder.mkdir(parents=True, exist_ok=True)
    rows = [{**row, "known": " + ".join(row["known"])} for row in outcome.rows()]
    pd.DataFrame(rows).to_csv(outcome.folder / TABLE, index=False)
    save(draw_heat(outcome.found.rates), outcome.folder / PLOT)


def _evaluate_worst(config: Config, outcome: Outcome, spark: Any, debug: bool, say: Callable[[str], None]) -> None:
    """All attackers on the worst surfaces: one evaluation per attribute, each a run of its own in the store."""
    chosen = by_target(worst(outcome.found.rates, config.search.worst))
    for i, (target, rates) in enumerate(chosen.items(), 1):
        run_id = f"{outcome.run_id}-{i}"
        outcome.runs.append(run_id)
        known = {" + ".join(r.known) if len(r.known) <= 3 else r.kind: list(r.known) for r in rates}
        settings = worst_config(config, target, outcome.found, known)
        done = _finished(spark, settings, run_id)
        if done is None:
            say(f"all attackers on {target}")
            evaluated = run.evaluate(settings, run_id, command="search", debug=debug, say=say)
            outcome.warnings += [w for w in evaluated.warnings if w not in outcome.warnings]
            done = rows_of(evaluated.summary)
        outcome.worst += done


def worst_config(config: Config, target: str, found: Found, known: dict[str, list[str]]) -> Config:
    """The configuration that tries all attackers on some surfaces of one attribute, its columns taken as in the search."""
    plain = config.model_dump(mode="json")
    given = next((a for a in plain["sensitive_attributes"] if a["name"] == target), {"name": target})
    columns = {c for names in known.values() for c in names}
    types = {k: v for k, v in {**plain["columns"]["types"], **found.types}.items() if k in columns}
    return parse_as(Config, {
        **plain, "search": {}, "quasi_identifiers": [], "qi_sets": known, "baseline": {},
        "sensitive_attributes": [{**given, "type": found.kinds[target]}],
        "columns": {**plain["columns"], "types": types},
    })  # fmt: skip


def _finished(spark: Any, config: Config, run_id: str) -> list[dict[str, Any]] | None:
    """Rows of risk_summary of a run that is finished already; None where it is not."""
    location = str(ready(config).store.location)
    try:
        store = Store.open(spark, location, create=False)
    except ConfigError:
        return None
    store.warehouse.use()
    state = spark.sql(f"select state from runs where run_id = {quoted(run_id)} and state = 'finished'").take(1)
    if not state:
        return None
    return [r.asDict() for r in spark.sql(f"select * from risk_summary where run_id = {quoted(run_id)}").collect()]

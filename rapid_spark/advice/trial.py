"""Apply steps to a release and evaluate each, side by side: the one place of this package that runs Spark."""

from __future__ import annotations

import functools
import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from .. import evaluation, io, schema, session, training
from ..attackers import AttackerError
from ..config import Config, ConfigError, Drivers, Policy, Table, parse_as
from ..io import Source
from ..kinds import FAMILIES
from ..policy import OVERALL, Previous, judge
from ..preparation import Tables
from ..profiles import column_types
from ..recode.apply import Step as RecodeStep
from ..recode.apply import recode_table
from ..sidebyside import inherited
from .ranking import Limit, Result, exceeded, figures
from .steps import Column, Step
from .utility import Loss, loss

logger = logging.getLogger(__name__)
MOST_ROWS = 50_000  # of the release, on which its losses are measured
MOST_SIDE_BY_SIDE = 4
ENDING = {"csv": ".csv.gz", "parquet": ".parquet"}


@dataclass
class Bench:
    """A release, and what is needed to try steps on it.

    Attributes:
        spark: session.
        config: settings of the evaluation.
        tables: original and releases as they were read.
        run_id: of the run that asked for advice.
        limits: what a step is held to.
        policy: or the policy that judges it.
        previous: the release before, for the policy.
        common: names of attributes as the policy speaks of them, by the configuration's.
        rows: the release's columns in use, by their own names; at most MOST_ROWS rows.
        columns: its quasi-identifiers, to propose steps for.
        digests: of the releases' contents, by replicate.
        original_digest: of the original's content.
        warnings: what the reader must know.
    """

    spark: Any
    config: Config
    tables: Tables
    run_id: str
    limits: Sequence[Limit]
    policy: Policy | None = None
    previous: Previous | None = None
    common: Mapping[str, str] = field(default_factory=dict)
    rows: pd.DataFrame = field(default_factory=pd.DataFrame)
    columns: list[Column] = field(default_factory=list)
    digests: Mapping[int, str] = field(default_factory=dict)
    original_digest: str = ""
    warnings: list[str] = field(default_factory=list)

    @property
    def attributes(self) -> list[str]:
        """Sensitive attributes of the evaluation."""
        return [a.name for a in self.config.sensitive_attributes]

    def look(self) -> None:
        """Read what steps are proposed from: the release's columns, on the driver.

        Raises:
            SchemaError, ConfigError: the tables do not fit.
        """
        aligned = schema.align(self.tables.original, self.tables.releases, self.config)
        try:
            frames, _ = training.release_rows(aligned, self.config)
            names = {q.column: q.name for q in aligned.quasi_identifiers} | {t.column: t.name for t in aligned.targets}
            rows = frames[max(frames)].rename(columns=names)
            if len(rows) > MOST_ROWS:
                self.warnings.append(f"losses are measured on {MOST_ROWS:,} of {len(rows):,} rows of the release")
                rows = rows.sample(MOST_ROWS, random_state=self.config.training.seed)
            self.rows = rows.reset_index(drop=True)
            self.digests, self.original_digest = aligned.release_digests, aligned.original_digest
            self.warnings += aligned.warnings
            self.columns = self._columns({q.name: q.kind for q in aligned.quasi_identifiers})
        finally:
            aligned.close()

    def _columns(self, kinds: Mapping[str, str]) -> list[Column]:
        """Quasi-identifiers that steps may change; of dates, and of those recoded already, only dropping is proposed."""
        source = self.tables.releases[1]
        own = {name: _column(source, name) for name in kinds}
        types = column_types(source, own.values()).columns
        found = []
        for name, kind in kinds.items():
            recode = self.config.recode.get(name)
            dates = FAMILIES[types[own[name]].kind] == "time" or name in self.config.columns.dates
            fixed = dates or (recode is not None and recode.changes)
            values = self.rows[name].iloc[:0] if fixed else self.rows[name]
            found.append(Column(name, kind == "numeric", values))
        return found

    def try_all(self, steps: Sequence[Step | None], say: Callable[[str], None], cores: int) -> list[Result]:
        """Evaluate steps side by side; None stands for the release as it is. Attackers are fitted anew for each."""
        workers = max(1, min(MOST_SIDE_BY_SIDE, cores, len(steps)))
        found: dict[int, Result] = {}
        with ThreadPoolExecutor(workers) as pool:
            calls = [functools.partial(self._try, s, max(1, cores // workers)) for s in steps]
            futures = {pool.submit(inherited(self.spark, call)): i for i, call in enumerate(calls)}
            try:
                for done in as_completed(futures):
                    found[futures[done]] = done.result()
                    say(f"trying steps, {len(found)} of {len(steps)} done")
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return [found[i] for i in range(len(steps))]

    def _try(self, step: Step | None, cores: int) -> Result:
        started = time.perf_counter()
        nothing = Result(step, {}, {}, Loss(0.0, 0.0))
        try:
            summary, over = self._evaluated(step, cores)
            cost = self._loss(step)
        except (ConfigError, schema.SchemaError, AttackerError) as error:
            return Result(step, {}, {}, nothing.loss, reason=_first_line(error))
        except Exception as error:  # one broken step must not take the others with it
            logger.debug("a step failed", exc_info=True)
            return Result(step, {}, {}, nothing.loss, reason=f"failed: {type(error).__name__}")
        found = figures(summary)
        lacking = [a for a in self.attributes if a not in found]
        reason = f"no complete figure for {', '.join(lacking)}" if lacking else None
        return Result(
            step, {a: f["rapid"] for a, f in found.items()}, {a: f.get("excess", f["rapid"]) for a, f in found.items()},
            cost, (*exceeded(found, self.limits, self.attributes), *over), reason, time.perf_counter() - started,
        )

    def _evaluated(self, step: Step | None, cores: int) -> tuple[pd.DataFrame, tuple[str, ...]]:
        """Rows of risk_summary, and what the policy does not pass."""
        config = with_step(self.config, step)
        releases = self.tables.releases
        if step is not None:
            releases = {r: recoded(s, step.recode, config) for r, s in releases.items() if r <= (step.replicates or r)}
        asks = self.policy.asks_for if self.policy else _nothing
        found = evaluation.evaluate(
            self.spark, self.tables.original, releases, quick(config, asks("subgroup_rapid")), self.run_id,
            self.tables.holdout if asks("holdout_difference") else None, cores,
        )
        try:
            return found.summary, self._not_passed(found)
        finally:
            found.close()

    def _not_passed(self, found: Any) -> tuple[str, ...]:
        if self.policy is None:
            return ()
        common = {column: self.common for column in ("sensitive_attribute",)}
        groups = found.tables.get("risk_subgroups")
        held = found.inputs.get("holdout") or {}
        verdicts = judge(
            self.policy, found.summary.replace(common), None if groups is None else groups.replace(common), self.previous,
            held.get("comparable"),
        )
        return tuple(
            f"{v.rule}{f' of {v.sensitive_attribute}' if v.sensitive_attribute else ''}: {v.verdict} ({v.reason})"
            for v in verdicts if v.verdict != "pass" and v.rule != OVERALL
        )  # fmt: skip

    def _loss(self, step: Step | None) -> Loss:
        if step is None or not step.recode:
            return Loss(0.0, 0.0)
        source = io.from_frame(self.spark, self.rows, "the release")
        after = recoded(source, step.recode, with_step(self.config, step))
        return loss(self.rows, after.frame.select(*(after.column(c).alias(c) for c in after.columns)).toPandas())


def with_step(config: Config, step: Step | None) -> Config:
    """The configuration under which a release is evaluated once a step is taken.

    Raises:
        ConfigError: nothing is left to evaluate.
    """
    if step is None:
        return config
    before = config.model_dump(mode="json")
    recode = {**before["recode"]}
    for name, change in step.recode.items():
        kept = {"suppressed": recode[name]["suppressed"]} if name in recode else {}
        recode[name] = {**kept, **change}
    if not leaves_any(config, step):
        raise ConfigError("no quasi-identifier is left: nobody could be told apart")
    release = before["release"][: step.replicates] if step.replicates else before["release"]
    return parse_as(Config, {**before, "recode": recode, "release": release})


def leaves_any(config: Config, step: Step) -> bool:
    """Whether a step leaves any quasi-identifier."""
    dropped = {name for name, change in step.recode.items() if change.get("drop")}
    return not dropped.issuperset(config.all_quasi_identifiers)


def _nothing(_: str) -> bool:
    return False


def quick(config: Config, subgroups: bool = False) -> Config:
    """The configuration without what advice does not show: null, drivers, references, records, tracking."""
    return config.model_copy(update={
        "intervals": config.intervals.model_copy(update={"permutations": 0}),
        "drivers": Drivers(
            subgroups=subgroups, attribution=False, patterns=0, min_cell_count=config.drivers.min_cell_count
        ),
        "training": config.training.model_copy(update={"references": False}),
        "store": config.store.model_copy(update={"detail": "none"}),
    })  # fmt: skip


def recoded(source: Source, changes: Mapping[str, Any], config: Config) -> Source:
    """A release with the changes of a step."""
    steps = [
        RecodeStep(name, _column(source, name), config.recode[name], config.columns.missing_codes.get(name, ()))
        for name in changes
    ]
    return recode_table(source, steps, drop=True)


def _column(source: Source, name: str) -> str:
    """The column of a table that a name of the configuration means (`roles.find`)."""
    near = [c for c in source.columns if c.lower() == name.lower()]
    return name if name in source.columns or len(near) != 1 else near[0]


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[1] if len(lines) > 1 and lines[0].endswith(":") else lines[0]


def cores_of(config: Config) -> int:
    """Cores of the session."""
    return config.session.cores or session.cores() or os.cpu_count() or 1


def file_names(tables: Sequence[Table], form: str = "csv") -> list[str]:
    """Names of the coarser files of a release."""
    stems = []
    for table in tables:
        stem = Path(table.name).name
        for known in (".gz", ".csv", ".parquet", ".pq"):
            stem = stem.removesuffix(known)
        stems.append(stem)
    alike = len(set(stems)) < len(stems)
    return [f"{stem}{f'-{i}' if alike else ''}-recoded{ENDING[form]}" for i, stem in enumerate(stems, 1)]

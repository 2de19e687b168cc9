"""Settings, figures and plots of an evaluation to MLflow, beside the computation and never in its way.

Every call to MLflow runs in order on a thread of its own, so that the first use of a store (seconds) costs nothing and
a tracking server that does not answer cannot stop an evaluation. What fails is kept in `Tracker.problem`.
Aggregates only: no record, key, class label or value of a person goes to MLflow.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as WaitedTooLong
from dataclasses import dataclass
from importlib import util
from pathlib import Path
from typing import Any

import pandas as pd

from .config import Config, ConfigError
from .locks import held
from .results import Assessment
from .strictjson import dumps, strict
from .suite import rows_of
from .tracked import METRICS, datasets, key_part, library_versions, parameters, plain, redact, release_metrics

logger = logging.getLogger(__name__)
DEFAULT_EXPERIMENT = "rapid-spark"
MOST_FINDINGS = 6  # whose figures are drawn; the tables hold all
WAIT = 120.0  # seconds for MLflow to take what it was given


@dataclass(frozen=True)
class Place:
    """Where runs go.

    Attributes:
        uri: MLflow tracking URI; None leaves it to MLflow (Databricks).
        experiment: name or id.
        directory: of a local SQLite store that is made at need; None elsewhere.
    """

    uri: str | None
    experiment: str
    directory: Path | None = None

    @property
    def shown(self) -> str:
        """The URI without user and password."""
        return redact(self.uri) if self.uri else "Databricks workspace"


def place(config: Config, directory: Path | None, user: str | None = None) -> Place:
    """Decide where runs go: the configuration, MLflow's variables, the Databricks workspace, or the store's directory.

    Args:
        config: settings.
        directory: the store's directory; None for a catalog.
        user: name of the Databricks user, whose folder holds the experiment by default.

    Raises:
        ConfigError: there is no place; the text says what to set.
    """
    settings = config.tracking
    experiment = settings.experiment or os.environ.get("MLFLOW_EXPERIMENT_ID") or os.environ.get("MLFLOW_EXPERIMENT_NAME")
    uri = settings.uri or os.environ.get("MLFLOW_TRACKING_URI")
    if uri:
        return Place(uri, experiment or DEFAULT_EXPERIMENT)
    if "DATABRICKS_RUNTIME_VERSION" in os.environ:
        return Place(
            None, experiment or (f"/Users/{user}/{DEFAULT_EXPERIMENT}" if user else f"/Shared/{DEFAULT_EXPERIMENT}")
        )
    if directory is None:
        raise ConfigError("tracking.uri: a store in a catalog has no directory for an MLflow store; name its URI")
    folder = directory.absolute() / "mlflow"
    return Place(f"sqlite:///{folder / 'mlflow.db'}", experiment or DEFAULT_EXPERIMENT, folder)


def databricks_user(spark: Any) -> str | None:
    """The Databricks user, whose folder holds the experiment by default; None elsewhere."""
    if "DATABRICKS_RUNTIME_VERSION" not in os.environ:
        return None
    return str(spark.sql("select current_user()").first()[0])


def started(
    spark: Any, config: Config, directory: Path | None, run_id: str, command: str, tags: Mapping[str, str] | None = None,
    logged: Any = None,
) -> tuple[Tracker | None, str]:
    """Open tracking in the background: a tracker, or None and why there is none.

    Args:
        spark: session.
        config: settings.
        directory: the store's directory; None for a catalog.
        run_id, command: of the run.
        tags: more tags of the parent run.
        logged: the settings to log, where they are not `config`.
    """
    if not config.tracking.enabled:
        return None, "tracking is off"
    try:
        where = place(config, directory, databricks_user(spark))
    except ConfigError as error:
        return None, str(error)
    tracker = Tracker(where, logged or config, run_id, command, tags)
    tracker.start()
    return tracker, ""


@contextlib.contextmanager
def without_autologging() -> Iterator[None]:
    """Keep MLflow from logging the fits of attackers by itself, as it does on Databricks by default."""
    if "mlflow" not in sys.modules:  # then nobody has switched it on
        yield
        return
    from mlflow.utils.autologging_utils import disable_autologging

    with disable_autologging():
        yield


def check(config: Config) -> None:
    """Refuse settings that cannot work here.

    Raises:
        ConfigError: the fitted attackers are to be stored, but what writes them without pickle is not installed.
    """
    if config.tracking.enabled and config.tracking.log_model and util.find_spec("skops") is None:
        raise ConfigError(
            "tracking.log_model: attackers are stored without pickle, by skops, which is not installed: "
            "pip install skops, or leave the setting out"
        )


def is_complete(where: Place, mlflow_run_id: str) -> bool:
    """Whether a run is there with its children, and closed; False where MLflow does not answer."""
    from mlflow import MlflowClient

    _be_quick()
    try:
        client = MlflowClient(tracking_uri=where.uri)
        run = client.get_run(mlflow_run_id)
        children = client.search_runs([run.info.experiment_id], f"tags.`mlflow.parentRunId` = '{mlflow_run_id}'")
    except Exception:
        logger.debug("MLflow was asked for a run", exc_info=True)
        return False
    return bool(children) and all(r.info.status != "RUNNING" for r in (run, *children))


def _be_quick() -> None:
    # A server that does not answer is given seconds, not the many minutes of MLflow's defaults.
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "20")
    for noisy in ("mlflow", "alembic"):  # their own set-up comes with the import
        logging.getLogger(noisy).setLevel(logging.ERROR)


class Tracker:
    """One parent run of an evaluation and its children.

    Attributes:
        problem: why tracking is missing or incomplete; None while all is well.
        run_id: id of the parent run once it exists.
    """

    def __init__(
        self, where: Place, config: Any, run_id: str, command: str = "evaluate", tags: Mapping[str, str] | None = None
    ) -> None:
        """Open nothing yet.

        Args:
            where: store and experiment.
            config: settings, of an evaluation or of an audit; logged as parameters.
            run_id: of the results.
            command: that was run.
            tags: of the parent run; an evaluation's are its registry and release.
        """
        self.where = where
        self.problem: str | None = None
        self.run_id: str | None = None
        self._config, self._evaluation, self._command = config, run_id, command
        self._tags = dict(tags) if tags is not None else {"registry": config.registry, "release": config.release_id}
        self._client: Any = None
        self._experiment = ""
        self._open: list[str] = []
        self._tasks: queue.SimpleQueue[tuple[Callable[[], None], Future[None]] | None] = queue.SimpleQueue()
        threading.Thread(target=self._work, name="mlflow", daemon=True).start()

    def start(self) -> None:
        """Open the store and the parent run, in the background."""
        self._submit(self._begin)

    def log(
        self, assessment: Assessment, versions: Mapping[str, Any], models: Path | None = None,
        tags: Mapping[str, str] | None = None, wait: bool = True,
    ) -> None:
        """Log what was found, as a child of its registry and release, and wait for it unless told otherwise.

        Args:
            assessment: results.
            versions: Delta version by table, as written.
            models: folder with the fitted attackers, where they are to be stored.
            tags: more tags of the child, such as its verdict; with them no figures are drawn.
            wait: for MLflow to have taken it; `end` waits in any case.
        """
        done = self._submit(lambda: self._log(assessment, versions, models, tags))
        if wait:
            self._wait(done)

    def log_tables(
        self, tables: Mapping[str, pd.DataFrame], figures: Mapping[str, float | None], tags: Mapping[str, str]
    ) -> None:
        """Log tables, figures and tags of the parent run, in the background."""

        def log() -> None:
            run = str(self.run_id)
            for name, frame in tables.items():
                if len(frame):
                    self._client.log_table(run, plain(frame), f"{name}.json")
            self._metrics(run, figures)
            for key, value in tags.items():
                self._client.set_tag(run, key, value)

        self._submit(log)

    def end(self, status: str) -> None:
        """Close the runs, 'FINISHED' or 'FAILED', and wait for it."""
        self._wait(self._submit(lambda: self._end(status), always=True))
        self._tasks.put(None)

    def wait_for_run(self, seconds: float = WAIT) -> str | None:
        """The parent run's id, or None where tracking is missing."""
        self._wait(self._submit(lambda: None), seconds)
        return self.run_id

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            function, done = task
            function()
            done.set_result(None)

    def _submit(self, function: Callable[[], None], always: bool = False) -> Future[None]:
        def guarded() -> None:
            if self.problem is not None and not always:
                return
            try:
                function()
            except Exception as error:
                logger.debug("tracking failed", exc_info=True)
                self.problem = self.problem or _problem(error, self.where)

        done: Future[None] = Future()
        self._tasks.put((guarded, done))
        return done

    def _wait(self, done: Future[None], seconds: float = WAIT) -> None:
        try:
            done.result(seconds)
        except WaitedTooLong:
            self.problem = self.problem or f"MLflow at {self.where.shown} did not answer within {seconds:.0f} seconds"

    def _begin(self) -> None:
        from mlflow import MlflowClient
        from mlflow.tracking.context.registry import resolve_tags

        _be_quick()
        with self._alone():
            self._client = MlflowClient(tracking_uri=self.where.uri)
            self._experiment = self._find_experiment()
        self._close_stale()
        tags = {
            "run_id": self._evaluation,
            **self._tags,
            "command": self._command,
            **{f"version.{k}": v for k, v in library_versions().items()},
        }
        parent = self._client.create_run(self._experiment, tags=resolve_tags(tags), run_name=self._evaluation)
        self.run_id = parent.info.run_id
        self._open.append(parent.info.run_id)
        self._log_parameters(parent.info.run_id)

    def _alone(self) -> contextlib.AbstractContextManager[None]:
        """A lock while a local store is made: two first uses at once would break its tables."""
        directory = self.where.directory
        return contextlib.nullcontext() if directory is None else held(directory / "creation.lock")

    def _find_experiment(self) -> str:
        name = self.where.experiment
        if name.isdigit():
            return str(self._client.get_experiment(name).experiment_id)
        found = self._client.get_experiment_by_name(name)
        if found is None:
            artifacts = (self.where.directory / "artifacts").as_uri() if self.where.directory else None
            try:
                return str(self._client.create_experiment(name, artifact_location=artifacts))
            except Exception:  # made by another process in between
                found = self._client.get_experiment_by_name(name)
                if found is None:
                    raise
        if found.lifecycle_stage != "active":
            raise _Unusable(f"the experiment {name!r} is deleted: restore it, or name another one")
        return str(found.experiment_id)

    def _close_stale(self) -> None:
        """Runs of the same evaluation that a killed process left open."""
        query = f"tags.run_id = '{self._evaluation}' and attributes.status = 'RUNNING'"
        for run in self._client.search_runs([self._experiment], query):
            self._client.set_terminated(run.info.run_id, "KILLED")

    def _log_parameters(self, run: str) -> None:
        from mlflow.entities import Param

        short, long = parameters(self._config)
        params = [Param(k, v) for k, v in short.items()]
        for i in range(0, len(params), 100):
            self._client.log_batch(run, params=params[i : i + 100])
        for path, value in long.items():
            self._client.log_text(run, dumps(value), f"parameters/{path}.json")

    def _log(
        self, assessment: Assessment, versions: Mapping[str, Any], models: Path | None, more: Mapping[str, str] | None
    ) -> None:
        tags = {"registry": assessment.registry, "release": assessment.release_id, **(more or {})}
        child = self._child(f"{assessment.registry} {assessment.release_id}", str(self.run_id), tags)
        if assessment.inputs:
            self._client.log_inputs(child, datasets=datasets(assessment.inputs))
        self._metrics(child, release_metrics(assessment))
        if versions:
            self._client.log_dict(child, strict(dict(versions)), "table_versions.json")
        self._client.log_table(child, plain(assessment.summary), "combinations.json")
        if len(assessment.curve):
            self._client.log_table(child, plain(assessment.curve), "risk_curve.json")
            if more is None:
                self._log_figures(child, assessment)
        if models is not None:
            self._client.log_artifacts(child, str(models), "attackers")
        if self._config.tracking.level == "combination":
            self._log_combinations(assessment, child, tags)
        self._metrics(str(self.run_id), {f"seconds/{key_part(k)}": v for k, v in assessment.seconds.items()})
        self._close(child, "FAILED" if set(assessment.summary["status"]) == {"failed"} else "FINISHED")

    def _log_figures(self, run: str, assessment: Assessment) -> None:
        """Figures of the highest findings; classes are named by rank, and no figure names a level."""
        from . import plots
        from .wording import findings

        bare = plots.without_labels(assessment)
        for finding in [f for f in findings(assessment.summary) if f.rate is not None][:MOST_FINDINGS]:
            name = "-".join(key_part(finding.key[c]) for c in ("sensitive_attribute", "qi_set", "measure"))
            drawings = {
                "risk_curve": plots.draw_curve(bare, finding),
                "risk_curve_pooled": plots.draw_curve(bare, finding, pooled=True),
                "attackers": plots.draw_attackers(bare, finding),
                "holdout": plots.draw_holdout(bare, finding),
                "classes": plots.draw_classes(bare, finding),
                "score": plots.draw_gain(bare, finding),
                "calibration": plots.draw_calibration(bare, finding),
                "alone_and_left_out": plots.draw_refits(bare, finding),
            }
            for kind, drawing in drawings.items():
                if drawing is not None:
                    self._client.log_figure(run, drawing.figure, f"figures/{kind}-{name}.png")

    def _log_combinations(self, assessment: Assessment, parent: str, tags: dict[str, str]) -> None:
        for row in rows_of(assessment.summary):
            names = {k: str(row[k]) for k in ("replicate", "qi_set", "sensitive_attribute", "attacker", "measure")}
            names |= {"weighting": "survey"} if row["weighting"] == "survey" else {}
            status = {"status": str(row["status"]), **({"reason": row["reason"]} if row["reason"] else {})}
            run = self._child(" ".join(names.values()), parent, {**tags, **names, **status})
            self._metrics(run, {k: row[k] for k in METRICS})
            self._close(run, "FAILED" if row["status"] == "failed" else "FINISHED")

    def _child(self, name: str, parent: str, tags: dict[str, str]) -> str:
        tags = {**tags, "run_id": self._evaluation, "mlflow.parentRunId": parent}
        run: str = self._client.create_run(self._experiment, tags=tags, run_name=name).info.run_id
        self._open.append(run)
        return run

    def _metrics(self, run: str, figures: Mapping[str, Any]) -> None:
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        known = {k: strict(v) for k, v in figures.items()}
        metrics = [Metric(k, float(v), now, 0) for k, v in known.items() if v is not None]
        for i in range(0, len(metrics), 900):
            self._client.log_batch(run, metrics=metrics[i : i + 900])

    def _close(self, run: str, status: str) -> None:
        self._client.set_terminated(run, status)
        self._open.remove(run)

    def _end(self, status: str) -> None:
        for run in reversed(list(self._open)):
            self._close(run, status)


class _Unusable(Exception):
    """Tracking is impossible for the reason given."""


def _problem(error: Exception, where: Place) -> str:
    if isinstance(error, _Unusable):
        return str(error)
    if isinstance(error, ImportError):
        return f"MLflow at {where.shown} needs {error.name or 'a package that is not installed'}: pip install mlflow"
    return f"MLflow at {where.shown} failed with {type(error).__name__}"

"""The order of steps of every release: check, count, charge, draw once, write, mark; or return what was drawn before.

Everything that can be refused is refused before the ledger is charged. After that the budget stays spent, whatever
happens.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pandas as pd
import pyarrow as pa

from rapid_spark import io, preparation
from rapid_spark.config import Config, ConfigError
from rapid_spark.reaedp import ledger
from rapid_spark.reaedp.budget import Guarantee
from rapid_spark.reaedp.filter import Request
from rapid_spark.store import Store
from rapid_spark.strictjson import dumps
from rapid_spark.tracked import library_versions
from rapid_spark.underway import Clock, new_run_id, quiet, started

from .published import Place
from .secret import content_hmac, secret_of
from .settings import ReleaseConfig
from .storage import DeltaLedger

CUSTODIAN = "computed from the original without noise; custodian only"


class Mechanism(Protocol):
    """One way to release, planned from settings alone.

    Attributes:
        name: 'histogram', 'entropy', 'synthetic' or 'curve'.
        columns: the columns of the table of people that are read.
        guarantee: the total, as the ledger enters it.
        warnings: to be told before anything is drawn.
        tables: names of the tables a release consists of, the main one first.
    """

    name: str
    columns: Sequence[str]
    guarantee: Guarantee
    warnings: Sequence[str]
    tables: Sequence[str]

    def parameters(self) -> dict[str, Any]:
        """Everything declared that decides what is drawn."""

    def plan(self) -> list[dict[str, Any]]:
        """How the budget is split, to be shown before anything is drawn."""

    def count(self, frame: Any, secret: str) -> Any:
        """The exact figures that `draw` needs, or a way to get them; whatever is wrong with the table is told here."""

    def draw(self, exact: Any) -> Mapping[str, pd.DataFrame | pa.Table]:
        """Draw the noise, once; tables by name. Called after the entry only."""

    def tell(self, frames: Mapping[str, pd.DataFrame]) -> dict[str, Any]:
        """What is to be said of a stored release, from its tables alone."""

    def evaluate(self, exact: Any) -> dict[str, Any]:
        """Errors of a separate, fresh draw, which is discarded; for public or simulated data only."""


@dataclass
class Released:
    """What a command came to.

    Attributes:
        run_id: of the run.
        release_id: name of the release.
        dataset: whose budget was charged.
        entry_id: of the ledger.
        drawn_before: the same request was drawn earlier, and this is what was stored then.
        guarantee: the total.
        plan: see `Mechanism.plan`.
        output: place of each table.
        told: see `Mechanism.tell`.
        evaluation: see `Mechanism.evaluate`; None where it was not asked for.
        store: where the ledger is.
        seconds: by stage.
        warnings: what the reader must know.
    """

    run_id: str
    release_id: str
    dataset: str
    entry_id: str
    drawn_before: bool
    guarantee: Guarantee
    plan: list[dict[str, Any]]
    output: dict[str, str]
    told: dict[str, Any]
    evaluation: dict[str, Any] | None
    store: str
    seconds: dict[str, float]
    frames: dict[str, pd.DataFrame] = field(repr=False, default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        """The outcome as `--format json` gives it."""
        return {
            "run_id": self.run_id,
            "release_id": self.release_id,
            "dataset": self.dataset,
            "entry_id": self.entry_id,
            "drawn_before": self.drawn_before,
            "guarantee": self.guarantee.as_dict(),
            "plan": self.plan,
            "output": self.output,
            **self.told,
            "evaluation": self.evaluation,
            "store": self.store,
            "seconds": self.seconds,
            "warnings": self.warnings,
        }


def release(
    mechanism: Mechanism,
    config: ReleaseConfig,
    run_id: str | None = None,
    *,
    evaluate: bool = False,
    debug: bool = False,
    say: Callable[[str], None] = quiet,
    watch: Callable[[Any], None] = lambda _: None,
) -> Released:
    """Draw a release and store it, or return the stored one where this request was drawn before.

    Args:
        mechanism: planned from `config`.
        config: settings.
        run_id: with the declared parameters the request's identity; a new one when left out.
        evaluate: also report errors of a separate draw.
        debug: show Spark's log.
        say: called with the name of each stage.
        watch: called once with the session.

    Raises:
        ConfigError: the request is wrong, the table does not fit it, or the budget does not carry it.
    """
    config.need("dataset", "original")
    if evaluate and not config.public:
        raise ConfigError(
            "--evaluate shows errors computed from the data without noise, which no epsilon covers: it is for data "
            "declared public: true (public or simulated) only"
        )
    with told():
        run_id = run_id or new_run_id()
        request = Request(
            str(config.dataset), run_id, config.release_id or run_id, mechanism.guarantee, mechanism.parameters(),
            config.derived_from,
        )  # fmt: skip
    with started(config.session, [config.original], run_id, debug, say, watch) as (spark, clock, _):
        with clock.stage("opening store"):
            store = open_store(spark, config)
        return _Desk(spark, store, config, mechanism, request, clock, evaluate).go()


def open_store(spark: Any, config: ReleaseConfig, create: bool = True) -> Store:
    """The store of the settings, its default filled in."""
    whole = preparation.with_store(Config(store=config.store))
    return Store.open(spark, str(whole.store.location), create=create)


@contextlib.contextmanager
def told() -> Iterator[None]:
    """What the rules of privacy refuse is the user's fault: ConfigError with the same text."""
    try:
        yield
    except ConfigError:
        raise
    except ValueError as error:
        raise ConfigError(str(error)) from None


@dataclass
class _Desk:
    spark: Any
    store: Store
    config: ReleaseConfig
    mechanism: Mechanism
    request: Request
    clock: Clock
    evaluate: bool

    def go(self) -> Released:
        storage = DeltaLedger(self.store)
        places = {
            name: Place.of(self.store, self.config.output, self.request.run_id, name, i == 0)
            for i, name in enumerate(self.mechanism.tables)
        }
        with self.clock.stage("reading ledger"), told():
            old = ledger.look(storage.read(), self.request)
        if old is not None:
            return self._released(old, places, None)
        for place in places.values():
            place.check_free()
        exact, hmac = self._count()
        with told():
            request = Request(**{**vars(self.request), "content_hmac": hmac})
        entry, evaluation = self._draw(storage, request, places, exact)
        return self._released(entry, places, evaluation)

    def _count(self) -> tuple[Any, str]:
        assert self.config.original is not None
        secret = secret_of(self.store)
        with self.clock.stage("opening table"):
            source = io.read(self.spark, self.config.original)
            frame = source.frame
            source.check_records()
        try:
            with self.clock.stage("counting"), told():
                exact = self.mechanism.count(frame, secret)
                return exact, content_hmac(frame, self.mechanism.columns, secret)
        except Exception as error:
            fault = io.fault_of(error, source)
            raise (fault or error) from None

    def _draw(
        self, storage: DeltaLedger, request: Request, places: Mapping[str, Place], exact: Any
    ) -> tuple[ledger.Entry, dict[str, Any] | None]:
        settings = self.config.model_dump(mode="json")
        attempt = self.store.begin(
            request.run_id, f"dp {self.mechanism.name}", dumps(settings), _digest(settings), {},
            library_versions(),
        )  # fmt: skip
        state = "failed"
        try:
            with self.clock.stage("charging the ledger"), told():
                entry = ledger.enter(storage, request)
            if entry.drawn:  # by another process, since the look above
                state = "finished"
                return entry, None
            with self.clock.stage("drawing"):
                frames = self.mechanism.draw(exact)
            facts = {
                "entry_id": entry.entry_id, "run_id": request.run_id, "release_id": request.release_id,
                "dataset": request.dataset,
            }  # fmt: skip
            with self.clock.stage("writing"):
                for name, place in places.items():
                    place.write(frames[name], request.guarantee, facts)
                ledger.mark_drawn(storage, entry.entry_id)
            evaluation = None
            if self.evaluate:
                with self.clock.stage("evaluating a separate draw"):
                    evaluation = {"label": CUSTODIAN, **self.mechanism.evaluate(exact)}
            state = "finished"
            return entry, evaluation
        finally:
            self.store.end(attempt, state)

    def _released(self, entry: ledger.Entry, places: Mapping[str, Place], evaluation: dict[str, Any] | None) -> Released:
        with self.clock.stage("reading release"):
            frames = {name: self._stored(place, entry) for name, place in places.items()}
        return Released(
            self.request.run_id, self.request.release_id, self.request.dataset, entry.entry_id, entry.drawn,
            self.request.guarantee, self.mechanism.plan(), {n: p.shown for n, p in places.items()},
            self.mechanism.tell(frames), evaluation, str(self.store), self.clock.seconds, frames,
            [*self.mechanism.warnings, *entry.warnings],
        )  # fmt: skip

    def _stored(self, place: Place, entry: ledger.Entry) -> pd.DataFrame:
        if not place.exists():
            raise ConfigError(
                f"this request was drawn as entry {entry.entry_id}, and its release is not at {place.shown} any more; "
                "it is never drawn again: name the place it was moved to with --output, or use another run id, a new charge"
            )
        found = place.facts().get("entry_id")
        if found != entry.entry_id:
            raise ConfigError(
                f"{place.shown} holds another release than entry {entry.entry_id}: name its place with --output"
            )
        return place.read()


def _digest(settings: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()

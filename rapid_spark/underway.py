"""A command under way: its run id, its session, its stages with their seconds, and what a signal does to it."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from . import session
from .config import ConfigError, Session, Table, check_identifier
from .interruption import Interruption, interruptible


def quiet(_: str) -> None:
    """No progress."""


@dataclass
class Clock:
    """Seconds by stage, and where to say which stage runs."""

    say: Callable[[str], None]
    seconds: dict[str, float]

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        self.say(name)
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - started


def new_run_id() -> str:
    """The time (UTC) and a random suffix, so that ids sort and two runs of one second differ."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"


def checked_id(run_id: str) -> str:
    """The run's id, or ConfigError where it is none."""
    try:
        return check_identifier(run_id)
    except ValueError as error:
        raise ConfigError(f"--run-id: {error}") from None


@contextmanager
def started(
    settings: Session,
    tables: Iterable[Table | None],
    run_id: str,
    debug: bool,
    say: Callable[[str], None],
    watch: Callable[[Any], None],
) -> Iterator[tuple[Any, Clock, Interruption]]:
    """The session, a clock whose stages end where a signal asked for it, and what signals ask for.

    Args:
        settings: of a local session.
        tables: what will be read.
        run_id: tag of the Spark jobs, so that a signal stops only these.
        debug: show Spark's log.
        say: called with the name of each stage.
        watch: called once with the session.
    """
    clock = Clock(say, {})
    with clock.stage("starting Spark"):
        spark = session.get(settings, debug, tables)
    watch(spark)
    with interruptible(spark, run_id) as interruption:

        def stage(name: str) -> None:
            interruption.check()
            say(name)

        yield spark, Clock(stage, clock.seconds), interruption

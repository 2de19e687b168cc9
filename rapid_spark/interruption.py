"""SIGTERM and SIGINT end a run as an error does: its Spark jobs stop, and it is marked as failed everywhere."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

from . import session

TERMINATED = 143  # what a shell reports of a process that SIGTERM ended
PAUSE = 1.0  # seconds between attempts to stop what runs


class Interruption:
    """What a signal asked for, while a run is under way.

    The exception is not raised within a call to the JVM: its answer would be taken for that of the next call. There
    the jobs are stopped, which ends the call with an error of its own.

    Attributes:
        asked: SystemExit or KeyboardInterrupt once a signal came.
    """

    def __init__(self, spark: Any, tag: str) -> None:
        self.asked: BaseException | None = None
        self._spark, self._tag = spark, tag
        self._over = threading.Event()

    def check(self) -> None:
        """Raise what a signal asked for, if one came."""
        if self.asked is not None:
            raise self.asked

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Handler of the signals."""
        if self.asked is not None:
            return
        self.asked = KeyboardInterrupt() if number == signal.SIGINT else SystemExit(TERMINATED)
        threading.Thread(target=self._stop_jobs, daemon=True).start()
        if not _calls_jvm(frame):
            raise self.asked

    def close(self) -> None:
        """Stop stopping jobs."""
        self._over.set()

    def _stop_jobs(self) -> None:
        # again and again, as a call under way may start the next job
        while not self._over.is_set():
            with contextlib.suppress(Exception):
                session.stop_jobs(self._spark, self._tag)
            self._over.wait(PAUSE)


@contextlib.contextmanager
def interruptible(spark: Any, tag: str) -> Iterator[Interruption]:
    """Handle both signals within a `with` block; jobs are tagged, so that only those of this run are stopped.

    Outside of the main thread signals stay as they are. Spark's own handler of SIGINT stops the jobs of everybody.
    """
    found = Interruption(spark, tag)
    handled = threading.current_thread() is threading.main_thread()
    before = {n: signal.signal(n, found.handle) for n in (signal.SIGTERM, signal.SIGINT)} if handled else {}
    session.add_tag(spark, tag)
    try:
        yield found
        found.check()
    except Exception as error:
        if found.asked is not None:
            raise found.asked from error
        raise
    finally:
        found.close()
        if found.asked is None:
            session.remove_tag(spark, tag)
        for number, handler in before.items():
            signal.signal(number, handler)


def _calls_jvm(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith("py4j."):
            return True
        frame = frame.f_back
    return False

"""Calls that wait for Spark, side by side: while one plans on the driver, another's tasks run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")
WIDTH = 4  # more calls at a time only wait for each other


def at_once(spark: Any, calls: Sequence[Callable[[], T]], width: int = WIDTH) -> list[T]:
    """Run calls in threads that belong to the caller's Spark jobs, so that an interruption stops these too.

    Args:
        spark: the session, classic or Connect.
        calls: each independent of the others.
        width: calls at a time.

    Returns:
        Their results, in the order of the calls.

    Raises:
        Exception: the first one that a call raised, in the order of the calls, when all have ended.
    """
    if len(calls) < 2:
        return [call() for call in calls]
    with ThreadPoolExecutor(min(width, len(calls)), thread_name_prefix="side-by-side") as pool:
        futures = [pool.submit(inherited(spark, call)) for call in calls]
    return [future.result() for future in futures]


def beside(spark: Any, call: Callable[[], T], name: str) -> Future[T]:
    """Begin a call in a thread of its own, as `at_once` runs several; its result or error, once it has ended.

    The thread does not keep the process alive: a run that fails need not wait for what it no longer needs.
    """
    future: Future[T] = Future()

    def work() -> None:
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=inherited(spark, work), name=name, daemon=True).start()
    return future


def inherited(spark: Any, call: Callable[[], T]) -> Callable[[], T]:
    """The call as a thread's target that takes the caller's job tags along."""
    from pyspark.util import inheritable_thread_target

    target: Callable[[], T] = inheritable_thread_target(spark)(call)
    return target

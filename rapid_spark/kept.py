"""Frames that several actions read: held in memory or on disk where the platform can."""

from __future__ import annotations

from typing import Any

from pyspark import StorageLevel
from pyspark.errors import PySparkException


def hold(frame: Any) -> Any:
    """Keep a frame's rows once they are computed; where the platform keeps nothing, they are computed again.

    What decides a figure is deterministic, so a row that is computed again is the same.
    """
    try:
        return frame.persist(StorageLevel.MEMORY_AND_DISK)
    except PySparkException:  # serverless environments before 5
        return frame


def let_go(frame: Any) -> None:
    """Free what `hold` kept."""
    try:
        frame.unpersist()
    except PySparkException:
        return

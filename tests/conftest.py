"""One Spark session for the whole test run, started when first needed; each test leaves it as it found it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# Processes that tests start are short: one JIT tier takes a third off their start. The session of the tests themselves
# runs for minutes, and all tiers make it faster by a tenth after the first of them.
SHORT, LASTING = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC", "-XX:+UseSerialGC"
os.environ.setdefault("RAPID_SPARK_JAVA_OPTIONS", SHORT)
os.environ.setdefault("RAPID_SPARK_DRIVER_MEMORY", "2g")
# The notebook about Adult, on few records.
os.environ.setdefault("RAPID_ADULT", str(Path(__file__).resolve().parent / "data" / "adult" / "original.csv.gz"))
os.environ.setdefault("RAPID_ADULT_ROWS", "600")


# Slow as a whole, the longest first, so that of two processes none is left alone with one of them at the end.
LONGEST = ("test_store", "test_run", "test_connect", "test_evaluation", "test_releases")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Fast tests first, and among them those without Spark; slow ones by the length of their modules."""
    items.sort(key=lambda item: (item.get_closest_marker("slow") is not None, _uses_spark(item), _place(item)))


def _place(item: pytest.Item) -> int:
    return LONGEST.index(item.path.stem) if item.path.stem in LONGEST else len(LONGEST)


def _uses_spark(item: pytest.Item) -> bool:
    return "spark" in getattr(item, "fixturenames", ())


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """The session of the package, as a user gets it."""
    from rapid_spark import session

    with pytest.MonkeyPatch.context() as patch:
        if os.environ["RAPID_SPARK_JAVA_OPTIONS"] == SHORT:
            patch.setenv("RAPID_SPARK_JAVA_OPTIONS", LASTING)
        spark = session.get()
    yield spark
    session.stop(spark)


@pytest.fixture(autouse=True)
def _clean_spark(request: pytest.FixtureRequest) -> Iterator[None]:
    """Drop a test's temporary views, and go back to the default schema."""
    yield
    if _uses_spark(request.node):
        spark = request.getfixturevalue("spark")
        spark.catalog.setCurrentDatabase("default")
        for table in spark.catalog.listTables():
            if table.isTemporary:
                spark.catalog.dropTempView(table.name)

"""Every public name has an example in its docstring, and the examples are right."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

import rapid_spark

NAMES = sorted(rapid_spark.PLACES)
WITHOUT_SPARK = {"Config", "ConfigError", "load"}


def run(name: str) -> doctest.TestResults:
    """The examples of one name, in an empty folder."""
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    thing = getattr(rapid_spark, name)
    own = [t for t in doctest.DocTestFinder(recurse=False).find(thing, name, globs={})]
    assert any(t.examples for t in own), f"{name} has no example"
    for test in own:
        runner.run(test)
    return doctest.TestResults(runner.failures, runner.tries)


@pytest.mark.parametrize("name", sorted(WITHOUT_SPARK))
def test_examples_without_spark(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(name).failed == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in NAMES if n not in WITHOUT_SPARK])
def test_examples_with_spark(spark, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(name).failed == 0

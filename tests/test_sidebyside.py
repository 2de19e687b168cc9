"""Calls side by side: results in order, errors kept, the caller's job tags taken along."""

from __future__ import annotations

import threading

import pytest

from rapid_spark import sidebyside
from rapid_spark.sidebyside import at_once


@pytest.fixture(autouse=True)
def without_spark(monkeypatch):
    monkeypatch.setattr(sidebyside, "inherited", lambda spark, call: call)


def test_results_stand_in_the_order_of_the_calls():
    first_may_end = threading.Event()

    def first():
        assert first_may_end.wait(10)
        return "first"

    def second():
        first_may_end.set()
        return "second"

    assert at_once(None, [first, second]) == ["first", "second"]


def test_one_call_runs_in_the_caller_s_own_thread():
    assert at_once(None, [threading.get_ident]) == [threading.get_ident()]
    assert at_once(None, []) == []


def test_the_first_error_is_raised_once_all_calls_have_ended():
    ended = []

    def broken():
        raise KeyError("first")

    with pytest.raises(KeyError, match="first"):
        at_once(None, [broken, lambda: ended.append(1), lambda: 1 / 0])
    assert ended == [1]

"""The audit's order of work, without Spark: who is judged against whom, what is written, and what the exit code is."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from rapid_spark import results, sidebyside
from rapid_spark.audit import runner
from rapid_spark.audit.registry import Evaluated
from rapid_spark.audit.settings import AuditConfig, evaluation_settings, for_release
from rapid_spark.cli import verdicts as shown
from rapid_spark.config import parse_as
from rapid_spark.store import StoreError
from rapid_spark.underway import Clock, quiet

KEYS = {"replicate": 1, "scored_on": "original", "qi_set": "all", "weighting": "none", "sensitive_attribute": "ill",
        "target_type": "categorical", "attacker": "cart", "measure": "normalized_gain", "threshold": 0.3, "n": 500}  # fmt: skip


class Rows(list):
    """A store that keeps what it is given."""

    directory = None
    warehouse = SimpleNamespace(spark=None)

    def begin(self, run_id: str, command: str, *_: Any) -> Any:
        self.append(("begin", command))
        return runner.Attempt(run_id, 1, {})

    def write(self, attempt: Any, table: str, frame: pd.DataFrame, **_: Any) -> int:
        self.append((table, frame))
        return 1

    def need(self, *names: str) -> None:
        """Its tables are all there."""

    def end(self, attempt: Any, state: str, *_: Any) -> None:
        self.append(("end", state))

    def __str__(self) -> str:
        return "./store"


def summary(registry: str, release: str, rate: float | None) -> pd.DataFrame:
    known = {"status": "ok", "rapid": rate, "ci_low": (rate or 0) - 0.02, "ci_high": (rate or 0) + 0.02, "excess": 0.1}
    row = {**KEYS, "registry": registry, "release_id": release, **(known if rate is not None else {"status": "failed"})}
    return results.frame([row], results.SUMMARY)


def audited(monkeypatch: pytest.MonkeyPatch, rates: dict[str, dict[str, float | None]], **limits: Any) -> tuple[Any, Rows]:
    """Run an audit whose registries give these rates; None is a release that could not be evaluated."""
    data = {
        "defaults": {"quasi_identifiers": ["age"], "sensitive_attributes": ["ill"], "attackers": ["cart"]},
        "registries": [
            {"name": name, "original": f"{name}.csv", "releases": [
                {"id": i, "date": f"{i}-01-01", "tables": f"{name}_{i}.csv"} for i in of]} for name, of in rates.items()
        ],
        "policy": {"limits": limits or {"rapid_max": 0.5}}, "tracking": {"enabled": False}, "compare": {"min_n": 10},
    }  # fmt: skip
    config = parse_as(AuditConfig, data)
    settings = evaluation_settings(config)

    def evaluate(work: Any, registry: Any, base: Any) -> list[Evaluated]:
        found = []
        for release in registry.releases:
            rate = rates[registry.name][release.id]
            tables = {"risk_summary": summary(registry.name, release.id, rate), "risk_curve": results.frame([], results.CURVE)}
            found.append(Evaluated(registry.name, release.id, for_release(base, release), tables, warnings=["same"] * 2,
                                   failed=None if rate is not None else "no file", at_fault=rate is None))  # fmt: skip
        return found

    monkeypatch.setattr(runner, "evaluate_registry", evaluate)
    monkeypatch.setattr(runner, "inherited", lambda _, call: call)
    monkeypatch.setattr(sidebyside, "inherited", lambda _, call: call)
    monkeypatch.setattr(runner, "at_once", lambda _, calls: [call() for call in calls])
    monkeypatch.setattr(runner.history, "finished", lambda *_: pd.DataFrame(columns=["registry", "release_id"]))
    store = Rows()
    interruption = SimpleNamespace(check=lambda: None)
    monkeypatch.setattr(runner.Store, "open", lambda *_: store)
    audit = runner._Audit(None, config, settings, "run", "audit", Clock(quiet, {}), interruption)  # type: ignore[arg-type]
    return audit.go(), store


def overall(outcome: Any) -> dict[tuple[str, str], str]:
    frame = outcome.verdicts[outcome.verdicts["rule"] == "overall"]
    return {(r, i): v for r, i, v in frame[["registry", "release_id", "verdict"]].itertuples(index=False)}


def test_each_release_is_compared_with_the_one_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome, _ = audited(monkeypatch, {"a": {"2024": 0.2, "2025": 0.25, "2026": 0.4}}, increase_over_previous=0.1)
    assert list(overall(outcome).values()) == ["pass", "pass", "fail"]
    figures = outcome.verdicts[outcome.verdicts["rule"] == "increase_over_previous"]["figure"]
    assert list(figures) == pytest.approx([0, 0.05, 0.15])
    assert not outcome.cleared and outcome.not_cleared[0]["release_id"] == "2026"


def test_a_release_after_one_that_failed_has_no_known_increase(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome, _ = audited(monkeypatch, {"a": {"2024": None, "2025": 0.2}}, increase_over_previous=0.1)
    assert overall(outcome) == {("a", "2024"): "not_evaluated", ("a", "2025"): "not_evaluated"}
    assert outcome.failed == [{"registry": "a", "release_id": "2024", "reason": "no file"}]


def test_every_table_is_written_once_and_finished_last(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome, store = audited(monkeypatch, {"a": {"2024": 0.2}, "b": {"2024": 0.3, "2025": 0.6}})
    names = [name for name, _ in store]
    assert names[0] == "begin" and names[-1] == "end" and store[-1] == ("end", "finished")
    assert sorted(names[1:-1]) == ["audit_comparison", "audit_verdicts", "risk_curve", "risk_summary"]
    written = dict(store)
    assert len(written["risk_summary"]) == 3 and set(written["audit_verdicts"]["run_id"]) == {"run"}
    assert list(written["audit_comparison"]["rapid"]) == [0.2, 0.6]  # the latest release of each
    assert outcome.warnings == ["a: same", "b: same"]


def test_a_document_is_strict_json(monkeypatch: pytest.MonkeyPatch) -> None:
    import json

    from rapid_spark.strictjson import dumps

    outcome, _ = audited(monkeypatch, {"a": {"2024": 0.2}, "b": {"2024": None}})
    document = json.loads(dumps(outcome.document()))
    assert set(document) >= {"run_id", "verdicts", "failed"} and document["cleared"] is False
    assert dt.datetime.fromisoformat(document["verdicts"][0]["evaluated_at"])


@pytest.mark.parametrize(("rates", "status", "at_fault", "code"), [
    ({"a": {"2024": 0.2}}, "ok", False, 0),
    ({"a": {"2024": 0.6}}, "ok", False, 1),
    ({"a": {"2024": 0.2}, "b": {"2024": None}}, "ok", False, 1),
    ({"a": {"2024": None}}, "failed", True, 3),
])  # fmt: skip
def test_what_the_exit_code_is_made_of(
    monkeypatch: pytest.MonkeyPatch, rates: dict[str, Any], status: str, at_fault: bool, code: int
) -> None:
    outcome, store = audited(monkeypatch, rates)
    assert (outcome.status, outcome.at_fault) == (status, at_fault)
    assert shown.exit_code(outcome.status, outcome.cleared, "exit") == code
    assert shown.exit_code(outcome.status, outcome.cleared, "report") == (3 if code == 3 else 0)
    assert store[-1] == ("end", "failed" if status == "failed" else "finished")


def test_an_error_of_the_store_ends_the_run_as_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Rows, attempt: Any, table: str, frame: Any, **_: Any) -> int:
        raise StoreError("full")

    monkeypatch.setattr(Rows, "write", broken)
    ended: list[str] = []
    monkeypatch.setattr(Rows, "end", lambda self, attempt, state, *_: ended.append(state))
    with pytest.raises(StoreError, match="full"):
        audited(monkeypatch, {"a": {"2024": 0.2}})
    assert ended == ["failed"]


def test_the_terminal_names_what_is_not_cleared(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from rapid_spark.cli import finding

    outcome, _ = audited(monkeypatch, {"a": {"2024": 0.2}, "b": {"2024": 0.6}})
    shown.show(outcome.verdicts, finding.console())
    out = capsys.readouterr().out
    assert "all 2 rules pass" in out and "b 2024 ill, rapid_max: 60.0 % (cart) is over the limit of 50.0 %" in out
    assert shown.closing(outcome.verdicts, 1) == "Not cleared: 1 of 2 releases, b 2024 (fail). That is exit code 1."
    assert "exit code 0 by --on-fail report" in shown.closing(outcome.verdicts, 0)


def test_settings_are_refused_before_anything_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner.session, "get", lambda *_: pytest.fail("Spark was started"))
    data = {
        "defaults": {"quasi_identifiers": ["age"], "sensitive_attributes": ["ill"], "attackers": ["carrt"]},
        "registries": [{"name": "a", "original": "a.csv", "releases": "a_*.csv"}],
        "policy": {"limits": {"rapid_max": 0.5}}, "store": {"location": str(tmp_path / "store")},
    }  # fmt: skip
    with pytest.raises(Exception, match="cart"):
        runner.audit(parse_as(AuditConfig, data))
    assert not list(tmp_path.iterdir())


def test_the_report_is_made_of_what_the_audit_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    from rapid_spark.audit import page

    outcome, _ = audited(monkeypatch, {"a": {"2024": 0.2, "2025": 0.3}, "b": {"2024": 0.6}, "c": {"2024": None}})
    assert page.is_audit(outcome.report)
    html = page.render(outcome.report)
    assert "<title>Audit: 3 registries, 4 releases, 2 not cleared</title>" in html
    assert "Registries compared" in html and "no file" in html and "a: same" in html

"""What breaks under a run: a worker that dies while it scores, a disk that is full while results are written."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from test_evaluation import evaluate, people
from test_run import folder, rows, states, words

from rapid_spark.cli import entry
from rapid_spark.store import Store

__all__ = ["folder"]  # a fixture

QUICK = {
    "intervals": {"method": "wilson", "permutations": 0},
    "drivers": {"subgroups": False, "patterns": 0, "attribution": False},
}
KILLER = """
import os
import signal
from sklearn.tree import DecisionTreeClassifier


class KilledOnce(DecisionTreeClassifier):
    def __init__(self, mark=None, driver=None, random_state=None):
        super().__init__(random_state=random_state, max_depth=3)
        self.mark, self.driver = mark, driver

    def predict_proba(self, X, check_input=True):
        if os.getpid() != self.driver:
            try:
                os.close(os.open(self.mark, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                pass
            else:
                os.kill(os.getpid(), signal.SIGKILL)
        return super().predict_proba(X, check_input)
"""


@pytest.mark.slow
@pytest.mark.long
def test_a_worker_killed_while_it_scores_changes_no_figure(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "killing_attacker.py"
    module.write_text(KILLER)
    monkeypatch.syspath_prepend(str(tmp_path))
    spark.sparkContext.addPyFile(str(module))
    mark = tmp_path / "a-worker-died"
    attacker = {"name": "killing_attacker.KilledOnce", "parameters": {"mark": str(mark), "driver": os.getpid()}}
    found = []
    for died in (False, True):
        assert mark.exists() == died
        assessment = evaluate(spark, people(80), people(80, seed=1), attackers=[attacker], allow_code=True, **QUICK)
        records = assessment.records.toPandas().sort_values("record_id")
        assessment.close()
        assert mark.exists(), "no worker was killed"
        assert list(assessment.summary["status"]) == ["ok"]
        found.append((assessment.summary["rapid"].iloc[0], list(records["true_prob"])))
    assert found[0] == found[1] and len(found[0][1]) == 80


@pytest.mark.slow
@pytest.mark.long
def test_a_full_disk_while_writing_leaves_nothing_that_a_view_shows(
    spark: Any, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = words(folder, "--run-id", "full", "--no-tracking")
    write = Store.write

    def full(self: Store, attempt: Any, table: str, *rest: Any) -> Any:
        if table == "risk_curve":
            raise OSError(errno.ENOSPC, "No space left on device: group=a, ill=yes")
        return write(self, attempt, table, *rest)

    with monkeypatch.context() as broken:
        broken.setattr(Store, "write", full)
        assert entry.run(command) == 3
    said = capsys.readouterr().err
    assert "ill=yes" not in said
    assert states(folder, "full") == ["started", "failed"]
    shown = ["query", "select count(*) as n from release_risk where run_id = 'full'", "--store", str(folder / "store"),
             "--format", "csv"]  # fmt: skip
    assert entry.run(shown) == 0
    assert capsys.readouterr().out == "n\n0\n"
    assert entry.run(command) == 0
    assert states(folder, "full") == ["started", "failed", "started", "finished"]
    assert len(rows(folder, "risk_records", "full")) == 90
    capsys.readouterr()
    assert entry.run(shown) == 0
    assert capsys.readouterr().out == "n\n1\n"

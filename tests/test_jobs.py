"""The jobs that draw and attack releases, by spark-submit: what they leave in the store, and how they end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from deltalake import DeltaTable
from submitted import document, submitted

from rapid_spark.cli.entry import run

pytestmark = [pytest.mark.slow, pytest.mark.long]
N = 300
STORE = ["--store", "./store", "--format", "json"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """People in a file."""
    rng = np.random.default_rng(6)
    sex, age = rng.choice(["f", "m"], N), rng.integers(0, 100, N)
    ill = np.where(rng.random(N) < 0.3, "yes", "no")
    pd.DataFrame({"id": range(N), "sex": sex, "age": age, "ill": ill}).to_csv(tmp_path / "people.csv", index=False)
    return tmp_path


def rows(folder: Path, table: str) -> pd.DataFrame:
    return DeltaTable(folder / "store" / table).to_pandas()


def test_the_publishing_job_draws_a_run_id_once_and_never_beyond_the_budget(folder: Path, spark: Any) -> None:
    config = {
        "dataset": "people", "original": "people.csv", "n_declared": N, "adjacency": "add_remove", "epsilon": 1.0,
        "domains": {"sex": {"levels": ["f", "m"]}, "age": {"edges": [0, 50, 100], "integer": True}},
        "histogram": {"tables": [["sex", "age"]]},
    }  # fmt: skip
    (folder / "dp.yml").write_text(yaml.safe_dump(config))
    budget = ["--epsilon", "1.5", "--adjacency", "add_remove", "--n-declared", str(N), "--store", f"{folder}/store"]
    assert run(["ledger", "set-budget", "--dataset", "people", *budget]) == 0
    words = ["histogram", "--config", "dp.yml", "--run-id"]

    first = document(submitted("publish_release.py", [*words, "2026-11", *STORE], folder))
    counts, entries = DeltaTable(first["output"]["tables"]).to_pandas(), rows(folder, "dp_ledger")
    assert not first["drawn_before"] and len(counts) == 4 and counts["count"].sum() == pytest.approx(N)
    drawn = entries[entries["entry_id"] == first["entry_id"]]
    assert set(drawn["state"]) == {"entered", "drawn"} and set(drawn["run_id"]) == {"2026-11"}

    again = document(submitted("publish_release.py", [*words, "2026-11", *STORE], folder))
    assert again["drawn_before"] and (again["entry_id"], again["output"]) == (first["entry_id"], first["output"])

    assert "error: over budget: epsilon" in submitted("publish_release.py", [*words, "2026-12", *STORE], folder, code=2)
    # neither the second nor the third drew or charged anything
    pd.testing.assert_frame_equal(DeltaTable(first["output"]["tables"]).to_pandas(), counts)
    assert len(rows(folder, "dp_ledger")) == len(entries) and not (folder / "store" / "dp" / "2026-12").exists()


def test_the_attacking_job_finds_each_person_in_a_copy(folder: Path) -> None:
    config = {"original": "people.csv", "release": "people.csv", "columns": {"key": "id"}, "tracking": {"enabled": False},
              "quasi_identifiers": ["sex", "age"], "sensitive_attributes": ["ill"]}  # fmt: skip
    (folder / "copy.yml").write_text(yaml.safe_dump(config))
    words = ["linkage", "--config", "copy.yml", "--release-id", "2026-11"]
    told = document(submitted("attack_release.py", [*words, *STORE], folder))
    found = rows(folder, "risk_attacks")
    assert len(found) == len(told["results"]) and set(found["release_id"]) == {"2026-11"}
    own = found.set_index("attack").loc["re_identification"]
    assert own["n"] == N and own["accuracy"] > 0.5 > 2 * own["chance"]


def test_a_violated_claim_ends_the_attacking_job_with_1(folder: Path) -> None:
    words = ["test-epsilon", "--epsilon", "1", "--release-id", "2026-11", "--mechanism", "half_noise", "--counts", "0,3,40",
             "--plays", "500", "--no-tracking"]  # fmt: skip
    assert document(submitted("attack_release.py", [*words, *STORE], folder, code=1))["verdict"] == "violated"
    found = rows(folder, "risk_attacks")
    assert "violated" in set(found["verdict"]) and set(found["release_id"]) == {"2026-11"}

"""An audit on Spark: a pass over several releases, a registry with a broken file, rows, codes, the report, the job."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from deltalake import DeltaTable
from submitted import document, submitted

from rapid_spark.audit import page
from rapid_spark.audit.registry import Work, evaluate_registry
from rapid_spark.audit.settings import AuditConfig, evaluation_settings
from rapid_spark.cli import entry
from rapid_spark.config import load_as
from rapid_spark.report import read
from rapid_spark.store import Store


def people(n: int, seed: int, dependence: float) -> pd.DataFrame:
    """Rows whose attribute follows from the group as often as `dependence` says."""
    rng = np.random.default_rng(seed)
    group = rng.choice(["a", "b", "c"], n)
    ill = np.where(rng.random(n) < dependence, group == "a", rng.random(n) < 0.4)
    return pd.DataFrame({"id": np.arange(n), "group": group, "age": rng.integers(20, 60, n), "ill": np.where(ill, "yes", "no")})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three registries: one plain, one in its own words with a release that tells too much, one with a broken file."""
    folder = tmp_path_factory.mktemp("audit")
    plain = people(240, 1, 0.4)
    plain.to_csv(folder / "plain.csv", index=False)
    for year, seed in (("2024", 2), ("2025", 3)):
        people(240, seed, 0.2).drop(columns="id").to_csv(folder / f"plain_{year}.csv", index=False)
    own = people(300, 4, 0.95).rename(columns={"group": "grp", "ill": "dx"})
    own["dx"] = own["dx"].map({"yes": 1, "no": 0})
    own.to_csv(folder / "own.csv", index=False)
    own.drop(columns="id").assign(dx=np.random.default_rng(5).permutation(own["dx"])).to_csv(folder / "own_2024.csv", index=False)
    own.drop(columns="id").to_csv(folder / "own_2025.csv", index=False)
    plain.to_csv(folder / "broken.csv", index=False)
    (folder / "broken_2025.parquet").write_bytes(b"PAR1 this is no Parquet file")
    data: dict[str, Any] = {
        "defaults": {
            "columns": {"key": "id"}, "quasi_identifiers": ["group", "age"], "sensitive_attributes": ["ill:categorical"],
            "attackers": ["cart", "logit"], "intervals": {"bootstrap": 50, "permutations": 0},
            "drivers": {"subgroups": False, "attribution": False, "patterns": 0},
        },
        "registries": [
            {"name": "plain", "original": f"{folder}/plain.csv", "releases": f"{folder}/plain_*.csv"},
            {"name": "own", "original": f"{folder}/own.csv", "releases": f"{folder}/own_*.csv",
             "vocabulary": {"columns": {"grp": "group", "dx": "ill"}, "levels": {"ill": {1: "yes", 0: "no"}}}},
            {"name": "broken", "original": f"{folder}/broken.csv",
             "releases": [{"id": "2025", "tables": f"{folder}/broken_2025.parquet"}]},
        ],
        "policy": {"context": {"audience": "public"}, "limits": {"rapid_max": 0.6, "increase_over_previous": 0.3, "min_n": 100}},
        "compare": {"by": ["group"], "min_n": 100},
        "store": {"location": f"{folder}/store"},
    }  # fmt: skip
    (folder / "audit.yml").write_text(yaml.safe_dump(data))
    return folder


def invoke(*words: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command in this process."""
    from click.testing import CliRunner

    from rapid_spark.cli.terminal import Terminal

    found = CliRunner().invoke(entry.cli, list(words), obj=Terminal(), standalone_mode=False)
    assert found.exception is None, found.exception
    return found.return_value, found.stdout, found.stderr


@pytest.fixture(scope="module")
def done(folder: Path, spark: Any) -> tuple[int, dict[str, Any], str]:
    code, out, err = invoke("audit", "--config", str(folder / "audit.yml"), "--run-id", "audit-1", "--format", "json")
    return code, json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is no strict JSON")), err


def rows(folder: Path, table: str) -> pd.DataFrame:
    return DeltaTable(folder / "store" / table).to_pandas()


@pytest.mark.slow
def test_the_audit_goes_on_past_a_broken_file_and_is_not_cleared(done: tuple[int, dict[str, Any], str]) -> None:
    code, document, err = done
    assert code == 1 and not document["cleared"]
    overall = {(v["registry"], v["release_id"]): v["verdict"] for v in document["verdicts"] if v["rule"] == "overall"}
    assert overall == {("plain", "2024"): "pass", ("plain", "2025"): "pass", ("own", "2024"): "pass",
                       ("own", "2025"): "fail", ("broken", "2025"): "not_evaluated"}  # fmt: skip
    (broken,) = document["failed"]
    assert broken["registry"] == "broken" and "cannot be read" in broken["reason"]
    assert "broken 2025 could not be evaluated" in err


@pytest.mark.slow
def test_the_store_has_the_verdicts_and_a_failed_row_for_what_broke(done: tuple[int, dict[str, Any], str], folder: Path) -> None:
    verdicts, summary = rows(folder, "audit_verdicts"), rows(folder, "risk_summary")
    assert len(verdicts) == len(done[1]["verdicts"]) and set(verdicts["audience"]) == {"public"}
    failed = summary[summary["registry"] == "broken"]
    assert list(failed["status"]) == ["failed"] * 2 and "cannot be read" in failed["reason"].iloc[0]
    assert list(rows(folder, "runs").sort_values("ended_at", na_position="first")["state"]) == ["started", "finished"]


@pytest.mark.slow
def test_the_rates_are_those_of_the_records(done: tuple[int, dict[str, Any], str], folder: Path) -> None:
    records, summary = rows(folder, "risk_records"), rows(folder, "risk_summary").query("status == 'ok'")
    keys = ["registry", "release_id", "attacker"]
    counted = records.groupby(keys)["at_risk"].agg(["size", "mean"])
    assert set(counted["size"].loc["own"]) == {300} and set(counted["size"].loc["plain"]) == {240}
    assert len(counted) == len(summary) == 8 and set(summary["replicate"]) == {1}
    assert counted["mean"].to_dict() == pytest.approx(summary.set_index(keys)["rapid"].to_dict())
    assert records.groupby("registry")["replicate"].unique().map(list).to_dict() == {"own": [1], "plain": [1]}


@pytest.mark.slow
def test_the_comparison_standardises_over_the_group(done: tuple[int, dict[str, Any], str], folder: Path) -> None:
    records = rows(folder, "risk_records").query("release_id == '2025' and attacker == 'cart'")
    groups = {"plain": people(240, 1, 0.4).set_index("id")["group"], "own": people(300, 4, 0.95).set_index("id")["group"]}
    rate, share = {}, {}
    for registry, group in groups.items():
        flags = records[records["registry"] == registry].set_index("record_id")["at_risk"].astype(float)
        flags.index = flags.index.astype(int)
        rate[registry], share[registry] = flags.groupby(group).mean(), group.value_counts(normalize=True)
    weight = (share["plain"] + share["own"]) / 2
    found = {row["registry"]: row for row in done[1]["comparison"] if row["attacker"] == "cart"}
    for registry in groups:
        assert found[registry]["standardised"] == pytest.approx(float((rate[registry] * weight).sum()))
        assert found[registry]["coverage"] == pytest.approx(1.0)
    assert found["own"]["standardised_difference_low"] > 0 and found["own"]["compared_with"] == "plain"


@pytest.mark.slow
def test_each_release_alone_gives_the_same_figures(done: tuple[int, dict[str, Any], str], folder: Path, spark: Any) -> None:
    config = load_as(AuditConfig, folder / "audit.yml")
    kept: list[Any] = []
    work = Work(spark, "alone", 1, ("group",), {}, False, kept.append, lambda _: None)
    own = config.registries[1]
    found = evaluate_registry(work, own, evaluation_settings(config)["own"])
    together = rows(folder, "risk_summary").query("registry == 'own'").set_index(["release_id", "attacker"])
    for evaluated in found:
        for row in evaluated.summary.to_dict("records"):
            for column in ("n", "n_at_risk", "n_train", "release_digest", "settings_digest", "original_digest"):
                assert row[column] == together.loc[(evaluated.release_id, row["attacker"]), column], column
        columns = ["across", "replicate", "n", "n_any", "n_all", "combinations"]
        joint = rows(folder, "risk_joint").query(f"registry == 'own' and release_id == '{evaluated.release_id}'")
        assert joint[columns].to_dict("records") == evaluated.tables["risk_joint"][columns].to_dict("records")
    assert len(kept) == 2


@pytest.mark.slow
def test_the_digest_is_that_of_the_published_file(done: tuple[int, dict[str, Any], str], folder: Path, spark: Any) -> None:
    from rapid_spark import io, schema
    from rapid_spark.config import Table

    digest = schema.content_digest(io.read(spark, Table(path=str(folder / "own_2025.csv"))))
    mine = rows(folder, "risk_summary").query("registry == 'own' and release_id == '2025'")
    assert set(mine["release_digest"]) == {digest}


@pytest.mark.slow
@pytest.mark.long
def test_the_report_of_an_audit_names_what_is_not_cleared(
    done: tuple[int, dict[str, Any], str], folder: Path, spark: Any
) -> None:
    data = read(Store.open(spark, f"{folder}/store", create=False), "audit-1")
    assert page.is_audit(data)
    html = page.render(data)
    assert "<title>Audit: 3 registries, 5 releases, 2 not cleared</title>" in html
    assert "3 of 5 releases are cleared" in html and "Registries compared" in html and "<svg" in html
    assert "own 2025" in html and "cannot be read" in html


@pytest.mark.slow
@pytest.mark.long
def test_the_same_run_again_replaces_its_rows_and_report_lets_it_pass(
    done: tuple[int, dict[str, Any], str], folder: Path
) -> None:
    before = {t: len(rows(folder, t)) for t in ("risk_summary", "risk_records", "audit_verdicts", "audit_comparison")}
    code, out, _ = invoke("audit", "--config", str(folder / "audit.yml"), "--run-id", "audit-1", "--no-tracking",
                          "--on-fail", "report")  # fmt: skip
    assert code == 0
    assert "Not cleared: 2 of 5 releases, own 2025 (fail), broken 2025 (not evaluated)" in " ".join(out.split())
    assert {t: len(rows(folder, t)) for t in before} == before


@pytest.mark.slow
def test_a_policy_gates_evaluate_and_knows_the_release_before_from_the_store(
    done: tuple[int, dict[str, Any], str], folder: Path
) -> None:
    config = {
        **yaml.safe_load((folder / "audit.yml").read_text())["defaults"], "registry": "plain", "release_id": "2026",
        "release_date": "2026-01-01", "original": f"{folder}/plain.csv", "release": f"{folder}/plain.csv",
        "policy": {"limits": {"increase_over_previous": 0.05}}, "store": {"location": f"{folder}/store"},
        "tracking": {"enabled": False},
    }  # fmt: skip
    (folder / "one.yml").write_text(yaml.safe_dump(config))
    code, out, _ = invoke("evaluate", "--config", str(folder / "one.yml"), "--run-id", "one", "--format", "json")
    document = json.loads(out)
    figures = {v["rule"]: v for v in document["verdicts"]}
    summary = rows(folder, "risk_summary")
    earlier = summary.query("run_id == 'audit-1' and registry == 'plain' and release_id == '2025'")["rapid"].max()
    increase = max(row["rapid"] for row in document["results"]) - earlier
    assert figures["increase_over_previous"]["figure"] == pytest.approx(increase)
    assert (code, document["cleared"]) == ((0, True) if increase <= 0.05 else (1, False))
    assert "against release 2025" in figures["increase_over_previous"]["reason"]


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize(("job", "words"), [
    ("audit_registries.py", ["--config", "audit.yml", "--no-tracking", "--format", "json", "--set", "workers=1"]),
    ("evaluate_release.py", ["--config", "one.yml", "--format", "json", "--run-id", "job", "--on-fail", "report"]),
])  # fmt: skip
def test_the_jobs_run_by_spark_submit(
    done: tuple[int, dict[str, Any], str], folder: Path, tmp_path: Path, job: str, words: list[str]
) -> None:
    if job.startswith("audit"):  # one registry is enough here
        data = yaml.safe_load((folder / "audit.yml").read_text())
        data["registries"] = data["registries"][:1]
        (tmp_path / "audit.yml").write_text(yaml.safe_dump({**data, "store": {"location": f"{tmp_path}/store"}}))
    else:
        data = yaml.safe_load((folder / "audit.yml").read_text())["defaults"]
        data |= {"original": f"{folder}/plain.csv", "release": f"{folder}/plain_2025.csv", "tracking": {"enabled": False},
                 "store": {"location": f"{tmp_path}/store"}, "policy": {"limits": {"rapid_max": 0.0}}}  # fmt: skip
        (tmp_path / "one.yml").write_text(yaml.safe_dump(data))
    told = document(submitted(job, words, tmp_path))
    assert {v["verdict"] for v in told["verdicts"] if v["rule"] == "overall"} == {"pass" if job.startswith("audit") else "fail"}

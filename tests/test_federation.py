"""Export out of one store and import into another: equal to direct evaluation, and nothing of a person on the way."""

from __future__ import annotations

import json
from datetime import date

import numpy as np
import pandas as pd
import pytest
from rows import combination, fill, record, run

from rapid_spark import Config, evaluate
from rapid_spark.cli.entry import run as run_command
from rapid_spark.config import ConfigError
from rapid_spark.federation import incoming, outgoing
from rapid_spark.federation.document import Document, decode, encode
from rapid_spark.simulate import registry
from rapid_spark.store import Store

KEY = "a key that both offices know"
RARE = "zz-rare-level"
TABLES = ("risk_summary", "risk_curve", "risk_classes", "risk_subgroups", "risk_attribution")


@pytest.fixture(scope="module")
def place(spark, tmp_path_factory):
    """A folder with store `at`, in which run `r1` has been evaluated on 600 people, four of them with a rare level."""
    folder = tmp_path_factory.mktemp("federation")
    people = registry(600, kappa=5, seed=1)
    people["record_id"] = [f"KEY-ZQX-{i}" for i in range(600)]
    people["region"] = np.where(np.arange(600) < 4, RARE, np.where(np.arange(600) % 2, "north", "south"))
    people.to_csv(folder / "people.csv", index=False)
    registry(600, kappa=5, seed=2).assign(region=people["region"]).to_csv(folder / "release.csv", index=False)
    evaluate(Config.model_validate({
        "registry": "at", "release_id": "v1", "release_date": "2026-05-01", "columns": {"key": "record_id"},
        "original": {"path": str(folder / "people.csv")}, "release": [{"path": str(folder / "release.csv")}],
        "quasi_identifiers": ["gender", "education", "region"], "sensitive_attributes": [{"name": "disease_status"}],
        "attackers": [{"name": "cart"}], "store": {"location": str(folder / "at")}, "tracking": {"enabled": False},
        "threshold": {"tau_grid": [0.1, 0.3]}, "intervals": {"bootstrap": 50, "permutations": 0},
    }), "r1")  # fmt: skip
    return folder


def command(capsys, *words):
    code = run_command([str(w) for w in words])
    told = capsys.readouterr()
    return code, told.out, told.err


def rows(store, table, run_id="r1"):
    """Rows without what belongs to the custodian alone; what is suppressed is not exported."""
    frame = outgoing.read(store, table, run_id).drop(columns=["original_digest"], errors="ignore")
    if "suppressed" in frame:
        frame = frame[~frame["suppressed"].astype(bool)]
    return sorted(map(repr, frame.to_dict("records")))


@pytest.mark.slow
@pytest.mark.long
def test_round_trip(place, spark, capsys, monkeypatch):
    monkeypatch.setenv("RAPID_SPARK_EXPORT_KEY", KEY)
    file = place / "r1.json"
    code, out, _ = command(capsys, "export", "--run", "r1", "--store", place / "at", "--output", file, "--format", "json")
    said = json.loads(out)
    assert code == 0 and said["signed"] and said["warnings"] == [] and file.stat().st_mode & 0o077 == 0

    content = file.read_text()
    withheld = said["withheld"]["risk_subgroups"]
    assert withheld >= 2  # the rare level, and one more of its column
    for secret in ("KEY-ZQX", "record_id\": \"", RARE, str(place), KEY, "people.csv"):
        assert secret not in content
    assert set(json.loads(content)["tables"]) <= {*TABLES, "audit_verdicts"}
    known = outgoing.read(Store.open(spark, str(place / "at")), "risk_summary", "r1")["original_digest"].iloc[0]
    assert known and known not in content

    code, out, err = command(capsys, "import", file, "--store", place / "centre", "--format", "json")
    assert code == 0, err
    assert json.loads(out)["signed"]
    home, centre = Store.open(spark, str(place / "at")), Store.open(spark, str(place / "centre"))
    for table in TABLES:
        assert rows(home, table) == rows(centre, table), table
        assert table == "risk_attribution" or rows(home, table)
    for view in ("release_risk", "registry_comparison", "release_history", "published_releases", "worst_subgroups"):
        direct, imported = (s.query(f"SELECT * FROM {view}").collect() for s in (home, centre))
        assert direct == imported and direct, view
    run_row = centre.query("SELECT command, inputs, config FROM finished_runs").first()
    assert run_row["command"] == "import" and json.loads(run_row["inputs"])["imported"]["signed"]
    assert "path" not in run_row["config"]

    for again in ([], ["--run-id", "other"]):
        code, _, err = command(capsys, "import", file, "--store", place / "centre", *again)
        assert code == 2 and "imported already" in err
    file.write_text(content.replace('"cart"', '"gbm"', 1))
    code, _, err = command(capsys, "import", file, "--store", place / "elsewhere")
    assert code == 2 and str(file) in err and not (place / "elsewhere").exists()


def document(run_id, registry_id="de", n=1000):
    of = {"run_id": run_id, "registry": registry_id, "release_id": "v1"}
    manifest = {"run_id": run_id, "releases": [{"registry": registry_id, "release_id": "v1"}]}
    frame = pd.DataFrame([{**combination(n, 300), **of}], dtype=object)
    return decode(encode(Document(manifest, {"risk_summary": frame})))


@pytest.mark.slow
@pytest.mark.long
def test_an_import_that_broke_off_is_completed_and_one_with_a_taken_name_is_refused(spark, tmp_path):
    store = Store.open(spark, str(tmp_path / "centre"))
    attempt = store.begin("x", "import", "{}", "s", {}, {})
    store.write(attempt, "risk_summary", document("x").tables["risk_summary"], "de", "v1")
    attempt.lock.release()  # the process was killed here
    assert store.query("SELECT * FROM release_risk").collect() == []
    assert incoming.load(store, document("x"))["risk_summary"] == 1
    assert store.query("SELECT n, rapid_decisive FROM release_figures").collect() == [(1000, 0.3)]
    with pytest.raises(ConfigError, match="another finished run x.*--run-id"):
        incoming.load(store, document("x", n=1001))
    incoming.load(store, document("x", "it", n=1001), "x-it")
    assert {r[0] for r in store.query("SELECT registry FROM registry_comparison").collect()} == {"de", "it"}


@pytest.mark.slow
@pytest.mark.long
def test_an_export_that_differs_by_few_people_from_an_earlier_one_is_warned_of(spark, tmp_path, capsys):
    """By keys where both runs have their records (same number, 3 exchanged), by numbers otherwise."""
    store = Store.open(spark, str(tmp_path / "de"))
    keys = [f"KEY-ZQX-{i}" for i in range(40)]
    people = {"one": keys, "three-exchanged": [*keys[3:], "a", "b", "c"],
              "twenty-exchanged": [*keys[20:], *(f"n{i}" for i in range(20))]}  # fmt: skip
    sizes = {**dict.fromkeys(people, 40), "same-table": 40, "counts-near": 45, "counts-far": 60}
    of = {run_id: {"run_id": run_id, "registry": "de", "release_id": "v1"} for run_id in sizes}
    digests = {run_id: run_id for run_id in sizes} | {"same-table": "one"}
    fill(
        store,
        runs=[run(run_id) for run_id in sizes],
        risk_summary=[{**combination(n, 12), **of[i], "original_digest": digests[i]} for i, n in sizes.items()],
        risk_records=[{**record(key), **of[i]} for i, members in people.items() for key in members],
        audit_verdicts=[{**of["one"], "rule": "rapid_max", "verdict": "pass", "figure": 0.3, "valid_until": date(2030, 1, 1)}],
    )
    place = ["--store", tmp_path / "de", "--format", "json", "--output", tmp_path / "f.json"]
    assert json.loads(command(capsys, "export", "--run", "one", *place)[1])["warnings"] == []
    sent = decode((tmp_path / "f.json").read_bytes()).tables
    assert sent["risk_summary"]["n_at_risk"].tolist() == [12]
    assert sent["audit_verdicts"][["rule", "figure", "valid_until"]].values.tolist() == [["rapid_max", 0.3, date(2030, 1, 1)]]

    def told(run_id):
        found = outgoing.collect(store, run_id)
        assert "KEY-ZQX" not in " ".join(found.warnings)
        return found.warnings

    assert "fewer than 10 people are in only one" in told("three-exchanged")[0] and "run one" in told("three-exchanged")[0]
    assert told("twenty-exchanged") == [] and told("same-table") == [] and told("counts-far") == []
    assert "numbers of people differ by fewer than 10" in told("counts-near")[0]
    code, _, err = command(capsys, "export", "--run", "three-exchangd", *place)
    assert code == 2 and "three-exchanged" in err

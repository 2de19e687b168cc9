"""Releases end to end on small tables: the ledger before the noise, one draw, what is stored, what comes back."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rapid_spark.cli.entry import run
from rapid_spark.config import ConfigError
from rapid_spark.reaedp import curves, histogram, ledger, wiener
from rapid_spark.reaedp.budget import Guarantee
from rapid_spark.reaedp.filter import Budget, Request
from rapid_spark.releases import desk
from rapid_spark.releases.histogram import HistogramRelease
from rapid_spark.releases.population import with_own_key
from rapid_spark.releases.secret import content_hmac
from rapid_spark.releases.settings import load_release
from rapid_spark.releases.storage import Conflict, DeltaLedger
from rapid_spark.store import Store
from rapid_spark.warehouse import Warehouse

pytestmark = pytest.mark.slow
N = 3000


def people(n=N):
    rng = np.random.default_rng(4)
    sex = rng.choice(["f", "m"], n)
    return pd.DataFrame({"id": range(n), "sex": sex, "age": rng.integers(0, 100, n), "ill": rng.random(n) < 0.2 + 0.4 * (sex == "m")})


@pytest.fixture(scope="module")
def place(spark, tmp_path_factory):
    """A folder with people and settings, and a store with their budgets."""
    folder = tmp_path_factory.mktemp("dp")
    people().to_csv(folder / "people.csv", index=False)
    settings = {
        "dataset": "people", "original": str(folder / "people.csv"), "n_declared": N, "adjacency": "add_remove",
        "epsilon": 1.0, "public": True, "store": {"location": str(folder / "store")},
        "domains": {"sex": {"levels": ["f", "m"]}, "age": {"edges": [0, 50, 100], "integer": True}, "ill": {"levels": [True, False]}},
    }  # fmt: skip
    (folder / "dp.yml").write_text(json.dumps(settings), encoding="utf-8")
    store = Store.open(spark, str(folder / "store"))
    storage = DeltaLedger(store)
    ledger.set_budget(storage, Budget("people", 25.0, 1e-4, "add_remove", N))
    ledger.set_budget(storage, Budget("people.n", 50.0, 1e-4, "replace", N))
    return folder


def storage_of(spark, place):
    return DeltaLedger(Store.open(spark, str(place / "store")))


def called(capsys, place, *words, code=0):
    found = run(["dp", *words, "--config", str(place / "dp.yml"), "--format", "json"])
    told = capsys.readouterr()
    assert found == code, told.err
    return json.loads(told.out) if code == 0 else told.err


def test_a_histogram_is_drawn_once_and_its_history_and_ledger_agree(spark, place, capsys):
    words = ["histogram", "--table", "sex,ill", "--table", "age", "--run-id", "h1", "--records", "50", "--evaluate"]
    first = called(capsys, place, *words)
    assert (first["drawn_before"], first["guarantee"]["epsilon"], first["guarantee"]["adjacency"]) == (False, 1.0, "add_remove")
    table = pd.DataFrame(spark.read.format("delta").load(first["output"]["tables"]).toPandas())
    true = people().groupby(["sex", "ill"]).size()
    for row in table[table["table"] == "sex*ill"].itertuples():
        assert abs(row.noisy_count - true[row.bins[0], row.bins[1] == "true"]) < 60  # scale 2
    assert table.groupby("table")["count"].sum().tolist() == pytest.approx([N, N])
    assert spark.read.format("delta").load(first["output"]["records"]).count() == 50
    # the table says which entry paid for it, in the one commit that made it
    history = spark.sql(f"DESCRIBE HISTORY delta.`{first['output']['tables']}`").collect()
    assert len(history) == 1 and first["entry_id"] in history[0]["operationParameters"]["properties"]
    rows = [r for r in storage_of(spark, place).read() if r["entry_id"] == first["entry_id"]]
    assert [r["state"] for r in rows] == ["entered", "drawn"]
    assert {(r["epsilon"], r["delta"], r["adjacency"], r["run_id"]) for r in rows} == {(1.0, 0.0, "add_remove", "h1")}
    assert "custodian only" in first["evaluation"]["label"]
    # the same request again returns what was drawn, whatever became of the table of people
    (place / "people.csv").write_text("id,sex,age,ill\n", encoding="utf-8")
    try:
        again = called(capsys, place, *words)
    finally:
        people().to_csv(place / "people.csv", index=False)
    assert again["drawn_before"] and again["entry_id"] == first["entry_id"]
    assert [t["entropy"] for t in again["tables"]] == [t["entropy"] for t in first["tables"]]
    assert len(storage_of(spark, place).read()) == 4  # two budgets, two rows of one entry
    # another run id is another charge and other noise
    other = called(capsys, place, *[w if w != "h1" else "h2" for w in words])
    assert not other["drawn_before"] and other["entry_id"] != first["entry_id"]


def test_wrong_tables_and_budgets_are_refused_and_nothing_is_charged(spark, place, capsys):
    before = len(storage_of(spark, place).read())
    told = called(capsys, place, "histogram", "--run-id", "w1", "--epsilon", "30", code=2)
    assert "over budget: epsilon" in told
    told = called(capsys, place, "histogram", "--run-id", "w2", "--set", "domains.sexx.levels=[a]", code=2)
    assert "Did you mean 'sex'" in told
    told = called(capsys, place, "histogram", "--run-id", "w3", "--set", "public=false", "--evaluate", code=2)
    assert "public: true" in told
    told = called(capsys, place, "histogram", "--run-id", "w4", "--dataset", "strangers", code=2)
    assert "no budget is set for strangers" in told
    told = called(capsys, place, "histogram", "--run-id", "w5", "--adjacency", "replace", code=2)
    assert "calibrated for replace" in told
    told = called(capsys, place, "histogram", "--run-id", "w6", "--adjacency", "replace", "--dataset", "people.n",
                  "--n-declared", "2999", code=2)  # fmt: skip
    assert "must be right" in told
    (place / "broken.csv").write_text("id,sex,age,ill\n1,f,2,True,9\n", encoding="utf-8")
    told = called(capsys, place, "histogram", "--run-id", "w7", "--original", str(place / "broken.csv"), code=2)
    assert "more or fewer fields" in told
    assert len(storage_of(spark, place).read()) == before
    assert not (place / "store" / "dp" / "w1").exists()


def test_a_crash_after_the_entry_leaves_it_spent_and_undrawn(spark, place, monkeypatch):
    config = load_release(place / "dp.yml")
    planned = HistogramRelease.of(config)

    def crash(self, exact):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(HistogramRelease, "draw", crash)
        with pytest.raises(KeyboardInterrupt):
            desk.release(planned, config, "crashed")
    rows = [r for r in storage_of(spark, place).read() if r["run_id"] == "crashed"]
    assert [r["state"] for r in rows] == ["entered"]
    with pytest.raises(ConfigError, match="never drawn to the end"):
        desk.release(planned, config, "crashed")
    runs = spark.read.format("delta").load(str(place / "store" / "runs")).where("run_id = 'crashed'")
    assert {r["state"] for r in runs.collect()} == {"started", "failed"}


def test_rows_of_the_ledger_cannot_be_changed(spark, place):
    store = Store.open(spark, str(place / "store"))
    for statement in ("UPDATE {} SET epsilon = 0", "DELETE FROM {}"):
        with pytest.raises(Exception, match="DELTA_CANNOT_MODIFY_APPEND_ONLY"):
            store.query(statement.format(store.qualified("dp_ledger")), write=True).collect()


PROCESS = """
import sys, time
from pathlib import Path
from rapid_spark import session
from rapid_spark.reaedp import ledger
from rapid_spark.store import Store
from tests.test_releases import DeltaLedger, request
folder = Path(sys.argv[1])
storage = DeltaLedger(Store.open(session.get(), str(folder / "store")))
storage.read()
(folder / "ready").touch()
while not (folder / "go").exists():
    time.sleep(0.01)
for i in range(4):
    try:
        ledger.enter(storage, request(f"other{i}"))
        print("in")
    except ValueError as error:
        print("out" if "over budget" in str(error) else error)
"""


def request(run_id, epsilon=0.3, dataset="shared"):
    return Request(dataset, run_id, "release", Guarantee(epsilon, 0.0, "add_remove", "discrete_laplace", 1.0), {})


def test_two_processes_at_once_cannot_overspend(spark, place):
    storage = storage_of(spark, place)
    ledger.set_budget(storage, Budget("shared", 1.0, 0.0, "add_remove", N))
    other = subprocess.Popen([sys.executable, "-c", PROCESS, str(place)], stdout=subprocess.PIPE, text=True,
                             cwd=Path(__file__).parent.parent)  # fmt: skip
    while not (place / "ready").exists():
        assert other.poll() is None
    (place / "go").touch()
    mine = []
    for i in range(4):
        try:
            ledger.enter(storage, request(f"mine{i}"))
            mine.append("in")
        except ValueError as error:
            assert "over budget" in str(error)
            mine.append("out")
    theirs = other.communicate(timeout=120)[0].split()
    assert (mine + theirs).count("in") == 3 and (mine + theirs).count("out") == 5
    assert ledger.show(storage.read(), "shared")["spent"]["epsilon"] == 0.9


def test_in_a_schema_of_the_catalog_a_conditional_commit_does_the_same(spark):
    warehouse = Warehouse.at(spark, "schema:dp_ledger_test")
    warehouse.open(create=True, wanted=("dp_ledger",))
    storage = DeltaLedger(Store(warehouse))
    ledger.set_budget(storage, Budget("shared", 1.0, 0.0, "add_remove", N))
    outcomes = []

    def spend(name):
        for i in range(2):
            try:
                ledger.enter(storage, request(f"{name}{i}", epsilon=0.4))
                outcomes.append("in")
            except ValueError:
                outcomes.append("out")

    threads = [threading.Thread(target=spend, args=(name,)) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["in", "in", "out", "out"]
    # a decision on rows that are not all there any more inserts nothing
    seen = storage.read()
    with pytest.raises(Conflict):
        storage._append([{**seen[0], "entry_id": "late"}], seen[:1])
    assert len(storage.read()) == 3
    spark.sql("DROP SCHEMA dp_ledger_test CASCADE")


def test_synthetic_records_by_f_and_without_seeds(spark, place, capsys):
    words = ["synthetic", "--run-id", "f1", "--records", "10", "--kept", "sex", "--epsilon", "16", "--delta", "1e-5",
             "--set", "synthetic.shares=[0.2,0.2,0.6]", "--evaluate"]  # fmt: skip
    told = called(capsys, place, *words)
    records = spark.read.format("delta").load(told["output"]["records"]).toPandas()
    assert len(records) == 10 and list(records.columns) == ["sex", "age", "ill"]
    assert set(records["sex"]) <= {"f", "m"} and records["age"].between(0, 100).all()
    assert told["guarantee"]["mechanism"] == "plausible_deniability" and told["plan"][2]["k"] > 1
    assert not {"attempts", "failures", "pass_rate"} & set(json.dumps(told).replace('"', " ").split())
    seedless = called(capsys, place, "synthetic", "--run-id", "s1", "--records", "2000", "--epsilon", "4")
    records = spark.read.format("delta").load(seedless["output"]["records"]).toPandas()
    true = people()
    assert (records["sex"] == "f").mean() == pytest.approx((true["sex"] == "f").mean(), abs=0.06)
    shares = [f[f["sex"].eq("m")]["ill"].astype(bool).mean() for f in (records, true)]
    assert shares[0] == pytest.approx(shares[1], abs=0.1)


def test_records_without_a_key_do_not_move_when_another_leaves(spark):
    rows = [("f", 1), ("f", 1), ("f", 1), ("m", 2), ("m", None)] * 20
    frame = spark.createDataFrame(rows, "sex string, age int")
    fewer = spark.createDataFrame(rows[1:], "sex string, age int")

    def parts(data):
        keyed, key = with_own_key(data, ["sex", "age"])
        counted = histogram.with_parts(keyed, key, [0.5, 0.5], "secret").groupBy("sex", "age", histogram.PART).count()
        return {tuple(r[:3]): r[3] for r in counted.collect()}

    whole, less = parts(frame), parts(fewer)
    assert len({part for _, _, part in whole}) == 2  # equal records are spread over the parts
    changed = {k: whole[k] - less.get(k, 0) for k in whole if whole[k] != less.get(k, 0)}
    assert list(changed.values()) == [1] and next(iter(changed))[:2] == ("f", 1)


def test_entropy_is_released_under_replace(spark, place, capsys):
    told = called(capsys, place, "entropy", "--run-id", "e1", "--dataset", "people.n", "--columns", "sex,ill", "--evaluate",
                  "--set", "adjacency=null", "--set", "epsilon=null", "--target-error", "0.001")  # fmt: skip
    p = people().groupby(["sex", "ill"]).size().to_numpy() / N
    assert told["entropy"] == pytest.approx(-(p * np.log2(p)).sum(), abs=0.03)
    assert told["evaluation"]["entropy"] == pytest.approx(-(p * np.log2(p)).sum())
    assert told["expected_error"] == pytest.approx(0.001, rel=1e-3) and told["unit"] == "bits"


def test_the_mean_curve_of_wide_and_long_tables(spark, place, tmp_path, capsys):
    grid = np.linspace(0, 1, 5)
    values = np.random.default_rng(8).normal(1, 1, (40, 5))
    values[3, 2] = np.nan
    wide = pd.DataFrame(values, columns=[f"y{i}" for i in range(5)])
    frame = spark.createDataFrame(wide)
    filled = pd.DataFrame(values).ffill(axis=1).bfill(axis=1).to_numpy()
    clipped = wiener.clip(filled, grid, 1.0)
    total, n = curves.sum_curves(frame, list(wide.columns), wiener.mass(grid), 1.0)
    assert n == 40 and total == pytest.approx(clipped.sum(axis=0))
    matrix = np.random.default_rng(9).normal(size=(5, 5))
    form = curves.mean_form(frame, list(wide.columns), wiener.mass(grid), 1.0, matrix)
    assert form == pytest.approx(np.einsum("ni,ij,nj->n", clipped, matrix, clipped).mean())
    long = pd.DataFrame([(i, t, v) for i, row in enumerate(values) for t, v in zip(grid, row, strict=True) if v == v],
                        columns=["who", "when", "y"])  # fmt: skip
    long.to_csv(tmp_path / "long.csv", index=False)
    words = ["curve", "--run-id", "c1", "--dataset", "people.n", "--original", str(tmp_path / "long.csv"), "--evaluate",
             "--set", "adjacency=null", "--n-declared", "40", "--delta", "1e-5", "--epsilon", "5", "--norm-limit", "1",
             "--penalty", "0.05", "--set", "curve.curve=who", "--set", "curve.time=when", "--set", "curve.value=y",
             "--set", "curve.grid={first: 0, last: 1, width: 0.25}", "--plot", str(tmp_path / "curve.png")]  # fmt: skip
    told = called(capsys, place, *words)
    assert Path(told["plot"]).stat().st_size > 5000
    released = spark.read.format("delta").load(told["output"]["curve"]).toPandas().sort_values("t")
    assert len(released) == 201 and set(released["adjacency"]) == {"replace"} and set(released["n"]) == {40}
    mean = wiener.coefficients(clipped.mean(axis=0), grid)
    split, lam = told["evaluation"]["expected_squared_error"], wiener.eigenvalues(100)
    assert split["bias"] == pytest.approx(((0.05 / (lam + 0.05)) ** 2 * mean**2).sum())
    each = wiener.coefficients(clipped, grid) * lam / (lam + 0.05)
    assert split["sampling"] == pytest.approx(each.var(axis=0).sum() / 39)
    assert split["total"] == pytest.approx(split["bias"] + split["sampling"] + split["noise"])


def test_the_secret_is_kept_from_others_and_content_is_recognised(spark, place):
    secret = place / "store" / ".secret"
    assert secret.stat().st_mode & 0o077 == 0
    rows = [("a", 1), ("b", None)]
    one, two = (spark.createDataFrame(r, "x string, y int") for r in (rows, rows[::-1]))
    assert content_hmac(one, ["x", "y"], "s" * 20) == content_hmac(two, ["y", "x"], "s" * 20)
    assert content_hmac(one, ["x", "y"], "s" * 20) != content_hmac(one, ["x", "y"], "t" * 20)


def test_ledger_commands_show_what_was_spent(place, capsys):
    store = ["--store", str(place / "store"), "--format", "json"]
    assert run(["ledger", "show", "--dataset", "people", *store]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["budget"]["epsilon"] == 25.0 and told["spent"]["composition"] == "sum"
    assert told["spent"]["epsilon"] == pytest.approx(sum(e["epsilon"] for e in told["entries"]))
    assert {e["state"] for e in told["entries"]} == {"entered", "drawn"}
    assert run(["ledger", "set-budget", "--dataset", "people", "--epsilon", "99", "--adjacency", "add_remove", "--n-declared", "3000",
                *store]) == 2  # fmt: skip
    assert "fixed when it is set" in capsys.readouterr().err
    assert run(["ledger", "show", "--dataset", "nobody", *store]) == 2
    assert "no budget is set for nobody" in capsys.readouterr().err

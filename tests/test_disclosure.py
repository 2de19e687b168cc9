"""Classical measures: values worked out by hand, a plain pandas computation, and a release that is a copy."""

from __future__ import annotations

import contextlib

import numpy as np
import pandas as pd
import pytest

from rapid_spark import io, nearest, shared_columns
from rapid_spark.config import ConfigError, parse
from rapid_spark.disclosure import assessment, criteria

# q: a (2 original, 2 released), b (1, 1), c (2, 0), d (0, 1)
ORIGINAL = pd.DataFrame({"q": ["a", "a", "b", "c", "c"], "t": ["x", "y", "x", "x", "y"]})
RELEASE = pd.DataFrame({"q": ["a", "a", "b", "d"], "t": ["x", "x", "y", "x"]})


@contextlib.contextmanager
def stage(name):
    yield


def measured(spark, original, release, holdout=None, **settings):
    config = parse({"quasi_identifiers": ["q"], "sensitive_attributes": ["t"], **settings})
    held = None if holdout is None else io.from_frame(spark, holdout, "holdout")
    tables = shared_columns.lay(io.from_frame(spark, original, "original"), {1: io.from_frame(spark, release, "release")}, config, held)
    found = assessment.assess(tables, config, stage)
    return {m.name: m for m in found}, tables, config


def plain(d, s, keys, target):
    """The definitions in pandas, written from the issue."""
    d, s = (f[[*keys, target]].astype(object).where(f[[*keys, target]].notna(), "missing") for f in (d, s))
    s_tq, s_q = s.groupby([*keys, target]).size(), s.groupby(keys).size()
    d_tq, d_q = d.groupby([*keys, target]).size(), d.groupby(keys).size()

    def kq(i):
        return i[:-1] if len(keys) > 1 else i[0]

    def get(table, i):
        return int(table.get(i, 0))

    dcap = sum(n * get(s_tq, i) / get(s_q, kq(i)) for i, n in d_tq.items() if get(s_q, kq(i)))
    right = sum(n for i, n in d_tq.items() if get(s_q, kq(i)) and get(s_tq, i) == get(s_q, kq(i)))
    sure = {kq(i) for i, n in s_tq.items() if n == get(s_q, kq(i))}
    matched = sum(n for q, n in d_q.items() if get(s_q, q))
    n_sure = sum(n for q, n in d_q.items() if q in sure)
    shares = s[target].value_counts(normalize=True)
    far = max(abs(part[target].value_counts(normalize=True).reindex(shares.index, fill_value=0) - shares).sum() / 2
              for _, part in s.groupby(keys))
    return {
        "dcap": dcap / len(d), "dcap_base": sum((d[target].value_counts() / len(d)) ** 2), "dcap_matched": dcap / matched,
        "disco": right / len(d), "tcap": right / n_sure, "tcap_matched": right / matched,
        "weap": sum(n for i, n in s_tq.items() if n == get(s_q, kq(i))) / len(s),
        "replicated_uniques": sum(1 for q, n in d_q.items() if n == 1 and get(s_q, q) == 1) / len(d),
        "k_anonymity": s_q.min(), "l_diversity": s.groupby(keys)[target].nunique().min(), "t_closeness": far,
    }


def test_values_worked_out_by_hand(spark):
    found, tables, config = measured(spark, ORIGINAL, RELEASE, disclosure={"sampling_fraction": 0.5})
    expected = {
        "dcap": 1 / 5,  # of five, the one of (a, x) is guessed with certainty; (a, y) and (b, x) never, c is unmatched
        "dcap_base": (3 / 5) ** 2 + (2 / 5) ** 2,
        "dcap_matched": 1 / 3,
        "disco": 1 / 5, "tcap": 1 / 3, "tcap_matched": 1 / 3, "weap": 1.0,
        "replicated_uniques": 1 / 5,
        "k_anonymity": 1, "l_diversity": 1,
        "t_closeness": 3 / 4,  # b has y only, of which the release has a quarter
        "identical_match_share": 2 / 4,  # (a, x) twice
        "population_uniqueness": 1 / (1 + 2 * 2 * 0.5) / 5,  # n_1 = 1, n_2 = 2: 1 / (1 + 2 (1/2) 2)
    }  # fmt: skip
    assert {k: found[k].value for k in expected} == pytest.approx(expected)
    assert found["dcr_holdout_ratio"].status == "not_evaluated" and "holdout" in found["dcr_holdout_ratio"].reason
    records = assessment.per_record(tables, config, "all", "t").toPandas()
    assert records["dcap"].mean() == pytest.approx(1 / 5) and records["disco"].mean() == pytest.approx(1 / 5)
    assert records["replicated_unique"].mean() == pytest.approx(1 / 5) and len(records) == 5


def test_nothing_matches_and_odd_names(spark):
    original = pd.DataFrame({"q": [None, "b"], "t": [1.0, 2.0], "odd `name.x": [1, 1]})
    release = pd.DataFrame({"q": ["z", "y"], "t": [1.0, 1.0], "odd `name.x": [2, 2]})
    found, _, _ = measured(spark, original, release, original)
    assert found["tcap"].status == "undefined" and found["tcap"].value is None and found["dcap"].value == 0
    assert found["population_uniqueness"].status == "not_evaluated"
    assert found["dcr_holdout_ratio"].value == 0.5  # the holdout is the original: all are ties
    with pytest.raises(ConfigError, match="no shared column 'tt'"):
        measured(spark, original, release, disclosure={"bins": {"tt": [0, 1]}})
    with pytest.raises(ConfigError, match="holds no numbers"):
        measured(spark, original, release, disclosure={"bins": {"q": [0, 1]}})


def test_missing_bins_and_numeric_targets_equal_pandas(spark):
    rng = np.random.default_rng(3)
    def people(n):
        frame = pd.DataFrame({"q": rng.integers(0, 30, n) * 1.0, "z": rng.choice(["u", "v", None], n), "t": rng.integers(0, 4, n) * 1.0})
        frame.loc[rng.random(n) < 0.1, "q"] = np.nan
        return frame
    original, release = people(400), people(300)
    original.loc[:1, ["q", "z", "t"]] = [[5.0, "w", 1.0], [5.0, "w", 2.0]]
    release.loc[0, ["q", "z", "t"]] = [5.0, "w", 1.0]  # a cell with one released target
    edges = [0, 10, 20, 29]
    found, tables, config = measured(spark, original, release, quasi_identifiers=["q", "z"], disclosure={"bins": {"q": edges}})
    cut = [f.assign(q=pd.cut(f["q"], [0, 10, 20, 29.5], right=False).astype(str)) for f in (original, release)]
    expected = plain(*cut, ["q", "z"], "t")
    # numbers are ordered: earth mover's distance over 4 values in place of total variation
    shares = cut[1]["t"].value_counts(normalize=True).sort_index().cumsum()
    zs = cut[1].assign(z=cut[1]["z"].fillna("missing"))
    expected["t_closeness"] = max(
        abs(part["t"].value_counts(normalize=True).reindex(shares.index, fill_value=0).cumsum() - shares).iloc[:-1].sum() / 3
        for _, part in zs.groupby(["q", "z"])
    )
    assert {k: found[k].value for k in expected} == pytest.approx(expected)
    points = sorted(assessment.per_record(tables, config, "all", "t").toPandas()["dcap"])
    assert np.mean(points) == pytest.approx(expected["dcap"])


@pytest.fixture(scope="module")
def people():
    from rapid_spark.simulate import registry

    return [registry(600, kappa=5, seed=s).round({"age": 0, "income": -3, "health_score": 0}) for s in (1, 2, 3)]


@pytest.mark.slow
def test_a_copy_is_caught_and_an_independent_release_is_not(spark, people):
    original, holdout, independent = people
    settings = {"quasi_identifiers": ["age", "gender"], "sensitive_attributes": ["disease_status"]}
    copy, _, _ = measured(spark, original, original, holdout, **settings)
    fresh, _, _ = measured(spark, original, independent, holdout, **settings)
    assert copy["identical_match_share"].value == 1.0 and copy["dcr_median"].value == 0.0
    assert copy["dcr_holdout_ratio"].value > 0.95
    assert fresh["identical_match_share"].value < 0.05
    assert fresh["dcr_holdout_ratio"].value == pytest.approx(0.5, abs=4 * 0.5 / np.sqrt(600))
    assert copy["dcap"].value - copy["dcap_base"].value > fresh["dcap"].value - fresh["dcap_base"].value
    # the median distance by brute force over all pairs
    columns = sorted(original.columns)
    number = original[columns].dtypes.map(pd.api.types.is_numeric_dtype)
    both = pd.concat([original, independent, holdout])
    total = np.zeros((600, 600))
    for c in columns:
        a, b = independent[c].to_numpy(), original[c].to_numpy()
        total += abs(a[:, None] - b[None]) / (both[c].max() - both[c].min()) if number[c] else a[:, None] != b[None]
    assert fresh["dcr_median"].value == pytest.approx(np.median(total.min(axis=1)) / len(columns), abs=1e-9)


@pytest.mark.parametrize("levels", [3, 600])
def test_nearest_neighbours_equal_brute_force(levels):
    """Few levels go into a tree, many are searched in blocks; missing values and unknown levels in both."""
    rng = np.random.default_rng(levels)
    def some(n, extra):
        frame = pd.DataFrame({"n": rng.normal(size=n), "c": rng.integers(0, levels + extra, n).astype(str)})
        frame.loc[rng.random(n) < 0.2, "n"] = np.nan
        frame.loc[rng.random(n) < 0.2, "c"] = None
        return frame
    known, asked = some(700, 0), some(50, levels)
    space = nearest.space([known], [("n", True), ("c", False)], {"n": (-4.0, 4.0)})
    distance, at = nearest.Index(space, space.encode(known)).nearest(space.encode(asked), 3)
    def apart(a, b):
        x, y = ((v + 4) / 8 for v in (a.n, b.n))
        number = abs(x - y) if x == x and y == y else 0.0 if x != x and y != y else 0.5 + abs((x if x == x else y) - 0.5)
        return (number + (a.c != b.c and not (a.c is None and b.c is None))) / 2
    rows = list(known.astype(object).where(known.notna(), None).assign(n=known["n"]).itertuples())
    for row, own, places in zip(asked.astype(object).where(asked.notna(), None).assign(n=asked["n"]).itertuples(), distance, at, strict=True):
        every = np.array([apart(row, r) for r in rows])
        assert own == pytest.approx(np.sort(every)[:3], abs=1e-12)
        assert every[places] == pytest.approx(own, abs=1e-12)


@pytest.mark.slow
def test_adult_equals_pandas_and_the_command_writes_and_prints(spark, tmp_path):
    """The real files where they are at hand, else a registry of the same shape."""
    import json
    from pathlib import Path

    from click.testing import CliRunner

    from rapid_spark.cli.entry import cli
    from rapid_spark.cli.terminal import Terminal
    from rapid_spark.simulate import registry

    keys, target = ["age", "education", "gender"], "disease_status"
    places = {"original": tmp_path / "original.csv", "release": tmp_path / "release.csv"}
    for i, place in enumerate(places.values()):
        registry(3_000, kappa=5, seed=i + 1).round({"age": 0}).to_csv(place, index=False)
    adult = Path("data/adult")
    if (adult / "release_1.csv.gz").exists():
        places, keys, target = {"original": adult / "original.csv.gz", "release": adult / "release_1.csv.gz"}, ["age", "education_num", "sex", "race"], "income"
    done = CliRunner().invoke(cli, [
        "disclosure", "--original", str(places["original"]), "--release", str(places["release"]), "--quasi-identifiers", ",".join(keys),
        "--sensitive-attribute", f"{target}:categorical", "--attacker", "cart", "--store", f"{tmp_path}/store", "--no-tracking", "--format", "json",
        "--limit", "k_anonymity=1", "--limit", "dcap=0.01", "--page", str(tmp_path / "page.html"),
    ], obj=Terminal(), standalone_mode=False)  # fmt: skip
    assert done.exception is None, done.exception
    document = json.loads(done.stdout)
    assert done.return_value == 1 and [v["verdict"] for v in document["verdicts"]] == ["pass", "fail"]
    assert "not tested" in (tmp_path / "page.html").read_text()
    found = {m["name"]: m for m in document["measures"]}
    expected = plain(*(pd.read_csv(p, keep_default_na=False) for p in places.values()), keys, target)
    assert {k: found[k]["value"] for k in expected} == pytest.approx(expected, rel=1e-9)
    assert set(found) >= {"identical_match_share", "dcr_median", "dcr_holdout_ratio", "rapid", "rapid_excess"}
    assert found["rapid"]["status"] == "ok" and {"definition", "direction", "reason", "n"} <= set(found["dcap"])
    from rapid_spark.store import Store

    store = Store.open(spark, f"{tmp_path}/store", create=False)
    page = {row["evidence"]: row for row in criteria.read(store, "registry", "release")}
    assert page["dcap"]["value"] == pytest.approx(expected["dcap"]) and page["rapid"]["value"] == found["rapid"]["value"]
    assert page["linkability"]["verdict"] == "not_tested"
    stored = store.query("select name, value from disclosure_measures").toPandas()
    assert dict(zip(stored["name"], stored["value"], strict=True))["dcap"] == pytest.approx(expected["dcap"])

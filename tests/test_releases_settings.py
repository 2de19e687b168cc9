"""Settings and plans of releases: what is refused before any table is read, and what a plan says."""

from __future__ import annotations

import json
import math

import pytest

from rapid_spark.cli.entry import run
from rapid_spark.config import ConfigError
from rapid_spark.releases.curve import CurveRelease
from rapid_spark.releases.entropy import EntropyRelease
from rapid_spark.releases.histogram import HistogramRelease
from rapid_spark.releases.settings import load_release
from rapid_spark.releases.synthetic import SyntheticRelease

DOMAINS = {
    "age": {"edges": {"first": 0, "last": 100, "width": 10}, "integer": True},
    "sex": {"levels": ["f", "m"]},
    "ill": {"levels": [True, False], "missing": True},
}
WHOLE = {
    "dataset": "people", "n_declared": 50_000, "adjacency": "add_remove", "epsilon": 2.0, "domains": DOMAINS,
    "synthetic.records": 100, "entropy.columns": ["sex"], "curve.columns": ["t0", "t1", "t2"], "curve.norm_limit": 1.0,
}  # fmt: skip


def config(**changes):
    given = {**WHOLE, **{k.replace("__", "."): v for k, v in changes.items()}}
    return load_release(None, {k: v for k, v in given.items() if v is not None})


def test_domains_are_levels_or_edges_and_ranges_are_edges():
    age, sex, ill = config().declared
    assert age.edges == tuple(range(0, 101, 10)) and age.integer and age.step == 10
    assert (sex.levels, ill.levels, ill.missing) == (("f", "m"), (True, False), True)


@pytest.mark.parametrize(
    "domain, message",
    [
        ({}, "exactly one of levels and edges"),
        ({"levels": [1], "edges": [0, 1]}, "exactly one"),
        ({"levels": ["a", "a"]}, "two levels of one name"),
        ({"edges": [0, 2, 1]}, "do not increase"),
        ({"edges": {"first": 0, "last": 1, "width": 0.3}}, "times a width"),
        ({"levels": ["a"], "integer": True}, "integer belongs to edges"),
        ({"level": ["a"]}, "Did you mean 'levels'"),
    ],
)
def test_wrong_domains_are_refused_under_their_path(domain, message):
    with pytest.raises(ConfigError, match=message) as told:
        config(domains={"sex": domain})
    assert "domains.sex" in str(told.value)


def test_every_fault_is_told_at_once():
    with pytest.raises(ConfigError) as told:
        config(epsilon=-1, delta=1, synthetic__gamma=1, dataset="a b")
    assert all(word in str(told.value) for word in ("epsilon", "delta", "synthetic.gamma", "not an id"))


@pytest.mark.parametrize(
    "kind, changes, message",
    [
        (HistogramRelease, {"n_declared": None, "epsilon": None}, "n_declared: missing(.|\n)*epsilon: missing"),
        (HistogramRelease, {"adjacency": None}, "choose add_remove or replace"),
        (HistogramRelease, {"domains": None}, "nothing is read off the data"),
        (HistogramRelease, {"histogram__tables": [["age", "sexx"]]}, "no declared domain.*Did you mean 'sex'"),
        (HistogramRelease, {"delta": 1e-6}, "Laplace noise needs none"),
        (HistogramRelease, {"mechanism": "gaussian"}, "needs one above 0"),
        (HistogramRelease, {"mechanism": "gaussian", "delta": 1e-3}, "below 1 / n_declared"),
        (HistogramRelease, {"epsilon": 1e-5}, "useless"),
        (HistogramRelease, {"max_rows_per_person": 2}, "columns.person: missing"),
        (HistogramRelease, {"columns.person": "id"}, "max_rows_per_person: missing"),
        (EntropyRelease, {}, "adjacency is add_remove"),
        (EntropyRelease, {"adjacency": "replace", "entropy.target_error": 0.1}, "exactly one of epsilon"),
        (EntropyRelease, {"adjacency": "replace", "epsilon": None}, "exactly one of epsilon"),
        (EntropyRelease, {"adjacency": "replace", "delta": 0.1}, "needs none"),
        (EntropyRelease, {"adjacency": "replace", "entropy.order": 1.0}, "Shannon"),
        (SyntheticRelease, {"synthetic.records": None}, "synthetic.records: missing"),
        (SyntheticRelease, {"synthetic.kept": ["sex"]}, "drawing from seeds needs one above 0"),
        (SyntheticRelease, {"synthetic.kept": ["sex"], "delta": 1e-6, "n_declared": 900}, "cannot be carried"),
        (SyntheticRelease, {"max_rows_per_person": 3}, "one row of each person"),
        (SyntheticRelease, {"synthetic.key_stays": True}, "name the key"),
        (CurveRelease, {"delta": 1e-6}, "adjacency is add_remove"),
        (CurveRelease, {"adjacency": "replace"}, "delta is 0"),
        (CurveRelease, {"adjacency": "replace", "delta": 1e-4}, "below 1 / n_declared"),
        (CurveRelease, {"adjacency": None, "delta": 1e-6, "curve.grid": [0, 1]}, "names 3 columns"),
    ],
)
def test_wrong_requests_are_refused_with_the_reason(kind, changes, message):
    with pytest.raises(ConfigError, match=message):
        kind.of(config(**changes))


def test_a_plan_tells_the_split_and_its_guarantee():
    planned = HistogramRelease.of(config(histogram__tables=[["age"], ["sex", "ill"]], histogram__weights=[1, 3]))
    assert [row["epsilon"] for row in planned.plan()] == [0.5, 1.5]
    assert (planned.guarantee.epsilon, planned.guarantee.adjacency) == (2.0, "add_remove")
    assert planned.parameters()["domains"]["sex"] == {"levels": ["f", "m"]}
    assert json.dumps(planned.parameters())


def test_a_target_error_gives_the_smallest_epsilon_from_n_and_bins_alone():
    planned = EntropyRelease.of(config(adjacency="replace", epsilon=None, entropy__target_error=0.01))
    n = 50_000
    exact = math.log2(n) - (n - 1) / n * math.log2(n - 1)
    assert planned.epsilon == pytest.approx(exact / 0.01, rel=1e-5)
    assert planned.plan()[0]["expected_error_bits"] <= 0.01


def test_synthetic_plans_name_parts_and_the_test():
    planned = SyntheticRelease.of(config(synthetic__kept=["sex"], delta=1e-6, epsilon=4.0))
    structure, parameters, seeds = planned.plan()
    assert (structure["tables"], parameters["tables"]) == (3, 2)
    assert seeds["k"] > seeds["t"] >= 1 and seeds["pass_probability"] == 0.1
    assert SyntheticRelease.of(config()).plan()[-1]["part"] == "parameters"  # without seeds


def test_dp_plan_speaks_json(capsys):
    line = "dp plan --records 1000 --epsilon 1 --delta 1e-6 --gamma 4 --format json".split()
    assert run(line) == 0
    single = json.loads(capsys.readouterr().out)
    assert single["feasible"] and 6360 <= single["k"] <= 6366
    assert single["epsilon_total"] <= 1 and single["delta_total"] == 1e-6 and single["reason"] is None
    assert run([*line, "--pass-probability", "0.5"]) == 0
    assert json.loads(capsys.readouterr().out)["k"] > 6366
    assert run([*line, "--n-declared", "5000"]) == 0
    few = json.loads(capsys.readouterr().out)
    assert not few["feasible"] and "5,000 persons" in few["reason"]


def test_a_dry_run_reads_and_charges_nothing(capsys, tmp_path):
    file = tmp_path / "dp.yml"
    file.write_text(json.dumps({k: v for k, v in WHOLE.items() if "." not in k}), encoding="utf-8")
    assert run(["dp", "histogram", "--config", str(file), "--table", "age,sex", "--dry-run", "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["guarantee"]["epsilon"] == 2.0 and told["plan"][0]["cells"] == 20
    assert run(["dp", "histogram", "--config", str(file), "--epsilon", "0", "--dry-run"]) == 2
    assert "epsilon" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [file]

"""Search for the worst surface: what is searched, how it is ranked, what workers sum up, and the whole on Spark."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rapid_spark import attackers
from rapid_spark.attackers import Feature
from rapid_spark.cli import entry
from rapid_spark.config import Config, ConfigError, Search, Threshold, parse
from rapid_spark.surface.figures import chance, heat, ranked, rate_of, without, worst
from rapid_spark.surface.picture import draw_heat
from rapid_spark.surface.plan import Surface, count, estimate, surfaces
from rapid_spark.surface.progress import Progress
from rapid_spark.surface.workers import Codes, Job, Packed, Target, fit_batches, score_batches

COLUMNS = ["a", "b", "c", "d"]


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("sizes", [(), (1,), (2,), (2, 3), (3, 9)])
def test_the_number_of_surfaces_is_that_of_the_sets(sizes: tuple[int, ...], whole: bool, alone: bool) -> None:
    search = Search(all_attributes=whole, sizes=sizes, alone=alone)
    expected = set()  # every pair of an attribute and known columns, enumerated the long way
    for target in COLUMNS:
        others = [c for c in COLUMNS if c != target]
        for size in range(1, 4):
            if size in sizes or (whole and size == 3) or (alone and size == 1):
                expected |= {(target, known) for known in itertools.combinations(others, size)}
    if not expected:
        with pytest.raises(ConfigError, match="there is no set"):
            surfaces(COLUMNS, COLUMNS, search)
        return
    found = [(s.target, s.known) for s in surfaces(COLUMNS, COLUMNS, search)]
    assert (set(found), len(found)) == (expected, len(expected))
    assert count(COLUMNS, COLUMNS, search) == len(expected)


def test_an_explosion_is_refused_before_anything_is_made() -> None:
    many = [f"c{i}" for i in range(200)]
    with pytest.raises(ConfigError, match=r"would take 12,678,250,200 fits, more than search.max_fits \(5,000\)"):
        surfaces(many, many, Search(sizes=(4,), alone=False))
    assert estimate(100, 0.1, 2) == "under a minute" and estimate(6000, 0.2, 2) == "about 10 minutes"


def test_short_forms_are_settings_of_search() -> None:
    found = parse({"sensitive_attributes": "all", "qi_sets": {"sizes": [2, 3], "from": ["x", "y"]}})
    assert found.search == Search(all_attributes=True, sizes=(2, 3), columns=("x", "y"))
    assert (found.sensitive_attributes, found.qi_sets) == ((), {})
    named = parse({"sensitive_attributes": ["ill"], "qi_sets": {"sizes": ["x", "y"]}})  # a set that is called so
    assert not named.search.active and named.sets == {"sizes": ("x", "y")}
    assert parse({"qi_sets": {"sizes": 2}}).search.sizes == (2,)
    with pytest.raises(ConfigError, match="search.sizes.0: Input should be greater than or equal to 1"):
        parse({"qi_sets": {"sizes": [0]}})
    assert not Config().search.active


# --- ranks ---------------------------------------------------------------------------------------------------------


def test_the_baseline_is_the_exact_mean_under_shuffling() -> None:
    """Over all permutations of the targets of five records, by brute force."""
    y = np.array([0, 0, 1, 1, 2])
    above = np.array([[1, 0, 0], [1, 0, 1], [0, 1, 0], [0, 0, 0], [1, 1, 1]], bool)
    exact = np.mean([above[np.arange(5), list(p)].mean() for p in itertools.permutations(y)])
    assert chance(np.bincount(y), above.sum(axis=0)) == pytest.approx(exact)


def test_a_copy_is_first_whatever_its_prevalences() -> None:
    surface = {t: Surface(t, ("x",), "rest") for t in ("copy", "common", "strong", "none")}
    rates = [
        rate_of(surface["common"], 100, 95, 0.95, 0.1),  # always the frequent class: nothing is learnt
        rate_of(surface["strong"], 100, 90, 0.20, 0.1), rate_of(surface["copy"], 100, 100, 0.60, 0.1),
        without(surface["none"], "undefined", "one class"),
    ]  # fmt: skip
    assert [r.target for r in ranked(rates)] == ["copy", "strong", "common", "none"]
    assert [r.beyond_chance for r in ranked(rates)] == [1.0, pytest.approx(0.875), 0.0, None]
    assert rate_of(surface["copy"], 0, 0, 0.5, 0.1).status == "undefined"
    assert [r.target for r in worst(rates, 2)] == ["copy", "strong"]


def test_the_heat_map_has_a_cell_for_each_column_known() -> None:
    rates = [rate_of(Surface(t, (k,), "alone"), 10, hits, 0.0, 0.0)
             for t, k, hits in (("a", "b", 3), ("a", "c", 9), ("b", "a", 4))]  # fmt: skip
    rates.append(rate_of(Surface("a", ("b", "c"), "rest"), 10, 10, 0.0, 0.0))
    targets, known, cells = heat(rates)
    assert (targets, known) == (["a", "b"], ["a", "b", "c"])
    np.testing.assert_allclose(cells, [[np.nan, 0.3, 0.9], [0.4, np.nan, np.nan]])
    figure = draw_heat(rates)
    assert [t.get_text() for t in figure.axes[0].get_yticklabels()] == ["a", "b"]
    assert figure.axes[0].get_xticklabels()[-1].get_text() == "all others"


def test_cells_below_chance_say_so_without_a_figure() -> None:
    rates = [rate_of(Surface("a", (k,), "alone"), 100, at_risk, 0.9, 0.1) for k, at_risk in (("b", 5), ("c", 95))]
    said = [t.get_text() for t in draw_heat(rates).axes[0].texts]
    assert said == ["< 0", "50"]


# --- progress ------------------------------------------------------------------------------------------------------


def test_a_search_goes_on_where_it_was_stopped_also_in_the_middle_of_a_line(tmp_path: Path) -> None:
    rates = [rate_of(Surface("a", (k,), "alone"), 10, 3, 0.1, 0.2) for k in "bcd"]
    kept = Progress(tmp_path / "p" / "progress.jsonl", "digest")
    assert kept.read() == []
    kept.add(rates[:2])
    assert kept.read() == rates[:2]
    with kept.path.open("a") as file:
        file.write('{"target": "a", "kno')
    assert kept.read() == rates[:2]
    kept.add(rates[2:])
    assert kept.read() == rates
    with pytest.raises(ConfigError, match="is of another search"):
        Progress(kept.path, "other").read()


# --- workers, without Spark ----------------------------------------------------------------------------------------


def people(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    city = rng.choice(["x", "y", None], n, p=[0.5, 0.4, 0.1])
    age = np.where(rng.random(n) < 0.1, np.nan, rng.integers(20, 60, n)).astype(float)
    ill = np.where((city == "x") & (rng.random(n) < 0.9), "yes", rng.choice(["yes", "no", None], n))
    return pd.DataFrame({"q0": age, "q1": city, "q2": ill, "q3": np.nan_to_num(age, nan=40) * 100 + rng.integers(0, 900, n)})


FEATURES = {"q0": Feature("q0", "numeric"), "q1": Feature("q1", "categorical"), "q3": Feature("q3", "numeric")}


def job(target: str, known: list[str], original: pd.DataFrame) -> Job:
    features = tuple(Feature(f"q{i}", FEATURES[c].kind) for i, c in enumerate(known))
    if target == "q2":
        sizes = original["q2"].fillna("missing").value_counts()
        found = Target("q2", tuple(sizes.index), tuple(map(int, sizes)), 0.3, Threshold())
    else:
        found = Target(target, None, (), 0.1, Threshold())
    return Job(0, found, tuple(known), features)


@pytest.mark.parametrize(("target", "known"), [("q2", ["q0", "q1"]), ("q2", ["q1"]), ("q3", ["q0", "q1"]), ("q0", ["q3"])])
def test_sums_over_partitions_equal_plain_numpy(target: str, known: list[str]) -> None:
    original, release = people(500, 1), people(400, 2)
    one = job(target, known, original)
    made = next(fit_batches(iter([pd.DataFrame({"i": [0]})]), Packed.of(release), {0: one}, "cart", {}, 7))
    assert made["reason"].isna().all()
    n = hits = 0
    exceeding = np.zeros(len(one.target.labels or ()), dtype=int)
    for part in (original[:120], original[120:]):  # two partitions, one of them in two batches
        batches = [part[:50], part[50:]]
        (row,) = next(score_batches(iter(batches), [one], {0: made["model"][0]})).to_dict("records")
        n, hits = n + row["n"], hits + row["hits"]
        exceeding = exceeding + np.array(row["exceeding"] or exceeding)
    # the same attacker, applied record by record
    names = [f.name for f in one.features]
    frame = release[known].set_axis(names, axis=1)
    if one.target.labels is None:
        frame["s0"] = release[target]
        fitted = attackers.fit("cart", {}, frame[frame["s0"].notna()].reset_index(drop=True), one.features, "s0",
                               "continuous", 7, 1)  # fmt: skip
        y, guess = original[target], fitted.predict(original[known].set_axis(names, axis=1))
        error = (2 * (y - guess).abs() / (y.abs() + np.abs(guess) + 0.02)).dropna()
        assert (n, hits) == (len(error), int((error < 0.1).sum()))
        return
    frame["s0"] = release["q2"].fillna("missing")
    fitted = attackers.fit("cart", {}, frame, one.features, "s0", "categorical", 7, 1)
    p = pd.DataFrame(fitted.predict_proba(original[known].set_axis(names, axis=1)), columns=fitted.classes)
    y = original["q2"].fillna("missing").to_numpy()
    share = pd.Series(y).value_counts(normalize=True)
    above = p[list(one.target.labels)] > (share + 0.3 * (1 - share))[list(one.target.labels)]
    assert n == len(y) and hits == sum(above.loc[i, label] for i, label in enumerate(y))
    assert list(exceeding) == above.sum().tolist()


def test_patterns_tell_rows_apart_also_where_codes_would_be_too_large() -> None:
    rng = np.random.default_rng(4)
    batch = pd.DataFrame({f"c{i}": rng.choice([*range(900), np.nan], 1000) for i in range(9)})  # 901^9 is beyond 2^62
    batch = pd.concat([batch, batch.iloc[:300]], ignore_index=True)
    first, number = Codes(batch).patterns(list(batch.columns))
    assert len(first) == len(batch.drop_duplicates())
    assert batch.iloc[first[number]].reset_index(drop=True).equals(batch)


# --- the whole -----------------------------------------------------------------------------------------------------


def run(*words: str) -> tuple[int, dict[str, Any], str]:
    from click.testing import CliRunner

    from rapid_spark.cli.terminal import Terminal

    found = CliRunner().invoke(entry.cli, [*words, "--format", "json", "--quiet"], obj=Terminal(), standalone_mode=False)
    if found.exception is not None:
        return (*entry.fault(found.exception)[:1], {}, entry.fault(found.exception)[1])
    return int(found.return_value or 0), json.loads(found.stdout), found.stderr


@pytest.mark.slow
@pytest.mark.long
def test_a_planted_copy_is_found_and_figures_are_those_of_an_evaluation(spark: Any, tmp_path: Path) -> None:
    def table(n: int, seed: int) -> pd.DataFrame:
        rng = np.random.default_rng(seed)
        job = rng.choice(["clerk", "cook", "nurse"], n)
        pay = rng.lognormal(3, 0.4, n).round(2)
        return pd.DataFrame({"id": np.arange(n), "age": rng.integers(20, 70, n), "job": job, "pay": pay,
                             "copy": np.char.upper(job.astype(str)), "flag": rng.integers(0, 2, n), "one": "same"})  # fmt: skip

    table(150, 1).to_csv(tmp_path / "original.csv", index=False)
    table(120, 2).drop(columns="id").to_csv(tmp_path / "release.csv", index=False)
    tables = ("--original", str(tmp_path / "original.csv"), "--release", str(tmp_path / "release.csv"), "--key", "id",
              "--store", str(tmp_path / "store"), "--no-tracking", "--attacker", "cart", "--set", "intervals.bootstrap=50",
              "--set", "intervals.permutations=0", "--set", "drivers.attribution=false", "--set", "drivers.subgroups=false",
              "--set", "drivers.patterns=0")  # fmt: skip
    planned = run("search", *tables, "--plan")[1]
    assert (planned["fits"], planned["fits_by_kind"]) == (36, {"rest": 6, "set": 0, "alone": 30})
    out = ("--run-id", "look", "--output", str(tmp_path / "look"), "--worst", "1")
    code, found, said = run("search", *tables, *out)
    assert code == 0, said
    first = found["surfaces"][0]
    assert (first["target"], first["beyond_chance"], first["rapid"]) == ("copy", pytest.approx(1.0), 1.0)
    assert {r["target"] for r in found["surfaces"] if r["beyond_chance"] == 1} == {"copy", "job"}
    assert {r["target"] for r in found["surfaces"] if r["status"] == "undefined" and r["kind"] == "rest"} == {"one"}
    assert (tmp_path / "look" / "surfaces.png").stat().st_size > 10_000
    # all attackers on the worst: the same attacker alone gives the same figure, by the main job
    (evaluated,) = found["worst"]
    by_search = next(r for r in found["surfaces"] if r["target"] == "copy" and r["kind"] == "rest")
    assert (evaluated["rapid"], evaluated["baseline_rate"]) == (by_search["rapid"], pytest.approx(by_search["baseline_rate"]))
    code, checked, said = run("evaluate", *tables, "--quasi-identifiers", "age,copy,flag,job", "--sensitive-attribute", "pay",
                              "--set", "columns.types={flag: categorical}")  # fmt: skip
    assert code == 0, said
    pay = next(r for r in found["surfaces"] if r["target"] == "pay" and r["kind"] == "rest")
    assert pay["known"] == ["age", "copy", "flag", "job", "one"]
    assert (pay["n_at_risk"], pay["baseline_rate"]) == (checked["results"][0]["n_at_risk"],
                                                        pytest.approx(checked["results"][0]["baseline_rate"]))  # fmt: skip
    # stopped after some of it, and gone on with
    lines = (tmp_path / "look" / "progress.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "look" / "progress.jsonl").write_text("".join(lines[:20]) + '{"tar')
    code, again, said = run("search", *tables, *out)
    assert code == 0, said
    assert again["resumed"] == 19

    def bare(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{k: v for k, v in r.items() if k != "seconds"} for r in rows]

    assert bare(again["surfaces"]) == bare(found["surfaces"])
    assert again["worst"][0]["evaluated_at"] is not None and again["worst"][0]["rapid"] == evaluated["rapid"]

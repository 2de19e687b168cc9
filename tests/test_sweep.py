"""The sweep: releases by mechanism, the map and its front, and going on after a stop."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from rapid_spark.config import ConfigError
from rapid_spark.simulate import registry
from rapid_spark.sweep import figures, makers, picture


def test_makers_keep_types_and_lose_less_with_more_budget():
    people = registry(2_000, kappa=5, seed=1).round({"age": 0})
    people.loc[::50, "age"] = np.nan
    domains = makers.domains_of(people, {"age": [0, 30, 45, 60, 120]})
    rows = makers.codes(people, domains)
    assert rows.min() >= 0 and all(rows[:, i].max() < d.size for i, d in enumerate(domains))
    for name in ("independent", "naive_bayes", "bayes_net"):
        errors = []
        for epsilon in (0.05, 50.0):
            made = makers.MAKERS[name](people, domains, "disease_status", epsilon, 0.0)
            assert list(made.columns) == list(people.columns) and len(made) == len(people)
            shares = [f["disease_status"].value_counts(normalize=True) for f in (people, made)]
            errors.append(abs(shares[0] - shares[1].reindex(shares[0].index, fill_value=0)).sum())
        assert errors[1] < 0.1, (name, errors)
    with pytest.raises(ConfigError, match="bayes_net"):
        makers.check(["bayes_ned"], [1.0])


def test_front_by_trying_all_pairs():
    rng = np.random.default_rng(1)
    points = [(float(u), float(r)) for u, r in rng.integers(0, 8, (40, 2))]
    for (u, r), is_best in zip(points, figures.pareto(points), strict=True):
        assert is_best == (not any(a >= u and b <= r and (a, b) != (u, r) for a, b in points))


def test_entropy_changes_less_than_its_bound():
    from rapid_spark.reaedp.entropy import shannon_sensitivity

    for counts in ([500, 3, 0], [5, 0], [7, 7, 7]):
        assert 0 < figures.entropy_change(np.array(counts)) <= shannon_sensitivity(sum(counts), len(counts)) + 1e-12


def test_picture_labels_do_not_cover_each_other(tmp_path):
    rows = [{"mechanism": m, "epsilon": e, "utility": 0.8 + 0.001 * i + 0.01 * j, "rapid_excess": 0.1 + 0.001 * i, "membership_auc": 0.5}
            for i, m in enumerate(("a", "b")) for j, e in enumerate((0.1, 1.0, 8.0))]
    figure = picture.draw(rows, "people")
    figure.savefig(tmp_path / "map.png")
    texts = [t.get_window_extent() for t in figure.axes[0].texts]
    assert len(texts) >= 4
    assert not any(a.overlaps(b) for i, a in enumerate(texts) for b in texts[i + 1 :])


@pytest.mark.slow
@pytest.mark.long
def test_a_sweep_is_stored_and_goes_on_where_it_stopped(spark, tmp_path, monkeypatch):
    from rapid_spark.cli.entry import cli
    from rapid_spark.cli.terminal import Terminal
    from rapid_spark.store import Store

    registry(400, kappa=5, seed=1).round({"age": 0, "income": -3}).to_csv(tmp_path / "people.csv", index=False)

    def swept(*more):
        return CliRunner().invoke(cli, [
            "sweep", "--original", str(tmp_path / "people.csv"), "--quasi-identifiers", "age,gender", "--sensitive-attribute", "disease_status",
            "--attacker", "cart", "--store", f"{tmp_path}/store", "--no-tracking", "--picture", str(tmp_path / "map.png"), "--run-id", "s1",
            "--mechanism", "independent", "--mechanism", "naive_bayes", "--epsilon", "1", "--format", "json", *more,
        ], obj=Terminal(), standalone_mode=False)  # fmt: skip

    assert isinstance(swept().exception, ConfigError)  # nobody said that the data are public
    made, original = [], figures.measure

    def stopped(spark, first, holdout, releases, *rest):
        made.append(list(releases))
        if len(made) == 2:
            raise KeyboardInterrupt
        original(spark, first, holdout, releases, *rest)

    monkeypatch.setattr(figures, "measure", stopped)
    assert swept("--public").exception is not None
    done = swept("--public")
    assert done.exception is None, done.exception
    assert made == [["registry-independent-1"], ["registry-naive_bayes-1"], ["registry-naive_bayes-1"]]
    rows = json.loads(done.stdout)["results"]
    assert [r["mechanism"] for r in rows] == ["independent", "naive_bayes"] and all(0 < r["utility"] <= 1 for r in rows)
    assert all(r["rapid"] is not None and 0.6 < r["histogram_accuracy"] < 0.8 for r in rows) and any(r["pareto"] for r in rows)
    assert (tmp_path / "map.png").stat().st_size > 10_000
    stored = Store.open(spark, f"{tmp_path}/store", create=False).query(
        "select release_id, attack, count(*) as n from risk_attacks where run_id = 's1' group by all").toPandas()
    assert pd.unique(stored["release_id"]).size == 2
    assert set(stored["attack"]) >= {"attribute_inference", "attribute_linkage", "membership_histogram", "test_epsilon"}

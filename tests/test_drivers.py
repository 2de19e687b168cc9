"""Subgroups, patterns, regression and relations from scored rows, against pandas; and an attack on what is published."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from attack import bounds, cell
from pyspark.sql import functions as F

from rapid_spark import config, drivers, levels, relations, suppression
from rapid_spark.risk import Classes, Combination

COLUMNS = {"age": "q0", "job": "q1", "town": "q2"}
COMMON = {"run_id": "run", "registry": "r", "release_id": "x", "weighting": "none", "scored_on": "original"}
M = 10


def people(n=2400, seed=0):
    """Town b is the planted driver of the first attacker; the second one's flags come close to the first one's."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, n).astype(float)
    age[rng.random(n) < 0.05] = np.nan
    town = rng.choice(["a", "b", "c", "hamlet"], n, p=[0.45, 0.3, 0.247, 0.003])
    rf = rng.random(n) < 1 / (1 + np.exp(-(-1.2 + 2.0 * (town == "b"))))
    frame = pd.DataFrame({"q0": age, "q1": rng.choice(["x", "y", None], n, p=[0.5, 0.45, 0.05]), "q2": town,
                          "s0": rng.choice(["no", "yes"], n, p=[0.7, 0.3]),
                          "f0": rf, "f1": rf ^ (rng.random(n) < 0.02)})
    return frame.astype(object).where(frame.notna(), None)


def to_spark(spark, frame):
    schema = "q0 double, q1 string, q2 string, s0 string, f0 boolean, f1 boolean"
    return spark.createDataFrame(frame[["q0", "q1", "q2", "s0", "f0", "f1"]], schema).withColumn("n", F.lit(1))


def combination(index, attacker, columns=("age", "job", "town"), kind="categorical"):
    return Combination(index, "all", columns, "ill", "s0", kind, 1, attacker, "normalized_gain", 0.3, "", "class")


def find(cells, frame, attackers=("rf", "cart"), **settings):
    parsed = config.parse({"quasi_identifiers": list(COLUMNS), "sensitive_attributes": ["ill:categorical"],
                           "drivers": {"min_cell_count": M, **settings}})
    classes = {"ill": Classes.of(frame["s0"].value_counts().to_dict(), "class")}
    return drivers.find(
        cells, cells, [combination(i, a) for i, a in enumerate(attackers)],
        {i: F.col(f"f{i}") for i in range(len(attackers))}, COLUMNS, classes, parsed, COMMON,
    )


def labelled(frame):
    """Level labels of every person, from the bins' own words."""
    labels = frame[["q1", "q2"]].astype(object).where(frame[["q1", "q2"]].notna(), "missing")
    return labels.rename(columns={"q1": "job", "q2": "town"})


@pytest.fixture(scope="module")
def found(spark):
    frame = people()
    return frame, find(to_spark(spark, frame), frame, pairs=True, exclude_relations=["town=b -> no"])


def rows(table, attacker="rf", columns=None):
    mine = table[table["attacker"] == attacker]
    return mine if columns is None else mine[mine["columns"].map(tuple) == tuple(columns)]


def shown(table, *where):
    mine = rows(table, *where)
    return mine[~mine["suppressed"].astype(bool)]


def test_tables_have_the_contracts_columns(found):
    _, result = found
    assert set(result.tables) == {"risk_subgroups", "risk_patterns", "risk_attribution", "risk_relations"}
    keys = ["run_id", "registry", "release_id", "replicate", "scored_on", "qi_set", "sensitive_attribute", "measure",
            "attacker", "weighting"]
    figures = ["columns", "level", "n", "n_at_risk", "rapid", "ci_low", "ci_high", "suppressed"]
    assert list(result.subgroups) == list(result.patterns) == keys + figures
    assert list(result.attribution) == [*keys, "term", "kind", "estimate", "std_error", "ci_low", "ci_high"]


def test_subgroups_equal_pandas(found):
    frame, result = found
    labels = labelled(frame)
    for columns in (["job"], ["town"], ["job", "town"]):
        counts = frame.assign(**labels).groupby(columns)["f0"].agg(["size", "sum"])
        listed = shown(result.subgroups, "rf", columns)
        assert len(listed) > (1 if columns == ["town"] else 2)
        for row in listed.itertuples():
            n, hits = counts.loc[tuple(row.level) if len(columns) > 1 else row.level[0]]
            assert (row.n, row.n_at_risk, row.rapid) == (n, hits, hits / n)
            assert row.ci_low < row.rapid < row.ci_high


def test_numeric_columns_are_cut_at_quantiles_of_the_original(found):
    frame, result = found
    age = frame["q0"].astype(float)
    cuts = [np.sort(age.dropna())[int(np.ceil(len(age.dropna()) * q / 4)) - 1] for q in (1, 2, 3)]
    listed = rows(result.subgroups, columns=["age"])
    low, middle, high = (f"{c:.0f}" for c in cuts)
    assert listed["level"].map(lambda x: x[0]).tolist() == [
        f"up to {low}", f"over {low} to {middle}", f"over {middle} to {high}", f"over {high}", "missing"
    ]
    bins = [age <= cuts[0], (age > cuts[0]) & (age <= cuts[1]), (age > cuts[1]) & (age <= cuts[2]), age > cuts[2], age.isna()]
    assert listed["n"].tolist() == [int(b.sum()) for b in bins]
    assert listed["n_at_risk"].tolist() == [int((b & frame["f0"].astype(bool)).sum()) for b in bins]


@pytest.mark.parametrize(
    ("values", "counts", "bins", "cuts"),
    [([1, 2, 3, 4], [1, 1, 1, 1], 2, (2.0,)), ([0, 5], [90, 10], 4, (0.0,)), ([0, 5], [10, 90], 4, (0.0,)),
     ([7], [5], 4, ()), ([], [], 4, ()), ([10.123, 31234.56, 61234.5, 90000], [1, 1, 1, 1], 4, (0.0, 31000.0, 61000.0))],
)
def test_bounds_of_bins_are_round_and_follow_ties(values, counts, bins, cuts):
    assert levels.quantile_cuts(np.array(values, dtype=float), np.array(counts), bins) == cuts


def test_the_rare_level_is_held_back_and_a_row_says_so(found):
    _, result = found
    towns = rows(result.subgroups, columns=["town"]).set_index(rows(result.subgroups, columns=["town"])["level"].map("".join))
    assert towns.loc["hamlet", "suppressed"] and towns["suppressed"].sum() == 2
    held = result.subgroups[result.subgroups["suppressed"].astype(bool)]
    assert held[["n", "n_at_risk", "rapid", "ci_low", "ci_high"]].isna().all(axis=None)


def test_the_planted_driver_is_found(found):
    _, result = found
    effects = rows(result.attribution)
    effects = effects[effects["kind"] == "marginal_effect"].set_index("term")["estimate"].astype(float)
    assert effects.abs().idxmax().startswith("town=b")
    assert effects[effects.abs().idxmax()] > 0.3
    subgroups = shown(result.subgroups)
    assert subgroups.loc[subgroups["rapid"].astype(float).idxmax(), "level"][-1] == "b"
    assert "b" in rows(result.patterns)["level"].iloc[0]


def test_suppressed_cells_cannot_be_reconstructed(found):
    """From all that is published of two attackers: totals, levels, pairs and patterns."""
    frame, result = found
    names = list(COLUMNS)
    number = {}
    for name in names:
        listed = rows(result.subgroups, columns=[name])["level"].map(lambda x: x[0])
        number[name] = {label: i for i, label in enumerate(listed)}
    shape = tuple(len(number[name]) for name in names)
    total = np.ones(int(np.prod(shape)))
    published, targets = [], []
    for run, attacker in enumerate(("rf", "cart")):
        published.append((run, total, len(frame), int(frame[f"f{run}"].sum())))
        for table in (result.subgroups, result.patterns):
            for row in rows(table, attacker).itertuples():
                place = [names.index(c) for c in row.columns], [number[c][x] for c, x in zip(row.columns, row.level, strict=True)]
                mask = cell(shape, *place)
                if row.suppressed:
                    targets.append((run, mask))
                else:
                    published.append((run, mask, row.n, row.n_at_risk))
    assert len(targets) > 4
    low, high, n_low, n_high = bounds(published, targets, runs=2).T
    assert np.all(high - low >= 1)
    assert np.all(n_high - n_low >= 3)


def test_patterns_are_right_and_leave_no_small_rest(found):
    frame, result = found
    listed = rows(result.patterns)
    assert 0 < len(listed) <= config.Drivers().patterns
    assert not listed["suppressed"].any()
    assert listed["n_at_risk"].astype(int).is_monotonic_decreasing
    labels = labelled(frame)
    by_town = labels["town"].value_counts()
    for row in listed.itertuples():
        mine = (labels["job"] == row.level[1]) & (labels["town"] == row.level[2])
        assert row.n <= mine.sum()
        assert row.n >= M and 3 <= row.n_at_risk <= row.n - 3
    for town in ("a", "b"):
        rest = by_town[town] - listed.loc[listed["level"].map(lambda x, t=town: x[2] == t), "n"].sum()
        assert rest == 0 or rest >= M


def test_relations_and_the_rate_without_what_everybody_knows(found):
    frame, result = found
    known = (frame["q2"] == "b") & (frame["s0"] == "no")
    flags = frame["f0"].astype(bool)
    row = result.exclusions[result.exclusions["attacker"] == "rf"].iloc[0]
    assert (row["n"], row["n_at_risk"]) == (len(frame), flags.sum())
    assert (row["n_without"], row["n_at_risk_without"]) == ((~known).sum(), (flags & ~known).sum())
    assert row["rapid_without"] == pytest.approx((flags & ~known).sum() / (~known).sum())
    pairs = rows(result.relations)
    top = pairs[(pairs["quasi_identifier"] == "town") & (pairs["level"] == "b") & (pairs["class_label"] == "no")].iloc[0]
    assert top["known"] and (top["n"], top["n_at_risk"]) == (known.sum(), (flags & known).sum())
    assert top["share_of_flags"] == pytest.approx((flags & known).sum() / flags.sum())
    assert pairs["n_at_risk"].astype(int).is_monotonic_decreasing


@pytest.mark.parametrize(
    ("text", "said"),
    [("town b no", "form"), ("twon=b -> no", "'town'"), ("town=b -> nope", "nope")],
)
def test_a_wrong_relation_is_refused_with_its_path(text, said):
    classes = {"ill": Classes.of({"no": 5, "yes": 3}, "class")}
    with pytest.raises(config.ConfigError, match=said) as error:
        relations.parse_relations([text], list(COLUMNS), classes)
    assert "drivers.exclude_relations" in str(error.value)


def test_a_relation_with_a_level_that_nobody_has_is_refused_early(spark):
    original = spark.createDataFrame([("a", 1.0), ("b", 2.0)], "q0 string, q1 double")
    known = [relations.Relation("town", "b", "no"), relations.Relation("age", "1 to 2", "no")]
    relations.check_levels(original, known, {"town": "q0"})
    with pytest.raises(config.ConfigError, match="drivers.exclude_relations: 'town=bb -> no': 'town' has no level 'bb'"):
        relations.check_levels(original, [*known, relations.Relation("town", "bb", "no")], {"town": "q0"})


def test_a_level_whose_people_share_a_class_is_not_told_by_its_size():
    n, hits = np.array([[100, 2], [60, 40], [50, 5], [50, 5]]), np.array([[50, 1], [30, 20], [25, 2], [50, 2]])
    table = suppression.CrossTable("town", "class of ill", n, hits)
    nobody = np.zeros(n.shape, dtype=bool)
    secret = [[True, True], [False, False], [False, True], [True, True]]
    assert relations.secret_cells(table, nobody, M).tolist() == secret
    declared = nobody.copy()
    declared[:, 0] = True
    assert relations.secret_cells(table, declared, M)[:, 0].tolist() == [False] * 4


def test_continuous_attributes_are_counted_from_records(spark, found):
    frame, result = found
    records = to_spark(spark, frame)
    parsed = config.parse({"quasi_identifiers": list(COLUMNS), "sensitive_attributes": ["ill:continuous"],
                           "drivers": {"min_cell_count": M, "pairs": True}})
    again = drivers.find(
        records.drop("f0"), records, [combination(0, "rf", kind="continuous")], {0: F.col("f0")}, COLUMNS, {}, parsed, COMMON
    )
    assert again.relations.empty and again.exclusions.empty
    pd.testing.assert_frame_equal(again.attribution, rows(result.attribution).reset_index(drop=True), rtol=1e-6)


def test_order_and_grouping_of_rows_do_not_matter(spark, found):
    frame, result = found
    shuffled = to_spark(spark, frame.sample(frac=1, random_state=1)).repartition(3)
    cells = shuffled.groupBy("q0", "q1", "q2", "s0", "f0", "f1").agg(F.sum("n").alias("n"))
    again = find(cells, frame, pairs=True, exclude_relations=["town=b -> no"])
    for name, table in result.tables.items():
        pd.testing.assert_frame_equal(again.tables[name], table, check_exact=False, rtol=1e-9)
    assert again.warnings == result.warnings


def test_more_patterns_than_the_driver_takes(spark, found, monkeypatch):
    """Levels and pairs stay exact, the regression uses a sample and says so."""
    frame, result = found
    monkeypatch.setattr(levels, "MAX_PATTERNS", 20)
    again = find(to_spark(spark, frame), frame, pairs=True)
    few = find(to_spark(spark, frame), frame, pairs=True)
    pd.testing.assert_frame_equal(again.subgroups, few.subgroups)
    first, second = result.subgroups, again.subgroups
    for columns in (["age"], ["job"], ["town"]):
        a, b = (shown(t, "rf", columns)[["n", "n_at_risk"]].to_numpy().tolist() for t in (first, second))
        assert a == b
    assert any("sample" in w for w in again.warnings)
    assert set(rows(again.patterns)["n"]) <= set(rows(result.patterns)["n"]) | set(range(M, len(frame)))


def test_undefined_outcomes_are_in_no_group(spark):
    frame = people(600)
    frame.loc[frame["q2"] == "a", "f0"] = None
    result = find(to_spark(spark, frame), frame, attackers=("rf",), attribution=False, patterns=0)
    towns = rows(result.subgroups, columns=["town"]).set_index(rows(result.subgroups, columns=["town"])["level"].map("".join))
    assert towns.loc["a", "suppressed"]
    jobs = shown(result.subgroups, "rf", ["job"])
    defined = labelled(frame)["job"][frame["f0"].notna()].value_counts()
    for row in jobs.itertuples():
        assert row.n == defined[row.level[0]]


@pytest.mark.parametrize("flag", [False, True])
def test_where_the_total_tells_everything_no_group_is_shown(spark, flag):
    frame = people(300).assign(f0=flag)
    result = find(to_spark(spark, frame), frame, attackers=("rf",), pairs=True)
    assert result.subgroups["suppressed"].all()
    assert result.subgroups["columns"].map(len).max() == 1
    assert result.patterns.empty and result.attribution.empty
    assert any("no subgroups are shown" in w for w in result.warnings)


def test_a_weak_attacker_does_not_blank_the_others(spark, found):
    frame, result = found
    quiet = frame.assign(f1=False)
    again = find(to_spark(spark, quiet), quiet, pairs=True, exclude_relations=["town=b -> no"])
    alone = find(to_spark(spark, frame), frame, attackers=("rf",), pairs=True, exclude_relations=["town=b -> no"])
    pd.testing.assert_frame_equal(rows(again.subgroups).reset_index(drop=True), rows(alone.subgroups).reset_index(drop=True))


def test_hundreds_of_levels_are_taken_together(spark):
    n = 6000
    rng = np.random.default_rng(0)
    frame = people(n).assign(q2=[f"t{i:03d}" for i in rng.geometric(0.02, n)])
    frame["q2"] = np.where(rng.random(n) < 0.1, [f"u{i}" for i in range(n)], frame["q2"])
    result = find(to_spark(spark, frame), frame, attackers=("rf",), pairs=True)
    towns = rows(result.subgroups, columns=["town"])
    names = towns["level"].map(lambda x: x[0])
    assert names.iloc[-1] == "other levels" and len(names) <= levels.MAX_LEVELS
    assert not names.str.startswith("u").any()
    sizes = frame["q2"].value_counts()
    assert all(r.n == sizes[r.level[0]] for r in shown(result.subgroups, "rf", ["town"]).itertuples() if r.level[0] in sizes)
    assert any("'town'" in w and "other levels" in w for w in result.warnings)
    assert any("no rows for its pairs" in w for w in result.warnings)


def test_nothing_is_computed_when_nothing_is_wanted(spark):
    frame = people(50)
    off = find(None, frame, subgroups=False, patterns=0, attribution=False)
    assert all(table.empty for table in off.tables.values())


def test_columns_without_a_value_or_with_one(spark):
    frame = people(300).assign(q0=None, q1="x")
    result = find(to_spark(spark, frame), frame, attackers=("rf",))
    assert rows(result.subgroups, columns=["age"])["level"].tolist() == [["missing"]]
    assert rows(result.subgroups, columns=["job"])["n"].tolist() == [300]
    assert rows(result.attribution)["term"].str.startswith(("intercept", "town=")).all()


def test_every_pair_is_listed_once(found):
    _, result = found
    pairs = rows(result.subgroups)["columns"].map(tuple)
    wanted = set(itertools.combinations(sorted(COLUMNS), 2))
    assert {p for p in pairs if len(p) == 2} == wanted
    assert not rows(result.subgroups).assign(c=pairs, x=rows(result.subgroups)["level"].map(tuple)).duplicated(["c", "x"]).any()

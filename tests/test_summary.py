import numpy as np
import pytest
from plain import continuous_frame, error, normalized_gain, scored_frame
from sklearn.metrics import f1_score, log_loss, roc_auc_score

from rapid_spark import config
from rapid_spark.continuous import spreads, summarise_continuous
from rapid_spark.continuous_null import add_nulls, hit_interval
from rapid_spark.risk import Classes, Combination
from rapid_spark.summary import summarise_categorical


def combination(measure="normalized_gain", threshold=0.3, target_type="categorical"):
    return Combination(0, "all", ("x",), "y", "s0", target_type, 1, "rf", measure, threshold, "prediction_0.c0", "class")


def summarise(spark, labels, p, order, known=None, **settings):
    """Result for classes given in rank order; p's columns in that order."""
    settings = config.parse(settings)
    c = combination(settings.measures[0], settings.threshold.tau[settings.measures[0]])
    classes = Classes.of({k: labels.count(k) for k in set(labels)}, "class")
    assert classes.labels == tuple(order)
    frame = scored_frame(spark, labels, p)
    results, means = summarise_categorical(frame, [c], {"y": classes}, {0: tuple(known or order)}, settings)
    return results[0], means[0]


@pytest.fixture(scope="module")
def three_classes():
    rng = np.random.default_rng(5)
    y = np.repeat([0, 1, 2], [40, 25, 15])
    p = rng.dirichlet([0.7] * 3, 80)
    p[np.arange(80), y] += 0.5
    return [["a", "b", "c"][i] for i in y], y, (p / p.sum(axis=1, keepdims=True)).round(12)


def test_worked_example_of_the_definition(spark):
    labels = ["a"] * 3 + ["b"] * 2
    p = [[0.70, 0.30], [0.85, 0.15], [0.55, 0.45], [1.0, 0.0], [1.0, 0.0]]
    result, _ = summarise(spark, labels, p, ["a", "b"])
    assert (result.n, result.n_at_risk) == (5, 1)
    assert result.classes[0]["rapid"] == pytest.approx(1 / 3)


def test_a_tie_is_not_at_risk(spark):
    result, _ = summarise(spark, ["a", "b"], [[0.65, 0.35], [0.0, 1.0]], ["a", "b"])
    assert result.n_at_risk == 1


def test_constant_guess_gives_its_baseline_rate(spark):
    result, _ = summarise(spark, ["a"] * 6 + ["b"] * 4, [[0.9, 0.1]] * 10, ["a", "b"])
    assert result.rapid == pytest.approx(0.6)
    assert result.baseline_rate == pytest.approx(0.6)


def test_curve_and_classes_equal_plain_numpy(spark, three_classes):
    labels, y, p = three_classes
    result, means = summarise(spark, labels, p, "abc")
    for row in result.curve:
        assert row["n_at_risk"] == normalized_gain(p, y, row["threshold"]).sum()
    flags = normalized_gain(p, y, 0.3)
    assert [c["n_at_risk"] for c in result.classes] == [flags[y == k].sum() for k in range(3)]
    assert means == pytest.approx([p[y == k, k].mean() for k in range(3)])
    b = np.bincount(y) / 80
    cut = b + 0.3 * (1 - b)
    guess = p.argmax(axis=1)
    claim = p.max(axis=1) > cut[guess]
    assert result.figures["n_confident_claims"] == claim.sum()
    assert result.figures["claims_correct"] == pytest.approx((guess == y)[claim].mean())
    assert result.baseline_rate == pytest.approx(np.bincount(y) @ (p > cut).sum(axis=0) / 80**2)


def test_attacker_quality_equals_scikit_learn(spark, three_classes):
    labels, y, p = three_classes
    figures = summarise(spark, labels, p, "abc")[0].figures
    guess = p.argmax(axis=1)
    assert figures["accuracy"] == pytest.approx((guess == y).mean())
    assert figures["macro_f1"] == pytest.approx(f1_score(y, guess, average="macro"))
    assert figures["log_loss"] == pytest.approx(log_loss(y, p))
    rounded = p.round(4)
    each = [roc_auc_score(y == k, rounded[:, k]) for k in range(3)]
    assert figures["auc"] == pytest.approx(np.mean(each))


def test_other_measures_equal_plain_numpy(spark, three_classes):
    labels, y, p = three_classes
    g = p[np.arange(80), y]
    mean = np.array([g[y == k].mean() for k in range(3)])
    rcs, _ = summarise(spark, labels, p, "abc", measures=["rcs_conditional"])
    assert rcs.n_at_risk == (g / mean[y] > 1.25).sum()
    rng = np.random.default_rng(6)
    naive = []
    for _ in range(3000):
        i = rng.integers(0, 80, 80)
        centre = np.bincount(y[i], g[i], 3) / np.bincount(y[i], minlength=3)
        naive.append(np.mean(g[i] > 1.25 * centre[y[i]]))
    assert rcs.draws.mean() == pytest.approx(np.mean(naive), abs=0.01)
    assert rcs.draws.std() == pytest.approx(np.std(naive), rel=0.1)
    nce, _ = summarise(spark, labels, p, "abc", measures=["nce"])
    assert nce.n_at_risk == (1 + np.log(np.maximum(g, 1e-10)) / np.log(3) > 0.6).sum()


def test_histogram_and_calibration_hold_the_counts(spark, three_classes):
    labels, y, p = three_classes
    rows = summarise(spark, labels, p, "abc", drivers={"min_cell_count": 4})[0].distributions
    b, g = np.bincount(y) / 80, p[np.arange(80), y]
    r = (g - b[y]) / (1 - b[y])
    for row in rows:
        k = "abc".index(row["class_label"])
        if row["kind"] == "score":
            low = -np.inf if row["bin_low"] == pytest.approx(-b[k] / (1 - b[k])) else row["bin_low"]
            assert row["n"] == ((r[y == k] > low) & (r[y == k] <= row["bin_high"])).sum() >= 4
        else:
            inside = (p[:, k] >= row["bin_low"]) & (p[:, k] <= row["bin_high"])
            assert (row["n"], row["observed"]) == (inside.sum(), pytest.approx((y[inside] == k).mean()))
            assert row["mean_prob"] == pytest.approx(p[inside, k].mean(), abs=1e-4)
    scores = [row for row in rows if row["kind"] == "score"]
    assert sum(row["n"] for row in scores) == 80
    assert sum(row["n"] for row in scores if row["bin_low"] >= 0.3) == (r > 0.3).sum()


def test_class_absent_from_the_release_is_counted(spark):
    result, _ = summarise(spark, ["a", "a", "b"], [[1.0, 0.0]] * 3, ["a", "b"], known=["a"])
    assert result.figures["n_unseen_class"] == 1
    assert result.classes[1]["n_at_risk"] == 0


@pytest.mark.parametrize("kind", ["symmetric", "stabilised_relative", "relative", "absolute", "normalised"])
def test_continuous_errors_equal_plain_numpy(spark, kind):
    y, guess = np.array([50000.0, 35000, 80000, 0, -100]), np.array([47000.0, 39000, 90000, 0, -104])
    settings = config.parse({"threshold": {"error": kind, "tolerance": 5000 if kind == "absolute" else 0.1}})
    c = combination(kind, settings.threshold.tolerance, "continuous")
    frame = continuous_frame(spark, y, guess)
    targets = spreads(frame, {"y": "s0"}, settings.threshold)
    result = summarise_continuous(frame, [c], targets, settings)[0]
    e = error(y, guess, kind)
    assert result.n == np.isfinite(e).sum()
    assert result.n_at_risk == (e < settings.threshold.tolerance).sum()
    assert result.figures["mae"] == pytest.approx(abs(y - guess).mean())
    assert result.figures["r2"] == pytest.approx(1 - ((y - guess) ** 2).sum() / ((y - y.mean()) ** 2).sum())


def test_the_spread_of_a_normalised_error_is_drawn_with_the_sample(spark):
    rng = np.random.default_rng(8)
    y = rng.lognormal(0, 0.8, 200)
    guess = y + rng.normal(0, 0.4, 200)
    settings = config.parse({"threshold": {"error": "normalised", "tolerance": 0.3}})
    c, frame = combination("normalised", 0.3, "continuous"), continuous_frame(spark, y, guess)
    result = summarise_continuous(frame, [c], spreads(frame, {"y": "s0"}, settings.threshold), settings)[0]
    naive = np.array([(error(y[i], guess[i], "normalised") < 0.3).mean() for i in rng.integers(0, 200, (4000, 200))])
    assert result.draws.mean() == pytest.approx(naive.mean(), abs=0.01)
    assert result.draws.std() == pytest.approx(naive.std(), rel=0.1)
    assert naive.std() > 1.3 * np.sqrt(result.rapid * (1 - result.rapid) / 200)  # so a binomial interval is too short


@pytest.mark.parametrize("kind", ["symmetric", "stabilised_relative", "relative", "absolute"])
def test_best_constant_is_at_most_one_cell_short_of_brute_force(spark, kind):
    y = np.random.default_rng(3).lognormal(2, 1, 400) * np.where(np.arange(400) % 5, 1, -1)
    settings = config.parse({"threshold": {"error": kind, "tolerance": 3 if kind == "absolute" else 0.3}})
    c = combination(kind, settings.threshold.tolerance, "continuous")
    frame = continuous_frame(spark, y, np.zeros(400))
    targets = spreads(frame, {"y": "s0"}, settings.threshold)
    result = summarise_continuous(frame, [c], targets, settings)[0]
    low, high = y.min() * 1.4, y.max() * 1.4
    best = max((error(y, t, kind) < c.threshold).sum() for t in np.linspace(low, high, 60000))
    assert best - 3 <= result.figures["best_constant_hits"] <= best


@pytest.mark.parametrize("kind", ["symmetric", "stabilised_relative", "relative", "absolute"])
def test_hit_interval_holds_exactly_the_hits(kind):
    settings = config.parse({"threshold": {"error": kind, "delta": 5.0}}).threshold
    y = np.linspace(-30, 30, 6001) + 1e-4
    for p in (-20.0, -1.0, 0.0, 0.3, 2.0, 25.0):
        low, high = hit_interval(np.array([p]), 0.3, settings, None)
        np.testing.assert_array_equal((y > low) & (y < high), error(y, p, kind, 5.0) < 0.3)


def test_continuous_null_equals_shuffling(spark):
    rng = np.random.default_rng(4)
    y = rng.lognormal(3, 0.4, 300)
    guess = y * rng.lognormal(0, 0.3, 300)
    settings = config.parse({})
    c = combination("symmetric", 0.1, "continuous")
    frame = continuous_frame(spark, y, guess)
    targets = spreads(frame, {"y": "s0"}, settings.threshold)
    results = summarise_continuous(frame, [c], targets, settings)
    add_nulls(frame, [c], results, targets, settings)
    naive = np.array([(error(rng.permutation(y), guess, "symmetric") < 0.1).mean() for _ in range(4000)])
    null = results[0].null
    assert null.mean == pytest.approx(naive.mean(), abs=5 * naive.std() / np.sqrt(4000))
    assert null.sd == pytest.approx(naive.std(), rel=0.06)

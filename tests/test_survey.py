"""Survey weights against hand-computed designs, statsmodels and plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from plain import error, normalized_gain
from test_evaluation import evaluate, people, plain_probabilities

from rapid_spark import survey, weights
from rapid_spark.config import ConfigError, parse
from rapid_spark.schema import SchemaError
from rapid_spark.wording import findings

TAU = 0.3


def plain_variance(z, stratum, psu):
    """Sum over strata of n/(n-1) times the squares of unit totals around their mean, written out."""
    whole, lonely, every = 0.0, [], []
    for s in np.unique(stratum):
        units = np.array([z[(stratum == s) & (psu == u)].sum() for u in np.unique(psu[stratum == s])])
        every += list(units)
        if len(units) == 1:
            lonely.append(units[0])
        else:
            whole += len(units) / (len(units) - 1) * ((units - units.mean()) ** 2).sum()
    return whole + sum((u - np.mean(every)) ** 2 for u in lonely)


def plain_survey(p, y, w, tau=TAU):
    """Weighted rate, flags and linearised z of normalized_gain; p (n, K), y class index."""
    n, k = p.shape
    total, g = w.sum(), p[np.arange(n), y]
    b = np.array([w[y == c].sum() for c in range(k)]) / total
    cut = b + tau * (1 - b)
    a = (g > cut[y]).astype(float)
    rate = (w * a).sum() / total
    d = np.zeros(k)
    for c in range(k):
        gc, wc = g[y == c], w[y == c]
        mean = np.average(gc, weights=wc)
        sd = np.sqrt(np.average((gc - mean) ** 2, weights=wc))
        h = max(1.740 * 0.9 * sd * (wc.sum() ** 2 / (wc**2).sum()) ** -0.2, 2 * (1 - tau) * np.sqrt(b[c] * (1 - b[c]) / n))
        near = (gc > cut[c] - h) & (gc <= cut[c] + h)
        d[c] = -(1 - tau) * b[c] * wc[near].sum() / wc.sum() / (2 * h)
    z = w / total * (a - rate + d[y] - (d * b).sum())
    return rate, a, b, z


def test_a_small_design_by_hand():
    # Two strata, three and two units; weights 10 and 20. At risk: 1,0 | 1 | 0,0 in stratum A; 1 | 1,0 in B.
    stratum = np.array(list("AAAAABBB"))
    psu = np.array([1, 1, 2, 3, 3, 1, 2, 2])
    w = np.array([10.0] * 5 + [20.0] * 3)
    a = np.array([1.0, 0, 1, 0, 0, 1, 1, 0])
    rate = (10 + 10 + 20 + 20) / 110
    z = w / 110 * (a - rate)
    units_a = np.array([10 - 20 * rate, 10 - 10 * rate, -20 * rate]) / 110
    units_b = np.array([20 - 20 * rate, 20 - 40 * rate]) / 110
    by_hand = 3 / 2 * ((units_a - units_a.mean()) ** 2).sum() + 2 * ((units_b - units_b.mean()) ** 2).sum()
    found, single = weights.variance(
        np.array([3, 2]), np.array([units_a.sum(), units_b.sum()]), np.array([(units_a**2).sum(), (units_b**2).sum()])
    )
    assert found == pytest.approx(by_hand) == pytest.approx(plain_variance(z, stratum, psu))
    assert single == 0 and rate == pytest.approx(6 / 11)
    # on paper: 1.5 x 0.0101541 + 2 x 0.0049177
    assert found == pytest.approx(0.0250666, abs=1e-6)


def test_a_single_unit_is_set_against_the_mean_of_all():
    found, single = weights.variance(np.array([2, 1]), np.array([0.3, -0.3]), np.array([0.05, 0.09]))
    assert single == 1
    assert found == pytest.approx(2 * (0.05 - 0.3**2 / 2) + (-0.3 - 0.0) ** 2)


def test_clusters_without_strata_equal_statsmodels():
    import statsmodels.api as sm

    rng = np.random.default_rng(5)
    psu = rng.integers(0, 12, 150)
    w, a = rng.uniform(1, 9, 150), (rng.random(150) < 0.4).astype(float)
    fit = sm.WLS(a, np.ones(150), weights=w).fit(cov_type="cluster", cov_kwds={"groups": psu})
    rate = np.average(a, weights=w)
    assert fit.params[0] == pytest.approx(rate)
    units = np.array([(w / w.sum() * (a - rate))[psu == u].sum() for u in np.unique(psu)])
    found, _ = weights.variance(np.array([len(units)]), np.array([units.sum()]), np.array([(units**2).sum()]))
    assert found == pytest.approx(fit.cov_params()[0, 0], rel=1e-9)


def test_interval_is_wilson_with_the_effective_size():
    from statsmodels.stats.proportion import proportion_confint

    low, high, effective = weights.interval(0.4, 500, 0.4 * 0.6 / 120, 0.95)
    assert effective == pytest.approx(120)
    assert (low, high) == pytest.approx(proportion_confint(48, 120, method="wilson"))
    assert weights.interval(0.0, 50, 0.0, 0.95)[0] == 0.0


def test_the_linearised_variance_is_that_of_repeated_samples():
    """The thresholds' own movement is in it: without D the variance is far off, as the flags share the prevalences."""
    rng = np.random.default_rng(11)
    size, n, rates, estimated, fixed = 40_000, 600, [], [], []
    y_all = (rng.random(size) < 0.35).astype(int)
    g_all = np.clip(rng.normal(0.755, 0.06, size) - 0.21 * y_all, 0.01, 0.99)  # about the thresholds
    inclusion = np.where(y_all == 1, 3.0, 1.0)
    inclusion = inclusion / inclusion.sum()
    for _ in range(400):
        chosen = rng.choice(size, n, p=inclusion)
        y, g, w = y_all[chosen], g_all[chosen], 1.0 / (n * inclusion[chosen])
        p = np.where(y[:, None] == [0, 1], g[:, None], 1 - g[:, None])
        rate, a, _, z = plain_survey(p, y, w)
        rates.append(rate)
        estimated.append(n / (n - 1) * ((z - z.mean()) ** 2).sum())
        fixed.append((w**2 * (a - rate) ** 2).sum() / w.sum() ** 2)
    assert np.mean(estimated) == pytest.approx(np.var(rates), rel=0.2)
    assert abs(np.mean(fixed) / np.var(rates) - 1) > 0.3


def test_density_is_the_mass_in_the_box():
    h = np.array([0.1, 0.0])
    assert weights.density(np.array([0.7, 0.2]), np.array([0.4, 0.1]), h).tolist() == pytest.approx([1.5, 0.0])


def test_strata_without_weights_are_refused():
    with pytest.raises(ConfigError, match=r"columns\.psu: belongs to survey weights"):
        parse({"columns": {"psu": "area"}})


def design(n=240, seed=3):
    rng = np.random.default_rng(seed)
    frame = people(n)
    frame["w"] = rng.integers(1, 6, n)
    frame["region"] = np.where(frame.index < 100, "north", np.where(frame.index < 239, "south", "isle"))
    frame["area"] = frame.index % 12
    return frame


@pytest.fixture(scope="module")
def weighted(spark):
    """One evaluation with a design: a categorical attribute under two measures, and a continuous one."""
    original, release = design(), people(seed=1)
    columns = {"key": "id", "weight": "w", "stratum": "region", "psu": "area"}
    quick = {"intervals": {"bootstrap": 50, "permutations": 0}, "drivers": {"subgroups": False, "patterns": 0, "attribution": False}}
    assessment = evaluate(spark, original, release, columns=columns, measures=["normalized_gain", "nce"],
                          sensitive_attributes=["ill", "pay"], **quick)  # fmt: skip
    records = assessment.records.toPandas()
    p = plain_probabilities(original, release, ["no", "yes"])
    yield original, assessment, records, p
    assessment.close()


def row(assessment, measure, weighting="survey"):
    summary = assessment.summary
    (found,) = summary[(summary["measure"] == measure) & (summary["weighting"] == weighting)].to_dict("records")
    return found


def test_weighted_rows_stand_beside_the_unweighted(weighted):
    original, assessment, _, p = weighted
    assert assessment.summary["weighting"].value_counts().to_dict() == {"none": 3, "survey": 3}
    y = (original["ill"] == "yes").to_numpy().astype(int)
    plain = row(assessment, "normalized_gain", "none")
    assert plain["rapid"] == normalized_gain(p, y, TAU).mean() and plain["weight_sum"] is None
    assert row(assessment, "normalized_gain")["weight_sum"] == original["w"].sum()
    assert all(f.row["weighting"] == "none" for f in findings(assessment.summary))


def test_categorical_equals_plain_numpy(weighted):
    original, assessment, _, p = weighted
    y, w = (original["ill"] == "yes").to_numpy().astype(int), original["w"].to_numpy(dtype=float)
    rate, a, b, z = plain_survey(p, y, w)
    found = row(assessment, "normalized_gain")
    assert (found["rapid"], found["n_at_risk"], found["n"]) == (pytest.approx(rate), a.sum(), 240)
    cut = b + TAU * (1 - b)
    assert found["baseline_rate"] == pytest.approx(sum(b[c] * np.average(p[:, c] > cut[c], weights=w) for c in (0, 1)))
    variance = plain_variance(z, original["region"].to_numpy(), original["area"].to_numpy())
    assert found["n_effective"] == pytest.approx(rate * (1 - rate) / variance, rel=1e-6)
    assert (found["ci_low"], found["ci_high"]) == pytest.approx(weights.interval(rate, 240, variance, 0.95)[:2])
    assert found["ci_low"] < rate < found["ci_high"] and found["ci_method"] == survey.METHOD
    assert any("strata with a single primary sampling unit: 1;" in w for w in assessment.warnings)
    of_class = assessment.classes[(assessment.classes["weighting"] == "survey") & (assessment.classes["measure"] == "normalized_gain")]
    assert dict(zip(of_class["class_label"], of_class["prevalence"], strict=True)) == pytest.approx({"no": b[0], "yes": b[1]})


def test_whole_weights_are_the_file_in_which_each_record_stands_so_often(weighted):
    original, assessment, _, p = weighted
    y, w = (original["ill"] == "yes").to_numpy().astype(int), original["w"].to_numpy()
    curve = assessment.curve[(assessment.curve["weighting"] == "survey") & (assessment.curve["measure"] == "normalized_gain")]
    for point in curve.to_dict("records"):
        expanded = normalized_gain(np.repeat(p, w, axis=0), np.repeat(y, w), point["threshold"])
        assert point["rapid"] == pytest.approx(expanded.mean(), abs=1e-12)


def test_measures_whose_flags_do_not_move(weighted):
    original, assessment, records, _ = weighted
    w = original.set_index(original["id"].astype(str))["w"]
    for measure, attribute in (("nce", "ill"), ("symmetric", "pay")):
        mine = records[(records["measure"] == measure) & (records["sensitive_attribute"] == attribute)]
        own = w.loc[mine["record_id"]].to_numpy(dtype=float)
        a = mine["at_risk"].to_numpy(dtype=float)
        rate = np.average(a, weights=own)
        found = row(assessment, measure)
        assert found["rapid"] == pytest.approx(rate)
        ordered = original.set_index(original["id"].astype(str)).loc[mine["record_id"]]
        z = own / own.sum() * (a - rate)
        variance = plain_variance(z, ordered["region"].to_numpy(), ordered["area"].to_numpy())
        assert found["n_effective"] == pytest.approx(rate * (1 - rate) / variance, rel=1e-6)
    pay, own = original["pay"].to_numpy(), original["w"].to_numpy(dtype=float)
    best = max(np.average(error(pay, np.full(240, c), "symmetric") < 0.1, weights=own) for c in np.linspace(pay.min(), pay.max(), 4000))
    assert row(assessment, "symmetric")["baseline_rate"] == pytest.approx(best, abs=0.02)


def test_designs_that_cannot_be_used_are_refused_with_counts(spark):
    bad = design(60).astype({"w": float})
    bad.loc[:2, "w"] = np.nan
    bad.loc[3, "w"] = -1.0
    bad.loc[4:5, "region"] = None
    with pytest.raises(SchemaError) as error:
        evaluate(spark, bad, people(seed=1), columns={"key": "id", "weight": "w", "stratum": "region"})
    said = str(error.value)
    assert "columns.weight: 'w' is missing in 3 of 60" in said and "columns.weight: 'w' is negative in 1 of 60" in said
    assert "columns.stratum: 'region' is missing in 2 of 60" in said


@pytest.mark.parametrize(("kept", "wanted"), [("at_risk", "flagged"), ("none", "nothing")])
def test_store_records_says_which_records_are_kept(spark, kept, wanted):
    original = people(80)
    assessment = evaluate(spark, original, people(80, seed=1), attackers=["cart"], store={"records": kept},
                          intervals={"method": "wilson", "permutations": 0},
                          drivers={"subgroups": False, "patterns": 0, "attribution": False})  # fmt: skip
    n_at_risk = assessment.summary["n_at_risk"].iloc[0]
    if wanted == "nothing":
        assert assessment.records is None and n_at_risk > 0
    else:
        records = assessment.records.toPandas()
        assert records["at_risk"].all() and len(records) == n_at_risk and 0 < n_at_risk < 80
    assessment.close()

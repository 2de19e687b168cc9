"""The regression against plain NumPy maximum likelihood, and what it says where there is none."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

from rapid_spark import attribution

AGE, SEX, JOB = ("young", "middle", "old"), ("f", "m"), ("a", "b", "c")


def patterns(seed=0, n=6000, effect=1.5, both=0.0):
    """Counts by pattern; being old is the planted driver, with `both` added for old men."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(list(itertools.product(AGE, SEX, JOB)), columns=["age", "sex", "job"])
    odds = -1 + effect * (frame["age"] == "old") + both * ((frame["age"] == "old") & (frame["sex"] == "m"))
    sizes = rng.multinomial(n, rng.dirichlet(np.full(len(frame), 5.0)))
    return frame, sizes, rng.binomial(sizes, 1 / (1 + np.exp(-odds)))


def table(result, kind):
    rows = pd.DataFrame(result.rows)
    return rows[rows["kind"] == kind].set_index("term").astype(float, errors="ignore")


def plain_design(frame, names):
    """0/1 columns from term names."""
    columns = []
    for name in names:
        column = np.ones(len(frame))
        for part in name.split(" : ") if name != attribution.INTERCEPT else []:
            q, level = part.split(" (")[0].split("=")
            column *= frame[q] == level
        columns.append(column)
    return np.array(columns).T


def plain_fit(x, n, hits):
    def loss(beta):
        return np.sum(n * np.logaddexp(0, x @ beta) - hits * (x @ beta))

    beta = minimize(loss, np.zeros(x.shape[1]), method="BFGS", options={"gtol": 1e-6}).x
    p = 1 / (1 + np.exp(-x @ beta))
    return beta, np.linalg.inv((x * (n * p * (1 - p))[:, None]).T @ x)


def test_it_finds_the_planted_driver():
    frame, n, hits = patterns()
    effects = table(attribution.regress(frame, n, hits), "marginal_effect")
    assert effects["estimate"].abs().idxmax().startswith("age=old")
    others = effects[~effects.index.str.startswith("age=old")]
    assert ((others["ci_low"] < 0.03) & (others["ci_high"] > -0.03)).all()
    old = effects[effects.index.str.startswith("age=old")].iloc[0]
    truth = 1 / (1 + np.exp(-0.5)) - 1 / (1 + np.exp(1))
    assert old["ci_low"] < truth < old["ci_high"]


@pytest.mark.parametrize("interactions", [(), ((("age", "old"), ("sex", "m")), (("age", "middle"), ("sex", "m")))])
def test_coefficients_and_errors_equal_plain_maximum_likelihood(interactions):
    frame, n, hits = patterns(both=1.0)
    n, hits = n + 100 * (frame["sex"] == "f"), hits + 20 * (frame["sex"] == "f")  # f is the reference
    found = table(attribution.regress(frame, n, hits, interactions=interactions), "coefficient")
    beta, covariance = plain_fit(plain_design(frame, found.index), n.to_numpy(), hits.to_numpy())
    assert len(found) == 6 + len(interactions)
    np.testing.assert_allclose(found["estimate"], beta, atol=1e-3)
    np.testing.assert_allclose(found["std_error"], np.sqrt(np.diag(covariance)), rtol=1e-3)
    np.testing.assert_allclose(found["ci_high"] - found["estimate"], 1.959964 * found["std_error"], rtol=1e-6)


@pytest.mark.parametrize("interactions", [(), ((("age", "old"), ("sex", "m")),)])
def test_marginal_effects_equal_setting_everybodys_level(interactions):
    frame, n, hits = patterns(both=1.0)
    n, hits = n + 100 * (frame["sex"] == "f"), hits + 20 * (frame["sex"] == "f")
    result = attribution.regress(frame, n, hits, interactions=interactions)
    names = table(result, "coefficient").index
    beta, covariance = plain_fit(plain_design(frame, names), n.to_numpy(), hits.to_numpy())

    def effect(beta, column, level, reference):
        shares = [1 / (1 + np.exp(-plain_design(frame.assign(**{column: v}), names) @ beta)) for v in (level, reference)]
        return n @ (shares[0] - shares[1]) / n.sum()

    effects = table(result, "marginal_effect")
    assert len(effects) == 5
    for term, row in effects.iterrows():
        column, rest = term.split("=")
        where = (column, *rest.removesuffix(")").split(" (vs "))
        slope = np.array([
            (effect(beta + step, *where) - effect(beta - step, *where)) / 2e-5 for step in 1e-5 * np.eye(len(beta))
        ])
        assert row["estimate"] == pytest.approx(effect(beta, *where), abs=1e-4)
        assert row["std_error"] == pytest.approx(np.sqrt(slope @ covariance @ slope), rel=1e-2)


def test_a_level_at_risk_throughout_has_no_figures_and_leaves_the_others_alone():
    frame, n, hits = patterns()
    everyone = (frame["job"] == "b").to_numpy()
    result = attribution.regress(frame, n, np.where(everyone, n, hits))
    without = attribution.regress(frame[~everyone], n[~everyone], hits[~everyone])
    found, expected = table(result, "coefficient"), table(without, "coefficient")
    separated = found.index.str.startswith("job=b")
    assert found[separated]["estimate"].isna().all() and found[separated]["std_error"].isna().all()
    assert any("infinite" in note and "job=b" in note for note in result.notes)
    same = found[~separated]["estimate"].rename(lambda t: t.split(" (")[0])
    reference = expected["estimate"].rename(lambda t: t.split(" (")[0])
    shared = [t for t in same.index if t.startswith(("age", "sex"))]
    np.testing.assert_allclose(same[shared], reference[shared], atol=1e-6)


def test_terms_that_separate_only_together_are_found():
    """No level alone decides, but old men are all at risk and all others are not."""
    frame, n, _ = patterns()
    hits = np.where((frame["age"] == "old") & (frame["sex"] == "m"), n, 0)
    result = attribution.regress(frame, n, hits)
    assert table(result, "coefficient")["estimate"].isna().all()
    assert any("infinite" in note for note in result.notes)


def test_collinear_columns_are_named_and_the_first_is_kept():
    frame, n, hits = patterns()
    result = attribution.regress(frame.assign(years=frame["age"] + "!"), n, hits)
    found, expected = table(result, "coefficient"), table(attribution.regress(frame, n, hits), "coefficient")
    assert found.index[found["estimate"].isna()].str.startswith("years=").all()
    np.testing.assert_allclose(found["estimate"].dropna(), expected["estimate"], atol=1e-6)
    assert any("aliased" in note and "years=" in note for note in result.notes)


@pytest.mark.parametrize("share", [0, 1])
def test_no_regression_where_nobody_or_everybody_is_at_risk(share):
    frame, n, _ = patterns()
    result = attribution.regress(frame, n, share * n)
    assert not result.rows
    assert result.notes == ["no regression: none or all of the records are at risk"]


def test_the_fit_repeats_the_counts_of_its_terms_and_no_others():
    """What coefficients tell is what a table of the same levels tells: pooled levels stay pooled."""
    frame, n, hits = patterns()
    pooled = frame.assign(job=frame["job"].where(frame["job"] == "a", attribution.SUPPRESSED))
    found = table(attribution.regress(pooled, n, hits), "coefficient")
    assert any(attribution.SUPPRESSED in term for term in found.index)
    x = plain_design(pooled, found.index)
    np.testing.assert_allclose(x.T @ (n / (1 + np.exp(-x @ found["estimate"].to_numpy()))), x.T @ hits, rtol=1e-6)
    swapped = hits.copy()
    b, c = (frame["job"] == "b").to_numpy(), (frame["job"] == "c").to_numpy()
    swapped[b], swapped[c] = np.minimum(hits[b] + 1, n[b]), hits[c] - (np.minimum(hits[b] + 1, n[b]) - hits[b])
    again = table(attribution.regress(pooled, n, swapped), "coefficient")
    np.testing.assert_allclose(again["estimate"], found["estimate"], atol=1e-9)


def test_rare_levels_and_too_many_patterns_are_pooled_and_sampled(monkeypatch):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"town": rng.integers(0, 50, 4000).astype(str), "sex": rng.choice(SEX, 4000)})
    n = np.ones(4000)
    hits = rng.random(4000) < 0.3
    result = attribution.regress(frame, n, hits)
    assert sum(term.startswith("town=") for term in table(result, "coefficient").index) == attribution.MAX_LEVELS - 1
    assert any("town" in note for note in result.notes)
    monkeypatch.setattr(attribution, "MAX_DESIGN", 1)
    monkeypatch.setattr(attribution, "MIN_PATTERNS", 20)
    once = attribution.regress(frame, n, hits, seed=3)
    again = attribution.regress(frame.iloc[::-1], n, hits[::-1], seed=3)
    assert any("sample of 20" in note for note in once.notes)
    assert once.rows == again.rows


def test_every_subset_is_fitted_once():
    extra, refits = attribution.refit_sets({"all": ("age", "job", "sex"), "two": ("age", "sex"), "one": ("age",)})
    assert sorted(extra.values()) == [("age", "job"), ("job",), ("job", "sex"), ("sex",)]
    by = {(r.qi_set, r.kind, r.term): r.fitted_as for r in refits}
    assert len(by) == 6 + 4
    assert by["all", "left_out", "job"] == "two"
    assert by["all", "alone", "age"] == by["two", "left_out", "sex"] == "one"
    assert extra[by["all", "left_out", "age"]] == ("job", "sex")


def test_refits_become_rows():
    _, refits = attribution.refit_sets({"all": ("age", "sex")})
    names = {r.fitted_as for r in refits}
    summary = pd.DataFrame([
        {"qi_set": name, "attacker": attacker, "rapid": i / 10, "ci_low": 0.0, "ci_high": 1.0}
        for i, name in enumerate(sorted(names)) for attacker in ("rf", "cart")
    ])
    rows = attribution.refit_rows(refits, summary)
    assert set(rows["qi_set"]) == {"all"}
    assert len(rows) == 2 * 2 * 2
    rates = summary.groupby("qi_set")["rapid"].first()
    for r in refits:
        mine = rows[(rows["term"] == r.term) & (rows["kind"] == r.kind)]
        assert (mine["estimate"] == rates[r.fitted_as]).all()
    assert len(attribution.refit_rows([], summary)) == 0

"""What a synthetic release keeps of the original, and what it must not depend on."""

from __future__ import annotations

import datetime as dt
import itertools
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rapid_spark.simulate import registry
from rapid_spark.synthesizers import (
    CartSynthesizer,
    CommandSynthesizer,
    RowSynthesizer,
    Synthesizer,
    replicates,
)
from rapid_spark.synthesizers.columns import encode
from rapid_spark.synthesizers.features import LevelFeature, Response, make_features


def _mixed(n: int = 240, seed: int = 0) -> pd.DataFrame:
    """One column of every type that an original may have, each dependent on the first."""
    rng = np.random.default_rng(seed)
    group = rng.integers(3, size=n)
    gone = rng.random(n) < 0.2
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(100 * group + rng.integers(90, size=n), unit="D")
    return pd.DataFrame(
        {
            "group": np.array(["a", "b", "c"], dtype=object)[group],
            "number": 10.0 * group + rng.random(n),
            "holes": pd.Series(10.0 * group + rng.random(n)).mask(gone),
            "count": 5 * group + rng.integers(5, size=n),
            "nullable": pd.Series(5 * group, dtype="Int64").mask(gone),
            "huge": 2**60 + group,
            "truth": group == 1,
            "maybe": pd.Series(group == 1, dtype="boolean").mask(gone),
            "text": pd.Series(np.array(["x", "y", "z"], dtype=object)[group], dtype="string").mask(gone),
            "level": pd.Categorical(np.array(["p", "q", "r"])[group], categories=["p", "q", "r", "never"]),
            "rank": pd.Categorical(
                np.array(["low", "mid", "high"])[group], ["low", "mid", "high"], ordered=True
            ),
            "day": days,
            "zoned": days.tz_localize("UTC"),
            "date": np.array([day.date() for day in days], dtype=object),
            "small": group.astype("float32"),
            "nothing": np.full(n, np.nan),
            "same": "k",
            7: group,
        }
    )


# ---- what any release must be


@pytest.mark.parametrize("smoothing", [False, True])
def test_release_has_the_columns_order_and_types_of_the_original(smoothing: bool) -> None:
    original = _mixed()
    release = CartSynthesizer(smoothing=smoothing).fit(original).sample(100, seed=1)
    assert len(release) == 100
    assert release.dtypes.to_dict() == original.dtypes.to_dict() and list(release) == list(original)


def test_values_come_from_the_original_column_by_column() -> None:
    original = _mixed()
    release = CartSynthesizer().fit(original).sample(1000, seed=1)
    for name in original:
        assert release[name].dropna().isin(original[name].dropna()).all(), name


def test_the_same_seed_gives_the_same_release_and_another_seed_another() -> None:
    fitted = CartSynthesizer().fit(_mixed())
    pd.testing.assert_frame_equal(fitted.sample(50, seed=1), fitted.sample(50, seed=1))
    pd.testing.assert_frame_equal(fitted.sample(50, seed=[1, 2]), fitted.sample(50, seed=[1, 2]))
    assert not fitted.sample(50, seed=1).equals(fitted.sample(50, seed=2))
    assert not fitted.sample(50, seed=[1, 1]).equals(fitted.sample(50, seed=[1, 2]))


@pytest.mark.parametrize("options", [{}, {"smoothing": True}, {"proper": True}, {"max_rows": 100}])
def test_the_order_of_the_records_does_not_matter(options: dict[str, Any]) -> None:
    original = _mixed()
    original["zero"] = np.where(np.arange(len(original)) % 2, 0.0, -0.0)
    shuffled = original.sample(frac=1, random_state=4)
    first, second = (
        CartSynthesizer(**options).fit(frame).sample(80, seed=1) for frame in (original, shuffled)
    )
    pd.testing.assert_frame_equal(first, second)
    assert not np.signbit(first["zero"]).any() and not np.signbit(second["zero"]).any()


def test_fit_leaves_the_original_alone() -> None:
    original = _mixed()
    before = original.copy(deep=True)
    CartSynthesizer(smoothing=True).fit(original).sample(10, seed=1)
    pd.testing.assert_frame_equal(original, before)


def test_a_fitted_synthesizer_travels_by_pickle() -> None:
    fitted = CartSynthesizer(smoothing=True).fit(_mixed())
    travelled = pickle.loads(pickle.dumps(fitted))
    pd.testing.assert_frame_equal(travelled.sample(20, seed=1), fitted.sample(20, seed=1))


# ---- what is kept


def test_what_follows_from_the_first_variable_follows_in_the_release() -> None:
    original = _mixed()
    release = CartSynthesizer().fit(original).sample(500, seed=1)
    group = release["group"].map({"a": 0, "b": 1, "c": 2})
    assert (release["number"] // 10 == group).all() and (release["huge"] - 2**60 == group).all()
    assert (release["truth"] == (group == 1)).all() and (release["level"].cat.codes == group).all()
    # a greedy split may put a few records at the edge of a group into a leaf with the next one
    assert ((release["day"] - pd.Timestamp("2020-01-01")).dt.days // 100 == group).mean() > 0.98
    assert (release["holes"].dropna() // 10 == group[release["holes"].notna()]).all()


def test_leaf_values_are_drawn_evenly_with_replacement() -> None:
    original = pd.DataFrame({"x": ["a"] * 10 + ["b"] * 10, "y": [*range(10), *range(100, 110)]})
    release = CartSynthesizer(min_leaf=10, min_split=20).fit(original).sample(20_000, seed=1)
    shares = release.loc[release["x"] == "a", "y"].value_counts(normalize=True)
    assert set(shares.index) == set(range(10))
    assert np.abs(shares - 0.1).max() < 4 * np.sqrt(0.1 * 0.9 / 10_000)


@pytest.mark.parametrize(("min_leaf", "kept"), [(20, True), (21, False)])
def test_min_leaf_bounds_the_records_a_value_is_drawn_from(min_leaf: int, kept: bool) -> None:
    original = pd.DataFrame({"x": ["a"] * 20 + ["b"] * 20, "y": ["c"] * 20 + ["d"] * 20})
    release = CartSynthesizer(min_leaf=min_leaf, min_split=2).fit(original).sample(200, seed=1)
    assert ((release["x"] == "a") == (release["y"] == "c")).all() == kept


def test_visit_order_decides_who_is_resampled_and_who_follows() -> None:
    # one split tells from the parity which numbers are possible, but not from the number its parity
    original = pd.DataFrame({"number": [0, 1, 2, 3] * 25, "parity": [0, 1, 0, 1] * 25})
    forward = CartSynthesizer(max_depth=1).fit(original).sample(400, seed=1)
    backward = CartSynthesizer(max_depth=1, visit_order=["parity"]).fit(original).sample(400, seed=1)
    assert list(backward) == ["number", "parity"]
    assert (forward["number"] % 2 == forward["parity"]).mean() < 0.8
    assert (backward["number"] % 2 == backward["parity"]).all()


def test_missing_numbers_stay_missing_where_they_were() -> None:
    n = 400
    x = np.repeat(["asked", "refused"], n // 2)
    y = np.where(x == "asked", np.arange(n, dtype=float), np.nan)
    y[: n // 4] = np.nan
    release = CartSynthesizer().fit(pd.DataFrame({"x": x, "y": y})).sample(4000, seed=1)
    assert release.loc[release["x"] == "refused", "y"].isna().all()
    assert release.loc[release["x"] == "asked", "y"].isna().mean() == pytest.approx(0.5, abs=0.05)


def test_a_missing_predictor_is_as_good_as_a_value() -> None:
    x = [1.0, 2.0, np.nan] * 40
    original = pd.DataFrame({"x": x, "t": pd.Series(["a", None, "b"] * 40), "y": ["u", "v", "w"] * 40})
    release = CartSynthesizer().fit(original).sample(300, seed=1)
    assert (release["y"] == release["x"].map({1.0: "u", 2.0: "v"}).fillna("w")).all()
    assert (release["t"].isna() == (release["x"] == 2.0)).all()


def test_nan_none_and_na_are_one_missing_value() -> None:
    kinds = pd.DataFrame({"x": pd.Series(["a", None, np.nan, pd.NA] * 10, dtype=object)})
    column, codes = encode(kinds["x"])
    assert column.n_levels == 1 and (codes.reshape(-1, 4) == [0, -1, -1, -1]).all()


def test_dates_kept_as_objects_are_ordered_not_text() -> None:
    days = np.array([dt.date(999 + k, 1, 1) for k in range(60)], dtype=object)
    column, _ = encode(pd.Series(days, name="day"))
    assert column.ordered and column.values.tolist() == sorted(days)


def test_more_levels_than_the_tree_tells_apart_keep_their_values_and_dependence() -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(2, size=4000)
    original = pd.DataFrame(
        {"x": x, "y": [f"{a}-{b}" for a, b in zip(x, rng.zipf(1.4, 4000) % 300, strict=True)]}
    )
    release = CartSynthesizer().fit(original).sample(4000, seed=1)
    assert (release["y"].str[0].astype(int) == release["x"]).mean() > 0.85
    assert release["y"].nunique() > 150


@pytest.mark.parametrize("n_classes", [0, 2])
def test_level_order_holds_the_best_of_all_two_way_splits(n_classes: int) -> None:
    rng = np.random.default_rng(3)
    levels = rng.integers(7, size=300)
    y = (rng.random(300) < levels * 37 % 7 / 7).astype(int)
    values = y if n_classes else y + rng.random(300)
    column, codes = encode(pd.Series(np.array(list("abcdefg"), dtype=object)[levels], name="x"))
    (feature,) = make_features(codes[:, None], [column], [0], Response(values, n_classes))
    assert isinstance(feature, LevelFeature)
    order = feature.table[:7, 0]
    along = min(_two_way_error(values, order[codes] <= cut) for cut in order[order < order.max()])
    subsets = (s for size in (1, 2, 3) for s in itertools.combinations(range(7), size))
    assert along == pytest.approx(min(_two_way_error(values, np.isin(codes, s)) for s in subsets))


def _two_way_error(values: np.ndarray, left: np.ndarray) -> float:
    """Squared error; for two classes it is half the Gini index."""
    return sum(float(((part - part.mean()) ** 2).sum()) for part in (values[left], values[~left]))


@pytest.mark.parametrize("seed", [1, 2])
def test_release_has_the_marginals_and_associations_of_the_original(seed: int) -> None:
    original = registry(4000, 3, seed=seed)
    release = CartSynthesizer().fit(original).sample(4000, seed=seed)
    numbers = ["age", "income", "health_score"]
    ours, theirs = (f[numbers].corr("spearman").to_numpy() for f in (release, original))
    assert np.abs(ours - theirs).max() < 0.05
    for name in ("gender", "education", "disease_status"):
        shares = [frame[name].value_counts(normalize=True) for frame in (release, original)]
        assert shares[0].sub(shares[1]).abs().sum() / 2 < 0.04
        means = [frame.groupby(name)["age"].mean() for frame in (release, original)]
        assert means[0].sub(means[1]).abs().max() < 2


# ---- options


def test_smoothing_moves_numbers_within_their_range_and_keeps_distribution_and_heaps() -> None:
    rng = np.random.default_rng(2)
    original = pd.DataFrame({"x": np.where(rng.random(2000) < 0.4, 0.0, rng.lognormal(3, 1, 2000))})
    plain = CartSynthesizer().fit(original).sample(5000, seed=1)["x"]
    moved = CartSynthesizer(smoothing=True).fit(original).sample(5000, seed=1)["x"]
    positive = moved[moved > 0]
    assert positive.isin(original["x"]).mean() < 0.01
    assert moved.between(0, original["x"].max()).all()
    assert (moved == 0).mean() == pytest.approx((plain == 0).mean(), abs=0.005)
    grid = np.linspace(0.45, 0.99, 20)
    np.testing.assert_allclose(np.quantile(moved, grid), np.quantile(plain, grid), rtol=0.08)


def test_smoothing_moves_a_value_by_no_more_than_min_leaf_records() -> None:
    values = np.sort(np.random.default_rng(1).lognormal(0, 2, 300))
    original = pd.DataFrame({"x": values})
    plain = CartSynthesizer(min_leaf=3).fit(original).sample(2000, seed=1)["x"]
    moved = CartSynthesizer(min_leaf=3, smoothing=True).fit(original).sample(2000, seed=1)["x"]
    place = np.searchsorted(values, plain)
    assert (moved >= values[np.maximum(place - 4, 0)]).all()
    assert (moved <= values[np.minimum(place + 4, 299)]).all()


def test_smoothing_keeps_to_days_cents_and_steps_of_the_original() -> None:
    rng = np.random.default_rng(5)
    original = pd.DataFrame(
        {
            "day": pd.Timestamp("1990-01-01") + pd.to_timedelta(7 * rng.integers(2000, size=300), unit="D"),
            "cents": (rng.random(300) * 1000).round(2),
            "hundreds": 100 * rng.integers(10_000, size=300) + 50,
        }
    )
    release = CartSynthesizer(smoothing=True).fit(original).sample(500, seed=1)
    assert (~release["day"].isin(original["day"])).mean() > 0.5
    assert ((release["day"] - original["day"].min()).dt.days % 7 == 0).all()
    assert (release["day"] == release["day"].dt.normalize()).all()
    assert (release["cents"] == release["cents"].round(2)).all()
    assert (release["hundreds"] % 100 == 50).all()


def test_proper_learns_from_a_bootstrap_of_the_records() -> None:
    original = pd.DataFrame({"x": range(200)})
    seen = CartSynthesizer(proper=True, seed=3).fit(original).sample(20_000, seed=1)["x"].nunique()
    assert 0.55 * 200 < seen < 0.72 * 200  # a bootstrap holds 1 - 1/e of the records
    assert CartSynthesizer(seed=3).fit(original).sample(20_000, seed=1)["x"].nunique() == 200


def test_max_rows_learns_from_a_sample_and_holds_no_other_value() -> None:
    original = pd.DataFrame({"x": range(1000)})
    fitted = CartSynthesizer(max_rows=100, seed=2).fit(original)
    assert fitted.n_fitted == 100 and fitted.sample(20_000, seed=1)["x"].nunique() == 100
    assert CartSynthesizer(max_rows=5000).fit(original).n_fitted == 1000


# ---- replicates


class _Counting:
    """Counts how often it was fitted, and tells so in what it samples."""

    def __init__(self, proper: bool = False) -> None:
        self.proper, self.fits = proper, 0

    def reseeded(self, seed: int) -> _Counting:
        return self

    def fit(self, frame: pd.DataFrame) -> None:
        self.fits += 1

    def sample(self, n: int, seed: Any) -> pd.DataFrame:
        return pd.DataFrame({"fits": [self.fits] * n, "seed": seed})


def test_replicates_differ_and_more_of_them_leave_the_first_as_they_are() -> None:
    three = replicates(CartSynthesizer(), _mixed(), m=3, seed=1)
    two = replicates(CartSynthesizer(), _mixed(), m=2, seed=1, n=240)
    assert [len(copy) for copy in three] == [240] * 3
    assert not three[0].equals(three[1])
    for first, second in zip(three, two, strict=False):
        pd.testing.assert_frame_equal(first, second)


@pytest.mark.parametrize(("proper", "fits"), [(False, [1, 1, 1]), (True, [1, 2, 3])])
def test_only_proper_synthesizers_learn_anew_for_every_replicate(proper: bool, fits: list[int]) -> None:
    copies = replicates(_Counting(proper), pd.DataFrame({"x": [1]}), m=3, seed=1, n=1)
    assert [copy["fits"][0] for copy in copies] == fits
    assert len({copy["seed"][0] for copy in copies}) == 3


def test_proper_replicates_have_bootstraps_of_their_own() -> None:
    copies = replicates(CartSynthesizer(proper=True), pd.DataFrame({"x": range(50)}), m=2, seed=1, n=5000)
    assert set(copies[0]["x"]) != set(copies[1]["x"])


def test_no_replicate_is_refused() -> None:
    with pytest.raises(ValueError, match="m is 0"):
        replicates(CartSynthesizer(), _mixed(), m=0, seed=1)


# ---- faults


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"min_leaf": 0}, "min_leaf is 0"),
        ({"min_split": 1}, "min_split is 1"),
        ({"max_depth": 0}, "max_depth is 0"),
        ({"max_levels": 0}, "max_levels is 0"),
        ({"max_rows": 0}, "max_rows is 0"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        CartSynthesizer(**options)


@pytest.mark.parametrize(
    ("frame", "options", "named"),
    [
        (pd.DataFrame({"x": []}), {}, "0 rows"),
        (pd.DataFrame([[1, 2]], columns=["x", "x"]), {}, "more than one column named x"),
        (pd.DataFrame({"age": [1]}), {"visit_order": ["agee"]}, "'agee'.*did you mean age"),
        (pd.DataFrame({"age": [1]}), {"visit_order": ["age", "age"]}, "twice"),
        (pd.DataFrame({"x": [1.0, np.inf]}), {}, "column 'x' holds infinite"),
        (pd.DataFrame({"x": [[1], [2]]}), {}, "column 'x' holds values that cannot be compared"),
        (pd.DataFrame({"x": [1j]}), {}, "column 'x' holds complex"),
        (pd.DataFrame({"name": list("abcd")}), {"max_levels": 3}, "column 'name' has 4 distinct texts"),
        (pd.DataFrame({"name": list("abcd")}), {"max_levels": 3, "max_rows": 2}, "column 'name' has 4"),
    ],
)
def test_originals_that_cannot_be_learned_are_refused(
    frame: pd.DataFrame, options: dict[str, Any], named: str
) -> None:
    with pytest.raises(ValueError, match=named):
        CartSynthesizer(**options).fit(frame)


@pytest.mark.parametrize(
    "synthesizer", [CartSynthesizer(), RowSynthesizer(), CommandSynthesizer("x {original} {release}")]
)
def test_sampling_before_fitting_or_nothing_is_refused(synthesizer: Synthesizer) -> None:
    with pytest.raises(ValueError, match="fit"):
        synthesizer.sample(5, seed=1)
    synthesizer.fit(pd.DataFrame({"x": [1, 2]}))
    with pytest.raises(ValueError, match="n is 0"):
        synthesizer.sample(0, seed=1)

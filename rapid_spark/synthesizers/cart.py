"""CART synthesis: every variable drawn from the leaves of a tree grown on the variables before it."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

import numpy as np
import pandas as pd

from rapid_spark.synthesizers.columns import MISSING, Column, compact, encode
from rapid_spark.synthesizers.leaves import DonorTree, Growth, grow
from rapid_spark.synthesizers.protocol import Seed
from rapid_spark.synthesizers.smoothing import smooth


class CartSynthesizer:
    """Synthesis by classification and regression trees, variable by variable.

    The first variable in the visit order is resampled. For each next one a tree is grown on those before it;
    a synthetic record falls into one of the leaves and takes the value of a record of the original in it,
    drawn with replacement. Missing values are a level of their own for text and booleans; for numbers and
    dates whether a value is missing is drawn first, from a tree of its own, then the value. The result
    depends on the records and the seed, not on the order of the records.

    Source: Reiter (2005), "Using CART to generate partially synthetic public use microdata", Journal of
    Official Statistics 21; the choice of leaf size follows the appendix of arXiv:2602.09235.

    Example:
        >>> synthesizer = CartSynthesizer(seed=1).fit(original)
        >>> release = synthesizer.sample(len(original), seed=2)
    """

    def __init__(
        self,
        *,
        min_leaf: int = 5,
        min_split: int | None = None,
        max_depth: int | None = None,
        visit_order: Sequence[str] | None = None,
        smoothing: bool = False,
        proper: bool = False,
        max_levels: int = 1000,
        max_rows: int | None = None,
        seed: int = 0,
    ) -> None:
        """Set how to synthesise.

        Args:
            min_leaf: fewest records of the original in a leaf, at least 1.
            min_split: fewest records in a node that may still be split; three times min_leaf by default.
            max_depth: most splits above a leaf; None for no limit.
            visit_order: columns in the order of synthesis; columns not named follow in the order of the
                frame.
            smoothing: move drawn numbers and dates among the min_leaf nearest values of the original on
                either side.
            proper: learn from a bootstrap of the records, so that copies also differ by what was learned.
            max_levels: most distinct values of a text column; more look like a key or free text, which a
                release would repeat word by word.
            max_rows: learn from at most so many records, drawn by the seed; None for all.
            seed: seed of that sample, of the bootstrap, and of the choice between splits that are equally
                good.

        Raises:
            ValueError: if an option is out of range.
        """
        self.min_leaf = _at_least("min_leaf", min_leaf, 1)
        self.min_split = _at_least("min_split", 3 * min_leaf if min_split is None else min_split, 2)
        self.max_depth = None if max_depth is None else _at_least("max_depth", max_depth, 1)
        self.visit_order = None if visit_order is None else list(visit_order)
        self.smoothing = smoothing
        self.proper = proper
        self.max_levels = _at_least("max_levels", max_levels, 1)
        self.max_rows = None if max_rows is None else _at_least("max_rows", max_rows, 1)
        self.seed = _at_least("seed", seed, 0)
        self.n_fitted = 0
        self._columns: list[Column] = []
        self._counts: list[np.ndarray] = []
        self._visits: list[int] = []
        self._presence: dict[int, DonorTree] = {}
        self._trees: dict[int, DonorTree] = {}

    def reseeded(self, seed: int) -> CartSynthesizer:
        """An unfitted synthesizer with the same options and another seed."""
        return CartSynthesizer(
            min_leaf=self.min_leaf,
            min_split=self.min_split,
            max_depth=self.max_depth,
            visit_order=self.visit_order,
            smoothing=self.smoothing,
            proper=self.proper,
            max_levels=self.max_levels,
            max_rows=self.max_rows,
            seed=seed,
        )

    def fit(self, frame: pd.DataFrame) -> CartSynthesizer:
        """Grow the trees.

        Args:
            frame: the original, one row a record, without keys; it is not altered.

        Returns:
            This synthesizer; its attribute `n_fitted` is the number of records it learned from.

        Raises:
            ValueError: if the frame is empty, a column is named twice, the visit order names a column that is
                not there or twice, a text column has more than max_levels values, or values cannot be
                compared.
        """
        if frame.empty:
            raise ValueError(
                f"the original has {len(frame)} rows and {frame.shape[1]} columns; nothing to learn from"
            )
        if frame.columns.has_duplicates:
            twice = sorted({str(name) for name in frame.columns[frame.columns.duplicated()]})
            raise ValueError(f"the original has more than one column named {', '.join(twice)}")
        visits = _visits(list(frame.columns), self.visit_order)
        encoded = [self._checked(*encode(frame[name])) for name in frame.columns]
        rows = self._training_rows(np.stack([codes for _, codes in encoded], axis=1), visits)
        # only what was learned from is kept: values of the other records are not needed, so not held
        learned = [compact(column, rows[:, k]) for k, (column, _) in enumerate(encoded)]
        codes = np.stack([column_codes for _, column_codes in learned], axis=1)
        self._columns = [column for column, _ in learned]
        self._counts = [_counts(codes[:, k], column.n_levels) for k, column in enumerate(self._columns)]
        self.n_fitted, self._visits = len(codes), visits
        self._presence, self._trees = {}, {}
        for step, target in enumerate(visits):
            self._fit_one(target, visits[:step], codes)
        return self

    def _checked(self, column: Column, codes: np.ndarray) -> tuple[Column, np.ndarray]:
        if not column.ordered and column.n_levels > self.max_levels:
            raise ValueError(
                f"column {str(column.name)!r} has {column.n_levels} distinct texts, more than max_levels "
                f"({self.max_levels}); leave out a key or free text, or raise max_levels"
            )
        return column, codes

    def _training_rows(self, codes: np.ndarray, visits: list[int]) -> np.ndarray:
        """Rows in the order of their content, so that the order of the original does not matter."""
        codes = codes[np.lexsort(codes[:, visits[::-1]].T)]
        if self.max_rows is not None and len(codes) > self.max_rows:
            rng = np.random.default_rng([self.seed, 0])
            codes = codes[np.sort(rng.choice(len(codes), size=self.max_rows, replace=False))]
        if self.proper:
            rng = np.random.default_rng([self.seed, 1])
            codes = codes[np.sort(rng.integers(len(codes), size=len(codes)))]
        return codes

    def _fit_one(self, target: int, before: list[int], codes: np.ndarray) -> None:
        how = Growth(self.min_leaf, self.min_split, self.max_depth, self.seed % 2**32)
        values = codes[:, target]
        present = values != MISSING
        if not self._columns[target].ordered or not present.any():
            self._trees[target] = grow(values, "class", codes, self._columns, before, how)
            return
        if not present.all():
            self._presence[target] = grow(
                present.astype(np.int64), "class", codes, self._columns, before, how
            )
        self._trees[target] = grow(values[present], "number", codes[present], self._columns, before, how)

    def sample(self, n: int, seed: Seed) -> pd.DataFrame:
        """Draw synthetic records.

        Args:
            n: number of records, at least 1.
            seed: an integer, or several for the parts of one release: [seed, part].

        Returns:
            n records with the columns of the original, in their order and types.

        Raises:
            ValueError: if n is below 1 or `fit` was not called.
        """
        _at_least("n", n, 1)
        if not self._columns:
            raise ValueError("this synthesizer has learned nothing yet; call fit with the original first")
        rng = np.random.default_rng(seed)
        codes = np.full((n, len(self._columns)), MISSING, dtype=np.int64)
        for target in self._visits:
            drawn = self._trees[target].draw(codes, rng)
            if target in self._presence:
                drawn = np.where(self._presence[target].draw(codes, rng) == 1, drawn, MISSING)
            codes[:, target] = drawn
        series = [
            smooth(column, codes[:, k], self._counts[k], self.min_leaf, rng)
            if self.smoothing
            else column.decode(codes[:, k])
            for k, column in enumerate(self._columns)
        ]
        return pd.concat(series, axis=1)


def _at_least(name: str, value: int, least: int) -> int:
    if value < least:
        raise ValueError(f"{name} is {value}; it must be at least {least}")
    return value


def _counts(codes: np.ndarray, n_levels: int) -> np.ndarray:
    """Records by code, missing ones left out."""
    return np.bincount(codes[codes != MISSING], minlength=n_levels)


def _visits(names: list[str], visit_order: list[str] | None) -> list[int]:
    """Positions of the columns in the order of synthesis."""
    first = visit_order or []
    unknown = [name for name in first if name not in names]
    if unknown:
        near = difflib.get_close_matches(str(unknown[0]), [str(name) for name in names], n=3)
        hint = f"; did you mean {', '.join(near)}?" if near else f"; there are {', '.join(map(str, names))}"
        raise ValueError(f"visit_order names {unknown[0]!r}, which is no column of the original{hint}")
    if len(set(first)) < len(first):
        raise ValueError("visit_order names a column twice")
    return [names.index(name) for name in [*first, *(name for name in names if name not in set(first))]]

"""What a measure of risk should tell apart: a copy of the original, and noise on any release."""

from __future__ import annotations

import numpy as np
import pandas as pd

from rapid_spark.synthesizers.protocol import Seed, Synthesizer


class RowSynthesizer:
    """Whole records of the original, each before any comes twice: a release that protects nobody."""

    def __init__(self) -> None:
        """There is nothing to set."""
        self._frame: pd.DataFrame | None = None

    def fit(self, frame: pd.DataFrame) -> RowSynthesizer:
        """Keep the records.

        Raises:
            ValueError: if the frame has no rows.
        """
        if frame.empty:
            raise ValueError(
                f"the original has {len(frame)} rows and {frame.shape[1]} columns; nothing to draw from"
            )
        self._frame = frame.reset_index(drop=True)
        return self

    def sample(self, n: int, seed: Seed) -> pd.DataFrame:
        """Draw n records; each appears before any appears twice.

        Raises:
            ValueError: if n is below 1 or `fit` was not called.
        """
        if n < 1:
            raise ValueError(f"n is {n}; it must be at least 1")
        if self._frame is None:
            raise ValueError("this synthesizer has learned nothing yet; call fit with the original first")
        rng = np.random.default_rng(seed)
        rounds = [rng.permutation(len(self._frame)) for _ in range(-(-n // len(self._frame)))]
        return self._frame.take(np.concatenate(rounds)[:n]).reset_index(drop=True)


class SwappedSynthesizer:
    """Another synthesizer's records, with a share of every column's values exchanged between records.

    Distributions of single columns stay exactly; dependence between columns shrinks with the share.
    """

    def __init__(self, inner: Synthesizer, share: float) -> None:
        """Set what to swap.

        Args:
            inner: the generator whose records are swapped.
            share: share of a column's values that are exchanged at random among themselves, between 0 and 1.

        Raises:
            ValueError: if the share is out of range.
        """
        if not 0 <= share <= 1:
            raise ValueError(f"share is {share}; it must be between 0 and 1")
        self.inner = inner
        self.share = share

    @property
    def proper(self) -> bool:
        """Whether the inner generator learns anew for every replicate."""
        return bool(getattr(self.inner, "proper", False))

    def reseeded(self, seed: int) -> SwappedSynthesizer:
        """An unfitted one with the inner generator reseeded."""
        return SwappedSynthesizer(self.inner.reseeded(seed), self.share)  # type: ignore[attr-defined]

    def fit(self, frame: pd.DataFrame) -> SwappedSynthesizer:
        """Fit the inner generator."""
        self.inner.fit(frame)
        return self

    def sample(self, n: int, seed: Seed) -> pd.DataFrame:
        """Draw n records of the inner generator and swap; errors are the inner generator's."""
        release = self.inner.sample(n, seed)
        rng = np.random.default_rng([*np.atleast_1d(seed).tolist(), 1])
        swapped = {}
        for k, name in enumerate(release.columns):
            rows = np.arange(n)
            chosen = np.sort(rng.choice(n, size=round(self.share * n), replace=False))
            rows[chosen] = rng.permutation(chosen)
            swapped[name] = release.iloc[:, k].take(rows).reset_index(drop=True)
        return pd.DataFrame(swapped)

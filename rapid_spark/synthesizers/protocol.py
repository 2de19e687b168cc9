"""What every generator of synthetic data offers, and replicates of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pandas as pd

Seed = int | Sequence[int]


@runtime_checkable
class Synthesizer(Protocol):
    """A generator of synthetic records: learn from a frame, then sample from what was learned."""

    def fit(self, frame: pd.DataFrame) -> Any:
        """Learn from the original, which is not altered; what is returned is not used."""
        ...

    def sample(self, n: int, seed: Seed) -> pd.DataFrame:
        """Return n synthetic records with the original's columns; the same seed gives the same records."""
        ...


def replicates(
    synthesizer: Synthesizer, frame: pd.DataFrame, m: int, seed: int, n: int | None = None
) -> list[pd.DataFrame]:
    """Make m synthetic copies of a frame, independent of each other given what was learned.

    A synthesizer with a true attribute `proper` is learned anew for every copy, through its method
    `reseeded(seed)`; any other learns once.

    Args:
        synthesizer: the generator.
        frame: the original.
        m: number of copies, at least 1.
        seed: copy j hangs on this and on j alone, so asking for more copies leaves the first ones as they
            are.
        n: records per copy; as many as the original has by default.

    Returns:
        m frames of n records.

    Raises:
        ValueError: if m is below 1, or as the synthesizer's own methods say.
    """
    if m < 1:
        raise ValueError(f"m is {m}; at least 1 replicate is needed")
    size = len(frame) if n is None else n
    proper = bool(getattr(synthesizer, "proper", False))
    if not proper:
        synthesizer.fit(frame)
    copies = []
    for j in range(1, m + 1):
        own_seed = int(np.random.SeedSequence([seed, j]).generate_state(1)[0])
        if proper:
            synthesizer = synthesizer.reseeded(own_seed)  # type: ignore[attr-defined]
            synthesizer.fit(frame)
        copies.append(synthesizer.sample(size, own_seed))
    return copies

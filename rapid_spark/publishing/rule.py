"""When a count of people may be told, and how it is rounded."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Rule:
    """How figures are protected.

    Attributes:
        min_cell_count: counts of people below it are withheld, 0 apart.
        rounding: counts are rounded to multiples of it; None for exact counts.
    """

    min_cell_count: int = 10
    rounding: int | None = None

    def __post_init__(self) -> None:
        if self.min_cell_count < 2:
            raise ValueError("min_cell_count is at least 2")
        if self.rounding is not None and self.rounding < 2:
            raise ValueError("rounding is at least 2, or None")

    @property
    def limit(self) -> int:
        """Counts above 0 and below this are withheld."""
        return max(self.min_cell_count, self.rounding or 0)

    def count(self, value: float) -> int:
        """A count as it is published: the nearest multiple of the base, halves upwards."""
        if not self.rounding:
            return int(value)
        return int(math.floor(value / self.rounding + 0.5)) * self.rounding

    def share(self, share: float, n: float) -> float:
        """A share of n people as it is published: of rounded counts."""
        if not self.rounding:
            return float(share)
        return float(np.clip(self.count(share * n) / self.count(n), -1.0, 1.0))

    def bound(self, share: float, n: float, up: bool) -> float:
        """An end of an interval as it is published: outwards to a multiple of the base."""
        if not self.rounding:
            return float(share)
        steps = share * n / self.rounding
        steps = math.ceil(steps - 1e-9) if up else math.floor(steps + 1e-9)
        return float(np.clip(steps * self.rounding / self.count(n), -1.0, 1.0))

    def is_small(self, n: float) -> bool:
        """Whether a number of people is too small to be told; none is not."""
        return 0 < n < self.limit

    def hides(self, n: float, hits: float) -> bool:
        """Whether a count at risk must not be told: small, or leaving nobody or few out."""
        return self.is_small(hits) or n - hits < self.limit

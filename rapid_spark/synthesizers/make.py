"""Synthesizers by name, for configurations, and the planned releases of the simulated registries."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

from rapid_spark.simulate import NationalRegistry, PlannedRelease
from rapid_spark.synthesizers.cart import CartSynthesizer
from rapid_spark.synthesizers.command import CommandSynthesizer
from rapid_spark.synthesizers.protocol import Seed, Synthesizer
from rapid_spark.synthesizers.simple import RowSynthesizer, SwappedSynthesizer

KINDS: Mapping[str, Callable[..., Synthesizer]] = {
    "cart": CartSynthesizer,
    "command": CommandSynthesizer,
    "rows": RowSynthesizer,
}


def make_synthesizer(kind: str, *, swapped: float = 0.0, **options: Any) -> Synthesizer:
    """Build a synthesizer from its name and options.

    Args:
        kind: 'cart', 'command' or 'rows'.
        swapped: share of every column's values to exchange between the synthetic records.
        options: as the synthesizer's class takes them.

    Returns:
        An unfitted synthesizer.

    Raises:
        ValueError: if there is no such kind or option, or an option is out of range.
    """
    if kind not in KINDS:
        raise ValueError(f"there is no synthesizer {kind!r}; there are {', '.join(KINDS)}")
    allowed = inspect.signature(KINDS[kind]).parameters
    unknown = sorted(set(options) - set(allowed))
    if unknown:
        raise ValueError(
            f"synthesizer {kind!r} has no option {', '.join(unknown)}; "
            f"it has {', '.join(allowed) or 'none'}, and swapped"
        )
    synthesizer = KINDS[kind](**options)
    return SwappedSynthesizer(synthesizer, swapped) if swapped else synthesizer


def planned_release(registry: NationalRegistry, plan: PlannedRelease, seed: Seed) -> pd.DataFrame:
    """Make a release that a simulated registry plans: as many records as it has, without key."""
    synthesizer = make_synthesizer(plan.synthesizer, **plan.options)
    synthesizer.fit(registry.original.drop(columns=registry.key))
    return synthesizer.sample(len(registry.original), seed)

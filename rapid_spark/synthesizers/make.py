"""Synthesizers by name, for configurations, and the planned releases of the simulated registries."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import yaml

from rapid_spark.simulate import NationalRegistry, PlannedRelease
from rapid_spark.synthesizers.cart import CartSynthesizer
from rapid_spark.synthesizers.command import CommandSynthesizer
from rapid_spark.synthesizers.protocol import Seed, Synthesizer
from rapid_spark.synthesizers.sdv import SdvSynthesizer
from rapid_spark.synthesizers.simple import RowSynthesizer, SwappedSynthesizer

KINDS: Mapping[str, Callable[..., Synthesizer]] = {
    "cart": CartSynthesizer,
    "command": CommandSynthesizer,
    "rows": RowSynthesizer,
    "sdv": SdvSynthesizer,
}
_PAIR = re.compile(r",(?![^\[]*\])")  # a comma outside of brackets


@dataclass(frozen=True)
class Generator:
    """A generator as a user names it: `cart`, `cart:min_leaf=20,smoothing=true`, `sdv:model=CTGAN`, `command:...`.

    Attributes:
        text: as it was written, its name in results.
        kind: a name in `KINDS`, or the import path of a class with `fit` and `sample`.
        options: as the class takes them, and `swapped`.
    """

    text: str
    kind: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Generator:
        """Split NAME[:OPTION=VALUE,...]; values are YAML; all after `command:` is the command.

        Raises:
            ValueError: an option without a value.
        """
        kind, _, rest = text.partition(":")
        if kind == "command":
            return cls(text, kind, {"command": rest})
        options = {}
        for pair in filter(None, (part.strip() for part in _PAIR.split(rest))):
            name, equals, value = pair.partition("=")
            if not equals or not name.strip():
                raise ValueError(f"generator {kind!r}: expected OPTION=VALUE, found {pair!r}")
            try:
                options[name.strip()] = yaml.safe_load(value)
            except yaml.YAMLError:
                raise ValueError(f"generator {kind!r}: the value of {name.strip()} is not valid YAML") from None
        return cls(text, kind, options)

    @property
    def is_code(self) -> bool:
        """Whether making it runs code or a program that the user names."""
        return self.kind == "command" or "." in self.kind

    def make(self, allow_code: bool = False, seed: int | None = None) -> Synthesizer:
        """Build it, unfitted.

        Args:
            allow_code: permit commands and import paths.
            seed: for a generator whose fitting has a seed, unless its options give one.

        Raises:
            ValueError: no such generator or option, an option out of range, or code without `allow_code`.
        """
        if self.is_code and not allow_code:
            raise ValueError(f"generator {self.kind!r} runs a program or code that you name: allow it by --allow-code")
        options = dict(self.options)
        if seed is not None and self.kind == "cart":
            options.setdefault("seed", seed)
        if "." not in self.kind:
            return make_synthesizer(self.kind, **options)
        return _imported(self.kind, options)


def _imported(path: str, options: Mapping[str, Any]) -> Synthesizer:
    module_name, _, name = path.rpartition(".")
    try:
        found = getattr(importlib.import_module(module_name), name, None)
    except ImportError:
        raise ValueError(f"generator {path!r}: there is no module {module_name!r} to import") from None
    if not (inspect.isclass(found) and hasattr(found, "fit") and hasattr(found, "sample")):
        raise ValueError(f"generator {path!r}: {name} is no class with fit(frame) and sample(n, seed)")
    build: Any = found
    try:
        made: Synthesizer = build(**options)
        return made
    except TypeError as error:
        raise ValueError(f"generator {path!r}: {error}") from None


def make_synthesizer(kind: str, *, swapped: float = 0.0, **options: Any) -> Synthesizer:
    """Build a synthesizer from its name and options.

    Args:
        kind: 'cart', 'command', 'rows' or 'sdv'.
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
    open_ended = any(p.kind is p.VAR_KEYWORD for p in allowed.values())
    unknown = [] if open_ended else sorted(set(options) - set(allowed))
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

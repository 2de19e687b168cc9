"""Which surfaces are searched, and how many fits that takes. Pure."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..config import ConfigError, Search

FIRST_GUESS = 0.3  # seconds of a fit and its scoring, before any was measured


@dataclass(frozen=True)
class Surface:
    """An attribute, and the columns an attacker knows.

    Attributes:
        target: the attribute that is guessed.
        known: columns that are known, ordered by name.
        kind: 'alone' (one column), 'set' (of the sizes asked for) or 'rest' (all others).
    """

    target: str
    known: tuple[str, ...]
    kind: str

    @property
    def name(self) -> str:
        """Name of the quasi-identifier set."""
        return " + ".join(self.known)


def count(targets: Sequence[str], pool: Sequence[str], search: Search) -> int:
    """How many surfaces there would be, without making them."""
    total = 0
    for target in targets:
        n = len([c for c in pool if c != target])
        sizes = {s for s in search.sizes if s <= n}
        whole = search.all_attributes and n > 0 and n not in sizes
        alone = n if search.alone and n > 1 and 1 not in sizes else 0
        total += sum(math.comb(n, s) for s in sizes) + whole + alone
    return total


def surfaces(targets: Sequence[str], pool: Sequence[str], search: Search) -> list[Surface]:
    """Every surface, each once: all others, sets of the sizes asked for, each column alone.

    Args:
        targets: attributes that are guessed.
        pool: columns an attacker may know; never the target itself.
        search: sizes and limits.

    Raises:
        ConfigError: none is left, or they are more than `search.max_fits`.
    """
    n = count(targets, pool, search)
    if not n:
        raise ConfigError(f"qi_sets.sizes: there is no set of {_or(search.sizes)} columns beside an attribute")
    if n > search.max_fits:
        raise ConfigError(
            f"the search would take {n:,} fits, more than search.max_fits ({search.max_fits:,}): leave out sizes, name "
            "fewer columns under qi_sets.from, or raise search.max_fits"
        )
    return list(itertools.chain.from_iterable(_of(target, sorted(set(pool) - {target}), search) for target in targets))


def _of(target: str, others: list[str], search: Search) -> Iterable[Surface]:
    sizes = sorted({s for s in search.sizes if s <= len(others)})
    if search.all_attributes and others and len(others) not in sizes:
        yield Surface(target, tuple(others), "rest" if len(others) > 1 else "alone")
    for size in sizes:
        for known in itertools.combinations(others, size):
            yield Surface(target, known, "rest" if search.all_attributes and size == len(others) else "set")
    if search.alone and len(others) > 1 and 1 not in sizes:
        yield from (Surface(target, (known,), "alone") for known in others)


def estimate(n: int, seconds: float, cores: int) -> str:
    """How long so many fits take, in words.

    Args:
        n: fits.
        seconds: of one of them.
        cores: that share them.
    """
    total = n * seconds / max(1, cores)
    return "under a minute" if total < 45 else f"about {max(1, round(total / 60))} minutes"


def _or(sizes: Sequence[int]) -> str:
    return " or ".join(map(str, sizes)) or "any number of"

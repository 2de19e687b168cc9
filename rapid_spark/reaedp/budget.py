"""The quantities of a guarantee, as frozen values that refuse what is not one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

Adjacency = Literal["add_remove", "replace"]
ADJACENCIES: tuple[str, ...] = get_args(Adjacency)


@dataclass(frozen=True)
class Guarantee:
    """What a released object promises: (epsilon, delta)-differential privacy, for one change of the data.

    Attributes:
        epsilon: privacy loss, greater than 0.
        delta: in [0, 1); 0 is pure differential privacy.
        adjacency: 'add_remove' (one unit more or less) or 'replace' (same number, one unit changed).
        mechanism: what drew the noise, for example 'discrete_laplace'.
        sensitivity: how far the exact value can move, in the norm of the mechanism (L1 for Laplace, L2 for
            Gaussian).
        protected_unit: whose change is covered: 'record' where each row stands alone, otherwise for example
            'person'.
        rho: the zero-concentrated loss where the mechanism has one (it implies epsilon and delta), else None.
    """

    epsilon: float
    delta: float
    adjacency: Adjacency
    mechanism: str
    sensitivity: float
    protected_unit: str = "record"
    rho: float | None = None

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_delta(self.delta)
        check_adjacency(self.adjacency)
        if not (math.isfinite(self.sensitivity) and self.sensitivity >= 0):
            raise ValueError(f"sensitivity is {self.sensitivity}; it must be a finite number of at least 0")
        if self.rho is not None and not (math.isfinite(self.rho) and self.rho > 0):
            raise ValueError(f"rho is {self.rho}; it must be a finite number above 0, or left out")
        for name in ("mechanism", "protected_unit"):
            if not getattr(self, name):
                raise ValueError(f"{name} is empty; a guarantee names it")

    def under_replace(self) -> Guarantee:
        """The same release seen under `replace`: (2 epsilon, (1 + e^epsilon) delta), and 4 rho.

        Changing one record is removing it and adding another, two steps (group privacy; Bun and Steinke 2016,
        Proposition 1.9, for rho).

        Raises:
            ValueError: if delta would reach 1, so that nothing is promised.
        """
        if self.adjacency == "replace":
            return self
        epsilon, delta = two_steps(self.epsilon, self.delta)
        rho = None if self.rho is None else 4 * self.rho
        return replace(self, epsilon=epsilon, delta=delta, rho=rho, adjacency="replace")

    def as_dict(self) -> dict[str, Any]:
        """The fields by name, for tables and JSON."""
        return asdict(self)


def two_steps(epsilon: float, delta: float) -> tuple[float, float]:
    """What (epsilon, delta) under add_remove says of two changes: (2 epsilon, (1 + e^epsilon) delta)."""
    doubled = (1 + math.exp(epsilon)) * delta if delta else 0.0
    if doubled >= 1:
        raise ValueError(
            f"(epsilon {epsilon}, delta {delta}) under add_remove promises nothing under replace: "
            f"(1 + e^epsilon) delta is {doubled:.3g}; use a smaller epsilon or delta"
        )
    return 2 * epsilon, doubled


def check_epsilon(epsilon: float, name: str = "epsilon") -> float:
    """Return a privacy loss as it came, or raise ValueError unless it is finite and above 0."""
    if not (_is_number(epsilon) and math.isfinite(epsilon) and epsilon > 0):
        raise ValueError(f"{name} is {epsilon!r}; it must be a finite number above 0")
    return epsilon


def check_delta(delta: float, name: str = "delta") -> float:
    """Return a delta as it came, or raise ValueError unless it lies in [0, 1)."""
    if not (_is_number(delta) and 0 <= delta < 1):
        raise ValueError(f"{name} is {delta!r}; it must be at least 0 and below 1")
    return delta


def check_adjacency(adjacency: str) -> str:
    """Return the adjacency as it came, or raise ValueError naming both that exist."""
    if adjacency not in ADJACENCIES:
        raise ValueError(f"adjacency is {adjacency!r}; it must be one of {', '.join(ADJACENCIES)}")
    return adjacency


def check_integer(value: int, least: int, name: str) -> int:
    """Return a whole number as an int, or raise ValueError unless it is one of at least `least`."""
    if isinstance(value, bool) or not _is_number(value) or not math.isfinite(value) or value != int(value):
        raise ValueError(f"{name} is {value!r}; it must be a whole number")
    if value < least:
        raise ValueError(f"{name} is {value}; it must be at least {least}")
    return int(value)


def delta_rule(delta: float, n_declared: int) -> str | None:
    """Hold delta against the declared number of persons.

    With delta = 1 / n a mechanism may publish one whole record and still keep its promise.

    Returns:
        A warning when delta is above n_declared^-1.1, otherwise None.

    Raises:
        ValueError: if delta is at least 1 / n_declared.
    """
    n = check_integer(n_declared, 1, "n_declared")
    if check_delta(delta) >= 1 / n:
        raise ValueError(
            f"delta is {delta:g}, and n_declared is {n}; delta must be below 1 / n_declared = {1 / n:.3g}"
        )
    if delta > n**-1.1:
        return f"delta {delta:g} is close to 1 / n_declared; below n_declared^-1.1 = {n**-1.1:.3g} is advised"
    return None


def disjoint_parts(
    parts: Sequence[tuple[float, float]], adjacency: Adjacency, *, key_stays: bool = False
) -> tuple[float, float]:
    """The (epsilon, delta) of releases from disjoint parts, split by a keyed hash of the person's key.

    Under add_remove a person is in one part: the maximum. Under replace that holds only where a changed
    record keeps its key (`key_stays`); otherwise the old record may lie in one part and the new in another:
    the largest sum over two.

    Args:
        parts: one (epsilon, delta) per part, all under `adjacency`.
        adjacency: of the parts and of the result.
        key_stays: replace means that values change and the key does not.
    """
    check_adjacency(adjacency)
    if not parts:
        raise ValueError("no part is given; a split needs at least one")
    epsilons, deltas = (
        sorted((e for e, _ in parts), reverse=True),
        sorted((d for _, d in parts), reverse=True),
    )
    used = 1 if adjacency == "add_remove" or key_stays else 2
    return math.fsum(epsilons[:used]), math.fsum(deltas[:used])


def _is_number(value: object) -> bool:
    return hasattr(value, "__float__") and not isinstance(value, (bool, str))

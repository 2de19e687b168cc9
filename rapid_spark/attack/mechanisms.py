"""Mechanisms to attack: the right ones as releases use them, and deliberately broken ones that a test must catch.

Noise of the right ones comes from `reaedp.noise`, which takes no seed. `continuous_laplace` and the broken ones serve
attacks only: they must not protect anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..config import ConfigError, suggest
from ..reaedp import noise
from ..reaedp.budget import Adjacency, check_adjacency, check_delta, check_epsilon, two_steps

Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Mechanism:
    """One way to make a noisy histogram.

    Attributes:
        name: as commands name it.
        draw: noisy releases of the counts in each row of a matrix (plays x bins), each row drawn anew.
        loss: log P(x) as a function of the noise x, up to a constant, under the law that the mechanism claims.
        law: 'discrete_laplace', 'laplace' or 'discrete_gaussian', the law that it claims.
        scale: of that law, in records (Laplace scale, or sigma).
        broken: why its claim is false; None for a right one.
    """

    name: str
    draw: Callable[[Counts], Floats]
    loss: Callable[[Floats], Floats]
    law: str
    scale: float
    broken: str | None = None


def l1_sensitivity(adjacency: Adjacency) -> int:
    """Of a histogram: 1 under add_remove, 2 under replace."""
    return 2 if check_adjacency(adjacency) == "replace" else 1


def laplace(epsilon: float, delta: float, adjacency: Adjacency) -> Mechanism:
    """Discrete Laplace noise of scale sensitivity / epsilon, as `dp histogram` draws it."""
    scale = noise.laplace_scale(l1_sensitivity(adjacency), epsilon)
    return Mechanism("laplace", lambda c: _flat(noise.add_laplace, c, scale), _laplace_loss(scale),
                     "discrete_laplace", scale)  # fmt: skip


def gaussian(epsilon: float, delta: float, adjacency: Adjacency) -> Mechanism:
    """Discrete Gaussian noise that is (epsilon, delta)-private through zCDP, as `dp histogram` draws it."""
    if not delta > 0:
        raise ConfigError("--delta: Gaussian noise needs one above 0, e.g. 1e-6")
    sigma, _ = noise.gaussian_scale_for(math.sqrt(l1_sensitivity(adjacency)), epsilon, delta)
    return Mechanism("gaussian", lambda c: _flat(noise.add_gaussian, c, sigma),
                     lambda x: -(x**2) / (2 * sigma**2), "discrete_gaussian", sigma)  # fmt: skip


def continuous_laplace(epsilon: float, delta: float, adjacency: Adjacency) -> Mechanism:
    """Laplace noise on the real line, to compare with the published optimum; for attacks only."""
    scale = l1_sensitivity(adjacency) / epsilon
    return Mechanism("continuous_laplace", lambda c: c + _float_laplace(c.shape, scale), _laplace_loss(scale),
                     "laplace", scale)  # fmt: skip


def half_noise(epsilon: float, delta: float, adjacency: Adjacency) -> Mechanism:
    """Claims epsilon, draws half of its noise."""
    right = laplace(epsilon, delta, adjacency)
    return Mechanism("half_noise", laplace(2 * epsilon, delta, adjacency).draw, right.loss, right.law, right.scale,
                     "half of the noise that epsilon needs")  # fmt: skip


def float_noise(epsilon: float, delta: float, adjacency: Adjacency) -> Mechanism:
    """NumPy's floating-point Laplace noise: its low bits tell an empty bin from one with a record (Mironov 2012)."""
    scale = l1_sensitivity(adjacency) / epsilon
    return Mechanism("float_noise", lambda c: c + np.random.default_rng().laplace(0.0, scale, c.shape),
                     _laplace_loss(scale), "laplace", scale, "floating-point noise, whose low bits leak")  # fmt: skip


def reused_noise(epsilon: float, delta: float, adjacency: Adjacency) -> Mechanism:
    """One draw of noise for all bins of a release."""
    right = laplace(epsilon, delta, adjacency)

    def draw(counts: Counts) -> Floats:
        return counts + _flat(noise.add_laplace, np.zeros((len(counts), 1), dtype=np.int64), right.scale)

    return Mechanism("reused_noise", draw, right.loss, right.law, right.scale, "one draw of noise for all bins")


def sensitivity_one(epsilon: float, delta: float, adjacency: Adjacency) -> Mechanism:
    """Noise for a sensitivity of 1 whatever the adjacency: half of what replace needs, as the REAEDP paper adds it."""
    scale = noise.laplace_scale(1, epsilon)
    broken = None if adjacency == "add_remove" else "noise for sensitivity 1, replacing a record moves two bins"
    return Mechanism("sensitivity_one", lambda c: _flat(noise.add_laplace, c, scale), _laplace_loss(scale),
                     "discrete_laplace", scale, broken)  # fmt: skip


MECHANISMS: dict[str, Callable[[float, float, Adjacency], Mechanism]] = {
    "laplace": laplace, "gaussian": gaussian, "continuous_laplace": continuous_laplace, "half_noise": half_noise,
    "float_noise": float_noise, "reused_noise": reused_noise, "sensitivity_one": sensitivity_one,
}  # fmt: skip


def mechanism(name: str, epsilon: float, delta: float, adjacency: Adjacency) -> Mechanism:
    """The mechanism of this name with its noise for a claim.

    Raises:
        ConfigError: no such mechanism, or a claim that is none.
    """
    if name not in MECHANISMS:
        raise ConfigError(f"--mechanism: {name!r} is not known.{suggest(name, MECHANISMS)} Known: {', '.join(MECHANISMS)}")
    try:
        check_epsilon(epsilon), check_delta(delta), check_adjacency(adjacency)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    return MECHANISMS[name](epsilon, delta, adjacency)


def from_path(path: str, epsilon: float, delta: float, adjacency: Adjacency) -> Mechanism:
    """A mechanism of the user's: `module:function`, which takes a vector of counts and returns a noisy one of its length.

    Likelihood ratios are those of Laplace noise that fits the claim, whatever the function draws.

    Raises:
        ConfigError: nothing of that name can be imported, or it returns something else.
    """
    import importlib

    module, _, name = path.partition(":")
    try:
        function = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"--mechanism {path}: cannot be imported ({type(error).__name__})") from None

    def draw(counts: Counts) -> Floats:
        rows = [np.asarray(function(row.copy()), dtype=np.float64) for row in counts]
        if any(row.shape != (counts.shape[1],) for row in rows):
            raise ConfigError(f"--mechanism {path}: a vector of {counts.shape[1]} noisy counts is needed for as many counts")
        return np.vstack(rows)

    scale = l1_sensitivity(adjacency) / epsilon
    return Mechanism(path, draw, _laplace_loss(scale), "unknown", scale, "its law is not known")


@dataclass(frozen=True)
class Pair:
    """Two neighbouring histograms: `out` without the record (or before its change), `inside` with it.

    Attributes:
        adjacency: 'add_remove' where `inside` has one record more, 'replace' where one moved to another bin.
    """

    out: Counts
    inside: Counts

    def __post_init__(self) -> None:
        change = self.inside - self.out
        moved = sorted(int(v) for v in change[change != 0])
        if moved not in ([1], [-1], [-1, 1]):
            raise ValueError("the two histograms are no neighbours: they must differ by one record")
        if min(int(self.out.min()), int(self.inside.min())) < 0:
            raise ValueError("a histogram has a bin with fewer than 0 records")

    @property
    def adjacency(self) -> Adjacency:
        """Which change leads from one to the other."""
        return "replace" if int(self.inside.sum()) == int(self.out.sum()) else "add_remove"

    @property
    def changed(self) -> npt.NDArray[np.intp]:
        """The bins in which they differ."""
        return np.flatnonzero(self.inside != self.out)


def neighbours(counts: Counts, adjacency: Adjacency) -> Pair:
    """Real neighbours of a histogram that are hardest to hide: the record's bin is the emptiest, it comes from the fullest.

    Raises:
        ConfigError: fewer than two bins, or no record that could be moved.
    """
    out = np.asarray(counts, dtype=np.int64)
    if out.ndim != 1 or len(out) < 2:
        raise ConfigError(f"a histogram of {out.size} bins cannot be attacked: two or more are needed")
    inside, rarest, fullest = out.copy(), int(np.argmin(out)), int(np.argmax(out))
    inside[rarest] += 1
    if check_adjacency(adjacency) == "replace":
        fullest = fullest if fullest != rarest else (rarest + 1) % len(out)
        if out[fullest] < 1:
            raise ConfigError("a histogram without records has none that could be replaced")
        inside[fullest] -= 1
    return Pair(out, inside)


def claim_for(pair: Adjacency, epsilon: float, delta: float, claimed: Adjacency) -> tuple[float, float]:
    """The claim that holds for a pair: a replaced record under an add_remove claim is two steps.

    Returns:
        (epsilon, delta), or (2 epsilon, (1 + e^epsilon) delta) for two steps.

    Raises:
        ConfigError: a replace claim says nothing about a record that was added or removed.
    """
    if pair == claimed:
        return epsilon, delta
    if claimed == "replace":
        raise ConfigError("a claim under replace says nothing about a record that is added: attack a replaced record")
    return two_steps(epsilon, delta)


def _flat(add: Callable[[Counts, float], Counts], counts: Counts, scale: float) -> Floats:
    flat = np.ascontiguousarray(counts, dtype=np.int64).reshape(-1)
    return add(flat, scale).reshape(counts.shape).astype(np.float64)


def _laplace_loss(scale: float) -> Callable[[Floats], Floats]:
    return lambda x: -np.abs(x) / scale


def _float_laplace(shape: tuple[int, ...], scale: float) -> Floats:
    u, v = noise.uniform(math.prod(shape)), noise.uniform(math.prod(shape))
    return scale * (np.log1p(-u) - np.log1p(-v)).reshape(shape)

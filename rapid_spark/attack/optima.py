"""The best accuracy that any attacker on a noisy histogram can have, and the bound that a claim sets."""

from __future__ import annotations

import math

from ..reaedp.budget import Adjacency
from .mechanisms import Mechanism


def claim_bound(epsilon: float, delta: float = 0.0) -> float:
    """Balanced accuracy that (epsilon, delta) allows for the attacked pair: (e^eps + delta) / (1 + e^eps)."""
    return 1.0 / (1.0 + math.exp(-epsilon)) + delta / (1.0 + math.exp(epsilon))


def optimum(mechanism: Mechanism, pair: Adjacency) -> float | None:
    """Balanced accuracy of the likelihood-ratio attacker, exactly, for noise of the law that the mechanism claims.

    One bin moves by 1 (add_remove) or two do (replace), under independent noise:
    discrete Laplace of scale b: 1 / (1 + e^(-1/b)) for both (for two bins half of the plays are ties);
    Laplace of scale b: 1 - e^(-1/(2b)) / 2, and 1 - e^(-1/b) (1/2 + 1/(4b)) for two bins (by integration);
    discrete Gaussian: summed over the whole numbers; near Phi(Delta_2 / (2 sigma)).

    Returns:
        The optimum; None for a broken mechanism, which does not draw from its law.
    """
    b, two = mechanism.scale, pair == "replace"
    if mechanism.broken:
        return None
    if mechanism.law == "discrete_laplace":
        return 1.0 / (1.0 + math.exp(-1.0 / b))
    if mechanism.law == "laplace":
        return 1.0 - math.exp(-1.0 / b) * (0.5 + 0.25 / b) if two else 1.0 - math.exp(-0.5 / b) / 2.0
    return _gaussian(b, two)


def _gaussian(sigma: float, two: bool) -> float:
    """Half of 1 plus the total variation between discrete Gaussian noise and the same moved by 1 in one or two bins."""
    import numpy as np

    x = np.arange(-math.ceil(12 * sigma) - 2, math.ceil(12 * sigma) + 3, dtype=float)
    p = np.exp(-0.5 * (x / sigma) ** 2)
    q = np.exp(-0.5 * ((x - 1) / sigma) ** 2)
    p, q = p / p.sum(), q / q.sum()
    if not two:
        return float(0.5 + np.abs(p - q).sum() / 4)
    # One bin gains, the other loses: the difference of the two noises moves by 2, and nothing else tells them apart.
    return float(0.5 + np.abs(np.outer(p, q) - np.outer(q, p)).sum() / 4)

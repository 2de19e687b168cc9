"""A private functional mean in the Wiener kernel's space.

Hall, Rinaldo, Wasserman 2013; Mirshani, Reimherr, Slavkovic 2019; as REAEDP applies them.

Curves on [0, 1] with L2 norm at most `norm_limit`. Kernel K(s, t) = min(s, t), eigenvalues lambda_j = 1/((j -
1/2)^2 pi^2), eigenfunctions v_j(t) = sqrt 2 sin((j - 1/2) pi t). The penalised mean has coefficients
lambda_j/(lambda_j + rho) of the mean curve's; the noise is a Gaussian process with covariance sigma^2 K, that
is sigma sqrt(lambda_j) in coefficient j. Replace adjacency: n is public, one curve changes.

A curve on a grid is the broken line through its points, so norms and coefficients below are exact, not sums
over a grid.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd

from rapid_spark.reaedp import noise
from rapid_spark.reaedp.accounting import analytic_sigma
from rapid_spark.reaedp.budget import Guarantee, check_integer, delta_rule

Array = npt.NDArray[np.float64]
Bound = Literal["exact", "paper"]
COMPONENTS = 100
# Sums of doubles over n curves may be off by a few parts in 1e16 for each addition; far inside this share.
ROUNDING = 1e-9


def eigenvalues(components: int) -> Array:
    """lambda_1, .., lambda_J of the Wiener kernel."""
    return np.asarray(1 / ((np.arange(1, components + 1) - 0.5) * math.pi) ** 2)


def eigenfunctions(t: npt.ArrayLike, components: int) -> Array:
    """v_j(t), one row per j and one column per t."""
    frequency = (np.arange(1, components + 1) - 0.5) * math.pi
    return np.asarray(math.sqrt(2) * np.sin(np.outer(frequency, np.asarray(t, dtype=np.float64))))


def mass(grid: npt.ArrayLike) -> Array:
    """The squared L2 norm of the broken line x on a grid is sum m[0] x_k^2 + 2 sum m[1] x_k x_(k+1).

    Beyond the first and the last point the curve keeps its value there.

    Returns:
        Two rows of one number per grid point; the last of the second row is 0.
    """
    points = check_grid(grid)
    gaps = np.diff(points)
    diagonal = np.zeros(len(points))
    diagonal[:-1] += gaps / 3
    diagonal[1:] += gaps / 3
    diagonal[0] += points[0]
    diagonal[-1] += 1 - points[-1]
    return np.stack([diagonal, np.append(gaps / 6, 0.0)])


def coefficients(values: npt.ArrayLike, grid: npt.ArrayLike, components: int = COMPONENTS) -> Array:
    """<x, v_j> for j = 1..J of broken lines on a grid, exactly.

    By parts: with w = (j - 1/2) pi, the integral of x sqrt 2 sin(w t) is sqrt 2 (x(0) / w + the sum over
    pieces of slope times (sin(w b) - sin(w a)) / w^2), since cos(w) = 0.

    Args:
        values: one curve, or one per row.
        grid: its points.
        components: J.
    """
    points, x = check_grid(grid), np.asarray(values, dtype=np.float64)
    frequency = (np.arange(1, components + 1) - 0.5) * math.pi
    slopes = np.diff(x, axis=-1) / np.diff(points)
    steps = np.diff(np.sin(np.outer(frequency, points)), axis=1) / frequency[:, None] ** 2
    return np.asarray(math.sqrt(2) * (x[..., :1] / frequency + slopes @ steps.T))


def clip(values: npt.ArrayLike, grid: npt.ArrayLike, norm_limit: float) -> Array:
    """Curves, one per row, scaled down to an L2 norm of at most `norm_limit`."""
    x, m = np.asarray(values, dtype=np.float64), mass(grid)
    squared = (m[0] * x**2).sum(axis=-1) + 2 * (m[1, :-1] * x[..., :-1] * x[..., 1:]).sum(axis=-1)
    norms = np.sqrt(np.maximum(squared, 0))
    return np.asarray(
        x * np.where(norms > norm_limit, norm_limit / np.where(norms > 0, norms, 1), 1.0)[..., None]
    )


def sensitivity(
    n: int, norm_limit: float, rho: float, bound: Bound = "exact", components: int | None = None
) -> float:
    """How far one changed curve moves the penalised mean, in the norm of the kernel's space.

    exact: (2 norm_limit / n) sqrt(max_j lambda_j / (lambda_j + rho)^2), at most norm_limit / (n sqrt rho).
    paper: the sum over j in place of the maximum; in closed form tanh(u) u^3 / 4 + u^4 / (4 cosh(u)^2), u =
    1/sqrt(rho). Valid, but it costs 3.2 times the noise at rho 0.01 and 10 times at 1e-4.

    Args:
        n: number of curves, public.
        norm_limit: largest L2 norm of a curve.
        rho: the penalty, above 0.
        bound: 'exact' or 'paper'.
        components: J, to take the maximum over j <= J; all j by default.
    """
    check_integer(n, 1, "n")
    _check_positive(norm_limit, "norm_limit")
    _check_positive(rho, "rho")
    if bound not in get_args(Bound):
        raise ValueError(f"bound is {bound!r}; it must be one of {', '.join(get_args(Bound))}")
    u = 1 / math.sqrt(rho)
    if bound == "paper":
        inverse_cosh = 2 * math.exp(-u) / (1 + math.exp(-2 * u))
        factor = math.tanh(u) * u**3 / 4 + u**4 * inverse_cosh**2 / 4
    else:
        # lambda/(lambda + rho)^2 rises to lambda = rho and then falls: the largest is next to (j - 1/2) pi =
        # u.
        near = max(1, math.floor(u / math.pi + 0.5))
        j = np.array([near, near + 1], dtype=float)
        if components is not None:
            j = np.minimum(j, components)
        values = 1 / ((j - 0.5) * math.pi) ** 2
        factor = float((values / (values + rho) ** 2).max())
    return 2 * norm_limit / n * math.sqrt(factor)


@dataclass(frozen=True)
class CurveRelease:
    """A released mean curve.

    Attributes:
        coefficients: noisy coefficients of v_1, .., v_J.
        rho: the penalty.
        norm_limit: largest L2 norm of a curve.
        n: number of curves, public.
        sigma: standard deviation of the noise in the kernel's norm.
        noise_error: expected squared L2 error by the noise, sigma^2 sum lambda_j.
        guarantee: under replace.
    """

    coefficients: Array
    rho: float
    norm_limit: float
    n: int
    sigma: float
    noise_error: float
    guarantee: Guarantee

    def at(self, t: npt.ArrayLike) -> Array:
        """The released curve at points of [0, 1]."""
        return np.asarray(self.coefficients @ eigenfunctions(t, len(self.coefficients)))

    def band(self, t: npt.ArrayLike) -> Array:
        """The standard deviation of the noise at points of [0, 1]; it says nothing of bias and sampling."""
        v = eigenfunctions(t, len(self.coefficients))
        return np.asarray(self.sigma * np.sqrt(eigenvalues(len(self.coefficients)) @ v**2))

    def frame(self, t: npt.ArrayLike) -> pd.DataFrame:
        """t, mean, noise_sd, and the guarantee, one row per point."""
        promise = self.guarantee.as_dict()
        return pd.DataFrame({"t": np.asarray(t, float), "mean": self.at(t), "noise_sd": self.band(t)}).assign(
            penalty=self.rho,
            norm_limit=self.norm_limit,
            n=self.n,
            **{k: v for k, v in promise.items() if k != "rho"},
        )


def release(
    curve_sum: npt.ArrayLike,
    grid: npt.ArrayLike,
    n: int,
    norm_limit: float,
    rho: float,
    epsilon: float,
    delta: float,
    *,
    bound: Bound = "exact",
    components: int = COMPONENTS,
    protected_unit: str = "record",
) -> CurveRelease:
    """Draw the private mean, once.

    sigma comes from the analytic Gaussian mechanism on the coefficients over sqrt(lambda_j), where the noise
    is the same in every direction. OpenDP samples on the finest grid of floating-point numbers.

    Args:
        curve_sum: the sum of the clipped curves at the grid's points.
        grid: increasing points of [0, 1].
        n: number of curves, the declared constant; the count must equal it, which the caller checks.
        norm_limit: to which the curves were clipped.
        rho: the penalty; it changes the error, never the guarantee.
        epsilon: above 0.
        delta: above 0 and below 1 / n.
        bound: see `sensitivity`.
        components: J; further coefficients are 0, without noise.
        protected_unit: what one curve stands for.
    """
    delta_rule(delta, n), check_integer(components, 1, "components")
    total = np.asarray(curve_sum, dtype=np.float64)
    if total.shape != check_grid(grid).shape or not np.isfinite(total).all():
        raise ValueError(
            f"the sum of curves is not {len(np.asarray(grid))} finite numbers, one per point of the grid"
        )
    moved = sensitivity(n, norm_limit, rho, bound, components)
    sigma = analytic_sigma(epsilon, delta, moved * (1 + ROUNDING))
    values = eigenvalues(components)
    exact = coefficients(total / n, grid, components) * values / (values + rho)
    noisy = np.sqrt(values) * noise.add_gaussian_to_values(exact / np.sqrt(values), sigma)
    guarantee = Guarantee(epsilon, delta, "replace", "gaussian_process", moved, protected_unit)
    return CurveRelease(noisy, rho, norm_limit, n, sigma, float(sigma**2 * values.sum()), guarantee)


def error_split(
    mean: npt.ArrayLike, variance: npt.ArrayLike, n: int, rho: float, sigma: float, beyond: float = 0.0
) -> dict[str, float]:
    """Expected squared L2 error of the released mean, in its parts; it reads the data, so it is for
    evaluations only.

    bias = sum (rho/(lambda_j + rho))^2 mean_j^2 (and `beyond`, the squared mean outside the first J),
    sampling = sum (lambda_j/(lambda_j + rho))^2 variance_j / n, noise = sigma^2 sum lambda_j.

    Args:
        mean: coefficients of the true mean.
        variance: of each coefficient among curves.
        n: number of curves.
        rho: the penalty.
        sigma: of the noise.
        beyond: squared norm of the mean outside the first J.
    """
    mu, var = np.asarray(mean, dtype=np.float64), np.asarray(variance, dtype=np.float64)
    values = eigenvalues(len(mu))
    bias = float(((rho / (values + rho)) ** 2 * mu**2).sum()) + beyond
    sampling = float(((values / (values + rho)) ** 2 * var).sum()) / n
    noise_part = float(sigma**2 * values.sum())
    return {"bias": bias, "sampling": sampling, "noise": noise_part, "total": bias + sampling + noise_part}


def check_grid(grid: npt.ArrayLike) -> Array:
    """The grid as an array, or ValueError unless it is at least two increasing points of [0, 1]."""
    points = np.asarray(grid, dtype=np.float64)
    if (
        points.ndim != 1
        or len(points) < 2
        or not (np.diff(points) > 0).all()
        or points[0] < 0
        or points[-1] > 1
    ):
        raise ValueError(
            "the grid is not at least two increasing points of [0, 1]; rescale the times of the curves"
        )
    return points


def _check_positive(value: float, name: str) -> None:
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{name} is {value}; it must be a finite number above 0")

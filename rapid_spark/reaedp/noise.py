"""Noise from OpenDP's exact samplers, and exact draws from the operating system: nothing here has a seed."""

from __future__ import annotations

import math
import os
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from rapid_spark.reaedp.accounting import zcdp_rho
from rapid_spark.reaedp.budget import check_epsilon

Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def laplace_scale(sensitivity: int, epsilon: float) -> float:
    """The scale of discrete Laplace noise for integer counts whose L1 sensitivity is `sensitivity`.

    sensitivity / epsilon, raised by single floating-point steps until OpenDP's own bound is within epsilon.
    """
    check_epsilon(epsilon)
    scale = sensitivity / epsilon
    while _laplace(1, scale).map(sensitivity) > epsilon:
        scale = math.nextafter(scale, math.inf)
    return scale


def gaussian_scale(sensitivity: float, rho: float) -> float:
    """The sigma of discrete Gaussian noise for integer counts of L2 sensitivity `sensitivity`, at rho-zCDP.

    sensitivity / sqrt(2 rho) (Bun and Steinke 2016; Canonne, Kamath, Steinke 2020), checked as in
    `laplace_scale`.
    """
    sigma = sensitivity / math.sqrt(2 * rho)
    while _gaussian(1, sigma).map(sensitivity) > rho:
        sigma = math.nextafter(sigma, math.inf)
    return sigma


def gaussian_scale_for(sensitivity: float, epsilon: float, delta: float) -> tuple[float, float]:
    """(sigma, rho) of discrete Gaussian noise that is (epsilon, delta)-private through zCDP."""
    rho = zcdp_rho(epsilon, delta)
    return gaussian_scale(sensitivity, rho), rho


def add_laplace(counts: Counts, scale: float) -> Counts:
    """The counts with independent discrete Laplace noise: P(x) proportional to exp(-|x| / scale)."""
    checked = _checked(counts)
    return np.asarray(_laplace(len(checked), scale)(checked), dtype=np.int64) if len(checked) else checked


def add_gaussian(counts: Counts, sigma: float) -> Counts:
    """The counts with independent discrete Gaussian noise: P(x) proportional to exp(-x^2 / (2 sigma^2))."""
    checked = _checked(counts)
    return np.asarray(_gaussian(len(checked), sigma)(checked), dtype=np.int64) if len(checked) else checked


def add_laplace_to_value(value: float, sensitivity: float, epsilon: float) -> tuple[float, float]:
    """A real number with Laplace noise, and the scale that was used.

    OpenDP samples on the finest grid of floating-point numbers (its k is left unset), so no low bits leak.
    """
    dp = _opendp()
    space = (dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float))
    scale = sensitivity / check_epsilon(epsilon)
    while (measurement := dp.m.make_laplace(*space, scale=scale)).map(sensitivity) > epsilon:
        scale = math.nextafter(scale, math.inf)
    return float(measurement(float(value))), scale


def add_gaussian_to_values(values: Floats, sigma: float) -> Floats:
    """Real numbers with independent Gaussian noise of standard deviation `sigma` each."""
    dp = _opendp()
    checked = np.ascontiguousarray(values, dtype=np.float64)
    if not np.isfinite(checked).all():
        raise ValueError("a value to be released is not finite")
    space = (dp.vector_domain(dp.atom_domain(T=float, nan=False), size=len(checked)), dp.l2_distance(T=float))
    return np.asarray(dp.m.make_gaussian(*space, scale=sigma)(checked), dtype=np.float64)


def laplace_tail(x: int, scale: float) -> float:
    """P(L >= x) of discrete Laplace noise L for whole x >= 1: exp(-x/scale) / (1 + exp(-1/scale))."""
    return math.exp(-x / scale) / (1 + math.exp(-1 / scale))


def laplace_variance(scale: float) -> float:
    """The variance of discrete Laplace noise: 2 q / (1 - q)^2 with q = exp(-1 / scale)."""
    return 2 * math.exp(-1 / scale) / math.expm1(-1 / scale) ** 2


def laplace_error(scale: float) -> float:
    """The expected absolute value of discrete Laplace noise: 2 q / (1 - q^2) with q = exp(-1 / scale)."""
    return -2 * math.exp(-1 / scale) / math.expm1(-2 / scale)


def gaussian_moments(sigma: float) -> tuple[float, float]:
    """(expected absolute value, variance) of discrete Gaussian noise, by its law."""
    if sigma > 50:  # Equal to the continuous law's moments to the last digit (Poisson summation).
        return sigma * math.sqrt(2 / math.pi), sigma**2
    x = np.arange(1, math.ceil(40 * sigma) + 2, dtype=float)
    p = np.exp(-0.5 * (x / sigma) ** 2)
    total = 1 + 2 * p.sum()
    return float(2 * (x * p).sum() / total), float(2 * (x * x * p).sum() / total)


def uniform_below(bounds: Counts) -> Counts:
    """For each bound b a whole number from 0 to b - 1, all equally likely, from the operating system's
    generator.

    Args:
        bounds: whole numbers from 1 to 2^62.
    """
    limit = np.asarray(bounds, dtype=np.uint64)
    if len(limit) and (limit.min() < 1 or limit.max() > 2**62):
        raise ValueError("a bound is outside 1 to 2^62")
    words = _words(len(limit))
    # 2^64 mod b: words below it would make small remainders more likely; those are drawn again.
    unfair = (np.uint64(2**64 - 1) - limit + np.uint64(1)) % limit
    while (again := np.flatnonzero(words < unfair)).size:
        words[again] = _words(again.size)
    return (words % limit).astype(np.int64)


def uniform(size: int) -> Floats:
    """Numbers in [0, 1), multiples of 2^-53, from the operating system's generator."""
    return (_words(size) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def approximate(size: int, scale: float, *, gaussian: bool) -> Floats:
    """Numbers with about the law of the noise, for error estimates only: they must not protect anything."""
    from scipy.special import ndtri

    u = uniform(size) + 2.0**-54
    if gaussian:
        return np.asarray(np.rint(scale * ndtri(u)))
    # The difference of two geometric numbers is discrete Laplace.
    v = uniform(size) + 2.0**-54
    return np.asarray(np.floor(-scale * np.log(u)) - np.floor(-scale * np.log(v)))


def _words(size: int) -> npt.NDArray[np.uint64]:
    return np.frombuffer(os.urandom(8 * size), dtype=np.uint64).copy()


def _checked(counts: Counts) -> Counts:
    array = np.asarray(counts)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise ValueError(
            f"counts are {array.dtype} of {array.ndim} dimensions; one vector of whole numbers is needed"
        )
    return np.ascontiguousarray(array, dtype=np.int64)  # OpenDP refuses any other width.


def _laplace(size: int, scale: float) -> Any:
    dp = _opendp()
    return dp.m.make_laplace(
        dp.vector_domain(dp.atom_domain(T=dp.i64), size=size), dp.l1_distance(T=dp.i64), scale=scale
    )


def _gaussian(size: int, sigma: float) -> Any:
    dp = _opendp()
    return dp.m.make_gaussian(
        dp.vector_domain(dp.atom_domain(T=dp.i64), size=size), dp.l2_distance(T=float), scale=sigma
    )


def _opendp() -> ModuleType:
    try:
        import opendp.prelude as dp
    except ImportError as error:
        raise ImportError(
            "opendp is not installed; releases need the extra: pip install 'rapid-spark[release]'"
        ) from error
    dp.enable_features("contrib")
    return dp

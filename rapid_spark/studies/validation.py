"""Cross-validation of synthesizers: what one gives away of people it has not seen, and of those it has.

Source: rapid.md, "A synthesizer, not one release"; interval: Nadeau and Bengio (2003), "Inference for the
generalization error", Machine Learning 52, with n_test / n_train = 1 / (k - 1).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import SparkSession
from scipy import stats

from rapid_spark.config import Attacker, ConfigError
from rapid_spark.synthesizers import Generator

from . import local
from .spread import Failure, spread


@dataclass(frozen=True)
class Plan:
    """What is cross-validated.

    Attributes:
        generators: compared on the same folds.
        question: quasi-identifiers, sensitive attribute, how missing values are taken.
        attacker: fitted on every release.
        threshold: tau, or the tolerance of a continuous attribute.
        folds: k.
        seed: of folds, generators and attackers.
        confidence: of the interval.
        allow_code: permit generators and attackers that are code.
    """

    generators: tuple[Generator, ...]
    question: local.Question
    attacker: Attacker
    threshold: float
    folds: int = 5
    seed: int = 20260
    confidence: float = 0.95
    allow_code: bool = False


def assign_folds(target: pd.Series, folds: int, seed: int, stratified: bool) -> np.ndarray:
    """A fold 0..k-1 for every record, as even as can be, within every class of the target where stratified.

    Args:
        target: sensitive attribute; missing values are a stratum of their own.
        folds: k, at least 2.
        seed: of the shuffle.
        stratified: deal each class out by itself.

    Raises:
        ConfigError: fewer records than folds, or fewer than 2 folds.
    """
    n = len(target)
    if not 2 <= folds <= n:
        raise ConfigError(f"--folds is {folds}; allowed are 2 to the number of records, {n:,}")
    order = np.random.default_rng(seed).permutation(n)
    if stratified:
        codes = pd.factorize(target, sort=True)[0]
        order = order[np.argsort(codes[order], kind="stable")]
    found = np.empty(n, dtype=np.int64)
    # dealt out in turn, so that folds differ by one record at most, and by one of each class
    found[order] = np.arange(n) % folds
    return found


def run(spark: SparkSession, frame: pd.DataFrame, plan: Plan) -> list[dict[str, Any]]:
    """Every generator on every fold, spread over Spark.

    Args:
        spark: session.
        frame: the original, one row a record, in the columns to synthesise; quasi-identifiers and target among them.
        plan: what is compared.

    Returns:
        One summary per generator (see `summarise`), in the order of the plan.

    Raises:
        ConfigError: the folds cannot be made.
    """
    stratified = plan.question.target_type == local.CATEGORICAL
    fold = assign_folds(frame[plan.question.target], plan.folds, plan.seed, stratified)
    tasks = [
        {"generator": g, "fold": j} for g in range(len(plan.generators)) for j in range(plan.folds)
    ]  # fmt: skip
    found = spread(spark, one_fold, tasks, {"frame": frame, "fold": fold, "plan": plan})
    summaries = []
    for g, generator in enumerate(plan.generators):
        rows = [
            _row(j, result) for task, result in zip(tasks, found, strict=True)
            if task["generator"] == g for j in [task["fold"]]
        ]  # fmt: skip
        summaries.append(summarise(generator.text, rows, plan))
    return summaries


def one_fold(task: Mapping[str, Any], shared: Mapping[str, Any]) -> dict[str, Any]:
    """Make a release from all folds but one, attack it, score the fold held out and the folds used. Runs on a worker.

    Both are scored with the baselines of the whole original: one attack, one rule.
    """
    started = time.perf_counter()
    plan: Plan = shared["plan"]
    frame, held = shared["frame"], shared["fold"] == task["fold"]
    question = plan.question
    rule = local.Rule.of(local.plain(frame, question), question)
    used, apart = frame[~held].reset_index(drop=True), frame[held].reset_index(drop=True)
    seeds = np.random.SeedSequence([plan.seed, int(task["fold"])]).generate_state(3)
    synthesizer = plan.generators[int(task["generator"])].make(plan.allow_code, int(seeds[0]))
    synthesizer.fit(used)
    release = local.plain(synthesizer.sample(len(used), int(seeds[1])), question)
    fitted = local.fit(
        release, question, plan.attacker.name, plan.attacker.parameters, int(seeds[2]) % 2**31, plan.allow_code
    )
    out = local.rates(fitted, local.plain(apart, question), question, rule, [plan.threshold])
    inside = local.rates(fitted, local.plain(used, question), question, rule, [plan.threshold])
    return {
        "n": out.n, "n_used": inside.n, "rapid": out.rates[0], "rapid_used": inside.rates[0], "quality": out.quality,
        "seconds": time.perf_counter() - started,
    }  # fmt: skip


def _row(fold: int, result: Any) -> dict[str, Any]:
    if isinstance(result, Failure):
        nothing = dict.fromkeys(("n", "n_used", "rapid", "rapid_used", "difference", "quality", "seconds"))
        return {"fold": fold + 1, **nothing, "status": "failed", "reason": str(result), "is_input": result.is_input}
    known = result["rapid"] is not None and result["rapid_used"] is not None
    return {
        "fold": fold + 1, **result, "difference": result["rapid_used"] - result["rapid"] if known else None,
        "status": "ok" if known else "undefined", "reason": None if known else "no record has a defined outcome",
    }  # fmt: skip


def summarise(generator: str, folds: Sequence[Mapping[str, Any]], plan: Plan) -> dict[str, Any]:
    """Mean, standard deviation (divisor k - 1), corrected standard error and t interval over the folds.

    The interval needs every fold: with some missing the mean is of those there, and there is no interval.

    Returns:
        `generator`, `folds`, `mean`, `sd`, `se`, `ci_low`, `ci_high` of the folds held out; `mean_used` of the folds
        used; `difference` of the two with `difference_low`, `difference_high`; `status`.
    """
    good = [f for f in folds if f["status"] == "ok"]
    whole = len(good) == len(folds)
    out = interval([f["rapid"] for f in good], plan.confidence, whole)
    apart = interval([f["difference"] for f in good], plan.confidence, whole)
    clipped = {k: None if out[k] is None else min(1.0, max(0.0, out[k])) for k in ("ci_low", "ci_high")}
    return {
        "generator": generator,
        "folds": [{k: v for k, v in f.items() if k != "is_input"} for f in folds],
        **out,
        **clipped,
        "mean_used": float(np.mean([f["rapid_used"] for f in good])) if good else None,
        "difference": apart["mean"],
        "difference_low": apart["ci_low"],
        "difference_high": apart["ci_high"],
        "status": "ok" if whole else ("partial" if good else "failed"),
        "input_at_fault": any(f.get("is_input") for f in folds),
    }


def interval(values: Sequence[float], confidence: float, whole: bool = True) -> dict[str, Any]:
    """Mean, sd, se and t_{k-1} interval with variance s^2 (1/k + 1/(k - 1)), since folds share their training records.

    Args:
        values: one figure per fold.
        confidence: e.g. 0.95.
        whole: all folds are there; without them there is no interval.
    """
    k = len(values)
    mean = float(np.mean(values)) if k else None
    if mean is None or k < 2:
        return {"mean": mean, "sd": None, "se": None, "ci_low": None, "ci_high": None}
    sd = float(np.std(values, ddof=1))
    se = sd * float(np.sqrt(1 / k + 1 / (k - 1)))
    reach = float(stats.t.ppf((1 + confidence) / 2, k - 1)) * se
    low, high = (mean - reach, mean + reach) if whole else (None, None)
    return {"mean": mean, "sd": sd, "se": se, "ci_low": low, "ci_high": high}

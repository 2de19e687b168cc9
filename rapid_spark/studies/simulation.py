"""The paper's four simulation studies on the package's own simulator, synthesizer and attackers.

Source: Templ, Thees, Müller (2026), "Risk of Attribute Prediction-Induced Disclosure", arXiv:2602.09235. One task is
one simulated registry of 1000 people, its CART release, and every attacker on it; tasks are spread over Spark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pyspark.sql import SparkSession

from rapid_spark.attackers import ATTACKERS, CATEGORICAL
from rapid_spark.config import ConfigError, suggest
from rapid_spark.simulate import registry
from rapid_spark.synthesizers import CartSynthesizer

from . import local, published
from .published import Published
from .spread import Failure, spread

PEOPLE = 1000
ORDER = ("gender", "age", "education", "income", "health_score", "disease_status")
TARGET = "disease_status"
KINDS = {
    "gender": "categorical", "age": "numeric", "education": "categorical", "income": "numeric",
    "health_score": "numeric",
}  # fmt: skip
ALL, ALONE, LEFT_OUT = "all", "alone", "left_out"
CURVE = tuple(i / 20 for i in range(20))
SEED = 20260


@dataclass(frozen=True)
class Study:
    """What one of the studies varies, and how often it is repeated.

    Attributes:
        number: 1 to 4.
        title: in a few words.
        kappas: strengths of dependence.
        taus: thresholds.
        attackers: names.
        repetitions: simulated registries at each kappa.
        singly: also each quasi-identifier alone, and all but one.
    """

    number: int
    title: str
    kappas: tuple[float, ...]
    taus: tuple[float, ...]
    attackers: tuple[str, ...]
    repetitions: int
    singly: bool = False


STUDIES = {
    study.number: study
    for study in (
        Study(
            1, "RAPID against the strength of dependence", (0, 1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 75, 100), (0.3,),
            ("rf",), 10,
        ),
        Study(2, "RAPID against its threshold", (0, 5, 10, 20, 50), (0.2, 0.3, 0.4, 0.5), ("rf",), 10),
        Study(3, "each quasi-identifier alone and left out", (10,), (0.3,), ("rf",), 10, singly=True),
        Study(4, "attackers compared", (10,), (0.3,), ("cart", "gbm", "rf"), 50),
    )
}  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """What a study came to.

    Attributes:
        study: as it was run.
        results: a row per kappa, tau, variable and attacker, with the published figure beside ours.
        rates: of every repetition, by (kappa, variable, setting, attacker); shape (repetitions, thresholds).
        thresholds: of the columns of `rates`: those of the study, then those of a curve.
        failed: tasks that broke, in words.
    """

    study: Study
    results: list[dict[str, Any]]
    rates: Mapping[tuple[float, str, str, str], np.ndarray]
    thresholds: tuple[float, ...]
    failed: list[str] = field(default_factory=list)

    def curve(self, kappa: float, attacker: str) -> list[tuple[float, float]]:
        """Mean RAPID over the repetitions at every threshold, all quasi-identifiers known."""
        means = self.rates[kappa, ALL, ALL, attacker].mean(axis=0)
        return sorted(dict(zip(self.thresholds, map(float, means), strict=True)).items())


def plan(
    number: int, repetitions: int | None = None, kappas: Sequence[float] = (), taus: Sequence[float] = ()
) -> Study:
    """One of the studies, narrowed or repeated otherwise.

    Args:
        number: 1 to 4.
        repetitions: simulated registries at each kappa; the paper's number when left out.
        kappas: in place of the study's own.
        taus: in place of the study's own.

    Raises:
        ConfigError: no such study, or a value out of range.
    """
    if number not in STUDIES:
        raise ConfigError(f"there is no study {number}; there are {', '.join(map(str, STUDIES))}")
    study = STUDIES[number]
    repetitions = study.repetitions if repetitions is None else repetitions
    if repetitions < 1:
        raise ConfigError(f"--repetitions is {repetitions}; at least 1 is needed, and 2 for a standard deviation")
    for kappa in kappas:
        if not (np.isfinite(kappa) and kappa >= 0):
            raise ConfigError(f"--kappa is {kappa}; it must be a finite number of at least 0")
    for tau in taus:
        if not 0 <= tau < 1:
            raise ConfigError(f"--tau is {tau}; allowed is 0 <= tau < 1")
    return Study(
        number, study.title, tuple(sorted({float(k) for k in kappas or study.kappas})),
        tuple(sorted({float(t) for t in taus or study.taus})), study.attackers, repetitions, study.singly,
    )  # fmt: skip


def run(
    spark: SparkSession, study: Study, seed: int = SEED, parameters: Mapping[str, Mapping[str, Any]] | None = None
) -> Outcome:
    """Run a study: its tasks over Spark, their results beside the published ones.

    Args:
        spark: session.
        study: as `plan` gives it.
        seed: the registry of a kappa and repetition hangs on it alone, so that studies share their registries.
        parameters: of the attackers, by name; their defaults where left out.

    Raises:
        ConfigError: parameters for an attacker that there is not.
    """
    for name in parameters or {}:
        if name not in ATTACKERS:
            raise ConfigError(f"there is no attacker {name!r}.{suggest(name, ATTACKERS)}")
    thresholds = tuple(dict.fromkeys([*study.taus, *CURVE]))
    settings = _settings(study)
    tasks = [
        {"kappa": kappa, "seed": seed, "repetition": repetition}
        for repetition in range(study.repetitions) for kappa in study.kappas
    ]  # fmt: skip
    shared = {
        "attackers": study.attackers, "settings": settings, "thresholds": thresholds,
        "parameters": {k: dict(v) for k, v in (parameters or {}).items()},
    }  # fmt: skip
    found = spread(spark, simulate, tasks, shared)
    rates: dict[tuple[float, str, str, str], list[Any]] = {}
    accuracy: dict[tuple[float, str, str, str], list[float]] = {}
    for task, rows in zip(tasks, found, strict=True):
        for row in [] if isinstance(rows, Failure) else rows:
            key = (float(task["kappa"]), row["variable"], row["setting"], row["attacker"])  # type: ignore[arg-type]
            rates.setdefault(key, []).append(row["rates"])
            accuracy.setdefault(key, []).append(row["accuracy"])
    failed = [
        f"kappa {task['kappa']:g}, repetition {task['repetition']}: {rows}"
        for task, rows in zip(tasks, found, strict=True) if isinstance(rows, Failure)
    ]  # fmt: skip
    arrays = {key: np.array(value, dtype=float) for key, value in rates.items()}
    results = [
        _row(study, key, tau, values[:, thresholds.index(tau)], np.array(accuracy[key]))
        for key, values in sorted(arrays.items(), key=lambda item: _place(item[0], settings, study))
        for tau in study.taus
    ]
    return Outcome(study, results, arrays, thresholds, failed)


def simulate(task: Mapping[str, Any], shared: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One repetition: registry, release, and every attacker with every set of quasi-identifiers. Runs on a worker."""
    kappa = float(task["kappa"])
    own = np.random.SeedSequence([int(task["seed"]), round(kappa * 1000), int(task["repetition"])])
    people_seed, fit_seed, draw_seed, attack_seed = (int(s) for s in own.generate_state(4))
    original = registry(PEOPLE, kappa, people_seed)
    release = CartSynthesizer(visit_order=ORDER, seed=fit_seed).fit(original).sample(PEOPLE, draw_seed)
    whole = local.Question(KINDS, TARGET, CATEGORICAL)
    rows = []
    for variable, setting, names in shared["settings"]:
        question = whole.only(names)
        published_rows, people = local.plain(release, question), local.plain(original, question)
        rule = local.Rule.of(people, question)
        for attacker in shared["attackers"]:
            chosen = shared["parameters"].get(attacker, {})
            fitted = local.fit(published_rows, question, attacker, chosen, attack_seed % 2**31)
            got = local.rates(fitted, people, question, rule, shared["thresholds"])
            rows.append({
                "variable": variable, "setting": setting, "attacker": attacker, "rates": got.rates,
                "accuracy": got.quality,
            })  # fmt: skip
    return rows


def _settings(study: Study) -> list[tuple[str, str, tuple[str, ...]]]:
    """(variable, how it is used, quasi-identifiers known) in the order of the tables."""
    every = tuple(KINDS)
    settings: list[tuple[str, str, tuple[str, ...]]] = [(ALL, ALL, every)]
    if study.singly:
        names = list(dict.fromkeys(name for name, _ in published.STUDY_3))
        settings += [(name, ALONE, (name,)) for name in names]
        settings += [(name, LEFT_OUT, tuple(q for q in every if q != name)) for name in names]
    return settings


def _place(key: tuple[float, str, str, str], settings: list[Any], study: Study) -> tuple[float, int, int]:
    kappa, variable, setting, attacker = key
    at = next(i for i, s in enumerate(settings) if s[:2] == (variable, setting))
    return kappa, at, study.attackers.index(attacker)


def known(study: Study, kappa: float, tau: float, variable: str, setting: str, attacker: str) -> Published | None:
    """The paper's figure for one row, where it gives one."""
    if study.number == 1:
        return published.STUDY_1.get(kappa) if tau == 0.3 else None
    if study.number == 2:
        return published.STUDY_2.get((kappa, tau))
    if (kappa, tau) != (10, 0.3):
        return None
    return published.STUDY_3.get((variable, setting)) if study.number == 3 else published.STUDY_4.get(attacker)


def _row(
    study: Study, key: tuple[float, str, str, str], tau: float, values: np.ndarray, accuracy: np.ndarray
) -> dict[str, Any]:
    kappa, variable, setting, attacker = key
    paper = known(study, kappa, tau, variable, setting, attacker)
    mean = float(values.mean())
    return {
        "kappa": kappa,
        "tau": tau,
        **({"variable": variable, "setting": setting} if study.singly else {}),
        "attacker": attacker,
        "repetitions": len(values),
        "mean": mean,
        "sd": float(values.std(ddof=1)) if len(values) > 1 else None,
        "values": [float(v) for v in values],
        "published_mean": paper.mean if paper else None,
        "published_sd": paper.sd if paper else None,
        "published_about": bool(paper and paper.about),
        "difference": mean - paper.mean if paper else None,
        "accuracy": float(accuracy.mean()),
        "published_accuracy": paper.accuracy if paper else None,
    }

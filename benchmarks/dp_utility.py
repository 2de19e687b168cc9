"""Utility and RAPID against epsilon, for three ways to release Adult with differential privacy, in one run.

    python benchmarks/dp_utility.py original.csv.gz --output results [--epsilons 0.1 0.5 1 2 4] [--records 4000]

Four fifths of the file are the population that is released from; the rest is for testing. Each release is drawn by
`rapid-spark dp` into a store of its own with its ledger, and evaluated by the main job. Written: dp_utility.csv and
dp_utility.png. All figures on the data are computed from the original without noise (custodian only); Adult is public.
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rapid_spark import run, session
from rapid_spark.config import ConfigError, parse
from rapid_spark.reaedp import ledger
from rapid_spark.reaedp.binning import bins_of
from rapid_spark.reaedp.filter import Budget
from rapid_spark.releases import desk
from rapid_spark.releases.histogram import HistogramRelease
from rapid_spark.releases.settings import ReleaseConfig, load_release
from rapid_spark.releases.storage import DeltaLedger
from rapid_spark.releases.synthetic import SyntheticRelease
from rapid_spark.store import Store

N_DECLARED = 26_000  # a constant about the size of the population
TARGET, POSITIVE = "income", ">50K"
QUASI_IDENTIFIERS = ["age", "education_num", "marital_status", "sex", "hours_per_week", "workclass"]
DOMAINS: dict[str, Any] = {
    "age": {"edges": {"first": 15, "last": 95, "width": 10}, "integer": True},
    "workclass": {
        "levels": ["Private", "Self-emp-not-inc", "Self-emp-inc", "Federal-gov", "Local-gov", "State-gov", "?"],
        "missing": True,
    },
    "education_num": {"edges": [1, 5, 9, 10, 11, 13, 14, 16], "integer": True},
    "marital_status": {
        "levels": [
            "Married-civ-spouse", "Divorced", "Never-married", "Separated", "Widowed", "Married-spouse-absent",
            "Married-AF-spouse",
        ]  # fmt: skip
    },
    "sex": {"levels": ["Male", "Female"]},
    "hours_per_week": {"edges": [0, 20, 35, 41, 51, 100], "integer": True},
    TARGET: {"levels": ["<=50K", POSITIVE]},
}
MECHANISMS = ("histogram", "F", "seedless")
MEASURES = {
    "marginal_tv": "marginal total variation",
    "association_error": "pairwise association error",
    "tstr_auc": "TSTR AUC for income",
    "rapid_max": "RAPID of income, largest attacker",
}


def main() -> None:
    """Release, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("original", type=Path)
    parser.add_argument("--output", type=Path, default=Path("."))
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.1, 0.5, 1, 2, 4])
    parser.add_argument("--records", type=int, default=4000, help="of the histogram and the seedless release")
    parser.add_argument("--records-of-f", type=int, default=300)
    parser.add_argument("--trees", type=int, default=100)
    a = parser.parse_args()
    a.output.mkdir(parents=True, exist_ok=True)
    table = pd.read_csv(a.original, keep_default_na=False)
    test = table.sample(frac=0.2, random_state=1)
    people = table.drop(test.index)
    people.to_csv(a.output / "population.csv", index=False)
    spark = session.get()
    store = a.output / "store"
    storage = DeltaLedger(Store.open(spark, str(store)))
    spent = len(MECHANISMS) * sum(a.epsilons)
    ledger.set_budget(storage, Budget("adult", spent, 1e-5, "add_remove", N_DECLARED))
    rows = [measures(people, people, test) | {"mechanism": "original", "epsilon": None, "delta": None, "reason": None}]
    for epsilon, mechanism in itertools.product(a.epsilons, MECHANISMS):
        rows.append(one(a, mechanism, epsilon, people, test))
        print(rows[-1], flush=True)
    result = pd.DataFrame(rows)
    result.to_csv(a.output / "dp_utility.csv", index=False)
    print(result.to_string(index=False))
    print(plot(result, a.output / "dp_utility.png"))
    risk = Store.open(spark, str(store)).query("select * from dp_release_risk order by epsilon, mechanism")
    print(risk.toPandas().to_string(index=False))


def one(a: argparse.Namespace, mechanism: str, epsilon: float, people: pd.DataFrame, test: pd.DataFrame) -> dict[str, Any]:
    """One release, its utility and its RAPID; a plan that cannot be carried is a row with the reason."""
    release_id = f"{mechanism}-{epsilon:g}"
    row: dict[str, Any] = {"mechanism": mechanism, "epsilon": epsilon, "reason": None}
    try:
        planned, config = plan(a, mechanism, epsilon, release_id)
        released = desk.release(planned, config, release_id)
    except ConfigError as error:
        return row | {"reason": str(error)}
    name = "records"
    row["delta"] = planned.guarantee.delta
    row |= measures(released.frames[name], people, test)
    evaluation = parse(
        {
            "registry": "adult", "release_id": release_id, "original": str(a.output / "population.csv"),
            "release": [released.output[name]], "columns": {"key": "record_id"},
            "quasi_identifiers": QUASI_IDENTIFIERS, "sensitive_attributes": [f"{TARGET}:categorical"],
            "attackers": [{"name": "rf", "parameters": {"n_estimators": a.trees}}, "logit"],
            "intervals": {"permutations": 0}, "store": {"location": str(a.output / "store"), "detail": "none"},
            "tracking": {"enabled": False},
        }
    )  # fmt: skip
    summary = run.evaluate(evaluation, f"rapid-{release_id}").summary
    return row | {"rapid_max": summary["rapid"].max(), "rapid_chance": summary["baseline_rate"].max()}


def plan(a: argparse.Namespace, mechanism: str, epsilon: float, release_id: str) -> tuple[Any, ReleaseConfig]:
    """The settings of a release, and its plan."""
    told: dict[str, Any] = {
        "dataset": "adult", "release_id": release_id, "original": str(a.output / "population.csv"), "public": True,
        "n_declared": N_DECLARED, "adjacency": "add_remove", "epsilon": epsilon, "domains": DOMAINS,
        "store.location": str(a.output / "store"),
    }  # fmt: skip
    if mechanism == "histogram":
        told |= {"histogram.tables": [list(p) for p in itertools.combinations(DOMAINS, 2)], "histogram.records": a.records}
        config = load_release(None, told)
        return HistogramRelease.of(config), config
    if mechanism == "F":
        told |= {"synthetic.records": a.records_of_f, "synthetic.kept": [TARGET], "delta": 1e-6}
        told |= {"synthetic.pass_probability": 0.02, "synthetic.shares": [0.15, 0.15, 0.7]}
    else:
        told["synthetic.records"] = a.records
    config = load_release(None, told)
    return SyntheticRelease.of(config), config


def measures(released: pd.DataFrame, people: pd.DataFrame, test: pd.DataFrame) -> dict[str, float]:
    """Marginal total variation, mean error of Cramer's V over pairs, and AUC of a model trained on the release."""
    mine, theirs = binned(released), binned(people)
    tv = [np.abs(shares(mine, c) - shares(theirs, c)).sum() / 2 for c in DOMAINS]
    pairs = [abs(cramer(mine, *p) - cramer(theirs, *p)) for p in itertools.combinations(DOMAINS, 2)]
    return {
        "marginal_tv": float(np.mean(tv)),
        "association_error": float(np.mean(pairs)),
        "tstr_auc": auc(released, test),
    }


def binned(frame: pd.DataFrame) -> pd.DataFrame:
    """Bins in place of values; outside of a domain -1."""
    config = load_release(None, {"domains": DOMAINS})
    return pd.DataFrame({d.column: bins_of(frame[d.column], d) for d in config.declared})


def shares(bins: pd.DataFrame, column: str) -> np.ndarray[Any, Any]:
    """Share of each bin, the outside last."""
    size = load_release(None, {"domains": {column: DOMAINS[column]}}).declared[0].size
    return np.bincount(bins[column] % (size + 1), minlength=size + 1) / len(bins)


def cramer(bins: pd.DataFrame, one: str, other: str) -> float:
    """Cramer's V of two columns of bins, without correction."""
    table = pd.crosstab(bins[one], bins[other]).to_numpy(float)
    if min(table.shape) < 2:
        return 0.0
    expected = np.outer(table.sum(1), table.sum(0)) / table.sum()
    return float(np.sqrt(((table - expected) ** 2 / expected).sum() / table.sum() / (min(table.shape) - 1)))


def auc(released: pd.DataFrame, test: pd.DataFrame) -> float:
    """Trained on the release, tested on real people: gradient boosting; 0.5 where the release has one class only."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score

    truth = released[TARGET] == POSITIVE
    if truth.nunique() < 2:
        return 0.5
    levels = {c: DOMAINS[c]["levels"] for c in QUASI_IDENTIFIERS if "levels" in DOMAINS[c]}

    def features(frame: pd.DataFrame) -> pd.DataFrame:
        coded = {c: pd.Categorical(frame[c], v) for c, v in levels.items()}
        return pd.DataFrame({c: coded.get(c, frame[c]) for c in QUASI_IDENTIFIERS}).astype(
            {c: float for c in QUASI_IDENTIFIERS if c not in levels}
        )

    model = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0, max_iter=80)
    model.fit(features(released), truth)
    return float(roc_auc_score(test[TARGET] == POSITIVE, model.predict_proba(features(test))[:, 1]))


def plot(result: pd.DataFrame, path: Path) -> Path:
    """The measures against epsilon, a panel each; the dashed line is the original itself."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 7), layout="constrained")
    axes = figure.subplots(2, 2).ravel()
    original = result[result["mechanism"] == "original"].iloc[0]
    epsilons = sorted(result["epsilon"].dropna().unique())
    for panel, (measure, title) in zip(axes, MEASURES.items(), strict=True):
        for mechanism, marker in zip(MECHANISMS, "osD", strict=True):
            mine = result[(result["mechanism"] == mechanism) & result[measure].notna()]
            panel.plot(mine["epsilon"], mine[measure], marker=marker, label=mechanism)
        if pd.notna(original.get(measure)) and measure == "tstr_auc":
            panel.axhline(original[measure], color="black", linestyle="--", linewidth=1, label="original")
        if measure == "rapid_max" and "rapid_chance" in result:
            panel.axhline(result["rapid_chance"].max(), color="grey", linestyle=":", linewidth=1, label="chance, largest")
        panel.set_xscale("log", base=2)
        panel.set_xticks(epsilons, [f"{e:g}" for e in epsilons])
        panel.set_xlabel("epsilon")
        panel.set_title(title, fontsize=10)
        panel.grid(alpha=0.25)
        panel.legend(frameon=False, fontsize=8)
    figure.suptitle("Adult, add_remove of one record; computed from the original without noise, custodian only", fontsize=10)
    figure.savefig(path, dpi=130)
    return path


if __name__ == "__main__":
    main()

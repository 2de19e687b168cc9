"""Result rows in the contract's columns, from what was found."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

import pandas as pd
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from . import control, results, survey, training
from .clusters import ClusterRate
from .config import Config, Search, settings_json
from .intervals import proportion
from .pipeline import Found, Scored, State, record_struct
from .risk import Combination
from .summary import Result
from .survey import Survey
from .version import __version__

SURVEY = {"weighting": "survey"}


@dataclass
class Rows:
    """Tables of one evaluation.

    Attributes:
        state: settings, fits, combinations.
        common: columns that are the same in every row.
        found: figures of the original.
        holdout: figures of the holdout, where there is one.
        references: (population_reference, copy_ceiling) per combination index.
        score_seconds: seconds of scoring, shared by all combinations.
        asked: the configuration as given.
    """

    state: State
    common: dict[str, Any]
    found: Found
    holdout: Found | None
    references: dict[int, tuple[float, float]]
    score_seconds: float
    asked: Config

    def _keys(self, c: Combination, scored_on: str) -> dict[str, Any]:
        return {**self.common, "scored_on": scored_on, "replicate": c.replicate, "qi_set": c.qi_set,
                "measure": c.measure, "sensitive_attribute": c.sensitive_attribute, "attacker": c.attacker}

    def _parts(self) -> list[tuple[str, Found]]:
        return [("original", self.found), *([("holdout", self.holdout)] if self.holdout else [])]

    def summary(self, every_set: bool = False) -> pd.DataFrame:
        """Rows of risk_summary; on wish also of the sets that were fitted for attribution only."""
        rows = []
        for scored_on, found in self._parts():
            for key, c in self.state.combinations if every_set else self.state.reported:
                row = self._keys(c, scored_on) | self._settings(key, c)
                row["status"], row["reason"] = found.reasons.get(c.index, ("ok", None))
                result = found.results.get(c.index)
                if result is not None:
                    row |= self._figures(found, result, c, scored_on)
                    if scored_on == "original":
                        row |= self._control(result, c)
                rows.append(row)
                weighted = found.survey.get(c.index)
                if weighted is not None:
                    rows.append(self._keys(c, scored_on) | self._settings(key, c) | self._weighted(weighted, c))
        return results.frame(rows, results.SUMMARY)

    def _weighted(self, figures: Survey, c: Combination) -> dict[str, Any]:
        """The row for the population that the survey weights stand for."""
        target = self.state.aligned.target(c.sensitive_attribute)
        harmful = {str(x) for x in target.attribute.sensitive_levels}
        levels = [row for row in figures.classes if not harmful or row["class_label"] in harmful]
        share = sum(float(row["prevalence"]) for row in levels)
        return {
            **SURVEY, "status": "ok", "reason": None, "n": figures.n, "n_at_risk": figures.n_at_risk,
            "n_undefined": self.state.aligned.n_original - figures.n, "rapid": figures.rapid, "ci_low": figures.ci[0],
            "ci_high": figures.ci[1], "ci_method": survey.METHOD, "baseline_rate": figures.baseline_rate,
            "excess": None if figures.baseline_rate is None else figures.rapid - figures.baseline_rate,
            "n_dropped": target.n_missing if target.missing == "drop" else 0, "weight_sum": figures.weight_sum,
            "n_effective": figures.n_effective,
            "sensitive_levels_rate": (
                sum(float(row["prevalence"]) * float(row["rapid"] or 0.0) for row in levels) / share if share else None
            ),
        }

    def _settings(self, key: training.FitKey, c: Combination) -> dict[str, Any]:
        state, aligned = self.state, self.state.aligned
        fit = state.fits.get(key)
        pooled = c.replicate == training.POOLED
        return {
            "target_type": c.target_type, "threshold": c.threshold, "seed": state.config.training.seed,
            "confidence": state.config.intervals.confidence, "package_version": __version__,
            "n_train": fit.n_train if fit else None, "fit_seconds": fit.seconds if fit else None,
            "score_seconds": self.score_seconds / max(1, len(state.fits)) if fit else None,
            "original_digest": aligned.original_digest,
            "release_digest": aligned.release_digest if pooled else aligned.release_digests[c.replicate],
            "settings_digest": settings_digest(self.asked), "quasi_identifiers": list(c.quasi_identifiers),
            "release_date": state.config.release_date,
            "n_release": sum(aligned.n_release.values()) if pooled else aligned.n_release[c.replicate],
        }

    def _figures(self, found: Found, result: Result, c: Combination, scored_on: str) -> dict[str, Any]:
        target = next(t for t in self.state.aligned.targets if t.name == c.sensitive_attribute)
        aligned = self.state.aligned
        n_records = aligned.n_original if scored_on == "original" else aligned.n_holdout
        rapid, null = result.rapid, result.null
        harmful = {str(x) for x in target.attribute.sensitive_levels}
        levels = [row for row in result.classes if not harmful or row["class_label"] in harmful]
        n_levels = sum(int(row["n"] or 0) for row in levels)
        confidence = self.state.config.intervals.confidence
        return {
            **{k: v for k, v in result.figures.items() if k in results.SUMMARY},
            "n": result.n, "n_undefined": n_records - result.n, "n_at_risk": result.n_at_risk, "rapid": rapid,
            "n_dropped": target.n_missing if target.missing == "drop" and scored_on == "original" else 0,
            "ci_low": result.ci[0], "ci_high": result.ci[1], "ci_method": result.ci_method,
            "n_effective": result.n_effective(),
            "baseline_rate": result.baseline_rate,
            "excess": None if rapid is None or result.baseline_rate is None else rapid - result.baseline_rate,
            "permutation_p": null.p if null else None, "null_mean": null.mean if null else None,
            "null_sd": null.sd if null else None, "null_q95": null.q95 if null else None,
            "data_driven_threshold": result.data_driven_threshold,
            "exploratory_threshold": result.exploratory_threshold,
            "sensitive_levels_rate": (
                sum(int(row["n_at_risk"] or 0) for row in levels) / n_levels if n_levels else None
            ),
            **_cluster_figures("person", found.persons.get(c.index), confidence),
            **_cluster_figures("household", found.households.get(c.index), confidence),
        }

    def _control(self, result: Result, c: Combination) -> dict[str, Any]:
        """Columns that set the original's rate beside the holdout's and the references."""
        figures: dict[str, Any] = {}
        if c.index in self.references:
            figures["population_reference"], figures["copy_ceiling"] = self.references[c.index]
        other = self.holdout.results.get(c.index) if self.holdout else None
        if other is None or not other.n or not result.n:
            return figures
        by_cluster = (result.ci, other.ci) if result.by_cluster or other.by_cluster else None
        point, low, high = control.difference(
            (result.n_at_risk, result.n, result.draws), (other.n_at_risk, other.n, other.draws),
            self.state.config.intervals.confidence, by_cluster,
        )
        own = self.holdout.own.get(c.index) if self.holdout else None
        return figures | {
            "holdout_rate": other.rapid, "holdout_difference": point, "holdout_difference_low": low,
            "holdout_difference_high": high,
            "holdout_difference_own": None if own is None or result.rapid is None else result.rapid - own,
        }

    def _surveys(self) -> list[tuple[Combination, Survey]]:
        weighted = self.found.survey
        return [(c, weighted[c.index]) for _, c in self.state.reported if c.index in weighted]

    def curve(self) -> pd.DataFrame:
        """Rows of risk_curve."""
        return results.frame(
            [self._keys(c, on) | row for on, found in self._parts() for _, c in self.state.reported
             if c.index in found.results for row in found.results[c.index].curve]
            + [self._keys(c, "original") | SURVEY | row for c, figures in self._surveys() for row in figures.curve],
            results.CURVE,
        )

    def classes(self) -> pd.DataFrame:
        """Rows of risk_classes."""
        return results.frame(
            [self._keys(c, on) | row for on, found in self._parts() for _, c in self.state.reported
             if c.index in found.results for row in found.results[c.index].classes]
            + [self._keys(c, "original") | SURVEY | row for c, figures in self._surveys() for row in figures.classes],
            results.CLASSES,
        )

    def distributions(self) -> pd.DataFrame:
        """Rows of risk_distributions."""
        return results.frame(
            [self._keys(c, "original") | row for _, c in self.state.reported
             if c.index in self.found.results for row in self.found.results[c.index].distributions],
            results.DISTRIBUTIONS,
        )

    def records(self, scored: dict[str, Scored]) -> DataFrame | None:
        """Rows of risk_records: every scored record and combination, as far as the store is to hold them."""
        store = self.state.config.store
        if store.detail == "none" or store.records == "none":
            return None
        parts = [
            frame for on, found in self._parts() if on in scored
            if (frame := self._record_rows(scored[on], found, on)) is not None
        ]
        if not parts:
            return None
        whole = parts[0]
        for part in parts[1:]:
            whole = whole.unionByName(part)
        return whole.where("at_risk") if store.records == "at_risk" else whole

    def _record_rows(self, scored: Scored, found: Found, scored_on: str) -> DataFrame | None:
        structs = []
        for key, c in self.state.reported:
            if c.index not in found.results:
                continue
            figures = record_struct(self.state, found, key, c)
            names = ("replicate", "qi_set", "sensitive_attribute", "measure", "attacker")
            keys = self._keys(c, scored_on)
            structs.append(F.struct(
                *(F.lit(keys[name]).alias(name) for name in names),
                *(figures[name].alias(name) for name in ("score", "true_prob", "baseline", "error", "at_risk")),
            ))
        if not structs:
            return None
        if len(structs) == 1:  # nothing to lay one below the other
            long = scored.records.select("record_id", structs[0].alias("one")).select("record_id", "one.*")
        else:
            long = scored.records.select("record_id", F.inline(F.array(*structs)))
        constant: dict[str, Column] = {
            name: F.lit(value) for name, value in {**self.common, "scored_on": scored_on}.items()
        }
        if self.state.config.store.detail == "flags":
            constant |= {k: F.lit(None).cast("double") for k in ("score", "true_prob", "baseline", "error")}
        return long.select(*(constant[n].alias(n) if n in constant else F.col(n) for n in results.RECORDS))


def _cluster_figures(name: str, rate: ClusterRate | None, confidence: float) -> dict[str, Any]:
    if rate is None or not rate.n:
        return {}
    low, high = proportion(rate.n_at_risk, rate.n, confidence, "wilson")
    return {f"n_{name}s": rate.n, f"{name}_rapid": rate.n_at_risk / rate.n, f"{name}_ci_low": low, f"{name}_ci_high": high}


def settings_digest(config: Config) -> str:
    """SHA-256 of the settings that decide the figures: not where tables and results are, nor the machine.

    What was done to the release (`recode`) is of the release, not of the attack on it: a coarser release is compared with
    the one before.
    """
    config = config.model_copy(update={"recode": {}, "search": Search()})
    bare = config.model_copy(update={
        "store": type(config.store)(), "tracking": type(config.tracking)(), "session": type(config.session)(),
        "publish": type(config.publish)(), "disclosure": type(config.disclosure)(),
        "original": None, "release": (), "holdout": None, "registry": "registry", "release_id": "release",
        "release_date": None, "quasi_identifiers": (), "qi_sets": config.sets,  # sets are ordered by name
    })
    data = {k: v for k, v in json.loads(settings_json(bare)).items() if k != "policy"}  # judged by it, not computed
    return hashlib.sha256(json.dumps(data, sort_keys=True, ensure_ascii=False).encode()).hexdigest()



"""What an evaluation returns: tables as pandas frames, records as a Spark frame, warnings and seconds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame

KEYS = (
    "run_id", "registry", "release_id", "replicate", "scored_on", "qi_set", "sensitive_attribute", "measure",
    "attacker",
)
SUMMARY = (
    "run_id", "registry", "release_id", "replicate", "scored_on", "qi_set", "sensitive_attribute", "target_type",
    "attacker", "measure", "weighting", "threshold", "n", "n_undefined", "n_at_risk", "rapid", "ci_low", "ci_high",
    "ci_method", "confidence", "baseline_rate", "excess", "permutation_p", "null_mean", "null_sd", "null_q95",
    "holdout_rate", "holdout_difference", "holdout_difference_low", "holdout_difference_high", "n_confident_claims",
    "claims_correct", "sensitive_levels_rate", "accuracy", "macro_f1", "log_loss", "auc", "mae", "rmse", "r2",
    "majority_rate", "n_train", "n_dropped", "n_unseen_level", "n_unseen_class", "seed", "status", "reason",
    "fit_seconds", "score_seconds", "original_digest", "release_digest", "settings_digest", "package_version",
    "evaluated_at", "quasi_identifiers", "release_date", "n_release", "population_reference", "copy_ceiling",
    "holdout_difference_own", "relative_mae", "rapid_within_strata", "near_threshold", "data_driven_threshold",
    "exploratory_threshold", "n_persons", "person_rapid", "person_ci_low", "person_ci_high", "n_households",
    "household_rapid", "household_ci_low", "household_ci_high", "n_without_known", "rapid_without_known",
    "n_effective", "weight_sum",
)
CURVE = (*KEYS, "weighting", "threshold", "n_at_risk", "rapid", "ci_low", "ci_high", "baseline_rate")
CLASSES = (
    *KEYS, "weighting", "class_label", "class_rank", "prevalence", "n", "n_at_risk", "rapid", "mean_true_prob",
    "n_confident_claims", "claims_correct",
)
DISTRIBUTIONS = (*KEYS, "weighting", "kind", "class_label", "bin_low", "bin_high", "n", "mean_prob", "observed")
RECORDS = (
    "run_id", "registry", "release_id", "replicate", "scored_on", "qi_set", "sensitive_attribute", "measure",
    "attacker", "record_id", "score", "true_prob", "baseline", "error", "at_risk", "evaluated_at",
)


@dataclass
class Assessment:
    """RAPID of one release.

    Attributes:
        run_id, registry, release_id: what was evaluated.
        summary: one row per combination, as table `risk_summary`.
        curve, classes: as tables `risk_curve`, `risk_classes`.
        tables: further result tables by name (`risk_subgroups`, `risk_patterns`, `risk_attribution`, `risk_relations`,
            `risk_distributions`, `risk_joint`), as pandas frames.
        records: one row per record and combination, as table `risk_records`; a Spark frame.
        warnings: what the reader must know.
        seconds: by stage.
        inputs: names, versions, row counts, digests.
        evaluated_at: UTC.

    Example:
        >>> from rapid_spark import Assessment, assess
        >>> from rapid_spark.simulate import registry
        >>> found = assess(registry(200, kappa=5, seed=1), registry(200, kappa=5, seed=2), {
        ...     "quasi_identifiers": ["age"], "sensitive_attributes": ["disease_status"], "attackers": ["cart"],
        ...     "intervals": {"permutations": 0}, "drivers": {"attribution": False, "patterns": 0},
        ... })
        >>> isinstance(found, Assessment), sorted(found.tables)[:2]
        (True, ['risk_attribution', 'risk_distributions'])
        >>> found.classes["class_label"].tolist()
        ['healthy', 'hypertensive', 'diabetic']
        >>> "<article" in found._repr_html_()
        True
        >>> found.close()
    """

    run_id: str
    registry: str
    release_id: str
    summary: pd.DataFrame
    curve: pd.DataFrame
    classes: pd.DataFrame
    tables: dict[str, pd.DataFrame]
    records: DataFrame | None
    warnings: list[str]
    seconds: dict[str, float]
    inputs: dict[str, Any]
    evaluated_at: datetime
    settings: str = ""
    release_resources: Callable[[], None] = field(default=lambda: None, repr=False)
    html: Callable[[Assessment], str] | None = field(default=None, repr=False)

    def _repr_html_(self) -> str | None:
        """Shown by notebooks: the findings, tables and curves."""
        return self.html(self) if self.html else None

    def close(self) -> None:
        """Free what Spark holds for `records`; the frames in pandas stay."""
        self.release_resources()
        self.records = None


def frame(rows: list[dict[str, Any]], columns: tuple[str, ...]) -> pd.DataFrame:
    """Rows as a frame with exactly these columns; what is not known is null."""
    return pd.DataFrame([{c: row.get(c) for c in columns} for row in rows], columns=list(columns), dtype=object)

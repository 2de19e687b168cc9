"""The columns of each table that may leave the house, by what they tell. One that is not named here stays."""

from __future__ import annotations

from .rows import COMBINATION

# Of risk_summary: counts of people, shares of n of them, and figures that tell the count at risk.
COUNTS = ("n_undefined", "n_dropped", "n_unseen_level", "n_unseen_class")
OF_HITS = (
    "n_at_risk", "rapid", "ci_low", "ci_high", "excess", "permutation_p", "holdout_difference", "holdout_difference_low",
    "holdout_difference_high", "holdout_difference_own", "sensitive_levels_rate", "rapid_within_strata", "n_effective",
)
OF_HOLDOUT = (
    "holdout_rate", "holdout_difference", "holdout_difference_low", "holdout_difference_high", "holdout_difference_own",
)
SHARES = (
    "baseline_rate", "null_mean", "null_q95", "accuracy", "majority_rate", "near_threshold", "population_reference",
    "copy_ceiling", "sensitive_levels_rate", "rapid_within_strata", "holdout_rate", "holdout_difference",
    "holdout_difference_own",
)
LOWS, HIGHS = ("holdout_difference_low",), ("holdout_difference_high",)
FREE = ("null_sd", "macro_f1", "log_loss", "auc", "mae", "rmse", "relative_mae", "r2", "n_effective", "weight_sum")
# Of part of the people: their number, the rate among them, and its interval.
PARTS = (
    ("n_persons", "person_rapid", "person_ci_low", "person_ci_high"),
    ("n_households", "household_rapid", "household_ci_low", "household_ci_high"),
    ("n_without_known", "rapid_without_known"),
)
# What was asked and how, the published release, and the time it took. `original_digest` is not among them: whoever has
# all records but one could try the last one against it.
ASKED = (
    "target_type", "threshold", "ci_method", "confidence", "n_train", "seed", "status", "reason", "fit_seconds",
    "score_seconds", "release_digest", "settings_digest", "package_version", "evaluated_at", "quasi_identifiers",
    "release_date", "n_release", "data_driven_threshold", "exploratory_threshold",
)
RATES = ("n_at_risk", "rapid", "ci_low", "ci_high")
PUBLISHED: dict[str, frozenset[str]] = {
    "risk_summary": frozenset((
        *COMBINATION, *ASKED, "n", *COUNTS, *OF_HITS, *OF_HOLDOUT, *SHARES, *LOWS, *HIGHS, *FREE,
        *(name for part in PARTS for name in part), "n_confident_claims", "claims_correct",
    )),
    "risk_curve": frozenset((*COMBINATION, "threshold", *RATES, "baseline_rate")),
    "risk_classes": frozenset((
        *COMBINATION, "class_label", "class_rank", "prevalence", "n", "n_at_risk", "rapid", "mean_true_prob",
        "n_confident_claims", "claims_correct",
    )),
    "risk_subgroups": frozenset((*COMBINATION, "columns", "level", "n", *RATES, "suppressed")),
    "risk_attribution": frozenset((*COMBINATION, "term", "kind", "estimate", "std_error", "ci_low", "ci_high")),
    "audit_verdicts": frozenset((
        "run_id", "registry", "release_id", "sensitive_attribute", "rule", "audience", "purpose", "limit", "figure",
        "verdict", "reason", "valid_until", "evaluated_at",
    )),
    "audit_comparison": frozenset((
        "run_id", "registry", "release_id", "qi_set", "sensitive_attribute", "measure", "attacker", "n", "rapid", "ci_low",
        "ci_high", "standardised", "standardised_low", "standardised_high", "coverage", "compared_with", "difference",
        "difference_low", "difference_high", "standardised_difference", "standardised_difference_low",
        "standardised_difference_high", "note", "evaluated_at",
    )),
}  # fmt: skip
TABLES = tuple(PUBLISHED)

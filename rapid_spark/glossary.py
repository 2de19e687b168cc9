"""What measures, terms and intervals mean, and what the figures do not say, in plain words."""

from __future__ import annotations

INTERVAL_MEANING = (
    "Release and fitted attacker are held fixed; the interval says only how the rate would vary if the "
    "original were a random sample of a larger population. For a complete register there is no such "
    "error. Variation over releases and attackers is not in it."
)
P_MEANING = "At large n, p is small for any effect: it is no measure of size."

MEASURES = {
    "normalized_gain": "gain r = (g − b) / (1 − b), with g the attacker's probability of the true class "
    "and b the share of that class in the original; at risk when g > b + τ (1 − b)",
    "rcs_conditional": "g divided by the mean of g over the records of the same true class, with g the "
    "attacker's probability of the true class; at risk when above τ",
    "nce": "1 − (−ln max(g, 1e-10)) / ln K, with g the attacker's probability of the true class and K "
    "classes; at risk when above τ",
    "symmetric": "error e = 2 |y − p| / (|y| + |p| + 2 δ), with y the true value and p the guess; at risk "
    "when below the tolerance",
    "stabilised_relative": "error e = |y − p| / (|y| + δ), with y the true value and p the guess; at risk "
    "when below the tolerance",
    "relative": "error e = |y − p| / |y|, with y the true value and p the guess, undefined at y = 0; at "
    "risk when below the tolerance",
    "absolute": "error e = |y − p|, with y the true value and p the guess, in the unit of the attribute; "
    "at risk when below the tolerance",
    "normalised": "error e = |y − p| divided by the spread of y (standard deviation, or range), with p "
    "the guess; at risk when below the tolerance",
}
TERMS = {
    "original": "the real records of the custodian",
    "release": "what is to be published; of several copies each is a replicate",
    "attacker": "a model that learns from the release only, is then given the quasi-identifiers of real "
    "people, and predicts the sensitive attribute",
    "at risk": "RAPID, the share of original records with a defined outcome for which the prediction is "
    "confidently right (categorical) or close (continuous)",
    "chance": "baseline_rate: for a categorical attribute the exact mean of the share when predictions "
    "are dealt out to people at random; for a continuous one the share that the best constant guess "
    "reaches",
    "excess": "at risk minus chance, in percentage points",
    "claims right": "of the records whose predicted class exceeds its class threshold, the share for "
    "which it is the true one",
    "all copies together": "the attacker who learns from all published copies at once (pooled, replicate 0)",
    "missing values": "quasi-identifiers: a level of their own (categorical), or the median of the "
    "release with an indicator or native support (numeric); sensitive attributes: by the rule shown with "
    "the counts. NaN and null are the same thing",
}
LIMITS = (
    "The figures speak of the attackers that were tried. Another model may do better.",
    "They speak of the quasi-identifiers that were named. Whoever knows other columns is another attacker.",
    "A record at risk need not be harmed: the answer may be the common, harmless one (table by class).",
    "A high rate may come from patterns that hold for all. Only a holdout tells these from membership.",
    "Identity disclosure, linkage and membership are risks of their own, and are not measured by RAPID.",
    "A rate says nothing of the one person at most risk; groups too small to be shown may be at more risk.",
    "The threshold is a convention. The curves show what another one would give.",
)

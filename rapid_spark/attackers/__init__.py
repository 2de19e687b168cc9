"""Attackers: scikit-learn estimators fitted on the release alone, with their encoding, ready to be shipped.

An attacker (Templ, Thees, Müller 2026, arXiv:2602.09235) learns the sensitive attribute from the
quasi-identifiers of the release. Nothing here sees the original while fitting. For all attackers:

- *Same figures for any order of rows and columns.* Features are sorted by name, training rows by content and
  then permuted by the seed. Fitting and predicting use one thread of BLAS and OpenMP, so that `n_jobs` (trees
  of a forest grown at once) changes nothing but time.
- *Levels.* A missing categorical value is a level of its own. A level the release never shows is unknown:
  trees send it to the child with more training rows, linear attackers take every level with its share.
- *Numbers.* Missing ones are native to trees; linear attackers and estimators by import path take the median
  of the release, and an indicator where the release has missing values too.
- *Memory.* Trees code a categorical feature of any number of levels as one column. For the others a feature
  has at most `MAX_LEVELS` levels, and all dummies together about `MAX_COLUMNS` columns: the most frequent
  levels stay, the rest is pooled into one, and `Fitted.notes` says so.
"""

from .base import CATEGORICAL, CONTINUOUS, AttackerError, Feature
from .fitted import Fitted
from .fitting import fit
from .groups import groups, merged
from .suite import ATTACKERS, Recipe, check, serves

__all__ = [
    "ATTACKERS", "CATEGORICAL", "CONTINUOUS", "AttackerError", "Feature", "Fitted", "Recipe", "check", "fit",
    "groups", "merged", "serves",
]

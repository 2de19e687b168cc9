"""Limits against figures: verdicts of a policy on releases."""

from rapid_spark.config.policy import Policy

from .figures import Previous, decisive
from .verdicts import OVERALL, VERDICTS, Verdict, as_text, cleared, gravest, judge, rows, unevaluated

__all__ = [
    "OVERALL", "VERDICTS", "Policy", "Previous", "Verdict", "as_text", "cleared", "decisive", "gravest", "judge", "rows",
    "unevaluated",
]

"""Limits against figures: verdicts of a policy on releases."""

from .figures import Previous, decisive
from .verdicts import OVERALL, VERDICTS, Verdict, cleared, gravest, judge, rows, unevaluated

__all__ = ["OVERALL", "VERDICTS", "Previous", "Verdict", "cleared", "decisive", "gravest", "judge", "rows", "unevaluated"]

"""What all parts of an attacker share: features, kinds of target, and the error for a user's fault."""

from __future__ import annotations

from dataclasses import dataclass

CATEGORICAL, CONTINUOUS = "categorical", "continuous"


class AttackerError(ValueError):
    """The attacker's name, parameters or training data are at fault; the text says what would be right."""


@dataclass(frozen=True)
class Feature:
    """One quasi-identifier, as the aligned frames hold it.

    Attributes:
        name: column name in the frames.
        kind: "categorical" (text; None or NaN is missing) or "numeric" (float64; NaN is missing).
    """

    name: str
    kind: str

    def __post_init__(self) -> None:
        if self.kind not in (CATEGORICAL, "numeric"):
            raise AttackerError(f"feature {self.name!r}: kind {self.kind!r}, not 'categorical' or 'numeric'")

"""What the paper reports of its simulation studies: the figures that ours are set beside.

Source: Templ, Thees, Müller (2026), "Risk of Attribute Prediction-Induced Disclosure", arXiv:2602.09235,
simulation studies 1 to 4: n = 1000, CART synthesis, target disease_status from the other five variables.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Published:
    """A mean over repetitions and its standard deviation, None where the paper gives none.

    Attributes:
        mean: of RAPID.
        sd: over the repetitions.
        accuracy: mean accuracy of the attacker.
        about: the mean is only said in words or read off a figure.
    """

    mean: float
    sd: float | None = None
    accuracy: float | None = None
    about: bool = False


# RAPID(0.3) of a random forest against kappa: from about 0.25 to 0.97, accuracy from 0.70 to 0.98.
STUDY_1 = {
    0.0: Published(0.25, accuracy=0.70, about=True),
    100.0: Published(0.97, accuracy=0.98, about=True),
}
_TAUS = (0.2, 0.3, 0.4, 0.5)
_STUDY_2 = {
    0.0: ((0.327, 0.032), (0.235, 0.039), (0.160, 0.037), (0.099, 0.029)),
    5.0: ((0.803, 0.018), (0.763, 0.015), (0.722, 0.016), (0.678, 0.019)),
    10.0: ((0.887, 0.010), (0.866, 0.008), (0.838, 0.010), (0.807, 0.014)),
    20.0: ((0.931, 0.008), (0.918, 0.010), (0.901, 0.012), (0.879, 0.014)),
    50.0: ((0.962, 0.005), (0.952, 0.006), (0.941, 0.011), (0.925, 0.012)),
}
# A random forest by kappa and tau, ten repetitions.
STUDY_2 = {
    (kappa, tau): Published(*pair) for kappa, row in _STUDY_2.items() for tau, pair in zip(_TAUS, row, strict=True)
}
# A random forest at kappa 10, tau 0.3: each quasi-identifier alone, and all but one.
STUDY_3 = {
    ("age", "alone"): Published(0.749),
    ("income", "alone"): Published(0.492),
    ("health_score", "alone"): Published(0.599),
    ("education", "alone"): Published(0.242),
    ("gender", "alone"): Published(0.000),
    ("age", "left_out"): Published(0.702),
    ("income", "left_out"): Published(0.844),
    ("health_score", "left_out"): Published(0.860),
    ("education", "left_out"): Published(0.860),
    ("gender", "left_out"): Published(0.860),
}
# Attackers at kappa 10, tau 0.3, fifty repetitions.
STUDY_4 = {
    "cart": Published(0.876, 0.013, 0.879),
    "gbm": Published(0.875, 0.011, 0.881),
    "rf": Published(0.864, 0.010, 0.891),
}

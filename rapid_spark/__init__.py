"""RAPID on Spark: how well a published table lets an attacker predict sensitive attributes of real people.

The public names are loaded when first used, so that importing the package, and `rapid-spark --help`, stay fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .version import __version__

if TYPE_CHECKING:
    from .config import Config, ConfigError, load
    from .evaluation import assess
    from .preparation import check
    from .results import Assessment
    from .run import evaluate
    from .store import Store

PLACES = {
    "Assessment": "results",
    "Config": "config",
    "ConfigError": "config",
    "Store": "store",
    "assess": "evaluation",
    "evaluate": "run",
    "load": "config",
    "check": "preparation",
}
__all__ = [
    "Assessment", "Config", "ConfigError", "Store", "__version__", "assess", "check", "evaluate", "load",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f".{PLACES[name]}", __name__)
    return getattr(module, name)


def __dir__() -> list[str]:
    return sorted(__all__)

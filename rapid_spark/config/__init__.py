"""Settings as frozen models, loaded from YAML; every fault is reported at once, under its path."""

from .base import ConfigError, Model, Name, Share, check_identifier, parse_as, suggest
from .evaluation import Config, parse_attribute, settings_json
from .loading import load, load_as, parse, parse_set, read
from .sections import (
    ERRORS,
    MEASURES,
    Attacker,
    Baseline,
    Columns,
    Drivers,
    Intervals,
    SensitiveAttribute,
    Session,
    Store,
    Table,
    Threshold,
    Tracking,
    Training,
)

__all__ = [
    "ERRORS", "MEASURES", "Attacker", "Baseline", "Columns", "Config", "ConfigError", "Drivers", "Intervals", "Model",
    "Name", "SensitiveAttribute", "Session", "Share", "Store", "Table", "Threshold", "Tracking", "Training",
    "check_identifier", "load", "load_as", "parse", "parse_as", "parse_attribute", "parse_set", "read", "settings_json",
    "suggest",
]

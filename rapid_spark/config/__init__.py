"""Settings as frozen models, loaded from YAML; every fault is reported at once, under its path."""

from .base import ConfigError, Model, Name, Share, check_identifier, parse_as, suggest
from .evaluation import Config, parse_attribute, settings_json
from .loading import load, load_as, parse, parse_set, read
from .policy import Context, Limit, Limits, Policy, Quality
from .recode import Bands, Hierarchy, Mask, Recode
from .search import Search
from .sections import (
    ERRORS,
    MEASURES,
    Attacker,
    Baseline,
    Columns,
    Disclosure,
    Drivers,
    Intervals,
    Publish,
    SensitiveAttribute,
    Session,
    Store,
    Table,
    Threshold,
    Tracking,
    Training,
)

__all__ = [
    "ERRORS", "MEASURES", "Attacker", "Bands", "Baseline", "Columns", "Config", "ConfigError", "Context", "Disclosure",
    "Drivers", "Hierarchy", "Intervals", "Limit", "Limits", "Mask", "Model", "Name", "Policy", "Publish", "Quality",
    "Recode", "Search", "SensitiveAttribute", "Session", "Share", "Store", "Table", "Threshold", "Tracking", "Training",
    "check_identifier", "load", "load_as", "parse", "parse_as", "parse_attribute", "parse_set", "read", "settings_json",
    "suggest",
]

"""Which columns of which table the configuration names, and under which setting; found in the tables, or reported."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from . import keyed
from .config import Config, ConfigError, suggest
from .io import Source

ROLES = ("person", "household", "weight", "stratum", "psu")
ROLE_SETTINGS = tuple(f"columns.{role}" for role in ROLES)
LISTED = 30  # column names shown where one is missing


@dataclass(frozen=True)
class Named:
    """A column that a setting names."""

    setting: str
    name: str


@dataclass(frozen=True)
class Found:
    """One table and its named columns.

    Attributes:
        source: the table.
        place: 'the original', 'the release', 'release 2', 'the holdout'.
        columns: its column by the name in the configuration.
        replicate_column: its column that numbers the replicates.
        real: whether it holds real people.
    """

    source: Source
    place: str
    columns: dict[str, str]
    replicate_column: str | None = None
    real: bool = False

    @property
    def spoken(self) -> str:
        """How messages name the table: its place, and its name where that says more."""
        return f"{self.place} ({self.source.name})"


def named_columns(config: Config, identified: bool) -> list[Named]:
    """Every column the configuration names for one table.

    Args:
        config: the configuration.
        identified: the table holds real people (original, holdout), so key and roles are in it too.
    """
    found = []
    if identified:
        found += [Named("columns.key", key) for key in config.columns.key]
        for role in ROLES:
            name = getattr(config.columns, role)
            found += [Named(f"columns.{role}", name)] if name else []
    for set_name, columns in config.sets.items():
        setting = f"qi_sets.{set_name}" if config.qi_sets else "quasi_identifiers"
        found += [Named(setting, column) for column in columns]
    return found + [Named("sensitive_attributes", a.name) for a in config.sensitive_attributes]


def find(
    source: Source, place: str, named: Iterable[Named], faults: list[str], warnings: list[str], real: bool = False
) -> Found:
    """Match names to a table's columns: the same name first, else the only one that differs just in case.

    Missing ones are added to `faults`, those that differ in case to `warnings`. Runs no job.
    """
    found: dict[str, str] = {}
    missing: dict[str, list[str]] = {}
    by_lower: dict[str, list[str]] = {}
    for column in source.columns:
        by_lower.setdefault(column.lower(), []).append(column)
    for item in named:
        near = by_lower.get(item.name.lower(), [])
        if item.name in source.columns:
            found[item.name] = item.name
        elif len(near) == 1:
            if item.name not in found:
                warnings.append(f"{item.setting}: {item.name!r} is column {near[0]!r} of {place} ({source.name})")
            found[item.name] = near[0]
        else:
            settings = missing.setdefault(item.name, [])
            settings.extend([] if item.setting in settings else [item.setting])
    for name, settings in missing.items():
        near_names = suggest(name, source.columns)
        listed = "" if near_names else f" It has {_listed(source.columns)}."
        faults.append(f"{', '.join(settings)}: {place} ({source.name}) has no column {name!r}.{near_names}{listed}")
    faults += _twice(found, f"{place} ({source.name})")
    return Found(source, place, found, real=real)


@dataclass(frozen=True)
class Tables:
    """The tables of one evaluation, their columns found.

    Attributes:
        original: real people, numbered where the configuration names no key.
        releases: by replicate; one table with a replicate column stands under 1.
        holdout: real people, as the original; or None.
    """

    original: Found
    releases: dict[int, Found]
    holdout: Found | None

    @property
    def all(self) -> list[Found]:
        """Original, releases, holdout."""
        return [self.original, *self.releases.values()] + ([self.holdout] if self.holdout else [])

    @property
    def real(self) -> list[Found]:
        """The tables of real people."""
        return [self.original] + ([self.holdout] if self.holdout else [])


def find_all(
    original: Source,
    releases: Mapping[int, Source],
    holdout: Source | None,
    config: Config,
    faults: list[str],
    warnings: list[str],
) -> Tables:
    """Find every named column in every table; what is missing or contradictory goes to `faults`. Runs no job."""
    if not config.all_quasi_identifiers:
        faults.append(f"quasi_identifiers: name what an attacker may know of a person; {_choices(original)}")
    if not config.sensitive_attributes and not config.search.active:
        faults.append(f"sensitive_attributes: name what nobody should be able to guess; {_choices(original)}")
    if not releases:
        faults.append("release: name at least one table")
    everywhere = named_columns(config, False)
    own = named_columns(config, True)
    real = find(_numbered(original, "the original", config, faults), "the original", own, faults, warnings, real=True)
    for name in config.columns.missing_codes:
        find(original, "the original", [Named("columns.missing_codes", name)], faults, [])
    for name in config.recode:
        find(original, "the original", [Named("recode", name)], faults, [])
    for name in config.columns.types:
        dropped = name in config.recode and config.recode[name].drop  # a quasi-identifier until it was dropped
        if name not in config.all_quasi_identifiers and not dropped:
            faults.append(f"columns.types: {name!r} is not among the quasi-identifiers")
    for name in config.columns.dates:
        if name not in {n.name for n in everywhere} and name not in config.recode:
            faults.append(f"columns.dates: {name!r} is neither a quasi-identifier nor a sensitive attribute")
    found = {}
    for replicate, source in sorted(releases.items()):
        place = "the release" if len(releases) == 1 else f"release {replicate}"
        found[replicate] = _find_release(source, place, everywhere, faults, warnings)
        if source.replicate_column is not None and len(releases) > 1:
            faults.append(f"{place} ({source.name}): give several tables or a replicate_column, not both")
    faults += _differing_columns(list(found.values()))
    apart = None
    if holdout is not None:
        named = [n for n in own if n.setting not in ROLE_SETTINGS or n.name.lower() in map(str.lower, holdout.columns)]
        apart = find(_numbered(holdout, "the holdout", config, faults), "the holdout", named, faults, warnings, real=True)
    return Tables(real, found, apart)


def _find_release(
    source: Source, place: str, named: list[Named], faults: list[str], warnings: list[str]
) -> Found:
    found = find(source, place, named, faults, warnings)
    if source.replicate_column is None:
        return found
    setting = Named("release.replicate_column", source.replicate_column)
    column = find(source, place, [setting], faults, warnings).columns.get(setting.name)
    if column in found.columns.values():
        faults.append(f"release.replicate_column: {column!r} of {found.spoken} has another role too: it can have one")
    return Found(source, place, found.columns, column)


def _numbered(source: Source, place: str, config: Config, faults: list[str]) -> Source:
    if config.columns.key_hmac:
        try:
            return source.keyed(keyed.secret())
        except ConfigError as error:
            faults.append(str(error))
    if config.columns.key:
        return source
    if not source.line_numbers_possible:
        faults.append(
            f"columns.key: name one or several columns that tell the records of {place} ({source.name}) apart; only the "
            "rows of a single file or a pandas frame can be told apart by their place"
        )
    return source.numbered()


def _differing_columns(found: list[Found]) -> Iterable[str]:
    for other in found[1:]:
        first = set(found[0].source.columns)
        differing = sorted(first.symmetric_difference(other.source.columns))
        if differing:
            yield f"{found[0].spoken} and {other.spoken} differ in their columns: {_listed(tuple(differing))}"


def _choices(source: Source) -> str:
    return f"{source.name} has {_listed(source.columns)}"


def _listed(columns: tuple[str, ...]) -> str:
    more = f" and {len(columns) - LISTED} more" if len(columns) > LISTED else ""
    return ", ".join(repr(c) for c in columns[:LISTED]) + more


def _twice(found: dict[str, str], where: str) -> list[str]:
    names: dict[str, list[str]] = {}
    for name, column in found.items():
        names.setdefault(column, []).append(name)
    return [
        f"{' and '.join(map(repr, given))} are the same column {column!r} of {where}: name it once"
        for column, given in names.items()
        if len(given) > 1
    ]

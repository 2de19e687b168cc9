"""Roles of columns, and the alignment of original, releases and holdout: names, types, missing values, record ids.

What comes out has safe column names (`record_id`, `q0`.., `s0`..) and normalised values (no NaN, -0.0, empty text), so
that nothing after this module has to think of odd names, file formats or dtypes.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pyspark.sql import DataFrame

from .agreement import Decision, Notes, Seen, decide_quasi_identifier, decide_target, mostly_numbers
from .config import Config, SensitiveAttribute
from .io import Source
from .normalise import Plan, frame_of, identity_of, keep, key_faults, level_counts, weight_faults
from .profiles import MAX_REPLICATES, TableProfile, profile
from .roles import Found, Tables, find_all


class SchemaError(ValueError):
    """The tables do not fit the configuration or each other; the text lists every fault, one a line."""


@dataclass(frozen=True)
class QuasiIdentifier:
    """A quasi-identifier that is used.

    Attributes:
        name: its name in the configuration.
        column: its column in the aligned frames, `q0`, `q1`, ..
        kind: 'numeric' (double; dates as days since 1970-01-01) or 'categorical' (string).
        n_missing: original records without a value (null in the frame).
    """

    name: str
    column: str
    kind: Literal["numeric", "categorical"]
    n_missing: int


@dataclass(frozen=True)
class Target:
    """A sensitive attribute.

    Attributes:
        name: its name in the configuration.
        column: its column in the aligned frames, `s0`, `s1`, ..
        type: 'categorical' (string) or 'continuous' (double; dates as days since 1970-01-01).
        attribute: its settings.
        n_missing: original records without a value (null in the frame).
        levels: of a categorical one, records of the original by label; null counts those without a value.
    """

    name: str
    column: str
    type: Literal["categorical", "continuous"]
    attribute: SensitiveAttribute
    n_missing: int
    levels: dict[str | None, int] = field(default_factory=dict)

    @property
    def missing(self) -> Literal["class", "drop", "median", "constant"]:
        """What becomes of records without a value: as configured, else 'class' (categorical) or 'drop'."""
        return self.attribute.missing or ("class" if self.type == "categorical" else "drop")


@dataclass(frozen=True)
class Aligned:
    """Tables made ready for an evaluation.

    Attributes:
        original: `record_id` (string, unique), the quasi-identifiers' and targets' columns, and those of `person`,
            `household`, `weight`, `stratum`, `psu` (strings; weight double) that the configuration names.
        releases: by replicate 1..m, the quasi-identifiers' and targets' columns.
        holdout: as the original, with those of the roles that it has.
        quasi_identifiers: those used, ordered by name.
        sets: by name of the set, its quasi-identifiers' columns, in the order of their names.
        targets: in the configuration's order.
        n_original, n_release, n_holdout: rows.
        patterns: by name of the set, about how many different combinations of its values the original holds.
        warnings: what the user should know, without any value of a person.
        original_digest, holdout_digest: of the content of the columns in use; release_digests: by replicate, of all
            its columns (`digest`).
    """

    original: DataFrame
    releases: dict[int, DataFrame]
    holdout: DataFrame | None
    quasi_identifiers: tuple[QuasiIdentifier, ...]
    sets: dict[str, tuple[str, ...]]
    targets: tuple[Target, ...]
    n_original: int
    n_release: dict[int, int]
    n_holdout: int
    patterns: dict[str, int]
    warnings: list[str]
    original_digest: str
    release_digests: dict[int, str]
    holdout_digest: str | None

    @property
    def release_digest(self) -> str:
        """Of the release as a whole: its only replicate's digest, or one over those of all replicates."""
        digests = [self.release_digests[r] for r in sorted(self.release_digests)]
        return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()

    def target(self, name: str) -> Target:
        """The sensitive attribute of this name."""
        return next(target for target in self.targets if target.name == name)

    def close(self) -> None:
        """Free what was kept in memory or on disk."""
        self.original.unpersist()
        if self.holdout is not None:
            self.holdout.unpersist()


def align(
    original: Source, releases: Mapping[int, Source], config: Config, holdout: Source | None = None
) -> Aligned:
    """Check the tables against the configuration and each other, and make them ready.

    Types are decided on the original and applied to the others (`agreement`). Jobs: one per table; one for the levels
    of all categorical targets; one for the keys of each table of real people (two if some occur twice); one for each
    one's weights. A CSV with real people is kept in memory or on disk once its types are known, until `Aligned.close`.

    Args:
        original: real people, one row a record.
        releases: by replicate 1..m; a single one may carry several in its `replicate_column`.
        config: roles, missing codes, declared types.
        holdout: real people who were not used to make the release.

    Raises:
        SchemaError: with every fault found.
        ConfigError: a file turned out to be unreadable.
    """
    notes = Notes()
    tables = find_all(original, releases, holdout, config, notes.faults, notes.warnings)
    _raise(notes)
    looks = _look_at_all(tables, config, notes)
    _raise(notes)
    quasi, sets = _quasi_identifiers(looks, config, notes)
    targets = _targets(looks, config, notes)
    plan = Plan(config, quasi, targets)
    identity = {t.place: identity_of(t, looks.real(t), config, notes.faults) for t in tables.real}
    _raise(notes)
    return _finish(looks, plan, sets, identity, notes)


@dataclass(frozen=True)
class _Looks:
    """What was seen of all tables; the releases by replicate, each with the table it is in."""

    tables: Tables
    original: TableProfile
    releases: dict[int, tuple[Found, TableProfile]]
    holdout: TableProfile | None

    def real(self, found: Found) -> TableProfile:
        """Of a table of real people."""
        look = self.original if found is self.tables.original else self.holdout
        assert look is not None
        return look

    def seen(self, name: str) -> list[Seen]:
        """A column in every table, the original first."""
        looks: list[tuple[str, Found, TableProfile]] = [
            (t.spoken, t, self.real(t)) for t in self.tables.real
        ]
        for replicate, (found, look) in self.releases.items():
            part = f", replicate {replicate}" if found.replicate_column else ""
            looks.insert(-1 if self.holdout else len(looks), (found.spoken + part, found, look))
        return [Seen(spoken, look.columns[found.columns[name]]) for spoken, found, look in looks]


def _raise(notes: Notes) -> None:
    if notes.faults:
        faults = list(dict.fromkeys(notes.faults))
        count = "a fault" if len(faults) == 1 else f"{len(faults)} faults"
        raise SchemaError(f"{count} in the tables:\n" + "\n".join(f"  {f}" for f in faults))


def _look_at_all(tables: Tables, config: Config, notes: Notes) -> _Looks:
    original = _look(tables.original, config, notes)[None]
    releases: dict[int, tuple[Found, TableProfile]] = {}
    for replicate, found in tables.releases.items():
        looks = _look(found, config, notes)
        if found.replicate_column is None:
            releases[replicate] = (found, looks[None])
        else:
            releases |= {r: (found, look) for r, look in _by_number(found, looks, notes).items()}
    holdout = _look(tables.holdout, config, notes)[None] if tables.holdout else None
    return _Looks(tables, original, releases, holdout)


def _look(found: Found, config: Config, notes: Notes) -> dict[str | None, TableProfile]:
    source = found.source
    sets = {name: [found.columns[c] for c in columns] for name, columns in config.sets.items()}
    content = found.columns.values() if found.real else [c for c in source.columns if c != found.replicate_column]
    codes = {found.columns[n]: c for n, c in config.columns.missing_codes.items() if n in found.columns}
    looks = profile(
        source,
        dict.fromkeys(found.columns.values()),
        content,
        codes,
        sets if found.real else {},
        found.replicate_column,
    )
    corrupt = sum(look.n_corrupt for look in looks.values())
    if corrupt:
        notes.faults.append(
            f"{found.spoken}: {corrupt} records have more or fewer fields than the header, which has "
            f"{len(source.columns)}. Check the delimiter, and that a field with a delimiter or a line break in it is in "
            "quotation marks"
        )
    if not any(look.n for look in looks.values()):
        notes.faults.append(f"{found.spoken}: there are no records in it")
    return looks


def _by_number(found: Found, looks: Mapping[str | None, TableProfile], notes: Notes) -> dict[int, TableProfile]:
    """Replicates of one table by their numbers, which must be 1..m."""
    if not looks:
        return {}
    setting = f"release.replicate_column: {found.replicate_column!r} of {found.spoken}"
    without = looks[None].n if None in looks else 0
    if without:
        notes.faults.append(f"{setting} is missing in {without} records")
    numbers = {text: re.fullmatch(r"(\d{1,9})(\.0*)?", text) for text in looks if text is not None}
    if len(looks) > MAX_REPLICATES or not all(numbers.values()):
        notes.faults.append(f"{setting} does not number the replicates: expected whole numbers 1..m, at most {MAX_REPLICATES}")
        return {}
    by_number = {int(match.group(1)): looks[text] for text, match in numbers.items() if match}
    if sorted(by_number) != list(range(1, len(by_number) + 1)) or len(by_number) < len(numbers):
        notes.faults.append(f"{setting}: expected the numbers 1..m without gaps, found {sorted(by_number)}")
    return dict(sorted(by_number.items()))


def _quasi_identifiers(
    looks: _Looks, config: Config, notes: Notes
) -> tuple[list[tuple[Decision, int]], dict[str, list[str]]]:
    """Those in use, each with its missing count in the original, and the names in each set."""
    decisions: dict[str, Decision] = {}
    missing: dict[str, int] = {}
    empty, constant = set(), set()
    for name in config.all_quasi_identifiers:
        seen = looks.seen(name)
        decision = decide_quasi_identifier(name, seen, config, notes)
        if decision is None:
            continue
        decisions[name] = decision
        original = seen[0].profile
        missing[name] = original.n_without_value(decision.scale == "numeric")
        if missing[name] == original.n:
            empty.add(name)
        elif original.constant and not missing[name]:
            constant.add(name)
        notes.warnings.extend(
            f"{name!r} has no value at all in {s.table}: nothing can be learnt from it there"
            for s in seen[1:]
            if s.profile.n and not s.profile.n_present and name not in empty
        )
    sets = {}
    for set_name, columns in config.sets.items():
        known = [c for c in columns if c in decisions and c not in empty]
        sets[set_name] = [c for c in known if c not in constant] or known
        if not known and all(c in decisions for c in columns):
            notes.faults.append(f"{_set_setting(config, set_name)}: no quasi-identifier has any value in the original")
    used = {c for columns in sets.values() for c in columns}
    for name in sorted(empty):
        notes.warnings.append(f"{name!r} has no value at all in the original: it is left out of the quasi-identifiers")
    for name in sorted(constant):
        what = "nothing else is left, so it is kept" if name in used else "it is left out of the quasi-identifiers"
        notes.warnings.append(f"{name!r} has one single value in the original: {what}")
    return [(decisions[n], missing[n]) for n in sorted(used)], sets


def _set_setting(config: Config, name: str) -> str:
    return f"qi_sets.{name}" if config.qi_sets else "quasi_identifiers"


def _targets(looks: _Looks, config: Config, notes: Notes) -> list[tuple[Decision, SensitiveAttribute, int]]:
    """What each sensitive attribute is, its settings, and its missing count in the original."""
    targets = []
    for attribute in config.sensitive_attributes:
        seen = looks.seen(attribute.name)
        decision = decide_target(attribute, seen, config.threshold.error, notes)
        if decision is None:
            continue
        numeric = decision.scale == "numeric"
        for s in seen:
            if s.profile.n and s.profile.n_without_value(numeric) >= s.profile.n:
                notes.faults.append(f"sensitive_attributes: {attribute.name!r} has no value at all in {s.table}")
        original = seen[0].profile
        # Far above the limit by the approximate count: then its levels are not even counted.
        if decision.scale == "categorical" and original.distinct > 1.3 * attribute.max_levels + 10:
            notes.faults.append(_too_many(attribute, f"about {original.distinct}", mostly_numbers(original)))
        targets.append((decision, attribute, original.n_without_value(numeric)))
    return targets


def _too_many(attribute: SensitiveAttribute, found: str, numbers: bool = False) -> str:
    hint = "; most of its values are numbers: if the texts mean missing, see columns.missing_codes" if numbers else ""
    return (
        f"sensitive_attributes: {attribute.name!r} has {found} levels, more than max_levels ({attribute.max_levels})"
        f"{hint}. Group them, declare type: continuous if it is a number, or raise max_levels"
    )


def _finish(
    looks: _Looks, plan: Plan, sets: Mapping[str, list[str]], identity: Mapping[str, dict], notes: Notes
) -> Aligned:
    tables = looks.tables
    real = {t.place: keep(frame_of(t, plan, identity[t.place]), t.source) for t in tables.real}
    original = real[tables.original.place]
    try:
        levels = level_counts(original, plan)
        for found in tables.real:
            notes.faults += key_faults(real[found.place], found, plan.config)
            notes.faults += weight_faults(real[found.place], found, plan.config)
        for attribute, counts in zip(plan.attributes, levels, strict=True):
            n_levels = len([label for label in counts if label is not None])
            if n_levels > attribute.max_levels:
                notes.faults.append(_too_many(attribute, str(n_levels)))
        _raise(notes)
    except Exception:
        for frame in real.values():
            frame.unpersist()
        raise
    quasi = tuple(
        QuasiIdentifier(d.name, f"q{i}", d.scale, missing) for i, (d, missing) in enumerate(plan.quasi_identifiers)
    )
    column = {q.name: q.column for q in quasi}
    targets = tuple(
        Target(d.name, f"s{i}", "continuous" if d.scale == "numeric" else "categorical", attribute, missing, levels[i])
        for i, (d, attribute, missing) in enumerate(plan.targets)
    )
    return Aligned(
        original=original,
        releases={r: frame_of(found, plan, {}, r) for r, (found, _) in looks.releases.items()},
        holdout=real[tables.holdout.place] if tables.holdout else None,
        quasi_identifiers=quasi,
        sets={name: tuple(column[c] for c in columns) for name, columns in sets.items()},
        targets=targets,
        n_original=looks.original.n,
        n_release={r: look.n for r, (_, look) in looks.releases.items()},
        n_holdout=looks.holdout.n if looks.holdout else 0,
        patterns=looks.original.patterns,
        warnings=list(dict.fromkeys(notes.warnings)),
        original_digest=looks.original.digest,
        release_digests={r: look.digest for r, (_, look) in looks.releases.items()},
        holdout_digest=looks.holdout.digest if looks.holdout else None,
    )

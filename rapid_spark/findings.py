"""What the counts of the aligned tables mean: faults that stop an evaluation, warnings, columns that cannot be used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .agreement import Notes, mostly_numbers
from .config import Config, SensitiveAttribute
from .counts import Figures
from .kinds import FAMILIES
from .normalise import Plan, Variable
from .profiles import TableTypes
from .roles import Found, Tables

FEW_VALUES = 10
NEAR_UNIQUE_FROM = 50  # levels; in a small table most levels are few all the same


@dataclass(frozen=True)
class Counted:
    """Figures of all tables.

    Attributes:
        tables: the tables.
        types: of each one's columns, by its place.
        original: figures of the original.
        releases: by replicate, the table it is in, and its figures.
        holdout: figures of the holdout, where there is one.
        sets: by name, the columns of the quasi-identifiers the configuration asks for.
    """

    tables: Tables
    types: Mapping[str, TableTypes]
    original: Figures
    releases: dict[int, tuple[Found, Figures]]
    holdout: Figures | None
    sets: dict[str, tuple[str, ...]]

    @property
    def everywhere(self) -> list[tuple[str, Figures]]:
        """Every table or replicate as messages name it, the original first."""
        found = [(self.tables.original.spoken, self.original)]
        for replicate, (table, figures) in self.releases.items():
            part = f", replicate {replicate}" if table.replicate_column else ""
            found.append((table.spoken + part, figures))
        if self.tables.holdout and self.holdout:
            found.append((self.tables.holdout.spoken, self.holdout))
        return found


def check_rows(found: Found, figures: Figures, config: Config, notes: Notes) -> None:
    """Faults of a table of real people: no rows, rows without key or role, weights that are none."""
    n, roles = figures.n, config.columns
    if n == 0:
        notes.faults.append(f"{found.spoken}: there are no records in it")
        return
    of = f"of {n} records of {found.spoken}"
    if figures.n_unidentified:
        names = " or ".join(repr(k) for k in roles.key)
        notes.faults.append(f"columns.key: {names} is missing in {figures.n_unidentified} {of}")
    for role, without in figures.n_without.items():
        if without:
            notes.faults.append(f"columns.{role}: {getattr(roles, role)!r} is missing in {without} {of}")
    if figures.n_negative:
        notes.faults.append(f"columns.weight: {roles.weight!r} is negative in {figures.n_negative} {of}")
    elif figures.total_weight == 0:
        notes.faults.append(f"columns.weight: {roles.weight!r} is zero in every record of {found.spoken}")


def usable_sets(counted: Counted, plan: Plan, notes: Notes) -> dict[str, tuple[str, ...]]:
    """The sets without quasi-identifiers that have no value, or one single value, in the original.

    Where nothing else is left, those with a single value stay: what is then guessed is what anybody guesses.
    """
    n, figures = counted.original.n, counted.original.columns
    empty = {v.column for v in plan.quasi_identifiers if figures[v.column].n_missing == n}
    constant = {
        v.column for v in plan.quasi_identifiers if figures[v.column].constant and not figures[v.column].n_missing
    }
    sets = {}
    for name, columns in counted.sets.items():
        known = tuple(c for c in columns if c not in empty)
        sets[name] = tuple(c for c in known if c not in constant) or known
        if not known:
            setting = f"qi_sets.{name}" if plan.config.qi_sets else "quasi_identifiers"
            notes.faults.append(f"{setting}: no column in it has a value in {counted.tables.original.spoken}")
    used = {c for columns in sets.values() for c in columns}
    for v in plan.quasi_identifiers:
        if v.column in empty:
            notes.warnings.append(f"{v.decision.name!r} has no value at all in the original: it is not used")
            continue
        if v.column in constant:
            how = "it is used only where nothing else is left" if v.column in used else "it is not used"
            notes.warnings.append(f"{v.decision.name!r} has one single value in the original: {how}")
        _warn_of_levels(counted, v, notes)
        _warn_of_values(counted, v, notes)
    return sets


def check_targets(counted: Counted, plan: Plan, notes: Notes) -> None:
    """Faults and warnings of the sensitive attributes: no value at all, too many levels, numbers that look like codes."""
    types = counted.types[counted.tables.original.place]
    for variable, attribute in plan.attributes:
        empty = [where for where, f in counted.everywhere if f.columns[variable.column].n_missing == f.n]
        for where in empty:
            notes.faults.append(f"sensitive_attributes: {attribute.name!r} has no value at all in {where}")
        if empty:
            continue
        _warn_of_values(counted, variable, notes)
        distinct = counted.original.columns[variable.column].distinct
        is_number = FAMILIES[variable.decision.kind] == "number"
        if is_number and attribute.type is None and distinct <= FEW_VALUES:
            notes.warnings.append(
                f"sensitive_attributes: {attribute.name!r} is a number with only {distinct} different values and is "
                "used as continuous; if they are codes of categories, declare type: categorical"
            )
        # Far above the limit by the approximate count: then the levels are not even counted.
        if not variable.numeric and distinct > 1.3 * attribute.max_levels + 10:
            column = types.columns[counted.tables.original.columns[attribute.name]]
            notes.faults.append(too_many_levels(attribute, f"about {distinct}", mostly_numbers(column)))


def too_many_levels(attribute: SensitiveAttribute, found: str, numbers: bool = False) -> str:
    """The fault of a categorical target with more levels than allowed."""
    hint = "; most of its values are numbers: if its texts mean missing, declare columns.missing_codes" if numbers else ""
    return (
        f"sensitive_attributes: {attribute.name!r} has {found} levels, more than max_levels "
        f"({attribute.max_levels}){hint}. Group them, declare type: continuous if it is a number, or raise max_levels"
    )


def repeated_fault(repeated: tuple[int, int], found: Found, config: Config) -> str:
    """The fault of keys that stand for several records."""
    keys, rows = repeated
    names = " with ".join(repr(k) for k in config.columns.key)
    return (
        f"columns.key: {keys} values of {names} stand for {rows} records of {found.spoken}: each must stand for one. "
        "Name further columns that tell the records apart; where a person has several records, name columns.person too"
    )


def _warn_of_levels(counted: Counted, variable: Variable, notes: Notes) -> None:
    n = counted.original.n
    distinct = counted.original.columns[variable.column].distinct
    if not variable.numeric and distinct > max(NEAR_UNIQUE_FROM, n / 2):
        notes.warnings.append(
            f"{variable.decision.name!r} has about {distinct} levels for {n} records: nearly every record has its own, "
            "from which nothing can be learnt. Group its levels, leave it out, or declare it numeric under columns.types"
        )


def _warn_of_values(counted: Counted, variable: Variable, notes: Notes) -> None:
    name = variable.decision.name
    for where, figures in counted.everywhere:
        column = figures.columns[variable.column]
        if column.n_infinite:
            notes.warnings.append(f"{name!r} in {where}: {column.n_infinite} infinite values are taken as missing")
        if column.n_missing == figures.n and figures is not counted.original:
            notes.warnings.append(f"{name!r} has no value at all in {where}: nothing can be learnt from it there")

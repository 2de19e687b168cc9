"""The tables of an evaluation with the configuration's recodes: done to real people's, counted in all."""

from __future__ import annotations

from dataclasses import replace

from ..agreement import Notes
from ..config import Config, ConfigError
from ..roles import Found, Tables
from .apply import Step, counts, recode_table, sentences


def coarsened(tables: Tables, config: Config, notes: Notes) -> Tables:
    """The tables with the original and the holdout recoded; the release is taken as it was coarsened.

    Suppressed cells of every table, and values of real people without a place in a recode, are counted as warnings.
    Runs no job where nothing is recoded.

    Args:
        tables: with their columns found.
        config: with `recode`.
        notes: faults and warnings are added here.
    """
    if not config.recode:
        return tables

    def done(found: Found) -> Found:
        steps = steps_of(found, config)
        try:
            recoded = recode_table(found.source, steps) if found.real else found.source
        except ConfigError as error:
            notes.faults += str(error).splitlines()
            return found
        counted = counts(found.source, steps, recoded if recoded is not found.source else None)
        notes.warnings += sentences(counted, found.spoken)
        return replace(found, source=recoded)

    holdout = done(tables.holdout) if tables.holdout else None
    return Tables(done(tables.original), {r: done(found) for r, found in tables.releases.items()}, holdout)


def steps_of(found: Found, config: Config) -> list[Step]:
    """The recodes of a table's named columns."""
    return [
        Step(name, found.columns[name], recode, config.columns.missing_codes.get(name, ()))
        for name, recode in config.recode.items()
        if name in found.columns
    ]

"""Settings of one release of an audit in the registry's own names, so that its files can be read and written as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..audit.releases import listed
from ..audit.settings import AuditConfig, Registry, Release, evaluation_settings, for_release
from ..config import Config, ConfigError, Table, parse, parse_as

ROLES = ("person", "household", "weight", "stratum", "psu")


def own_names(
    settings: Mapping[str, Any], columns: Mapping[str, str], levels: Mapping[str, Mapping[str, str]]
) -> dict[str, Any]:
    """Settings in common names as settings in a registry's own.

    A column whose codes the vocabulary translates is categorical: its own codes may be numbers.

    Args:
        settings: an evaluation's configuration as plain data.
        columns: common name by own name.
        levels: per common column, common level by own code.
    """
    own = {common: name for name, common in columns.items()}

    def name(common: Any) -> Any:
        return own.get(common, common)

    def codes(column: str, several: Any) -> list[Any]:
        back: dict[str, list[str]] = {}
        for code, level in levels.get(column, {}).items():
            back.setdefault(level, []).append(code)
        return [code for level in several for code in back.get(str(level), [level])]

    roles = dict(settings["columns"])
    quasi = [c for group in (settings["quasi_identifiers"], *settings["qi_sets"].values()) for c in group]
    types = {name(c): kind for c, kind in roles["types"].items()}
    types |= {name(c): "categorical" for c in quasi if c in levels}
    attributes = [
        {**a, "name": name(a["name"]), "sensitive_levels": codes(a["name"], a["sensitive_levels"]),
         "type": "categorical" if a["name"] in levels else a["type"]}
        for a in settings["sensitive_attributes"]
    ]  # fmt: skip
    recode = {
        name(c): {**r, "merge": {new: codes(c, old) for new, old in r["merge"].items()}} if r.get("merge") else r
        for c, r in settings["recode"].items()
    }
    found = {
        **settings,
        "columns": {
            **roles, "key": [name(c) for c in roles["key"]], "types": types,
            **{part: {name(c): v for c, v in roles[part].items()} for part in ("missing_codes", "dates")},
            **{role: name(roles[role]) for role in ROLES},
        },
        "quasi_identifiers": [name(c) for c in settings["quasi_identifiers"]],
        "qi_sets": {k: [name(c) for c in v] for k, v in settings["qi_sets"].items()},
        "sensitive_attributes": attributes, "recode": recode,
        "baseline": {"by": [name(c) for c in settings["baseline"]["by"]]},
    }  # fmt: skip
    policy = settings.get("policy")
    if policy:
        found["policy"] = {**policy, "attributes": {name(a): v for a, v in policy["attributes"].items()}}
    return found


@dataclass(frozen=True)
class Audited:
    """One release of an audit.

    Attributes:
        audit: its configuration.
        registry, release: which.
        config: settings of its evaluation, in the registry's own names.
    """

    audit: AuditConfig
    registry: Registry
    release: Release
    config: Config

    @property
    def common(self) -> dict[str, str]:
        """Common name by own name."""
        return dict(self.registry.vocabulary.columns)

    def coarser(self, recode: Mapping[str, Any], tables: Sequence[Table], release_id: str) -> AuditConfig:
        """The audit of this registry with a coarser release in place of this one.

        Args:
            recode: by the registry's own names and codes, what was done.
            tables: its files.
            release_id: its id.
        """
        changed = common_recode(recode, self.common, self.registry.vocabulary.levels)
        others = [r.model_dump(mode="json") for r in listed(self.registry) if r.id != self.release.id]
        new = {
            "id": release_id, "date": self.release.date, "tables": [t.model_dump(mode="json") for t in tables],
            "recode": {**{k: r.model_dump(mode="json") for k, r in self.release.recode.items()}, **changed},
        }  # fmt: skip
        registry = {**self.registry.model_dump(mode="json"), "releases": [*others, new]}
        return parse_as(AuditConfig, {**self.audit.model_dump(mode="json"), "registries": [registry], "compare": {}})


def audited(data: Mapping[str, Any], registry: str, release_id: str) -> Audited:
    """One release of an audit, from the configuration that its run recorded.

    Raises:
        ConfigError: the files of the release are not there any more.
    """
    audit = parse_as(AuditConfig, data)
    mine = next(r for r in audit.registries if r.name == registry)
    releases = {r.id: r for r in listed(mine)}
    if release_id not in releases:
        raise ConfigError(f"release {release_id} of {registry}: its files are gone; there are {', '.join(releases)}")
    config = for_release(evaluation_settings(audit)[registry], releases[release_id])
    own = own_names(config.model_dump(mode="json"), mine.vocabulary.columns, mine.vocabulary.levels)
    return Audited(audit, mine, releases[release_id], parse(own))


def common_recode(
    recode: Mapping[str, Any], columns: Mapping[str, str], levels: Mapping[str, Mapping[str, str]]
) -> dict[str, Any]:
    """A recode in own names and codes as one in common names and levels."""
    found = {}
    for own, change in recode.items():
        common = columns.get(own, own)
        told = levels.get(common, {})
        merge = {new: [told.get(str(code), code) for code in old] for new, old in dict(change.get("merge") or {}).items()}
        found[common] = {**change, "merge": merge} if merge else dict(change)
    return found

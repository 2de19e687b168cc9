"""Settings of one release of an audit in the registry's own names, so that its files can be read and written as they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
            "missing_codes": {name(c): v for c, v in roles["missing_codes"].items()},
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

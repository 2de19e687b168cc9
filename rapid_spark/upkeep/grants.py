"""Rights on a store in a catalog, as SQL for whoever may grant them; nothing is run."""

from __future__ import annotations

from ..config import ConfigError
from ..tables import tables, views
from ..warehouse import resolve

RESTRICTED = ("risk_records",)  # rows about persons


def statements(location: str, readers: str, restricted: str | None = None) -> list[str]:
    """GRANT statements: aggregates and views for one group, rows about persons for another.

    SELECT is granted table by table: granted on the schema it would hold for `risk_records` too. A view is read with its
    owner's rights, so readers of `joint_risk`, counts only, need none on the records behind it.

    Args:
        location: `schema:[catalog.]schema`.
        readers: group that reads aggregates, verdicts, decisions, ledger and views.
        restricted: group that may also read rows about persons; none when left out.

    Raises:
        ConfigError: the location is a directory, or a group has no name.
    """
    directory, schema = resolve(location)
    if directory is not None:
        raise ConfigError(
            f"--print-grants: {location} is a directory, whose files are their owner's alone; rights are granted in a "
            "catalog: --store schema:[catalog.]schema"
        )
    groups = [readers] if restricted is None or restricted == readers else [readers, restricted]
    if not all(group.strip() for group in groups):
        raise ConfigError("--print-grants: name the group")
    *catalog, _ = schema.split(".")
    made = []
    for group in groups:
        if catalog:
            made.append(f"GRANT USE CATALOG ON CATALOG {catalog[0]} TO {_quoted(group)}")
        made.append(f"GRANT USE SCHEMA ON SCHEMA {schema} TO {_quoted(group)}")
    for name in [*tables(), *views()]:
        if name not in RESTRICTED:
            kind = "VIEW" if name in views() else "TABLE"
            made += [f"GRANT SELECT ON {kind} {schema}.`{name}` TO {_quoted(group)}" for group in groups]
    for name in RESTRICTED:
        if restricted is not None:
            made.append(f"GRANT SELECT ON TABLE {schema}.`{name}` TO {_quoted(restricted)}")
    return made


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"

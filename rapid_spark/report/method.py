"""Sections: how it was computed, on what evidence, and what it does not say."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from .. import wording
from ..config import Config
from ..evidence import tested
from ..wording import count, number, plain
from .cells import Columns, decimal
from .markup import Html, fold, join, listing, note, tag
from .page import MOST_ROWS, Page

_COUNTS: Columns = {
    "threshold": decimal("threshold"), "defined": lambda r: count(r.get("n")),
    "undefined": lambda r: count(r.get("n_undefined")), "dropped": lambda r: count(r.get("n_dropped")),
    "level unseen": lambda r: count(r.get("n_unseen_level")),
    "class unseen": lambda r: count(r.get("n_unseen_class")), "trained on": lambda r: count(r.get("n_train")),
    "release rows": lambda r: count(r.get("n_release")), "seconds to fit": decimal("fit_seconds"),
}
_DIGESTS = {
    "seed": "seed", "original_digest": "digest of the original", "release_digest": "digest of the release",
    "settings_digest": "digest of the settings", "package_version": "rapid-spark",
}


def how(page: Page) -> Html:
    data, summary = page.data, page.data.summary
    measures = {m: wording.MEASURES[m] for m in map(str, summary["measure"]) if m in wording.MEASURES}
    terms = {**wording.TERMS, **measures}
    meanings = tag("dl", *(tag(e, x) for k, v in terms.items() for e, x in (("dt", k), ("dd", f"{v}."))))
    rules = [
        [plain(a.get("name")), plain(a.get("type") or "read from the data"), _missing_rule(a, summary),
         ", ".join(map(str, a.get("sensitive_levels") or ())) or "all"]
        for a in data.settings.get("sensitive_attributes", ())
    ]
    heads = ["attribute", "type", "missing values", "levels that would hurt"]
    missing = listing("Sensitive attributes", heads, rules, 4) if rules else None
    counts = page.table("Counts used", summary[summary["scored_on"] == "original"], _COUNTS)
    sizes = note(
        "Undefined: records without a true value, or for which the measure is not defined. Dropped: left out "
        "because the sensitive value is missing. Unseen: people with a level, or a class, that the release lacks."
    )
    folded = fold("Counts of each combination", counts, sizes)
    return join([meanings, missing, folded, _settings(page), _evidence(page)])


def what_was_tested(page: Page) -> Html | None:
    """Everything a disclosure review asks about, with what this run has to show for it."""
    if not len(page.data.summary):
        return None
    rows = [[item.what, item.state, plain(item.detail, 300)] for item in tested(page.data)]
    return listing("What was tested, and what was not", ["what", "state", "how, or what is lacking"], rows, 3)


def _missing_rule(attribute: Mapping[str, Any], summary: pd.DataFrame) -> str:
    """The rule in use, also where it was left to the default."""
    if attribute.get("missing"):
        value = f" {attribute['constant']:g}" if number(attribute.get("constant")) is not None else ""
        return f"{attribute['missing']}{value}"
    types = set(summary.loc[summary["sensitive_attribute"] == attribute.get("name"), "target_type"].dropna())
    rules = {"categorical": "class (default)", "continuous": "drop (default)"}
    return rules.get(next(iter(types), ""), "default")


def _settings(page: Page) -> Html | None:
    given, default = dict(leaves(page.data.settings)), dict(leaves(Config().model_dump(mode="json")))
    rows = [
        [path, plain(value, 400), "default" if default.get(path) == value else "given"]
        for path, value in given.items()
    ]
    heads = ["setting", "value", "from"]
    table = listing("Settings of the run", heads, rows[:MOST_ROWS], 3, len(rows) - MOST_ROWS)
    return fold("Settings", table) if rows else None


def leaves(value: Any, path: str = "") -> Iterable[tuple[str, str]]:
    """Settings by path, as text; empty ones are left out."""
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}" if path else str(key))
    elif value not in (None, [], {}, ()):
        yield path, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _evidence(page: Page) -> Html:
    data, summary = page.data, page.data.summary
    rows = [["run", data.run_id, ""], ["command", data.command or wording.NOT_KNOWN, ""]]
    read_tables = {"original": data.inputs.get("original"), "holdout": data.inputs.get("holdout")}
    read_tables |= {f"release, copy {k}": v for k, v in dict(data.inputs.get("releases") or {}).items()}
    for place, found in read_tables.items():
        if isinstance(found, Mapping):
            version = "" if found.get("version") is None else f"Delta version {found['version']}"
            size = "" if found.get("rows") is None else f"{count(found['rows'])} rows"
            rows.append([place, plain(found.get("name"), 300), ", ".join(filter(None, (size, version)))])
    for column, label in _DIGESTS.items():
        values = summary[column].dropna().drop_duplicates() if column in summary else pd.Series(dtype=object)
        rows += [[label, str(int(v)) if column == "seed" else str(v), ""] for v in values.head(20)]
    rows += [[k, v, ""] for k, v in data.versions.items() if k != "rapid-spark"]
    table = listing("Evidence", ["what", "value", "size"], rows, 3)
    return fold("Inputs, digests, versions and seed", table)


def limits(page: Page) -> Html:
    return join([
        tag("h3", "What the interval means"), tag("p", wording.INTERVAL_MEANING),
        tag("p", "The largest of several attackers is chosen by looking: its upper end is the largest of the upper ends, "
                 "and its lower end is the largest of the lower ends at an error rate divided by the number of attackers. "
                 "Over several copies the interval is that of a mean of m figures (Student's t with m - 1 degrees of "
                 "freedom): it speaks of releases made in the same way, not of samples of people."),
        tag("h3", "What the figures do not say"), tag("ul", *(tag("li", text) for text in wording.LIMITS)),
    ])

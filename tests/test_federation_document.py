"""The exported file: what it says, that it cannot be changed unnoticed, and what an import refuses; no Spark."""

from __future__ import annotations

import hashlib
import hmac
import json
from datetime import UTC, date, datetime

import pandas as pd
import pytest

from rapid_spark.config import ConfigError
from rapid_spark.federation.checks import check
from rapid_spark.federation.document import Document, canonical, decode, digest, encode
from rapid_spark.federation.outgoing import rule_of, without_places

KEY = b"0123456789abcdef-a-shared-secret"
COMMON = {"run_id": "r1", "registry": "at", "release_id": "v1", "replicate": 1, "scored_on": "original", "qi_set": "all",
          "sensitive_attribute": "ill", "attacker": "rf", "measure": "normalized_gain", "weighting": "none"}  # fmt: skip


def document(**cells):
    summary = {**COMMON, "n": 2**53 + 1, "n_at_risk": 300, "rapid": 0.1 + 0.2, "status": "ok",
               "evaluated_at": datetime(2026, 5, 1, 12, 0, 0, 7, UTC), "release_date": date(2026, 5, 1),
               "quasi_identifiers": ["age", "Größe"], **cells}  # fmt: skip
    curve = [{**COMMON, "threshold": t, "n_at_risk": 300, "rapid": 0.3} for t in (0.3, 0.1)]
    group = {**COMMON, "columns": ["sex"], "level": ["f"], "n": 500, "n_at_risk": 100, "rapid": 0.2, "suppressed": False}
    tables = {"risk_summary": [summary], "risk_curve": curve, "risk_subgroups": [group]}
    manifest = {"run_id": "r1", "releases": [{"registry": "at", "release_id": "v1"}], "protection": {"min_cell_count": 10}}
    frames = {name: pd.DataFrame(rows, dtype=object) for name, rows in tables.items()}
    return Document(manifest, frames, {"threshold": {"tolerance": 0.1}}, {"python": "3.12"})


def test_what_is_written_is_read_exactly():
    back = decode(encode(document()))
    row = back.tables["risk_summary"].iloc[0]
    assert (row["n"], row["rapid"], row["quasi_identifiers"]) == (2**53 + 1, 0.1 + 0.2, ["age", "Größe"])
    assert row["evaluated_at"] == datetime(2026, 5, 1, 12, 0, 0, 7, UTC) and row["release_date"] == date(2026, 5, 1)
    assert back.settings == {"threshold": {"tolerance": 0.1}} and not back.signed
    assert check(back) == [("at", "v1")]


def test_the_order_of_rows_does_not_matter():
    one, other = document(), document()
    other.tables["risk_curve"].sort_values("threshold", inplace=True)
    assert encode(one) == encode(other)


def test_digests_and_signature_are_what_their_names_say():
    whole = json.loads(encode(document(), KEY))
    part = json.dumps(whole["tables"]["risk_curve"], sort_keys=True, separators=(",", ":")).encode()
    assert whole["manifest"]["tables"]["risk_curve"] == {"rows": 2, "sha256": hashlib.sha256(part).hexdigest()}
    manifest = json.dumps(whole["manifest"], sort_keys=True, separators=(",", ":")).encode()
    assert whole["manifest_sha256"] == hashlib.sha256(manifest).hexdigest()
    assert whole["signature"]["value"] == hmac.new(KEY, manifest, "sha256").hexdigest()
    assert KEY.decode() not in json.dumps(whole)


def tampered(change, key=None):
    whole = json.loads(encode(document(), key))
    change(whole)
    return json.dumps(whole).encode()


CHANGES = {
    "a figure": lambda w: w["tables"]["risk_summary"]["rows"][0].__setitem__(
        w["tables"]["risk_summary"]["columns"].index("n_at_risk"), 3),
    "a row less": lambda w: w["tables"]["risk_curve"]["rows"].pop(),
    "a row twice": lambda w: w["tables"]["risk_curve"]["rows"].append(w["tables"]["risk_curve"]["rows"][0]),
    "a table less": lambda w: w["tables"].pop("risk_curve"),
    "the run": lambda w: w["manifest"].__setitem__("run_id", "r2"),
    "the settings": lambda w: w["settings"].__setitem__("threshold", {"tolerance": 0.5}),
    "the versions": lambda w: w["package_versions"].clear(),
    "records": lambda w: w["tables"].__setitem__("risk_records", {"columns": ["record_id"], "rows": [["7"]]}),
    "a further part": lambda w: w.__setitem__("note", "x"),
    "columns": lambda w: w["tables"]["risk_curve"]["columns"].reverse(),
}  # fmt: skip


@pytest.mark.parametrize("key", [None, KEY], ids=["digests", "signed"])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_tampered_file_is_refused(change, key):
    with pytest.raises(ConfigError):
        decode(tampered(change, key), key)


def test_every_changed_byte_of_a_figure_is_noticed():
    content = encode(document())
    place = content.index(b"9007199254740993")
    for i in range(16):
        changed = bytearray(content)
        changed[place + i] = ord("8") if changed[place + i] != ord("8") else ord("7")
        with pytest.raises(ConfigError):
            decode(bytes(changed))


def test_whoever_makes_the_digests_anew_lacks_the_key():
    def forge(whole):
        CHANGES["a figure"](whole)
        part = whole["tables"]["risk_summary"]
        whole["manifest"]["tables"]["risk_summary"]["sha256"] = digest(part)
        whole["manifest_sha256"] = digest(whole["manifest"])

    decode(tampered(forge))  # digests alone do not hold out against that
    with pytest.raises(ConfigError, match="signature does not fit"):
        decode(tampered(forge, KEY), KEY)


@pytest.mark.parametrize(
    ("sent", "mine", "allow", "message"),
    [
        (KEY, KEY, False, None),
        (None, None, False, None),
        (KEY, None, False, "no key to verify"),
        (KEY, None, True, None),
        (None, KEY, False, "not signed"),
        (None, KEY, True, None),
        (KEY, b"another-key-of-enough-bytes", False, "signature does not fit"),
        (KEY, b"another-key-of-enough-bytes", True, "signature does not fit"),
        (b"short", None, False, "at least 16"),
    ],
)
def test_who_may_sign_what(sent, mine, allow, message):
    if message is None:
        assert decode(encode(document(), sent), mine, allow).signed == (sent is not None and mine is not None)
        return
    with pytest.raises(ConfigError, match=message):
        decode(encode(document(), sent), mine, allow)


@pytest.mark.parametrize("version", [None, 0, 2, "1", True])
def test_an_unknown_schema_version_is_refused(version):
    def change(whole):
        whole["manifest"]["schema_version"] = version

    with pytest.raises(ConfigError, match="schema version"):
        decode(tampered(change))


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"\x1f\x8b\x00", b'{"format": "other"}', b'{"a": 1, "a": 2}', b'{"format": NaN}', b"[" * 100_000,
     b'{"format": "rapid-spark-export", "manifest": 1}', b'{"format": "rapid-spark-export", "manifest": {}}',
     encode(document())[:-300]],
)  # fmt: skip
def test_what_is_no_export_is_refused_with_a_message(content):
    with pytest.raises(ConfigError, match="not an export"):
        decode(content)


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ({"rapid": 1.2}, "not between 0 and 1"),
        ({"n": 200}, "more at risk"),
        ({"n": "many"}, "does not fit bigint"),
        ({"status": "fine"}, "status"),
        ({"registry": "de"}, "another run, registry"),
        ({"run_id": "r9"}, "another run, registry"),
        ({"attacker": None}, "must not be null"),
    ],
)
def test_rows_that_no_store_would_have_are_refused(cells, message):
    with pytest.raises(ConfigError, match=message) as error:
        check(decode(encode(document(**cells))))
    assert "many" not in str(error.value)


@pytest.mark.parametrize("ids", ["../x", "a b", "", "x'; drop table runs; --", 7, None])
def test_ids_that_could_do_harm_are_refused(ids):
    bad = document()
    bad.manifest["releases"] = [{"registry": ids, "release_id": "v1"}]
    with pytest.raises(ConfigError, match="are not all names"):
        check(decode(encode(bad)))


def test_a_combination_that_occurs_twice_is_refused():
    bad = document()
    bad.tables["risk_curve"].loc[:, "threshold"] = 0.3
    with pytest.raises(ConfigError, match="occurs twice"):
        check(decode(encode(bad)))


def test_settings_travel_without_places():
    settings = {"original": {"path": "/srv/registry.csv"}, "threshold": {"tolerance": 0.1}, "store": {"location": "x"},
                "registries": [{"name": "at", "releases": [{"path": "/srv/at"}], "columns": {"key": ["id"]}}]}  # fmt: skip
    assert without_places(settings) == {
        "threshold": {"tolerance": 0.1}, "registries": [{"name": "at", "columns": {"key": ["id"]}}]
    }  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "asked", "expected"),
    [
        ({}, (None, None), (10, None)),
        ({"drivers": {"min_cell_count": 20}, "publish": {"rounding": 5}}, (None, None), (20, 5)),
        ({"drivers": {"min_cell_count": 20}, "publish": {"rounding": 5}}, (3, 5), (20, 5)),
        ({"drivers": {"min_cell_count": 5}}, (7, 30), (30, 7)),
        ({"defaults": {"publish": {"rounding": 3}},
          "registries": [{"settings": {"drivers": {"min_cell_count": 20}, "publish": {"rounding": 5}}}]}, (None, None), (20, 5)),
    ],
)
def test_the_rule_is_the_runs_own_or_stricter(settings, asked, expected):
    rule = rule_of(settings, *asked)
    assert (rule.min_cell_count, rule.rounding) == expected


def test_canonical_json_is_one_text():
    assert canonical({"b": [1.0, None], "a": "é"}) == b'{"a":"\\u00e9","b":[1.0,null]}'

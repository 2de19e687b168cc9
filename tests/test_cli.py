"""The command line where no Spark is needed: options, faults, exit codes, the template."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from rapid_spark import cli
from rapid_spark.cli import entry
from rapid_spark.cli.options import settings, table
from rapid_spark.cli.template import template
from rapid_spark.config import Config, ConfigError, load, parse
from rapid_spark.resources import conf_path
from rapid_spark.strictjson import dumps

ROOT = Path(__file__).resolve().parent.parent
TABLES = ["--original", "o.csv", "--release", "r.csv"]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_help_names_the_commands_and_loads_no_heavy_library() -> None:
    code = (
        "import sys; from rapid_spark.cli.entry import run; assert run(['--help']) == 0\n"
        "heavy = {'pyspark', 'pandas', 'sklearn', 'mlflow', 'numpy'} & set(sys.modules); assert not heavy, heavy"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert all(f"  {command} " in done.stdout for command in entry.COMMANDS)


@pytest.mark.parametrize("command", list(entry.COMMANDS))
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.run([command, "--help"]) == 0
    assert f"rapid-spark {command}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["evalute"], "Did you mean 'evaluate'?"),
        (["evaluate", "--atacker", "rf"], "--attacker"),
        (["evaluate"], "original: name a table"),
        (["evaluate", *TABLES, "--tau", "1.5"], "threshold.tau: 1.5 for normalized_gain is out of range"),
        (["evaluate", *TABLES, "--tolerance", "10"], "Is 10 percent meant? Then write 0.1"),
        (["evaluate", *TABLES, "--tolerance", "0"], "threshold.tolerance"),
        (["evaluate", *TABLES, "--attacker", "rff"], "rf"),
        (["evaluate", *TABLES, "--attacker", "sklearn.svm.SVC"], "allow"),
        (["evaluate", *TABLES, "--store", "results"], "./"),
        (["evaluate", *TABLES, "--store", "/proc/nothing/here"], "cannot be written"),
        (["evaluate", *TABLES, "--run-id", "a b"], "--run-id"),
        (["evaluate", *TABLES, "--registry", "ä"], "registry"),
        (["evaluate", *TABLES, "--set", "training.sed=1"], "Did you mean 'seed'?"),
        (["evaluate", *TABLES, "--quasi-identifiers", "a,a"], "'a' is named twice"),
        (["evaluate", *TABLES, "--quasi-identifiers", "a,b", "--sensitive-attribute", "b"], "'b' is both"),
        (["evaluate", "--config", "absent.yml"], "no configuration file absent.yml"),
        (["check", "--original", "o.csv"], "release: name a table"),
        (["query", "--format", "xml", "select 1"], "xml"),
    ],
)
def test_a_fault_of_the_user_is_exit_code_2_with_the_remedy(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert entry.run(words) == 2
    shown = capsys.readouterr()
    assert said in shown.err and "Traceback" not in shown.err
    assert shown.out == ""
    assert not list(tmp_path.iterdir())


def test_all_faults_come_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.run(["evaluate", "--attacker", "x", "--attacker", "y", "--store", "results"]) == 2
    said = capsys.readouterr().err
    assert all(part in said for part in ("original:", "release:", "'x'", "'y'", "'results'"))


def test_an_unknown_error_hides_its_text_and_is_exit_code_3() -> None:
    code, message = entry.fault(RuntimeError("[CAST_INVALID_INPUT] The value 'Anna' cannot be cast"))
    assert code == 3
    assert "CAST_INVALID_INPUT" in message and "Anna" not in message


def test_what_the_machine_lacks_is_exit_code_3_with_its_remedy() -> None:
    from rapid_spark.session import SessionError
    from rapid_spark.warehouse import StoreError

    for error in (SessionError("install Java"), StoreError("written by others")):
        assert entry.fault(error) == (3, str(error))


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(143)])
def test_an_interrupted_run_is_exit_code_3(error: BaseException) -> None:
    assert entry.fault(error)[0] == 3


def test_the_console_returns_normally_on_success_and_exits_otherwise() -> None:
    cli.main(["--version"])
    with pytest.raises(SystemExit) as ended:
        cli.main(["evaluate"])
    assert ended.value.code == 2


def test_the_entry_point_for_schedulers_raises_an_error_that_is_no_exit() -> None:
    cli.job(["--version"])
    with pytest.raises(cli.JobFailed) as failed:
        cli.job(["evaluate"])
    assert failed.value.exit_code == 2 and not isinstance(failed.value, SystemExit)


def test_flags_lie_over_the_file_and_set_over_flags(tmp_path: Path) -> None:
    file = tmp_path / "c.yml"
    file.write_text("training: {seed: 1, max_train_rows: 50}\nqi_sets: {s: [a]}\nmeasures: [nce]\nthreshold: {tau: 0.5}\n")
    flags: dict[str, Any] = {"config_file": str(file), "seed": 2, "quasi_identifiers": ("x", "y"), "tau": 0.7}
    config = settings(flags | {"sets": ("training.seed=3",)})
    assert (config.training.seed, config.training.max_train_rows) == (3, 50)
    assert (config.quasi_identifiers, config.qi_sets) == (("x", "y"), {})
    assert config.threshold.tau["nce"] == 0.7


def test_every_option_of_evaluate_reaches_its_setting() -> None:
    config = settings({
        "original": "o.csv", "release": ("r1.csv", "r2.csv"), "holdout": "h.csv", "key": ("id", "year"),
        "quasi_identifiers": ("age",), "sensitive_attribute": ("income:continuous", "a:b"), "attacker": ("cart", "lm"),
        "measure": ("nce",), "tau": 0.5, "error": "absolute", "tolerance": 500.0, "registry": "r", "release_id": "2026",
        "seed": 7, "store": "./s", "tracking_uri": "http://h", "experiment": "e", "no_tracking": True, "allow_code": True,
    })  # fmt: skip
    tables = [t.name for t in (config.original, *config.release, config.holdout) if t]
    assert tables == ["o.csv", "r1.csv", "r2.csv", "h.csv"]
    assert config.columns.key == ("id", "year")
    assert [(s.name, s.type) for s in config.sensitive_attributes] == [("income", "continuous"), ("a:b", None)]
    assert [a.name for a in config.attackers] == ["cart", "lm"]
    assert (config.threshold.error, config.threshold.tolerance, config.threshold.tau["nce"]) == ("absolute", 500.0, 0.5)
    assert (config.store.location, config.tracking.uri, config.tracking.enabled) == ("./s", "http://h", False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("data/o.csv", {"path": "data/o.csv"}),
        ("o.csv.gz", {"path": "o.csv.gz"}),
        ("main.health.people", {"table": "main.health.people"}),
        ("table:people", {"table": "people"}),
        ("/Volumes/a/b/c", {"path": "/Volumes/a/b/c"}),
    ],
)
def test_a_table_is_a_file_or_one_of_the_catalog(text: str, expected: dict[str, str]) -> None:
    assert table(text) == expected


def test_the_template_is_valid_and_holds_every_setting_with_its_default() -> None:
    text = template()
    config, defaults = parse(yaml.safe_load(text)), Config()
    for section in ("columns", "threshold", "intervals", "drivers", "training", "store", "tracking", "session"):
        assert getattr(config, section) == getattr(defaults, section)
    for name in Config.model_fields:
        assert f"\n{name}:" in text or f"\n# {name}:" in text


@pytest.mark.parametrize(("width", "tables"), [(80, 2), (160, 1)])
def test_the_finding_fits_the_terminal_without_cut_figures(width: int, tables: int) -> None:
    import io

    import pandas as pd
    from rich.console import Console

    from rapid_spark.cli import finding
    from rapid_spark.results import SUMMARY, frame

    row = {
        "registry": "r", "release_id": "1", "replicate": 1, "scored_on": "original", "qi_set": "all", "attacker": "rf",
        "sensitive_attribute": "disease_status", "measure": "normalized_gain", "target_type": "categorical", "threshold": 0.3,
        "status": "ok", "n": 20000, "n_at_risk": 14980, "rapid": 0.749, "ci_low": 0.743, "ci_high": 0.754,
        "ci_method": "wilson", "confidence": 0.95, "baseline_rate": 0.407, "excess": 0.342, "n_confident_claims": 17518,
        "claims_correct": 0.843, "accuracy": 0.809, "majority_rate": 0.593, "quasi_identifiers": ["age"], "weighting": "none",
    }  # fmt: skip
    failed = row | {"attacker": "lm", "status": "undefined", "reason": "no categorical attribute", "rapid": None}
    summary: pd.DataFrame = frame([row, row | {"attacker": "cart", "rapid": 0.729}, failed], SUMMARY)
    text = io.StringIO()
    finding.show(summary, Console(file=text, width=width))
    lines = text.getvalue().splitlines()
    rows = [line for line in lines if line.startswith(" disease_status ")]
    assert len(rows) == 2 * tables and not any("…" in line or len(line) > width for line in rows)
    assert "disease_status: maximum 74.9 % (rf, interval [74.2 %, 75.5 %]), mean 73.9 % over 2 attackers." in lines
    assert any(line.startswith("undefined: disease_status, lm") for line in lines)
    assert all(figure in text.getvalue() for figure in ("74.9 %", "[74.3 %, 75.4 %]", "+34.2", "84.3 % of 17,518"))


def test_the_interval_of_a_maximum_over_copies_says_that_it_is_about_releases() -> None:
    import pandas as pd

    from rapid_spark.cli import finding
    from rapid_spark.results import SUMMARY, frame

    row = {
        "registry": "r", "release_id": "1", "scored_on": "original", "qi_set": "all", "attacker": "rf", "status": "ok",
        "sensitive_attribute": "ill", "measure": "normalized_gain", "target_type": "categorical", "threshold": 0.3,
        "n": 1000, "confidence": 0.95, "weighting": "none",
    }  # fmt: skip
    copies: pd.DataFrame = frame([row | {"replicate": r, "rapid": rapid} for r, rapid in ((1, 0.30), (2, 0.34))], SUMMARY)
    (line,) = finding.suite_lines(copies)
    # mean 0.32, sd 0.0283 over two, t with one degree of freedom 12.706
    assert line.startswith("ill: maximum 32.0 % (rf, interval [6.6 %, 57.4 %] for releases made in the same way), mean 32.0 %")


def test_init_writes_a_file_that_loads_and_never_replaces_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.run(["init", "mine.yml"]) == 0
    assert load(tmp_path / "mine.yml").registry == "registry"
    assert entry.run(["init", "mine.yml"]) == 2
    assert "--force" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["demo.yml", "adult.yml"])
def test_configurations_that_come_with_the_package_load(name: str) -> None:
    config = load(conf_path(name))
    assert config.sensitive_attributes and config.all_quasi_identifiers


def test_log_lines_are_json_with_the_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.run(["evaluate", "--log-json"]) == 2
    line = json.loads(capsys.readouterr().err.splitlines()[-1])
    assert line["event"] == "error" and "original" in line["message"]


def test_json_is_strict() -> None:
    import numpy as np
    import pandas as pd

    values = {"a": float("nan"), "b": np.float64("inf"), "c": np.int64(3), "d": pd.NaT, "e": pd.Timestamp("2026-01-02"),
              "f": np.array([1.5, np.nan]), "g": pd.NA, "h": np.bool_(True)}  # fmt: skip
    assert json.loads(dumps(values)) == {
        "a": None, "b": None, "c": 3, "d": None, "e": "2026-01-02T00:00:00", "f": [1.5, None], "g": None, "h": True,
    }  # fmt: skip


def test_a_setting_that_must_stay_out_of_the_file_is_told_by_its_path() -> None:
    with pytest.raises(ConfigError, match=r"--set 'seed'"):
        settings({"sets": ("seed",)})

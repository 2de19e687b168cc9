"""databricks.yml: right as it is, and every planted mistake is found; dashboard queries run in test_views."""

from __future__ import annotations

import copy
import importlib.metadata
import subprocess
import sys
import types
import zipfile
from pathlib import Path

import bundle as checks
import pytest

from rapid_spark import taskvalues
from rapid_spark.cli.entry import cli

ROOT = Path(__file__).resolve().parent.parent
BUNDLE = checks.read(ROOT / "databricks.yml")
JOB = BUNDLE["resources"]["jobs"]["audit"]


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    """Console scripts as the built wheel's metadata has them."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "setup.py", "-q", "egg_info", "-e", str(folder), "bdist_wheel",
               "--dist-dir", str(folder), "--bdist-dir", str(folder / "build")]  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        name = next(n for n in wheel.namelist() if n.endswith("entry_points.txt"))
        text = wheel.read(name).decode()
        assert {"rapid_spark/conf/sql/views.sql", "rapid_spark/cli/federation.py"} <= set(wheel.namelist())
    return dict(line.split(" = ") for line in text.splitlines() if " = " in line)


def faults(bundle, scripts):
    return checks.faults(bundle, ROOT, scripts, cli)


@pytest.mark.slow
def test_the_bundle_is_right(scripts):
    assert faults(BUNDLE, scripts) == []


def plant(change):
    planted = copy.deepcopy(BUNDLE)
    change(planted, planted["resources"]["jobs"]["audit"], {t["task_key"]: t for t in planted["resources"]["jobs"]["audit"]["tasks"]})
    return planted


MISTAKES = {
    "a misspelt key": (lambda b, j, t: j.update(timeout_second=3), "timeout_second"),
    "an enum that does not exist": (lambda b, j, t: j.update(performance_target="CHEAP"), "CHEAP"),
    "quartz with five fields": (lambda b, j, t: j["schedule"].update(quartz_cron_expression="30 4 * * 1-5"), "5 fields"),
    "quartz with both days": (
        lambda b, j, t: j["schedule"].update(quartz_cron_expression="0 30 4 * * MON-FRI"), "exactly one"),
    "quartz at hour 25": (lambda b, j, t: j["schedule"].update(quartz_cron_expression="0 30 25 ? * MON"), "'25'"),
    "an undefined environment": (lambda b, j, t: t["audit"].update(environment_key="fast"), "environment_key fast"),
    "an undefined cluster": (
        lambda b, j, t: b["resources"]["jobs"]["audit_on_cluster"]["tasks"][0].update(job_cluster_key="big"),
        "job_cluster_key big"),
    "an entry point the wheel lacks": (
        lambda b, j, t: t["audit"]["python_wheel_task"].update(entry_point="rapid-audit"), "entry point rapid-audit"),
    "an entry point that exits": (
        lambda b, j, t: t["audit"]["python_wheel_task"].update(entry_point="rapid-spark"), "SystemExit"),
    "a flag that does not exist": (
        lambda b, j, t: t["publish"]["python_wheel_task"]["parameters"].append("--sign"), "--sign"),
    "a flag without its value": (
        lambda b, j, t: t["views"]["python_wheel_task"]["parameters"].pop(), "--store"),
    "a command that does not exist": (
        lambda b, j, t: t["views"]["python_wheel_task"].update(parameters=["initdb"]), "no command initdb"),
    "an unknown mode": (lambda b, j, t: b["targets"]["dev"].update(mode="develop"), "unknown mode"),
    "an unknown top-level key": (lambda b, j, t: b.update(resource={}), "unknown key resource"),
    "an undefined variable": (lambda b, j, t: j["email_notifications"].update(on_failure=["${var.mail}"]), "var.mail"),
    "an undefined resource": (
        lambda b, j, t: t["audit"]["python_wheel_task"]["parameters"].append("${resources.experiments.audit.id}"),
        "resources.experiments.audit.id"),
    "a job parameter that is not declared": (lambda b, j, t: j["parameters"].pop(), "job.parameters.store"),
    "a task that does not exist": (lambda b, j, t: t["cleared"].update(depends_on=[{"task_key": "check"}]), "no task"),
    "publication whatever the verdict": (
        lambda b, j, t: t["publish"].update(depends_on=[{"task_key": "cleared"}]), "without an outcome"),
    "an outcome of what is no condition": (
        lambda b, j, t: t["publish"].update(depends_on=[{"task_key": "audit", "outcome": "true"}]), "no condition"),
    "retries of an audit": (lambda b, j, t: t["audit"].update(max_retries=2), "max_retries"),
    "retries by the platform": (lambda b, j, t: t["audit"].pop("disable_auto_optimization"), "disable_auto_optimization"),
    "a job without the wheel": (lambda b, j, t: j["environments"][0]["spec"].update(dependencies=[]), "not among its libraries"),
    "a dashboard that does not exist": (
        lambda b, j, t: b["resources"]["dashboards"]["risk"].update(file_path="conf/risk.json"), "does not exist"),
    "an override of a schedule without its zone": (lambda b, j, t: j["schedule"].pop("timezone_id"), "timezone_id"),
    "a schema in no catalog": (lambda b, j, t: b["resources"]["schemas"]["results"].pop("catalog_name"), "catalog_name"),
    "another package": (lambda b, j, t: t["audit"]["python_wheel_task"].update(package_name="rapid"), "not the wheel's"),
}  # fmt: skip


@pytest.mark.parametrize(("change", "told"), MISTAKES.values(), ids=MISTAKES)
def test_a_planted_mistake_is_found(change, told):
    scripts = {e.name: e.value for e in importlib.metadata.distribution("rapid-spark").entry_points}
    before = set(faults(BUNDLE, scripts))
    found = [fault for fault in faults(plant(change), scripts) if fault not in before]
    assert any(told in fault for fault in found), found


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("0 30 4 ? * MON-FRI", True), ("0 0 0 1 * ?", True), ("0 0/15 * * * ?", True), ("0 0 12 L * ? 2027", True),
        ("0 0 6 ? * 2#1", True), ("0 0 6 15W * ?", True), ("* * * * *", False), ("0 30 4 ? * ?", False),
        ("0 60 4 ? * MON", False), ("0 30 4 32 * ?", False), ("0 30 4 ? * MONDAY", False), ("", False),
    ],
)  # fmt: skip
def test_quartz(text, right):
    assert (not list(checks._quartz(text))) == right


def test_the_verdict_is_handed_on_where_there_is_a_job(monkeypatch):
    told = []
    values = types.SimpleNamespace(set=lambda key, value: told.append((key, value)))
    platform = types.SimpleNamespace(jobs=types.SimpleNamespace(taskValues=values))
    monkeypatch.delenv("DATABRICKS_RUNTIME_VERSION", raising=False)
    assert not taskvalues.hand_on(taskvalues.CLEARED, "true")
    assert taskvalues.hand_on(taskvalues.CLEARED, "false", platform) and told == [("cleared", "false")]
    condition = next(t["condition_task"] for t in JOB["tasks"] if "condition_task" in t)
    assert condition["left"] == f"{{{{tasks.audit.values.{taskvalues.CLEARED}}}}}" and condition["right"] == "true"

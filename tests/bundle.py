"""Checks of databricks.yml that neither its schema nor `Job.from_dict` makes; each returns what is wrong, in words."""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import yaml
from databricks.bundles.dashboards import Dashboard
from databricks.bundles.experiments import MlflowExperiment
from databricks.bundles.jobs import Job
from databricks.bundles.schemas import Schema
from databricks.bundles.volumes import Volume

TOP = {"bundle", "artifacts", "variables", "resources", "targets", "include", "sync", "workspace", "permissions", "run_as",
       "presets", "experimental", "scripts", "python"}  # fmt: skip
KNOWN = {"bundle": {"name", "target", "environment", "uuid", "git"},
         "workspace": {"file_path", "root_path", "current_user", "artifact_path", "host"}}  # fmt: skip
MODELS = {"jobs": Job, "dashboards": Dashboard, "experiments": MlflowExperiment, "schemas": Schema, "volumes": Volume}
COMPUTE = ("environment_key", "job_cluster_key", "existing_cluster_id", "new_cluster")
RETRY_IN_VAIN = ("audit",)  # its exit codes 1 and 2 would be the same again


def read(path: Path) -> dict[str, Any]:
    """The bundle as one document, anchors resolved."""
    found: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return found


def faults(bundle: Mapping[str, Any], root: Path, scripts: Mapping[str, str], cli: click.Group) -> list[str]:
    """Everything wrong with a bundle.

    Args:
        bundle: as read.
        root: its folder.
        scripts: console scripts of the built wheel, name to place.
        cli: the real command line.
    """
    found = [f"unknown key {key}" for key in bundle if key not in TOP]
    found += _references(bundle)
    for name, target in bundle["targets"].items():
        if target.get("mode") not in (None, "development", "production"):
            found.append(f"targets.{name}: unknown mode {target['mode']}")
        if target.get("mode") == "production" and not (target.get("run_as") or target.get("permissions")):
            found.append(f"targets.{name}: production without run_as or permissions")
    broken = dict(_shapes(bundle["resources"]))
    found += broken.values()
    for name, job in bundle["resources"]["jobs"].items():
        if ("jobs", name) in broken:
            continue
        found += [f"jobs.{name}: {fault}" for fault in _job(job, scripts, cli, bundle)]
    for name, board in bundle["resources"].get("dashboards", {}).items():
        place = root / board["file_path"]
        found += [f"dashboards.{name}: {fault}" for fault in _dashboard(place)]
    return found


def _shapes(resources: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], str]]:
    for kind, items in resources.items():
        for name, item in items.items():
            try:
                MODELS[kind].from_dict(dict(item))
            except Exception as error:
                yield (kind, name), f"{kind}.{name}: {error}"


def _references(bundle: Mapping[str, Any]) -> Iterator[str]:
    for text in re.findall(r"\$\{([^}]*)\}", json.dumps(bundle)):
        first, *rest = text.split(".")
        if first == "var":
            there = rest and rest[0] in bundle["variables"]
        elif first == "resources":
            there = len(rest) == 3 and rest[1] in bundle["resources"].get(rest[0], {})
        else:
            there = first in KNOWN and rest and rest[0] in KNOWN[first]
        if not there:
            yield f"${{{text}}} is not defined"


def _job(job: Mapping[str, Any], scripts: Mapping[str, str], cli: click.Group, bundle: Mapping[str, Any]) -> Iterator[str]:
    if "schedule" in job:
        yield from _quartz(job["schedule"].get("quartz_cron_expression", ""))
    keys = [task["task_key"] for task in job["tasks"]]
    conditions = {task["task_key"] for task in job["tasks"] if "condition_task" in task}
    defined = {
        "environment_key": {e["environment_key"] for e in job.get("environments", ())},
        "job_cluster_key": {c["job_cluster_key"] for c in job.get("job_clusters", ())},
    }
    parameters = {p["name"] for p in job.get("parameters", ())}
    yield from (f"task {key} twice" for key in keys if keys.count(key) > 1)
    for reference in re.findall(r"\{\{([^}]*)\}\}", json.dumps(job["tasks"])):
        yield from _dynamic(reference.strip(), parameters, set(keys))
    for task in job["tasks"]:
        name = task["task_key"]
        for other in task.get("depends_on", ()):
            if other["task_key"] not in keys:
                yield f"{name} depends on {other['task_key']}, which is no task"
            elif "outcome" in other and other["task_key"] not in conditions:
                yield f"{name} waits for an outcome of {other['task_key']}, which is no condition"
            elif "outcome" not in other and other["task_key"] in conditions:
                yield f"{name} runs after condition {other['task_key']} without an outcome"
        for kind, known in defined.items():
            if kind in task and task[kind] not in known:
                yield f"{name}: {kind} {task[kind]} is not defined"
        if "python_wheel_task" in task:
            yield from (f"{name}: {fault}" for fault in _wheel_task(task, job, scripts, cli, bundle))


def _wheel_task(
    task: Mapping[str, Any], job: Mapping[str, Any], scripts: Mapping[str, str], cli: click.Group, bundle: Mapping[str, Any]
) -> Iterator[str]:
    wheel = task["python_wheel_task"]
    if not any(key in task for key in COMPUTE):
        yield "nothing to run on"
    if wheel["package_name"].replace("-", "_") != bundle["bundle"]["name"]:
        yield f"package {wheel['package_name']} is not the wheel's"
    if wheel["entry_point"] not in scripts:
        yield f"the wheel has no entry point {wheel['entry_point']}"
    elif not scripts[wheel["entry_point"]].endswith(":job"):
        yield f"{wheel['entry_point']} ends by SystemExit, which some platforms take for a failure"
    libraries = [lib.get("whl", "") for lib in task.get("libraries", ())]
    for environment in job.get("environments", ()):
        if environment["environment_key"] == task.get("environment_key"):
            libraries += environment["spec"].get("dependencies", ())
            if "client" in environment["spec"] or not isinstance(environment["spec"].get("environment_version"), str):
                yield "an environment states environment_version, as text"
    if not any(fnmatch.fnmatch("./dist/rapid_spark-1.0-py3-none-any.whl", library) for library in libraries):
        yield "the wheel is not among its libraries"
    command, *options = wheel["parameters"]
    if command in RETRY_IN_VAIN:
        if task.get("max_retries") != 0:
            yield "max_retries is not 0: what is not cleared or wrong would be tried again"
        if "environment_key" in task and not task.get("disable_auto_optimization"):
            yield "serverless retries unless disable_auto_optimization is set"
    yield from _arguments(cli, command, options)


def _arguments(cli: click.Group, command: str, options: list[str]) -> Iterator[str]:
    found = cli.get_command(click.Context(cli), command)
    if found is None:
        yield f"there is no command {command}"
        return
    try:
        found.make_context(command, list(options), obj=None)
    except click.ClickException as error:
        yield f"{command}: {error.format_message()}"


def _dynamic(reference: str, parameters: set[str], tasks: set[str]) -> Iterator[str]:
    first, *rest = reference.split(".")
    if reference in ("job.run_id", "job.id", "job.start_time.iso_date"):
        return
    if first == "job" and rest[0] == "parameters" and rest[1] in parameters:
        return
    if first == "tasks" and rest[0] in tasks and rest[1] in ("values", "result_state"):
        return
    yield f"{{{{{reference}}}}} refers to nothing"


def _quartz(text: str) -> Iterator[str]:
    """Quartz: seconds minutes hours day month weekday [year]; exactly one of the two days is '?'."""
    fields = text.split()
    if len(fields) not in (6, 7):
        yield f"quartz {text!r} has {len(fields)} fields, not 6 or 7"
        return
    if (fields[3] == "?") + (fields[5] == "?") != 1:
        yield f"quartz {text!r}: exactly one of day of month and day of week is '?'"
    words = "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split(), "SUN MON TUE WED THU FRI SAT".split()
    ranges = ((0, 59), (0, 59), (0, 23), (1, 31), (1, 12), (1, 7), (1970, 2099))
    for i, field in enumerate(fields):
        names = words[0] if i == 4 else words[1] if i == 5 else []
        for part in re.split(r"[,/-]", field):
            number = re.fullmatch(r"(\d+)[LW]?|L|LW|\d#\d", part)
            inside = part in ("*", "?", *names) or (number and (number[1] is None or _within(int(number[1]), ranges[i], "/" in field)))
            if not inside:
                yield f"quartz {text!r}: {part!r} does not fit its place"


def _within(number: int, allowed: tuple[int, int], is_step: bool) -> bool:
    return (0 if is_step else allowed[0]) <= number <= allowed[1]


def queries(path: Path) -> dict[str, str]:
    """The queries of a dashboard by the name of their dataset."""
    board = json.loads(path.read_text(encoding="utf-8"))
    return {dataset["name"]: "".join(dataset["queryLines"]) for dataset in board["datasets"]}


def fields(path: Path) -> dict[str, set[str]]:
    """The columns that a dashboard's widgets want of each dataset."""
    wanted: dict[str, set[str]] = {}
    for widget in _widgets(path):
        for query in widget["queries"]:
            expressions = {f["expression"].strip("`") for f in query["query"]["fields"]}
            wanted.setdefault(query["query"]["datasetName"], set()).update(expressions)
    return wanted


def _widgets(path: Path) -> Iterator[Mapping[str, Any]]:
    board = json.loads(path.read_text(encoding="utf-8"))
    yield from (item["widget"] for page in board["pages"] for item in page["layout"])


def _dashboard(path: Path) -> Iterator[str]:
    if not path.is_file():
        yield f"{path.name} does not exist"
        return
    known = queries(path)
    names = [widget["name"] for widget in _widgets(path)]
    yield from (f"widget {name} twice" for name in names if names.count(name) > 1)
    for name in fields(path):
        if name not in known:
            yield f"a widget reads dataset {name}, which is not there"
    for widget in _widgets(path):
        given = {f["name"] for query in widget["queries"] for f in query["query"]["fields"]}
        asked = set(re.findall(r'"fieldName": "([^"]*)"', json.dumps(widget["spec"])))
        yield from (f"widget {widget['name']} shows {field}, which it does not read" for field in sorted(asked - given))
    board = json.loads(path.read_text(encoding="utf-8"))
    for page in board["pages"]:
        taken: set[tuple[int, int]] = set()
        for item in page["layout"]:
            x, y, width, height = (item["position"][k] for k in ("x", "y", "width", "height"))
            cells = {(i, j) for i in range(x, x + width) for j in range(y, y + height)}
            if x + width > 6 or cells & taken:
                yield f"widget {item['widget']['name']} lies outside the page or on another"
            taken |= cells

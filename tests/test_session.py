"""The local session: versions that fit, Java, memory, jars on disk; one clear line for what is missing."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path

import pytest

from rapid_spark import places, session
from rapid_spark.config import Session
from rapid_spark.session import SessionError


def test_installed_spark_and_delta_are_the_tested_pair():
    assert {name: metadata.version(name) for name in session.TESTED_PAIR} == session.TESTED_PAIR


@pytest.mark.parametrize(
    ("pyspark", "delta", "fits"),
    [
        ("4.2.0", "4.4.0", True),
        ("4.1.4", "4.4.0", True),
        ("4.0.1", "4.4.1", True),
        ("4.2.1", "4.1.0", False),  # what pip takes for an unpinned delta-spark
        ("4.2.1", "4.4.0", False),
        ("4.3.0", "4.4.1", False),
        ("4.0.0", "4.4.0", False),
        (None, "4.4.0", False),
        ("4.2.0", None, False),
    ],
)
def test_pairs(pyspark, delta, fits):
    if fits:
        session.check_installed(pyspark, delta)
    else:
        with pytest.raises(SessionError, match="pip install 'pyspark==4.2.0' 'delta-spark==4.4.0'$"):
            session.check_installed(pyspark, delta)


@pytest.mark.parametrize(
    ("total", "driver"), [(24_000, 12_000), (8_000, 4_000), (3_000, 1_464), (2_048, 1_024), (1_000, 1_024)]
)
def test_driver_memory_leaves_room_for_python(total, driver):
    assert session.driver_memory_mb(total) == driver


def fake_java(folder: Path, says: str) -> None:
    java = folder / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    java.chmod(0o755)


@pytest.mark.parametrize(
    ("says", "message"),
    [
        (None, "Java was not found under JAVA_HOME"),
        ('java version "1.8.0_402"', "is Java 8, Spark needs 17 or newer"),
        ('openjdk version "11.0.2" 2019-01-15', "is Java 11, Spark needs 17 or newer"),
        ("hello", "does not tell its version"),
        ('openjdk version "17.0.15" 2025-04-15', None),
        ('openjdk version "21" 2023-09-19', None),
    ],
)
def test_java_version(tmp_path, monkeypatch, says, message):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    if says:
        fake_java(tmp_path, says)
    if message is None:
        session.check_java()
    else:
        with pytest.raises(SessionError, match=message) as error:
            session.check_java()
        assert "openjdk-17-jre-headless" in str(error.value) and "\n" not in str(error.value)


def test_java_missing_from_the_path(tmp_path, monkeypatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SessionError, match="not found on the PATH"):
        session.check_java()


def ivy_folder(ivy: Path, modules: dict[tuple[str, str, str], list[tuple[str, str, str, str]]]) -> None:
    (ivy / "jars").mkdir(parents=True)
    for (owner, name, version), needs in modules.items():
        (ivy / "jars" / f"{owner}_{name}-{version}.jar").touch()
        described = ivy / "cache" / owner / name
        described.mkdir(parents=True, exist_ok=True)
        lines = [f'<dependency org="{o}" name="{n}" rev="{v}" conf="{c}"/>' for o, n, v, c in needs]
        (described / f"ivy-{version}.xml").write_text(f"<ivy-module>{''.join(lines)}</ivy-module>")


def test_jars_of_the_exact_versions_are_found(tmp_path):
    needed, for_tests = "compile->compile(*),master(*);runtime->runtime(*)", "test->runtime(*),master(*)"
    main, storage, catalog = "delta-spark_4.2_2.13", "delta-storage", "unitycatalog-client"
    modules = {
        ("io.delta", main, "4.4.0"): [
            ("io.delta", storage, "4.4.0", needed),
            ("org.scala-lang", "scala-library", "2.13.17", needed),
            ("io.delta", "golden-tables_2.13", "4.4.0", for_tests),
        ],
        ("io.delta", storage, "4.4.0"): [("io.unitycatalog", catalog, "0.6.0", needed)],
        ("io.unitycatalog", catalog, "0.6.0"): [],
        ("io.unitycatalog", catalog, "0.3.0"): [],
        ("io.delta", main, "4.3.1"): [],
    }
    ivy_folder(tmp_path, modules)
    names = [jar.name for jar in session.find_jars("4.4.0", "4.2", tmp_path)]
    assert names == [
        "io.delta_delta-spark_4.2_2.13-4.4.0.jar",
        "io.delta_delta-storage-4.4.0.jar",
        "io.unitycatalog_unitycatalog-client-0.6.0.jar",
    ]
    assert session.find_jars("4.4.0", "4.1", tmp_path) == []
    (tmp_path / "jars" / names[1]).unlink()
    assert session.find_jars("4.4.0", "4.2", tmp_path) == []


def test_of_several_first_starts_one_downloads_and_the_others_wait(tmp_path, monkeypatch):
    jars, starts = tmp_path / "jars", []

    def start(conf, debug):
        starts.append(conf)
        time.sleep(0.2)
        jars.touch()

    monkeypatch.setattr(session, "_existing", lambda: None)
    monkeypatch.setattr(session, "_own_folder", lambda: tmp_path)
    monkeypatch.setattr(session, "local_conf", lambda *_: {} if jars.exists() else {session.DOWNLOAD: "delta"})
    monkeypatch.setattr(session, "_start", start)
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    with ThreadPoolExecutor(3) as pool:
        for call in [pool.submit(session.get) for _ in range(3)]:
            call.result()
    assert starts == [{session.DOWNLOAD: "delta"}, {}, {}]


def test_a_download_that_breaks_off_names_the_remedy(tmp_path):
    with open(tmp_path / "output", "w+b") as output:
        output.write(b'Exception in thread "main" java.lang.RuntimeException: [download failed: io.delta#x]')
        assert "RAPID_SPARK_JARS" in session._start_fault(output, RuntimeError())


def test_folder_of_jars_without_the_right_one_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("RAPID_SPARK_JARS", str(tmp_path))
    (tmp_path / "delta-spark_4.2_2.13-4.3.1.jar").touch()
    with pytest.raises(SessionError, match="holds no delta-spark_4.2_2.13-4.4.0.jar"):
        session.local_conf()


def test_settings_decide_cores_and_memory(monkeypatch):
    monkeypatch.delenv("RAPID_SPARK_DRIVER_MEMORY", raising=False)
    conf = session.local_conf(Session(cores=3, driver_memory_gb=5))
    assert conf["spark.master"] == "local[3,4]"
    assert conf["spark.driver.memory"] == "5g"
    monkeypatch.setenv("RAPID_SPARK_DRIVER_MEMORY", "3g")
    assert session.local_conf(Session(driver_memory_gb=5))["spark.driver.memory"] == "3g"


def test_much_to_read_is_compiled_to_the_full(tmp_path, monkeypatch):
    monkeypatch.delenv("RAPID_SPARK_JAVA_OPTIONS", raising=False)
    (tmp_path / "t.parquet").mkdir()
    (tmp_path / "t.parquet" / "part").write_bytes(b"x" * 3)
    size = places.bytes_of([str(tmp_path / "t.parquet"), str(tmp_path / "t.parquet" / "part"), "s3://b/t", "none.csv"])
    assert size == 6
    options = [session.local_conf(size=n)["spark.driver.extraJavaOptions"] for n in (size, session.MUCH + 1)]
    assert [session.QUICK_START in o for o in options] == [True, False]


def test_existing_session_is_used_as_it_is(spark):
    before = spark.conf.get("spark.sql.shuffle.partitions")
    again = session.get(Session(cores=1), debug=True)
    assert again is spark
    assert again.conf.get("spark.sql.shuffle.partitions") == before


def test_local_session(spark):
    assert session.is_classic(spark)
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.ansi.enabled") == "true"


def test_workers_use_the_python_of_the_driver(spark):
    def executable(frames):
        for frame in frames:
            yield frame[[]].assign(python=sys.executable)

    assert spark.range(1).mapInPandas(executable, "python string").first()["python"] == sys.executable


def run(code: str, **environment: str) -> subprocess.CompletedProcess:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **environment}
    return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=120)


START = "from rapid_spark import session; s = session.get(); print(s.range(3).count()); session.stop(s)"
UNREACHABLE = "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=9 -Dhttp.proxyHost=127.0.0.1"


@pytest.mark.slow
def test_start_is_silent_and_needs_no_network():
    done = run(START, RAPID_SPARK_JAVA_OPTIONS=UNREACHABLE)
    assert (done.stdout, done.stderr, done.returncode) == ("3\n", "", 0)


@pytest.mark.slow
def test_jars_neither_on_disk_nor_to_be_had_is_one_clear_line(tmp_path):
    done = run(START, RAPID_SPARK_JAVA_OPTIONS=UNREACHABLE, HOME=str(tmp_path))
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("rapid_spark.session.SessionError: Delta's jars are not in")
    assert "RAPID_SPARK_JARS" in last


@pytest.mark.slow
def test_connect_server_of_our_own_writes_delta(tmp_path):
    code = f"""
from rapid_spark import session
spark = session.get()
spark.range(4).write.format("delta").save({str(tmp_path / "t")!r})
print(session.is_classic(spark), spark.read.format("delta").load({str(tmp_path / "t")!r}).count())
session.stop(spark)
"""
    done = run(code, SPARK_REMOTE="local[2]", SPARK_TESTING="1")
    assert done.stdout == "False 4\n", done.stderr  # SPARK_TESTING: any free port

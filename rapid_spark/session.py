"""Get or build the Spark session: an existing one, Databricks', Spark Connect's, or a local one with Delta.

Nothing else in the package starts Spark. Environment variables for a local session: RAPID_SPARK_DRIVER_MEMORY
(e.g. 6g), RAPID_SPARK_JAVA_OPTIONS (in place of QUICK_START or LONG_RUN), RAPID_SPARK_MASTER (in place of local[N,4]) and
RAPID_SPARK_JARS (a folder with Delta's jars, for machines without a network).
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import IO, Any

from .config import Session, Table
from .locks import held
from .places import bytes_of
from .resources import conf_path

# Delta's minor version: the PySpark versions (lowest, highest) that its JVM code is built for.
PAIRS = {"4.4": ("4.0.1", "4.2.0")}
TESTED_PAIR = {"pyspark": "4.2.0", "delta-spark": "4.4.0"}
PAIR_REMEDY = "Install the pair that belongs together: pip install {}".format(
    " ".join(f"'{name}=={version}'" for name, version in TESTED_PAIR.items())
)
JAVA_AT_LEAST = 17
JAVA_REMEDY = (
    f"Install Java {JAVA_AT_LEAST} (Debian, Ubuntu: apt-get install openjdk-{JAVA_AT_LEAST}-jre-headless) "
    "or point JAVA_HOME at it."
)
SCALA = "2.13"
STARTED_HERE = "spark.rapid.started"
DOWNLOAD = "spark.jars.packages"  # set only where Delta's jars are not on the disk yet
# One JIT tier and one collector thread: a third off start and first statements, which dominate small runs. With much
# to read, code that is compiled to the full takes a third off the whole (10 million records: 245 s against 160 s).
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
LONG_RUN = "-XX:+UseParallelGC"
MUCH = 20 * 2**20  # bytes of the tables' files
# Delta's own code; all else that it asks for comes with Spark.
JAR_OWNERS = ("io.delta", "io.unitycatalog")
SHIPPED_WITH_SPARK = (
    "org.apache.hadoop:*,org.apache.parquet:*,com.fasterxml.jackson.core:*,com.fasterxml.jackson.datatype:*,"
    "org.roaringbitmap:*,org.slf4j:*,org.apache.logging.log4j:*,com.google.code.findbugs:*,javax.annotation:*"
)


class SessionError(RuntimeError):
    """No Spark session can be had here; the text names the cause and the remedy, in one line."""


def get(settings: Session | None = None, debug: bool = False, tables: Iterable[Table | None] = ()) -> Any:
    """Return a Spark session.

    A session that exists is used as it is, so are Databricks' and the one SPARK_REMOTE points to: nothing is
    set on them. Otherwise a local session with Delta is started: time zone UTC, so that dates and times read
    alike on every machine; ANSI mode on; no output of Spark unless `debug`. With SPARK_REMOTE=local[2]
    that session is behind a Connect server of our own, on this machine's port 15002.

    Args:
        settings: cores and driver memory of a local session.
        debug: show Spark's warnings on standard error.
        tables: what will be read; how much it is decides how Java compiles.

    Raises:
        SessionError: Spark, Java or Delta is missing or does not fit; one line with the remedy.
    """
    existing = _existing()
    if not debug:
        _quiet_errors()
    if existing is not None:
        return existing
    remote = os.environ.get("SPARK_REMOTE", "")
    if remote and not remote.startswith("local"):
        return _builder().getOrCreate()
    size = bytes_of(t.path for t in tables if t is not None and t.path)
    with contextlib.ExitStack() as lock:
        lock.enter_context(held(_own_folder() / "delta-jars.lock"))
        conf = local_conf(settings, debug, size)
        if DOWNLOAD not in conf:
            lock.close()  # kept else until Spark runs: Ivy fails where two processes download at once
        return _start_server(conf) if remote else _start(conf, debug)


def stop(spark: Any) -> None:
    """Stop a session that `get` started here; leave every other one running."""
    if spark.conf.get(STARTED_HERE, "false") == "true":
        spark.stop()


def is_classic(spark: Any) -> bool:
    """Whether a session has a SparkContext (broadcasts, RDDs); under Spark Connect it has none."""
    return hasattr(spark, "sparkContext")


def add_tag(spark: Any, tag: str) -> None:
    """Mark the jobs that this thread starts from now on."""
    # A classic session's own tags are known to the thread that set them only; the context's to all.
    (spark.sparkContext.addJobTag if is_classic(spark) else spark.addTag)(tag)


def remove_tag(spark: Any, tag: str) -> None:
    """Stop marking."""
    (spark.sparkContext.removeJobTag if is_classic(spark) else spark.removeTag)(tag)


def stop_jobs(spark: Any, tag: str) -> None:
    """Stop the marked jobs that run; may be called from any thread."""
    (spark.sparkContext.cancelJobsWithTag if is_classic(spark) else spark.interruptTag)(tag)


def tasks(spark: Any) -> tuple[int, int] | None:
    """Spark's tasks under way as (done, all); None where nothing runs or the session does not tell."""
    if not is_classic(spark):
        return None
    tracker = spark.sparkContext.statusTracker()
    stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    counts = [(stage.numCompletedTasks, stage.numTasks) for stage in stages if stage is not None]
    return (sum(done for done, _ in counts), sum(total for _, total in counts)) if counts else None


def local_conf(settings: Session | None = None, debug: bool = False, size: int = 0) -> dict[str, str]:
    """The settings of a local session, checked against what is installed, for `size` bytes to be read.

    Raises:
        SessionError: see `get`.
    """
    settings = settings or Session()
    check_installed(_version("pyspark"), _version("delta-spark"))
    check_java()
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    count = settings.cores or cores()
    java_options = [
        f"-Dlog4j2.configurationFile={conf_path('log4j2.properties').as_uri()}",
        f"-Drapid.log.level={'warn' if debug else 'off'}",
        os.environ.get("RAPID_SPARK_JAVA_OPTIONS", LONG_RUN if size > MUCH else QUICK_START),
    ]
    memory = f"{settings.driver_memory_gb}g" if settings.driver_memory_gb else f"{driver_memory_mb()}m"
    return {
        "spark.app.name": "rapid_spark",
        STARTED_HERE: "true",
        "spark.master": os.environ.get("RAPID_SPARK_MASTER") or f"local[{count},4]",
        "spark.driver.memory": os.environ.get("RAPID_SPARK_DRIVER_MEMORY") or memory,
        "spark.driver.extraJavaOptions": " ".join(filter(None, java_options)),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.shuffle.partitions": str(2 * count),
        # Delta lists folders in so many tasks when it vacuums: Spark's default of 10,000 takes minutes here.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": str(2 * count),
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.databricks.delta.properties.defaults.checkpointInterval": "50",
        # Made by Spark at first use, for tables that nobody makes; otherwise in the user's working directory.
        "spark.sql.warehouse.dir": str(_own_folder() / "warehouse"),
        "spark.hadoop.fs.permissions.umask-mode": "077",
        # Where in a program each column was made: several calls to Java for each column.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
        **_delta_jars(),
    }


def check_installed(pyspark: str | None, delta: str | None) -> None:
    """Refuse a PySpark and a Delta that are missing or do not belong together.

    Raises:
        SessionError: with both versions and the pair to install.
    """
    for name, version in (("pyspark", pyspark), ("delta-spark", delta)):
        if version is None:
            raise SessionError(f"{name} is not installed. {PAIR_REMEDY}")
    pair = PAIRS.get(".".join(str(delta).split(".")[:2]))
    if pair is None or not _numbers(pair[0]) <= _numbers(str(pyspark)) <= _numbers(pair[1]):
        raise SessionError(f"pyspark {pyspark} and delta-spark {delta} do not belong together. {PAIR_REMEDY}")


def check_java() -> None:
    """Refuse a Java that is missing or too old.

    Raises:
        SessionError: with what was found and the remedy.
    """
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home, "bin"))) if home else shutil.which("java")
    if java is None:
        where = f"under JAVA_HOME ({home})" if home else "on the PATH"
        raise SessionError(f"Java was not found {where}. {JAVA_REMEDY}")
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(?:1\.)?(\d+)', answer)
    if found is None:
        raise SessionError(f"{java} does not tell its version. {JAVA_REMEDY}")
    if int(found.group(1)) < JAVA_AT_LEAST:
        found_is = f"{java} is Java {found.group(1)}, Spark needs {JAVA_AT_LEAST} or newer."
        raise SessionError(f"{found_is} {JAVA_REMEDY}")


def cores() -> int:
    """Cores for Spark: all, less one where there are more than two."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return count if count <= 2 else count - 1


def driver_memory_mb(total_mb: int | None = None) -> int:
    """Driver memory in MB: half of the machine's, at least 1.5 GB left for Python and its workers."""
    total = total_mb if total_mb is not None else _machine_memory_mb()
    return max(1024, min(total // 2, total - 1536))


def find_jars(delta: str, spark_minor: str, ivy: Path) -> list[Path]:
    """Delta's jars of exactly these versions among those Ivy resolved earlier; empty when any is missing.

    Ivy's own description of a module names the versions it needs: jars of another Delta are never mixed in.
    """
    wanted = [("io.delta", f"delta-spark_{spark_minor}_{SCALA}", delta)]
    for owner, name, version in wanted:
        description = ivy / "cache" / owner / name / f"ivy-{version}.xml"
        if not description.is_file():
            return []
        for needed in ElementTree.parse(description).iter("dependency"):
            module = (needed.get("org", ""), needed.get("name", ""), needed.get("rev", ""))
            if "runtime->" in needed.get("conf", "") and module[0] in JAR_OWNERS and module not in wanted:
                wanted.append(module)
    jars = [ivy / "jars" / f"{owner}_{name}-{version}.jar" for owner, name, version in wanted]
    return jars if all(jar.is_file() for jar in jars) else []


def _existing() -> Any:
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise SessionError(f"pyspark is not installed. {PAIR_REMEDY}") from None
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    given = ("DATABRICKS_RUNTIME_VERSION", "PYSPARK_GATEWAY_PORT")  # the second: started by spark-submit
    if any(name in os.environ for name in given) or _has_context():
        return SparkSession.builder.getOrCreate()
    return None


def _quiet_errors() -> None:
    # PySpark prints every error that it raises, and with it the value that could not be cast, say.
    try:
        from pyspark.logger import PySparkLogger
    except ImportError:
        return
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL + 1)


def _has_context() -> bool:
    # An active session is known to its own thread only; the context to all of them.
    try:
        from pyspark import SparkContext
    except ImportError:  # the client-only package of Spark Connect
        return False
    return SparkContext._active_spark_context is not None


def _builder() -> Any:
    from pyspark.sql import SparkSession

    return SparkSession.builder


def _start_server(conf: dict[str, str]) -> Any:
    # The Connect server is ours to start, and static settings must be there before it starts.
    builder = _builder().config("spark.connect.grpc.binding.address", "127.0.0.1")
    for key, value in conf.items():
        builder = builder if key == "spark.master" else builder.config(key, value)
    return builder.getOrCreate()


def _start(conf: dict[str, str], debug: bool) -> Any:
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    spark_conf = SparkConf(loadDefaults=False).setAll(list(conf.items()))
    # What the JVM prints goes to a nameless file that ends with it; what it writes is for its owner only.
    with tempfile.TemporaryFile(mode="w+b") as output:
        streams = {} if debug else {"stdout": output, "stderr": output}
        try:
            if SparkContext._gateway is None:
                gateway = launch_gateway(spark_conf, popen_kwargs={"umask": 0o077, **streams})
            else:
                gateway, spark_conf = None, SparkConf().setAll(list(conf.items()))
            SparkContext(conf=spark_conf, gateway=gateway)
        except Exception as error:
            raise SessionError(_start_fault(output, error)) from (error if debug else None)
    return _builder().getOrCreate()


def _start_fault(output: IO[bytes], error: Exception) -> str:
    output.seek(0)
    text = output.read().decode(errors="replace") + str(error)
    lacking = ("unresolved dependency", "download failed")
    if any(said in text for said in lacking) or "not found in" in text and "delta" in text:
        return (
            f"Delta's jars are not in {_ivy()} and could not be downloaded. Start once with a network, copy "
            "Ivy's folder from a machine that has it, or set RAPID_SPARK_JARS to a folder with the jars of "
            f"delta-spark {_version('delta-spark')} for Spark {_spark_minor()}."
        )
    if "Could not reserve enough space" in text or "Invalid maximum heap size" in text:
        return "Java could not get the driver memory asked for: set session.driver_memory_gb lower."
    said = [line.strip() for line in text.splitlines() if re.search(r"(Exception|Error)\b", line)]
    return f"Spark did not start: {said[0] if said else type(error).__name__}. More with --debug."


def _delta_jars() -> dict[str, str]:
    delta, minor = str(_version("delta-spark")), _spark_minor()
    folder = os.environ.get("RAPID_SPARK_JARS")
    if folder:
        main = f"delta-spark_{minor}_{SCALA}-{delta}.jar"
        jars = sorted(Path(folder).glob("*.jar"))
        if not any(jar.name.endswith(main) for jar in jars):
            raise SessionError(f"RAPID_SPARK_JARS ({folder}) holds no {main}: put it there, or unset it.")
    else:
        jars = find_jars(delta, minor, _ivy())
    if jars:
        return {"spark.jars": ",".join(jar.as_uri() for jar in jars)}
    from delta import configure_spark_with_delta_pip
    from pyspark.sql import SparkSession

    builder = configure_spark_with_delta_pip(SparkSession.Builder())
    return {
        DOWNLOAD: builder._options["spark.jars.packages"],
        "spark.jars.excludes": SHIPPED_WITH_SPARK,
        "spark.jars.ivy": str(_ivy()),
    }


def _own_folder() -> Path:
    return Path(tempfile.gettempdir(), f"rapid_spark-{os.getuid()}")


def _ivy() -> Path:
    """The newest of Ivy's folders in the home directory; Spark names it by Ivy's version."""
    found = sorted(Path.home().glob(".ivy2*/jars"), key=lambda folder: folder.stat().st_mtime)
    return found[-1].parent if found else Path.home() / ".ivy2.5.2"


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _spark_minor() -> str:
    return ".".join(str(_version("pyspark")).split(".")[:2])


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def _machine_memory_mb() -> int:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            total = min(total, int(Path(limit).read_text()))
        except (OSError, ValueError):  # no such limit, or 'max'
            continue
    return total // 2**20

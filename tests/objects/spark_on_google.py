"""Spark and Redolake commit to one table in what stands for Google Cloud Storage, in turn: ``URL JAR JVM-OPTION …``, in a process of its own,
since its JVM needs another jar. Prints the ids."""

from __future__ import annotations

import sys

from cdc_core.config import LakeConfig
from cdc_core.delta.appending import create_table
from cdc_core.spark.session import start_session, stop_spark
from tests.delta.test_appending import SCHEMA, append, rows


def main() -> None:
    """Append, MERGE, a commit of another writer, append."""
    url, jar, *options = sys.argv[1:]
    config = LakeConfig(
        path=url,
        driver_memory="1g",
        spark_config={
            "spark.jars": jar,
            "spark.driver.extraJavaOptions": " ".join(options),
            "spark.hadoop.fs.gs.impl": "org.apache.hadoop.fs.gs.GoogleHadoopFileSystem",
            "spark.hadoop.fs.gs.project.id": "tests",
            "spark.hadoop.fs.gs.auth.type": "USER_CREDENTIALS",
            "spark.hadoop.fs.gs.auth.client.id": "tests",
            "spark.hadoop.fs.gs.auth.client.secret": "tests",
            "spark.hadoop.fs.gs.auth.refresh.token": "tests",
        },
    )
    table = f"{url}/t"
    create_table(table, SCHEMA, {}, doing="creating", facts={})
    append(table, rows(1, 2), 100)
    session = start_session(config)
    session.sql(
        f"MERGE INTO delta.`{table}` t USING (SELECT 2L AS ID UNION ALL SELECT 77L) s ON t.ID = s.ID"
        " WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (ID) VALUES (s.ID)"
    )
    append(table, rows(3), 200)
    found = session.read.format("delta").load(table).collect()
    stop_spark()
    print(sorted(row["ID"] for row in found))


if __name__ == "__main__":
    main()

"""Spark and Redolake commit to one table in Azurite, in turn: ``URL ENDPOINT``, in a process of its own, since its JVM needs other jars."""

from __future__ import annotations

import sys
from pathlib import Path

from cdc_core.config import LakeConfig
from cdc_core.delta.appending import create_table
from cdc_core.spark.session import start_session, stop_spark
from tests.delta.test_appending import SCHEMA, append, rows
from tests.landing.clouds import AZURITE_KEY

_IVY = Path(__file__).parents[2] / ".redolake" / "peers" / "ivy"


def main() -> None:
    """Append, MERGE, append; print the ids."""
    url, endpoint = sys.argv[1:]
    account = url.partition("@")[2].partition("/")[0]
    azurite = {  # it speaks without TLS, and has no endpoint of Data Lake
        "abfs.endpoint": endpoint.removeprefix("http://"),
        "always.use.https": "false",
        "networking.library": "JDK_HTTP_URL_CONNECTION",
        "account.hns.enabled": "false",
        "fns.account.service.type": "BLOB",
        "ingress.service.type": "BLOB",
        "io.retry.max.retries": "2",
        "account.key": AZURITE_KEY,
        f"account.key.{account}": AZURITE_KEY,
    }
    config = LakeConfig(
        path=url,
        driver_memory="1g",
        spark_config={
            "spark.jars.packages": "org.apache.hadoop:hadoop-azure:3.5.0",
            "spark.jars.ivy": str(_IVY),
            "spark.hadoop.fs.abfss.impl": "org.apache.hadoop.fs.azurebfs.AzureBlobFileSystem",
            **{f"spark.hadoop.fs.azure.{name}": value for name, value in azurite.items()},
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

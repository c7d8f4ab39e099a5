"""With which artefacts and settings does another Spark read the tables? From the pinned jars."""

from __future__ import annotations

from cdc_core.runtime.jars import EXCLUDED, JARS
from cdc_core.runtime.s3_jars import S3_JARS
from cdc_core.spark.session import SESSION_SETTINGS, SPARK_WITH_DELTA

_FOR_READERS = ("spark.sql.session.timeZone", "spark.databricks.delta.snapshotPartitions")
_COLUMNS = 100
_DRAWN_IN_BY_DELTA = [one for one in EXCLUDED if one.startswith(("io.delta:", "io.unitycatalog:"))]


def artefacts_markdown() -> str:
    """The Maven coordinates, by what they are for."""
    (hadoop,) = (jar for jar in S3_JARS if jar.artifact == "hadoop-aws")
    _, spark, scala = JARS[0].artifact.split("_")
    return "\n".join(
        (
            f"* Spark or PySpark {spark}, for Scala {scala}, with Java 17 or newer;",
            f"* Delta Lake: {' and '.join(f'`{jar.coordinates}`' for jar in JARS)};",
            f"* for a lake on S3, of Spark's own Hadoop release: `{hadoop.coordinates}`.",
        )
    )


def session_markdown() -> str:
    """A session in Python that reads the tables, and no setting beyond that."""
    settings = {
        "spark.jars.packages": ",".join(jar.coordinates for jar in JARS),
        "spark.jars.excludes": ",".join(_DRAWN_IN_BY_DELTA),
        **SPARK_WITH_DELTA,
        **{name: SESSION_SETTINGS[name] for name in _FOR_READERS},
    }
    lines = [_entry(name, value) for name, value in settings.items()]
    return "\n".join(
        (
            "```python",
            "from pyspark.sql import SparkSession",
            "",
            "settings = {",
            *lines,
            "}",
            'spark = SparkSession.builder.master("local[*]").config(map=settings).getOrCreate()',
            "```",
        )
    )


def _entry(name: str, value: str) -> str:
    entry = f'    "{name}": "{value}",'
    if len(entry) <= _COLUMNS:
        return entry
    first, *others = value.split(",")
    parts = [first, *(f",{one}" for one in others)]
    return "\n".join((f'    "{name}": (', *(f'        "{part}"' for part in parts), "    ),"))

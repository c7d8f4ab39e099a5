"""How does whoever owns the process get the Spark session that a source's Delta tables need?"""

from cdc_core.spark.session import SparkSource, parent_session

__all__ = ["SparkSource", "parent_session"]

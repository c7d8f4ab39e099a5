"""What a test submits to Spark, ``CONFIG RESOURCES``: a run of Dagster takes the windows that wait, in the session of the job."""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

import dagster as dg
from pyspark.sql import SparkSession

from assets.config_file import load_config
from assets.history import add_partitions
from assets.named_file import build_defs
from assets.runs import RANGE_END_TAG, RANGE_START_TAG
from assets.translator import Translator
from cdc_core.steps import Pipeline


def main() -> None:
    """Plan the windows, run them over the whole range, and name the application of Spark's that did it."""
    file, resources = map(Path, sys.argv[1:])
    spark = SparkSession.builder.getOrCreate()
    config = load_config(file, environ=os.environ)
    project = dg.Definitions.merge(build_defs(file), runpy.run_path(str(resources))["defs"])
    job = project.get_repository_def().get_job(f"{config.name}_windows")
    with dg.DagsterInstance.ephemeral() as instance, Pipeline(config) as pipeline:
        pipeline.plan_windows()
        names = Translator(config.name, config.dagster)
        add_partitions(instance, pipeline.records, config, names)
        keys = [one.key for one in pipeline.records.windows(states=("planned",))]
        tags = {RANGE_START_TAG: keys[0], RANGE_END_TAG: keys[-1]}
        assert job.execute_in_process(instance=instance, tags=tags).success
    assert SparkSession.builder.getOrCreate().sparkContext is spark.sparkContext
    print("application", spark.sparkContext.applicationId)


if __name__ == "__main__":
    main()

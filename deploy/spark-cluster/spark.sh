#!/bin/sh
# Run a master or a worker of a Spark cluster in the foreground, from the PySpark and the Java that Redolake uses:
#   spark.sh master --host NAME --port 7077
#   spark.sh worker --cores 2 --memory 2g spark://NAME:7077
set -eu
case "${1:-}" in
    master) class=org.apache.spark.deploy.master.Master ;;
    worker) class=org.apache.spark.deploy.worker.Worker ;;
    *) echo "usage: spark.sh master|worker [options]" >&2; exit 2 ;;
esac
shift
found=$(python -c '
from cdc_core.runtime.folders import default_runtime_folder, find_spark_home, shim_folder
from cdc_core.runtime.java import find_java
print(find_spark_home(), find_java(shim_folder(default_runtime_folder())).path, sep="\n")
')
SPARK_HOME=$(echo "$found" | sed -n 1p)
JAVA_HOME=$(echo "$found" | sed -n 2p)
export SPARK_HOME JAVA_HOME
exec "$SPARK_HOME/bin/spark-class" "$class" "$@"

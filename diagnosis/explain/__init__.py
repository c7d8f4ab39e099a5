"""What does the pipeline make of an export of V$LOGMNR_CONTENTS? For people with questions, without
a database and without Spark.

``files`` reads rows of CSV, Parquet and JSON lines, ``export`` makes redo rows of them, ``tables``
reads the description of the tables, and ``definitions`` follows the DDL from there on.
``explaining`` takes the rows through the pipeline's own functions (:mod:`cdc_core.capture`,
:mod:`cdc_core.stage`), and ``outcomes`` keeps on disk what became of each.
"""

from diagnosis.explain.explaining import explained
from diagnosis.explain.export import read_xid
from diagnosis.explain.outcomes import ExplainedRow, ExplainedTransaction, Finding, Outcomes
from diagnosis.explain.tables import read_tables
from diagnosis.explain.writing import check_target, write_rows

__all__ = [
    "ExplainedRow",
    "ExplainedTransaction",
    "Finding",
    "Outcomes",
    "check_target",
    "explained",
    "read_tables",
    "read_xid",
    "write_rows",
]

"""By which condition are the rows of partitions read?

By the bounds that the partitions had at a DDL (:mod:`cdc_core.schema.partition_bounds`), not by
their names: they may have been split, merged or renamed when the rows are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from cdc_core.model.identifiers import quote
from cdc_core.model.partition_rows import PartitionRows
from cdc_core.schema.partition_bounds import bound_value, rows_condition
from cdc_core.schema.table import Column, TableSchema
from cdc_core.schema.types import arrow_type

_MOMENT = "YYYY-MM-DD HH24:MI:SS"


def partition_condition(partitions: Sequence[PartitionRows], schema: TableSchema) -> str:
    """The condition of the rows of some partitions, in Oracle's SQL, of the form that
    :func:`cdc_core.snapshot.conditions.checked_condition` accepts. Pure.

    Args:
        partitions: One at least.
        schema: The definition under whose names it is.
    """
    return " OR ".join(f"({rows_condition(one, schema, quote, _literal)})" for one in partitions)


def _literal(column: Column, text: str) -> str:
    """A bound in SQL; that of a number as the dictionary has it."""
    value = bound_value(text, arrow_type(column))
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if not isinstance(value, datetime):
        return text
    if column.data_type == "DATE":
        moment = value.isoformat(" ", "seconds")
        return f"TO_DATE('{moment}', '{_MOMENT}')"
    moment = value.isoformat(" ", "microseconds")
    return f"TO_TIMESTAMP('{moment}', '{_MOMENT}.FF6')"

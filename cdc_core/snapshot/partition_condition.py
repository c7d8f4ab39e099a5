"""By which condition are the rows of partitions read?

By the bounds that the partitions had at a DDL (:mod:`cdc_core.schema.partition_bounds`), not by
their names: they may have been split, merged or renamed when the rows are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from cdc_core.model.identifiers import quote
from cdc_core.model.partition_rows import PartitionRows
from cdc_core.schema.partition_bounds import bound_value
from cdc_core.schema.table import TableSchema
from cdc_core.schema.types import arrow_type

_MOMENT = "YYYY-MM-DD HH24:MI:SS"


def partition_condition(partitions: Sequence[PartitionRows], schema: TableSchema) -> str:
    """The condition of the rows of some partitions, in Oracle's SQL, of the form that
    :func:`cdc_core.snapshot.conditions.checked_condition` accepts. Pure.

    Args:
        partitions: One at least.
        schema: The definition under whose names it is.
    """
    return " OR ".join(f"({_rows(one, schema)})" for one in partitions)


def _rows(rows: PartitionRows, schema: TableSchema) -> str:
    if rows.sub is not None:
        whole = _rows(replace(rows, sub=None), schema)
        return f"({whole}) AND ({_rows(rows.sub, schema)})"
    column = schema.held(rows.column)
    kind, name = arrow_type(column), quote(column.name)

    def listed(texts: Sequence[str]) -> str:
        return ", ".join(
            _literal(bound_value(text, kind), text, column.data_type) for text in texts
        )

    terms = []
    if rows.low is not None:
        terms.append(f"{name} >= {listed([rows.low])}")
    if rows.high is not None:
        terms.append(f"{name} < {listed([rows.high])}")
    if rows.listed is not None:
        terms.append(f"{name} IN ({listed(rows.listed)})" if rows.listed else "1 = 0")
    if rows.unlisted:
        terms.append(f"{name} NOT IN ({listed(rows.unlisted)})")
    within = " AND ".join([f"{name} IS NOT NULL", *terms])
    return f"({within}) OR {name} IS NULL" if rows.has_null else within


def _literal(value: object, text: str, data_type: str) -> str:
    """A bound in SQL; that of a number as the dictionary has it."""
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if not isinstance(value, datetime):
        return text
    if data_type == "DATE":
        moment = value.isoformat(" ", "seconds")
        return f"TO_DATE('{moment}', '{_MOMENT}')"
    moment = value.isoformat(" ", "microseconds")
    return f"TO_TIMESTAMP('{moment}', '{_MOMENT}.FF6')"

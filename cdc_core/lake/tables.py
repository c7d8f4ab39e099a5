"""Which two Delta tables stand for a captured table: what are their columns and properties?"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

import pyarrow as pa

from cdc_core.delta.history import MAPPING
from cdc_core.model.json_form import as_json
from cdc_core.schema.table import Column, TableSchema
from cdc_core.schema.types import INSTANT, arrow_schema
from cdc_core.stage.layout import COMMIT_SCN, ORDINAL, mirror_schema

SCHEMA_PROPERTY = "redolake.schema"
"""Change log property: the newest version of the table that both Delta tables have, or are being
given."""

ADDED_PROPERTY = "redolake.added"
"""Change log property: JSON object from each column that was added since, by what it is stored as,
to the SQL of its default."""

WIDENED_PROPERTY = "redolake.widened"
"""Change log property: JSON list of the columns that were given wider types since, by what they are
stored as."""

COLUMNS_PROPERTY = "redolake.columns"
"""Mirror property, since the first rename: JSON object from what the mirror's files call a column
to what it is stored as. Other columns have their names of ``redolake.schema``."""

KEY_PROPERTY = "redolake.key"
"""Mirror property: JSON list of the key's columns."""

FEATURES_PROPERTY = "redolake.features"
"""Mirror property: JSON list of the features of Delta that it has by
``maintenance.delta_features``."""

PARTITIONS_PROPERTY = "redolake.partitions"
"""Change log property: the SCN of the last DDL that removed partitions with their rows, once the
mirror has none of them any more."""

FORGETS_PROPERTY = "delta.setTransactionRetentionDuration"
"""Makes Delta forget transaction identifiers of that age, which are the positions of a table.
Nothing of ours sets it."""

GENERATION_PROPERTY = "redolake.generation"
"""Which generation of the table this is: an older one is moved aside when a newer one begins."""

CHANGELOG_INDEXED = ("_cdc_op", COMMIT_SCN, ORDINAL, "_cdc_window", "_cdc_snapshot")
"""Columns of the change log with statistics in Delta's log: what windows, chunks and replays look
for."""

MIRROR_INDEXED = 32
"""So many of the mirror's first columns get statistics, as Delta's own writers do it."""


def delta(path: str) -> str:
    """A Delta table by its folder, for SQL."""
    return f"delta.{quote_name(path)}"


def quote_name(identifier: str) -> str:
    """Quote one name for Spark SQL."""
    return "`" + identifier.replace("`", "``") + "`"


def string_literal(value: str) -> str:
    """A SQL string literal."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def listed(columns: Iterable[str], alias: str | None = None) -> str:
    """Names for Spark SQL, with commas between; of the relation ``alias`` if there are several."""
    prefix = f"{alias}." if alias else ""
    return ", ".join(f"{prefix}{quote_name(column)}" for column in columns)


def same_key(schema: TableSchema, one: str, other: str) -> str:
    """The condition that rows of two relations of SQL have the table's key in common."""
    keys = map(quote_name, schema.key)
    return " AND ".join(f"{one}.{key} = {other}.{key}" for key in keys)


def of_image(columns: Iterable[str], image: str) -> str:
    """Columns of an image of a change (``before`` or ``after``), under their own names."""
    return ", ".join(f"{image}.{name} AS {name}" for name in map(quote_name, columns))


def spark_type(kind: pa.DataType) -> str:
    """The Spark SQL type of an Arrow type of ``schema.types``."""
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if pa.types.is_list(kind):
        return f"ARRAY<{spark_type(kind.value_type)}>"
    if pa.types.is_struct(kind):
        fields = ", ".join(f"{quote_name(one.name)}: {spark_type(one.type)}" for one in kind)
        return f"STRUCT<{fields}>"
    return {
        pa.int64(): "BIGINT",
        pa.int32(): "INT",
        pa.string(): "STRING",
        pa.float64(): "DOUBLE",
        pa.float32(): "FLOAT",
        pa.timestamp("us"): "TIMESTAMP_NTZ",
        INSTANT: "TIMESTAMP_LTZ",  # our sessions call what has no zone TIMESTAMP
        pa.date32(): "DATE",
        pa.binary(): "BINARY",
        pa.bool_(): "BOOLEAN",
    }[kind]


def mirror_columns(schema: TableSchema) -> pa.Schema:
    """The mirror's columns with Oracle's types as comments."""
    kinds = {column.name: oracle_type(column) for column in schema.columns}
    return pa.schema(
        [
            field.with_metadata({"comment": kinds[field.name]}) if field.name in kinds else field
            for field in mirror_schema(schema)
        ]
    )


MAPPED = {
    MAPPING: "name",
    # With any table feature of readers the mapping becomes one itself (reader version 3): a reader
    # that does not know it refuses the table. Under reader version 2 some show NULLs.
    "delta.minReaderVersion": "3",
    "delta.minWriterVersion": "7",
    "delta.feature.timestampNtz": "supported",
}
"""What turns column mapping on."""


def properties_sql(properties: Mapping[str, str]) -> str:
    """Table properties in parentheses, for Spark SQL."""
    pairs = (
        f"{string_literal(name)} = {string_literal(value)}" for name, value in properties.items()
    )
    return f"({', '.join(pairs)})"


def field_ddl(field: pa.Field) -> str:
    """One column as CREATE TABLE and ADD COLUMNS have it, with its comment."""
    comment = (field.metadata or {}).get(b"comment")
    said = "" if comment is None else f" COMMENT {string_literal(comment.decode())}"
    return f"{quote_name(field.name)} {spark_type(field.type)}{said}"


def columns_of(schema: TableSchema) -> list[tuple[str, pa.DataType]]:
    """Name and Arrow type of each captured column."""
    return [(field.name, field.type) for field in arrow_schema(schema)]


def oracle_type(column: Column) -> str:
    """Oracle's type as a person writes it, for example ``NUMBER(10,2)``."""
    if column.data_type == "NUMBER" and column.scale is not None:
        digits = "*" if column.precision is None else column.precision
        return f"NUMBER({digits},{column.scale})"
    if column.data_type in {"CHAR", "VARCHAR2", "NCHAR", "NVARCHAR2"}:
        return f"{column.data_type}({column.char_length})"
    return f"RAW({column.length})" if column.data_type == "RAW" else column.data_type


def delta_type(kind: pa.DataType) -> str:
    """The Delta protocol's name of an Arrow type of ``schema.types``."""
    name_ = spark_type(kind).lower()
    return {"bigint": "long", "int": "integer", "timestamp_ltz": "timestamp"}.get(name_, name_)


def mirror_properties(source: str, schema: TableSchema, generation: int) -> dict[str, str]:
    """Table properties of a mirror; plain features only, so that every reader can read it."""
    return {
        **_properties(source, schema, "mirror", generation),
        KEY_PROPERTY: key_text(schema),
    }


def key_text(schema: TableSchema) -> str:
    """What the mirror's property says of its key."""
    return json.dumps(schema.key)


def changelog_properties(source: str, schema: TableSchema, generation: int) -> dict[str, str]:
    """Table properties of a change log: statistics for what windows, chunks and replays look
    for."""
    return {
        **_properties(source, schema, "changelog", generation),
        SCHEMA_PROPERTY: json.dumps(as_json(schema)),
        "delta.dataSkippingStatsColumns": ",".join(CHANGELOG_INDEXED),
    }


def _properties(source: str, schema: TableSchema, role: str, generation: int) -> dict[str, str]:
    return {
        "delta.enableDeletionVectors": "false",
        "redolake.source": source,
        "redolake.table": str(schema.table),
        "redolake.role": role,
        GENERATION_PROPERTY: str(generation),
    }

"""Which schema goes with a message, so that sinks of Kafka Connect know its types? Names and types
are Debezium's.

Source: Debezium 3, documentation of the Oracle connector, "Data change events", and what its
embedded engine sends with ``schemas.enable: true``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from cdc_core.schema.table import Column, TableSchema
from cdc_core.schema.types import arrow_type
from cdc_core.views.events import Decimals, has_variable_scale, is_in_millis

Schema = Mapping[str, Any]

_DIGITS = {3: "int8", 5: "int16", 10: "int32"}
"""Types of whole numbers with fewer digits; others are int64."""


def message(schema: Schema | None, payload: dict[str, Any]) -> dict[str, Any]:
    """A key or value, with its schema where there is one."""
    return payload if schema is None else {"schema": schema, "payload": payload}


def key_schema(schema: TableSchema, topic: str, decimals: Decimals) -> Schema:
    """The schema of the keys of a table's messages."""
    columns = [_column(schema.column(name), decimals, is_optional=False) for name in schema.key]
    return _struct(f"{topic}.Key", *columns)


def envelope_schema(schema: TableSchema, topic: str, decimals: Decimals) -> Schema:
    """The schema of the values of a table's messages. Columns of the key alone are required: an
    event may lack others."""
    row = [
        _column(schema.column(name), decimals, is_optional=name not in schema.key)
        for name in schema.column_names
    ]
    image = {**_struct(f"{topic}.Value", *row), "optional": True}
    place = ("id", "string"), ("total_order", "int64"), ("data_collection_order", "int64")
    block = _struct("event.block", *(_field(*one) for one in place), version=1)
    return _struct(
        f"{topic}.Envelope",
        {**image, "field": "before"},
        {**image, "field": "after"},
        SOURCE,
        {**block, "optional": True, "field": "transaction"},
        _field("op", "string"),
        *(_field(name, "int64", optional=True) for name in ("ts_ms", "ts_us", "ts_ns")),
        version=2,
    )


def _column(column: Column, decimals: Decimals, *, is_optional: bool) -> Schema:
    return {**_type(column, decimals), "optional": is_optional, "field": column.name}


def _type(column: Column, decimals: Decimals) -> Schema:
    """What :func:`cdc_core.views.events.shown` makes of the column."""
    kind = arrow_type(column)
    if decimals == "precise" and has_variable_scale(column):
        parts = _field("scale", "int32"), _field("value", "bytes")
        return _struct("io.debezium.data.VariableScaleDecimal", *parts, version=1)
    if pa.types.is_integer(kind):
        digits = (column.precision or 18) - (column.scale or 0)
        return {"type": next((one for most, one in _DIGITS.items() if digits < most), "int64")}
    if pa.types.is_decimal(kind) and decimals == "precise":
        parameters = {"scale": str(kind.scale), "connect.decimal.precision": str(kind.precision)}
        return _named("bytes", "org.apache.kafka.connect.data.Decimal", parameters)
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return _named("string", "io.debezium.time.ZonedTimestamp")
    if pa.types.is_timestamp(kind):
        unit = "Timestamp" if is_in_millis(column) else "MicroTimestamp"
        return _named("int64", f"io.debezium.time.{unit}")
    if pa.types.is_date(kind):
        return _named("int32", "io.debezium.time.Date")
    return _arrow(kind)


def _arrow(kind: pa.DataType) -> Schema:
    """A type that Connect has itself, also of a converter of the user's own."""
    if pa.types.is_list(kind):
        return {"type": "array", "items": {**_arrow(kind.value_type), "optional": True}}
    if pa.types.is_struct(kind):
        return {
            "type": "struct",
            "fields": [{**_arrow(one.type), "optional": True, "field": one.name} for one in kind],
        }
    plain = {
        pa.types.is_boolean: "boolean",
        pa.types.is_float32: "float",
        pa.types.is_float64: "double",
        pa.types.is_binary: "bytes",
        pa.types.is_integer: "int64",
    }
    return {"type": next((name for test, name in plain.items() if test(kind)), "string")}


def _named(kind: str, name: str, parameters: Mapping[str, str] | None = None) -> Schema:
    more = {} if parameters is None else {"parameters": parameters}
    return {"type": kind, "name": name, "version": 1, **more}


def _struct(name: str, *fields: Schema, version: int | None = None) -> dict[str, Any]:
    more = {} if version is None else {"version": version}
    return {"type": "struct", "name": name, "optional": False, **more, "fields": [*fields]}


def _field(name: str, kind: str, *, optional: bool = False) -> Schema:
    return {"type": kind, "optional": optional, "field": name}


def _fields(text: str) -> list[Schema]:
    """Fields as ``name:type``, with ``?`` behind the type of one that may be null."""
    return [
        _field(name, kind.rstrip("?"), optional=kind.endswith("?"))
        for name, kind in (one.split(":") for one in text.split())
    ]


def _array(name: str, items: Schema, *, optional: bool = False) -> Schema:
    return {"type": "array", "items": items, "optional": optional, "field": name}


_SNAPSHOT = {
    **_named(
        "string",
        "io.debezium.data.Enum",
        {
            "allowed": "true,first,first_in_data_collection,last_in_data_collection,last,false,"
            "incremental"
        },
    ),
    "optional": True,
    "default": "false",
    "field": "snapshot",
}
SOURCE: Schema = {
    **_struct(
        "io.debezium.connector.oracle.Source",
        *_fields("version:string connector:string name:string"),
        _field("ts_ms", "int64", optional=True),
        _SNAPSHOT,
        *_fields(
            "db:string sequence:string? ts_us:int64? ts_ns:int64? schema:string table:string "
            "txId:string? scn:string? commit_scn:string? lcr_position:string? rs_id:string? "
            "ssn:int64? redo_thread:int32? user_name:string? redo_sql:string? row_id:string? "
            "commit_ts_ms:int64? start_scn:string? start_ts_ms:int64? txSeq:int64?"
        ),
        version=1,
    ),
    "field": "source",
}
"""Where an event comes from. The change log need not keep the moment in which a chunk's rows were
read, so ``ts_ms`` may be null, other than in Debezium's schema."""

HEARTBEAT_KEY: Schema = _struct(
    "io.debezium.connector.common.ServerNameKey", *_fields("serverName:string"), version=1
)
HEARTBEAT: Schema = _struct(
    "io.debezium.connector.common.Heartbeat", *_fields("ts_ms:int64"), version=1
)
TRANSACTION_KEY: Schema = _struct(
    "io.debezium.connector.common.TransactionMetadataKey", *_fields("id:string"), version=1
)
TRANSACTION: Schema = _struct(
    "io.debezium.connector.common.TransactionMetadataValue",
    *_fields("status:string id:string event_count:int64?"),
    _array(
        "data_collections",
        {
            **_struct(
                "event.collection", *_fields("data_collection:string event_count:int64"), version=1
            ),
            "optional": True,
        },
        optional=True,
    ),
    *_fields("ts_ms:int64"),
    version=1,
)
_TABLE = _struct(
    "io.debezium.connector.schema.Table",
    *_fields("defaultCharsetName:string?"),
    _array("primaryKeyColumnNames", {"type": "string", "optional": False}, optional=True),
    _array(
        "columns",
        _struct(
            "io.debezium.connector.schema.Column",
            *_fields(
                "name:string jdbcType:int32 nativeType:int32? typeName:string "
                "typeExpression:string? charsetName:string? length:int32? scale:int32? "
                "position:int32 optional:boolean? autoIncremented:boolean? generated:boolean? "
                "comment:string? defaultValueExpression:string?"
            ),
            _array("enumValues", {"type": "string", "optional": False}, optional=True),
            version=1,
        ),
    ),
    *_fields("comment:string?"),
    version=1,
)
SCHEMA_CHANGE_KEY: Schema = _struct(
    "io.debezium.connector.oracle.SchemaChangeKey", *_fields("databaseName:string"), version=1
)
SCHEMA_CHANGE: Schema = _struct(
    "io.debezium.connector.oracle.SchemaChangeValue",
    SOURCE,
    *_fields("ts_ms:int64 databaseName:string? schemaName:string? ddl:string?"),
    _array(
        "tableChanges",
        _struct(
            "io.debezium.connector.schema.Change",
            *_fields("type:string id:string"),
            {**_TABLE, "optional": True, "field": "table"},
            version=1,
        ),
    ),
    version=1,
)

_JDBC = {
    "NUMBER": 2, "FLOAT": 6, "BINARY_FLOAT": 100, "BINARY_DOUBLE": 101, "VARCHAR2": 12,
    "NVARCHAR2": -9, "CHAR": 1, "NCHAR": -15, "CLOB": 2005, "NCLOB": 2011, "BLOB": 2004, "RAW": -3,
    "DATE": 93, "ROWID": -8, "XMLTYPE": 2009, "SYS.XMLTYPE": 2009, "LONG": -1, "LONG RAW": -4,
}  # fmt: skip
"""Types of Oracle's JDBC driver (``java.sql.Types``, ``OracleTypes``) by Oracle's names."""
_JDBC_FORMS = (
    (r"TIMESTAMP(\(\d\))? WITH TIME ZONE", -101),
    (r"TIMESTAMP(\(\d\))? WITH LOCAL TIME ZONE", -102),
    (r"TIMESTAMP(\(\d\))?", 93),
    (r"INTERVAL YEAR.*", -103),
    (r"INTERVAL DAY.*", -104),
)
_OTHER = 1111


def jdbc_type(name: str) -> int:
    """The number that JDBC has for a type of Oracle's, for example 2 for ``NUMBER``."""
    fitting = (number for form, number in _JDBC_FORMS if re.fullmatch(form, name))
    return _JDBC.get(name, next(fitting, _OTHER))

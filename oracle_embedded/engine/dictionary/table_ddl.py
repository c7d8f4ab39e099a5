"""How does DBMS_METADATA write a table's CREATE TABLE, without storage clauses?"""

from __future__ import annotations

from oracle_embedded.engine.datatypes.types import SqlType
from oracle_embedded.engine.storage.catalog import ColumnDef, Constraint, TableDef

_KEYS = {"P": "PRIMARY KEY", "U": "UNIQUE"}


def create_table(table: TableDef) -> str:
    """CREATE TABLE with columns, NOT NULL, defaults, and the primary and unique keys; no semicolon
    at its end."""
    parts = [_column(column) for column in table.named]
    parts += [_key(table, item) for item in table.constraints if item.kind in _KEYS]
    inside = ", \n\t".join(parts)
    return f'\n  CREATE TABLE "{table.owner}"."{table.name}" \n   (\t{inside}\n   ) '


def _column(column: ColumnDef) -> str:
    text = f'"{column.name}" {_type(column.type)}'
    if column.is_invisible:
        text += " INVISIBLE"
    if column.expression:
        return f"{text} GENERATED ALWAYS AS ({column.expression}) VIRTUAL"
    if column.identity:
        text += f" GENERATED {column.identity} AS IDENTITY"
    elif column.default_text:
        text += f" DEFAULT {column.default_text.strip()}"
    return text if column.nullable else f"{text} NOT NULL ENABLE"


def _type(kind: SqlType) -> str:
    name = kind.data_type()
    match kind.family:
        case "text" if kind.length:
            if kind.form == 2:
                return f"{name}({kind.char_length})"
            if kind.char_used == "C":
                return f"{name}({kind.char_length} CHAR)"
            return f"{name}({kind.length})"
        case "raw" if kind.length:
            return f"{name}({kind.length})"
        case "number" if kind.float_bits is not None:
            return f"FLOAT({kind.float_bits})"
        case "number" if kind.precision is not None:
            return f"NUMBER({kind.precision},{kind.scale or 0})"
        case "number" if kind.scale is not None:
            return f"NUMBER(*,{kind.scale})"
        case "tz" | "ltz" | "timestamp":
            return name.replace("TIMESTAMP(", "TIMESTAMP (")
        case "vector":
            return f"VECTOR({kind.length or '*'}, {kind.dimensions or '*'})"
    return name


def _key(table: TableDef, item: Constraint) -> str:
    columns = ", ".join(f'"{table.by_id[internal_id].name}"' for internal_id in item.columns)
    named = "" if item.generated else f'CONSTRAINT "{item.name}" '
    return f"{named}{_KEYS[item.kind]} ({columns}) {'ENABLE' if item.enabled else 'DISABLE'}"

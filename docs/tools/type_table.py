"""How is each Oracle type held? The table of types is the one in :mod:`cdc_core.schema.types`;
examples come from its functions."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

from cdc_core.errors import UnsupportedTypeError
from cdc_core.lake.tables import oracle_type, spark_type
from cdc_core.schema import types
from cdc_core.schema.table import Column
from docs.tools.markdown import code, from_rst, table

EXAMPLES: tuple[dict[str, Any], ...] = (
    {"data_type": "NUMBER", "precision": 10, "scale": 2},
    {"data_type": "NUMBER", "precision": 9, "scale": 0},
    {"data_type": "NUMBER", "precision": 18, "scale": 0},
    {"data_type": "NUMBER", "precision": 19, "scale": 0},
    {"data_type": "NUMBER", "precision": None, "scale": 0},
    {"data_type": "NUMBER", "precision": 5, "scale": -2},
    {"data_type": "NUMBER", "precision": 3, "scale": 5},
    {"data_type": "NUMBER", "precision": None, "scale": None},
    {"data_type": "NUMBER", "precision": None, "scale": 3},
    {"data_type": "NUMBER", "precision": 38, "scale": -2},
    {"data_type": "FLOAT", "precision": 126},
    {"data_type": "BINARY_FLOAT"},
    {"data_type": "BINARY_DOUBLE"},
    {"data_type": "CHAR", "length": 10, "char_length": 10},
    {"data_type": "VARCHAR2", "length": 100, "char_length": 100},
    {"data_type": "NCHAR", "length": 20, "char_length": 10},
    {"data_type": "NVARCHAR2", "length": 200, "char_length": 100},
    {"data_type": "CLOB"},
    {"data_type": "NCLOB"},
    {"data_type": "BLOB"},
    {"data_type": "DATE"},
    {"data_type": "TIMESTAMP(6)"},
    {"data_type": "TIMESTAMP(9)"},
    {"data_type": "TIMESTAMP(6) WITH TIME ZONE"},
    {"data_type": "TIMESTAMP(6) WITH LOCAL TIME ZONE"},
    {"data_type": "INTERVAL DAY(2) TO SECOND(6)"},
    {"data_type": "INTERVAL YEAR(2) TO MONTH"},
    {"data_type": "RAW", "length": 16},
    {"data_type": "LONG"},
    {"data_type": "UROWID"},
    {"data_type": "ROWID"},
    {"data_type": "XMLTYPE"},
    {"data_type": "JSON"},
    {"data_type": "BOOLEAN"},
    {"data_type": "VECTOR"},
)
"""Declarations as the dictionary has them."""

_RULER = re.compile(r"^=+(?: +=+)+$", re.MULTILINE)


def markdown() -> str:
    """The table that the module's docstring has."""
    text = types.__doc__ or ""
    [ruler, _, _] = _RULER.findall(text)
    starts = [found.start() for found in re.finditer("=+", ruler)]
    rows: list[list[str]] = []
    for line in _RULER.split(text)[2].strip("\n").splitlines():
        ends = [*starts[1:], len(line)]
        cells = [line[start:end].strip() for start, end in zip(starts, ends, strict=True)]
        if cells[1]:
            rows.append(cells)
        else:  # the row goes on in this line
            rows[-1] = [f"{a} {b}".strip() for a, b in zip(rows[-1], cells, strict=True)]
    return table(("Oracle", "Arrow (landing)", "note"), [list(map(from_rst, row)) for row in rows])


def examples_markdown() -> str:
    """What becomes of common declarations: the Delta type, or the reason of the refusal."""
    rows = []
    for example in EXAMPLES:
        column = Column(**_defaults() | {"name": "C", **example})
        try:
            held = types.arrow_type(column)
            rows.append((code(oracle_type(column)), code(str(held)), code(spark_type(held))))
        except UnsupportedTypeError as error:
            rows.append((code(oracle_type(column)), "–", f"refused: {error.message}"))
    return table(("Oracle", "Arrow (landing)", "Delta"), rows)


def forms_markdown() -> str:
    """In which forms each type can be held."""
    rows = []
    for family, forms in types.FORMS.items():
        if forms == {types.RESELECT}:
            continue  # `unsupported_columns` asks for it
        listed = [*sorted(forms), *(["decimal(p,s)"] if family in types.NUMBER_TYPES else [])]
        rows.append((code(family), ", ".join(map(code, listed))))
    return table(("Oracle", "forms"), rows)


def _defaults() -> dict[str, Any]:
    """Values for fields that an example does not name."""
    return {field.name: None for field in fields(Column)} | {
        "length": 0,
        "char_length": 0,
        "held_as": "",
    }

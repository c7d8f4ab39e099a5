"""How many redo statements per second does one core decode into typed columns, against Debezium's
own parser?

Debezium's parser leaves every value as text; ours ends in typed Arrow columns. Both read the same
statements, and both results are compared value by value.
"""

from __future__ import annotations

import random
import re
import struct
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from benchmarks.common import Form, Result, median_seconds
from benchmarks.peers.debezium import Parsed, PeerUnavailableError, parse
from cdc_core.decode import DecodedDml, decode_dml
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn
from cdc_core.schema.table import Column, TableSchema

COLUMNS = (5, 10, 20, 50)
GOAL = 4.0
_BATCH_ROWS = 5_000
_TYPES: tuple[tuple[str, int | None, int | None], ...] = (
    ("NUMBER", 10, 0),
    ("VARCHAR2", None, None),
    ("NUMBER", 12, 2),
    ("DATE", None, None),
    ("TIMESTAMP(6)", None, None),
)
_ALL_TYPES: tuple[tuple[str, int | None, int | None], ...] = (
    *_TYPES,
    ("NUMBER", None, None),
    ("NUMBER", 38, 0),
    ("FLOAT", 126, None),
    ("BINARY_FLOAT", None, None),
    ("BINARY_DOUBLE", None, None),
    ("CHAR", None, None),
    ("NVARCHAR2", None, None),
    ("RAW", None, None),
    ("ROWID", None, None),
    ("TIMESTAMP(9)", None, 9),
    ("TIMESTAMP(6) WITH TIME ZONE", None, 6),
    ("TIMESTAMP(6) WITH LOCAL TIME ZONE", None, 6),
    ("INTERVAL YEAR(2) TO MONTH", 2, 0),
    ("INTERVAL DAY(2) TO SECOND(6)", 2, 6),
)
"""All that the redo prints as literals of one statement; LOBs and documents have statements of
their own."""
_ALL_COLUMNS = (20, 50)
_WARM_UP_SECONDS_LEAST = 2.0
"""Java compiles what it has run often enough; less than this would be unfair."""
_EPOCH = datetime(1970, 1, 1)
_NATIONAL_WORDS = (r"\65E5\672C\8A9E", r"\041C\043E\0441\043A\0432\0430", r"Z\00FCrich", "plain")
_LETTERS = "abcdefghijklmnopqrstuvwxyz     ABCDEÄé"


def rows(form: Form = Form.NORMAL) -> list[Result]:
    """One row for each number of columns and kind of statement."""
    mixes = [(_TYPES, columns, "") for columns in COLUMNS]
    mixes += [(_ALL_TYPES, columns, " of all types") for columns in _ALL_COLUMNS]
    seconds = (10.0 if form is Form.QUICK else 30.0) / (len(COLUMNS) * 3)
    made = []
    for types, columns, named in mixes:
        schema = _schema(types, columns)
        for kind, printed in _statements(schema, random.Random(columns)).items():
            question = f"decode {kind} of {columns} columns{named}, typed"
            made.append(_compare(question, schema, printed, seconds))
    return made


def _compare(question: str, schema: TableSchema, statements: list[str], seconds: float) -> Result:
    text = pa.array(statements, pa.large_string())
    decoded = decode_dml(text, schema)  # loads the compiled code
    once = median_seconds(lambda: decode_dml(text, schema), repeats=3)
    repeats = max(3, min(200, int(seconds / 2 / once)))
    ours = len(statements) / median_seconds(lambda: decode_dml(text, schema), repeats=repeats)
    unit = "statements/s per core"
    try:
        theirs = parse(
            statements,
            schema.column_names,
            warm_up_seconds=max(seconds / 2, _WARM_UP_SECONDS_LEAST),
            passes=max(5, repeats // 4),
        )
    except PeerUnavailableError as error:
        against = f"Debezium's parser, not run: {error}"
        return Result(question, ours, unit, against, goal=GOAL)
    return Result(
        question=question,
        ours=ours,
        unit=unit,
        against="Debezium's parser (values stay text)",
        theirs=theirs.statements_per_second,
        goal=GOAL,
        correct=_is_same(decoded, theirs, schema),
    )


def _is_same(decoded: DecodedDml, parsed: Parsed, schema: TableSchema) -> bool:
    ours = (_columns(decoded.before, schema), _columns(decoded.after, schema))
    theirs = tuple(
        [
            [
                _typed(text, column)
                for text, column in zip(values[side], schema.columns, strict=True)
            ]
            for values in parsed.values
        ]
        for side in (0, 1)
    )
    return ours == theirs


def _columns(images: pa.StructArray, schema: TableSchema) -> list[list[Any]]:
    empty = [None] * len(schema.columns)
    return [empty if image is None else list(image.values()) for image in images.to_pylist()]


def _typed(text: str | None, column: Column) -> Any:
    """Debezium's text as a value, by other means than ours."""
    if text is None:
        return None
    kind = column.data_type
    if kind == "NUMBER" and column.precision is not None:
        return int(text) if column.precision == 10 else Decimal(text)
    if kind.startswith("BINARY_"):
        return float(text) if kind == "BINARY_DOUBLE" else _as_float32(text)
    if kind in _AS_PRINTED:
        return text
    quoted = text.split("'")[1]
    if kind == "RAW":
        return bytes.fromhex(quoted)
    if kind == "NVARCHAR2":
        return re.sub(r"\\(....)", lambda found: chr(int(found[1], 16)), quoted)
    if kind.endswith("TIME ZONE"):
        moment, zone = quoted.rsplit(" ", 1)
        return f"{moment}000 {zone}"
    if kind.startswith("INTERVAL"):
        days_or_years, rest = re.split("[ -]", quoted, maxsplit=1)
        return (
            f"{int(days_or_years)} {rest}000" if "DAY" in kind else f"{int(days_or_years)}-{rest}"
        )
    return quoted if kind == "TIMESTAMP(9)" else datetime.fromisoformat(quoted)


_AS_PRINTED = frozenset({"NUMBER", "FLOAT", "VARCHAR2", "CHAR", "ROWID"})


def _as_float32(text: str) -> float:
    (found,) = struct.unpack("f", struct.pack("f", float(text)))
    return float(found)


def _schema(types: Sequence[tuple[str, int | None, int | None]], columns: int) -> TableSchema:
    made = tuple(
        Column(f"COLUMN_{place}", name, 30, 30, precision, scale, nullable=True)
        for place in range(columns)
        for name, precision, scale in (types[place % len(types)],)
    )
    return TableSchema(TableId("SHOP", "ORDERS"), Scn(1), made, key=("COLUMN_0",))


def _statements(schema: TableSchema, chance: random.Random) -> dict[str, list[str]]:
    """INSERTs, UPDATEs of one column in ten, and DELETEs, as LogMiner prints them; one value in ten
    is NULL."""
    table, names = schema.table.sql, schema.column_names
    listed = ",".join(f'"{name}"' for name in names)
    made: dict[str, list[str]] = {"insert": [], "update": [], "delete": []}
    for _row in range(_BATCH_ROWS):
        row = [_literal(column, chance) for column in schema.columns]
        made["insert"].append(f"insert into {table}({listed}) values ({','.join(row)});")
        where = " and ".join(
            f'"{name}" IS NULL' if text == "NULL" else f'"{name}" = {text}'
            for name, text in zip(names, row, strict=True)
        )
        changed = sorted(chance.sample(range(1, len(names)), max(1, len(names) // 10)))
        sets = ", ".join(
            f'"{names[place]}" = {_literal(schema.columns[place], chance)}' for place in changed
        )
        made["update"].append(f"update {table} set {sets} where {where};")
        made["delete"].append(f"delete from {table} where {where};")
    return made


def _literal(column: Column, chance: random.Random) -> str:
    if column.name != "COLUMN_0" and chance.random() < 0.1:
        return "NULL"
    moment = _EPOCH + timedelta(seconds=chance.randrange(10**9, 17 * 10**8))
    micros = f"{chance.randrange(10**6):06d}"
    zoned = f"TO_TIMESTAMP_TZ('{moment}.{micros} +0{chance.randrange(9)}:00')"
    printers: dict[str, Callable[[], str]] = {
        "NUMBER": lambda: _number(column, chance),
        "FLOAT": lambda: _number(column, chance),
        "BINARY_FLOAT": lambda: f"'{chance.random() * 1e5:.8E}'",
        "BINARY_DOUBLE": lambda: f"'{chance.random() * 1e5:.16E}'",
        "VARCHAR2": lambda: _text(chance),
        "CHAR": lambda: f"'{chance.choice('NY'):10}'",
        "NVARCHAR2": lambda: f"UNISTR('{' '.join(chance.choices(_NATIONAL_WORDS, k=3))}')",
        "RAW": lambda: f"HEXTORAW('{chance.randrange(16**16):016x}')",
        "ROWID": lambda: f"'AAAAECAAB{chance.randrange(10**9):09d}'",
        "DATE": lambda: f"TO_DATE('{moment}', 'YYYY-MM-DD HH24:MI:SS')",
        "TIMESTAMP(6)": lambda: f"TO_TIMESTAMP('{moment}.{micros}')",
        "TIMESTAMP(9)": lambda: f"TO_TIMESTAMP('{moment}.{micros}{chance.randint(1, 9):03d}')",
        "TIMESTAMP(6) WITH TIME ZONE": lambda: zoned,
        "TIMESTAMP(6) WITH LOCAL TIME ZONE": lambda: zoned,
        "INTERVAL YEAR(2) TO MONTH": lambda: (
            f"TO_YMINTERVAL('+{chance.randint(1, 99):02d}-{chance.randrange(12):02d}')"
        ),
        "INTERVAL DAY(2) TO SECOND(6)": lambda: (
            f"TO_DSINTERVAL('+{chance.randint(1, 99):02d} {moment:%H:%M:%S}.{micros}')"
        ),
    }
    return printers[column.data_type]()


def _number(column: Column, chance: random.Random) -> str:
    if column.precision == 38:
        return f"'{chance.randrange(10 ** chance.randint(20, 38))}'"
    whole = chance.randrange(10 ** chance.randint(1, 9))
    fraction = chance.randint(11, 99)
    if column.scale is None and fraction % 10 == 0:
        fraction //= 10  # Oracle prints no zeros at the end, a column's scale or not
    return f"'{whole}'" if column.scale == 0 else f"'{whole}.{fraction}'"


def _text(chance: random.Random) -> str:
    text = "".join(chance.choices(_LETTERS, k=chance.randint(1, 30)))
    quote = "''" if chance.random() < 0.1 else ""
    return f"'{text}{quote}x'"


if __name__ == "__main__":
    began = time.perf_counter()
    for result in rows():
        print(result.as_json())
    print(f"{time.perf_counter() - began:.0f} s")

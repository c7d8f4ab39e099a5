"""How many redo rows a second does the stage of LOBs put together, and what of it is decoding?

A transaction inserts rows with two LOBs, each written in pieces through its locator, in the shapes
of 23ai and of older releases; small LOBs follow in updates. The stage makes one UPDATE of each LOB,
and the decoder typed columns of them. The ceiling is decoding alone, of the rows that the stage
gives. Every value is held against what was written.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence

import pyarrow as pa

from benchmarks.common import Form, Result, median_seconds
from cdc_core.model.identifiers import TableId
from cdc_core.model.operations import Operation
from cdc_core.model.scn import Scn
from cdc_core.schema.table import Column, TableSchema
from cdc_core.stage.decoding import ChangeDecoder
from cdc_core.stage.lobs import with_whole_lobs
from cdc_core.stage.window import BATCH_ROWS

ROWS = {Form.QUICK: 2_000, Form.NORMAL: 10_000, Form.LONG: 100_000}
"""Rows of the table that are inserted."""
_SIZES = (30, 6_000, 12_000)
_PIECE = 4_066
_XID = "0100000001000000"
_COMMIT = 99

SCHEMA = TableSchema(
    TableId("SHOP", "DOCS"),
    Scn(1),
    (
        Column("ID", "NUMBER", 22, 0, 10, 0, nullable=False),
        Column("NAME", "VARCHAR2", 40, 40, None, None, nullable=True),
        Column("C", "CLOB", 4000, 0, None, None, nullable=True),
        Column("D", "CLOB", 4000, 0, None, None, nullable=True),
    ),
    ("ID",),
)
_Row = tuple[int, str | None]


def rows(form: Form = Form.NORMAL) -> list[Result]:
    """One row for each shape."""
    return [_measure(name, made, ROWS[form]) for name, made in _SHAPES.items()]


def _measure(name: str, printed: Callable[[int, str, str], list[_Row]], count: int) -> Result:
    values = _values(count)
    batches = _batches(values, printed)
    redo_rows = sum(batch.num_rows for batch in batches)
    decoder = ChangeDecoder(SCHEMA, _COMMIT)
    ends = {(_XID, _COMMIT): 1 << 40}

    def staged() -> list[pa.Table]:
        return list(with_whole_lobs(batches, ends, decoder.version_at))

    whole = staged()
    changes = [decoder(piece) for piece in whole]
    decoding = median_seconds(lambda: [decoder(piece) for piece in whole], repeats=3)
    staging = median_seconds(staged, repeats=3)
    return Result(
        question=f"put LOBs together, {name}, and decode them: {count:,} rows with two of up to {max(_SIZES):,} characters",
        ours=redo_rows / (staging + decoding),
        unit="redo rows/s per core",
        against="decoding alone, of what was put together",
        theirs=redo_rows / decoding,
        correct=_written(changes) == values,
    )


def _values(count: int) -> dict[int, tuple[str, str]]:
    chance = random.Random(7)
    text = "".join(chance.choices("abcdefgh '|();é日🔥\n", k=max(_SIZES) + 1_000))

    def value() -> str:
        start = chance.randrange(1_000)
        return text[start : start + chance.choice(_SIZES)]

    return {key: (value(), value()) for key in range(count)}


def _written(changes: Sequence[pa.RecordBatch]) -> dict[int, tuple[str, str]]:
    """What the changes make of each row, by what each carries."""
    found: dict[int, dict[str, str]] = {}
    for batch in changes:
        keys = batch["after"].field("ID").to_pylist()
        for name in ("C", "D"):
            texts = batch["after"].field(name).to_pylist()
            for key, text, absent in zip(
                keys, texts, batch["_cdc_absent"].to_pylist(), strict=True
            ):
                if name not in absent:
                    found.setdefault(int(key), {})[name] = text
    return {key: (held["C"], held["D"]) for key, held in found.items()}


def _batches(
    values: dict[int, tuple[str, str]], printed: Callable[[int, str, str], list[_Row]]
) -> list[pa.Table]:
    made: list[_Row] = []
    for key, texts in values.items():
        insert = f"""insert into {SCHEMA.table.sql}("ID","NAME","C","D") values ('{key}','a name',EMPTY_CLOB(),EMPTY_CLOB());"""
        made.append((Operation.INSERT, insert))
        for column, text in zip("CD", texts, strict=True):
            if len(text) <= _SIZES[0]:
                sql = f'update {SCHEMA.table.sql} set "{column}" = {_quoted(text)} where {_where(key)};'
                made.append((Operation.UPDATE, sql))
            else:
                made += printed(key, column, text)
    return [_table(made[at : at + BATCH_ROWS], at) for at in range(0, len(made), BATCH_ROWS)]


def _table(made: Sequence[_Row], first: int) -> pa.Table:
    count = len(made)

    def same(value: object, kind: pa.DataType) -> pa.Array:
        return pa.repeat(pa.scalar(value, kind), count)

    return pa.table(
        {
            "ordinal": pa.array(range(first, first + count), pa.int64()),
            "scn": same(10, pa.int64()),
            "xid": same(_XID, pa.string()),
            "operation_code": pa.array([int(code) for code, _ in made], pa.int32()),
            "rollback": same(False, pa.bool_()),
            "row_id": same(None, pa.string()),
            "sql_redo": pa.array([sql for _, sql in made], pa.large_string()),
            "status": same(0, pa.int32()),
            "timestamp": same(None, pa.timestamp("s")),
            "thread": same(1, pa.int32()),
            "rs_id": same("", pa.string()),
            "ssn": same(0, pa.int64()),
            "commit_scn": same(_COMMIT, pa.int64()),
            "commit_timestamp": same(None, pa.timestamp("s")),
            "username": same("U", pa.string()),
            "has_rollback": same(False, pa.bool_()),
            "start_scn": same(1, pa.int64()),
            "start_timestamp": same(None, pa.timestamp("s")),
            "client_id": same(None, pa.string()),
            "problem": same(None, pa.string()),
        }
    )


def _blocks(key: int, column: str, text: str) -> list[_Row]:
    """As 23ai: each write is a block of its own."""
    made: list[_Row] = [(Operation.SELECT_LOB_LOCATOR, None)]
    for at in range(0, len(text), _PIECE):
        made.append((Operation.LOB_WRITE, f"{_head(key, column)}\n{_write(text, at)}END;\n\n"))
    return made


def _pieces(key: int, column: str, text: str) -> list[_Row]:
    """As older releases: the locator's statement, and fragments behind it."""
    made: list[_Row] = [(Operation.SELECT_LOB_LOCATOR, _head(key, column))]
    for at in range(0, len(text), _PIECE):
        made.append((Operation.LOB_WRITE, f"{_write(text, at)}END;"))
    return made


_SHAPES = {"in blocks": _blocks, "in pieces": _pieces}


def _head(key: int, column: str) -> str:
    return (
        "DECLARE \n loc_c CLOB; \n buf_c VARCHAR2(6150); \n loc_b BLOB; \n buf_b RAW(6150); \n loc_nc NCLOB; \n buf_nc NVARCHAR2(6150); \n"
        f'BEGIN\n select "{column}" into loc_c from {SCHEMA.table.sql} where {_where(key)} for update;\n'
    )


def _write(text: str, at: int) -> str:
    part = text[at : at + _PIECE]
    return f" buf_c := {_quoted(part)}; \n  dbms_lob.write(loc_c, {len(part)}, {at + 1}, buf_c);\n"


def _where(key: int) -> str:
    return f"\"ID\" = '{key}' and \"NAME\" = 'a name'"


def _quoted(text: str) -> str:
    doubled = text.replace("'", "''")
    return f"'{doubled}'"


if __name__ == "__main__":
    began = time.perf_counter()
    for result in rows():
        print(result.as_json())
    print(f"{time.perf_counter() - began:.0f} s")

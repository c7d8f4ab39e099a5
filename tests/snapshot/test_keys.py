"""Keys of the lake as text for Oracle, and back."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from cdc_core.landing.layout import chunk_folder
from cdc_core.landing.open import open_landing
from cdc_core.model.chunks import ChunkKey
from cdc_core.model.json_form import as_json
from cdc_core.oracle.database import current_scn
from cdc_core.schema.dictionary import read_table_schema
from cdc_core.snapshot.keys import key_texts, key_values
from cdc_core.snapshot.plan import ChunkKeys, ChunkRange, chunk_part
from cdc_core.snapshot.read import FetchOptions, read_chunk, unread_chunk
from tests.oracle.embedded import Oracle, running_oracle
from tests.snapshot.landed_rows import user_columns


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    with running_oracle() as running:
        running.run(
            "CREATE TABLE ODD (N NUMBER NOT NULL, D DATE NOT NULL, T TIMESTAMP(6) NOT NULL, T9 TIMESTAMP(9) NOT NULL,"
            " R RAW(9) NOT NULL, C CHAR(4) NOT NULL, V VARCHAR2(20 CHAR) NOT NULL, B NUMBER(38) NOT NULL,"
            " F NUMBER(20,4) NOT NULL, PRIMARY KEY (N, D, T, T9, R, C, V, B, F))",
            "CREATE TABLE PLAIN (ID NUMBER(9) PRIMARY KEY)",
        )
        with running.owner() as connection:
            cursor = connection.cursor()
            for number in ("1E40", "-0.00000001", "0", "123456789012345678901234567890.5"):
                cursor.execute(
                    f"INSERT INTO ODD VALUES ({number}, DATE '1969-12-31',"
                    " TIMESTAMP '2020-02-29 23:59:59.123456', TIMESTAMP '2020-02-29 23:59:59.123456789',"
                    " HEXTORAW('00FF'), 'a', 'ü''🔥', 12345678901234567890123456789012345678, -0.5)"
                )
            cursor.executemany("INSERT INTO PLAIN VALUES (:1)", [(i,) for i in range(1, 601)])
            connection.commit()
        yield running


def read(oracle: Oracle, path: Path, table: str, part: Any) -> tuple[Any, list[dict[str, Any]]]:
    config = oracle.config(path, table)
    landing = open_landing(config.landing)
    with oracle.capture_session(config) as session:
        scn = current_scn(session)
        schema = read_table_schema(session, config.tables[0], scn=scn)
        wanted = part(schema)
        unread = unread_chunk("src", schema, ChunkKey(schema.table, f"s{scn}", 0), wanted, scn)
        manifest = read_chunk(session, unread, wanted, landing, FetchOptions(rows=100), masks={})
    folder = chunk_folder("src", manifest.chunk_key)
    paths = landing.local_paths(folder, manifest.files)
    return schema, [row for path in paths for row in user_columns(path).to_pylist()]


def test_every_type_of_key_finds_its_row_again(oracle: Oracle, tmp_path: Path) -> None:
    schema, rows = read(oracle, tmp_path / "1", "ODD", lambda _: ChunkRange.whole())
    keys = [tuple(row[name] for name in schema.key) for row in rows]
    assert len(keys) == 4
    assert datetime(1969, 12, 31) in keys[0]
    assert Decimal("12345678901234567890123456789012345678") in keys[0]
    texts = tuple(key_texts(key, schema) for key in keys)
    assert [key_values(text, schema) for text in texts] == keys
    part = chunk_part(as_json(ChunkKeys(texts[:3])))
    _, again = read(oracle, tmp_path / "2", "ODD", lambda _: part)
    assert sorted(map(str, again)) == sorted(map(str, rows[:3]))
    assert "1E+40" not in repr(part)


def test_a_list_of_keys_reads_these_rows_alone(oracle: Oracle, tmp_path: Path) -> None:
    part = ChunkKeys((*((str(i),) for i in range(101, 601)), ("9999",)))
    _, rows = read(oracle, tmp_path, "PLAIN", lambda _: part)
    assert sorted(row["ID"] for row in rows) == list(range(101, 601))

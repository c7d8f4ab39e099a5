"""What a source says of many tables by pattern: their keys, and the only columns that land."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from cdc_core.config import SourceConfig
from tests.oracle.embedded import OWNER, Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import source_of, table_id

oracle = oracle_with(
    *(
        f"CREATE TABLE {name} (AT NUMBER(9) NOT NULL, SEQ NUMBER(9) NOT NULL, NOTE VARCHAR2(20), SECRET VARCHAR2(20))"
        for name in ("LOG_A", "LOG_B")
    ),
    "CREATE TABLE LOG_C (ID NUMBER(9) PRIMARY KEY, NOTE VARCHAR2(20))",
    "CREATE TABLE OTHER (ID NUMBER(9) PRIMARY KEY, SECRET VARCHAR2(20))",
    *(f"INSERT INTO {name} VALUES (1, 1, 'a', 'hush')" for name in ("LOG_A", "LOG_B")),
    "INSERT INTO LOG_C VALUES (1, 'c')",
    "INSERT INTO OTHER VALUES (1, 'open')",
)
A, B, C, OTHER = map(table_id, ("LOG_A", "LOG_B", "LOG_C", "OTHER"))
KEY = {f"{OWNER}.LOG_?": ["AT", "SEQ"], f"re:{OWNER}[.].*": ["ID"]}
ONLY = [f"{OWNER}.LOG_*.re:AT|SEQ|NOTE.*"]


def has_landed(folder: Path, text: str) -> bool:
    paths = (path for path in (folder / "landing").rglob("*") if path.is_file())
    return any(text.encode() in path.read_bytes() for path in paths)


def test_keys_and_columns_by_pattern_hold_on_both_paths(
    oracle: Oracle, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Of a table with an entry of its own and of one of a pattern; the first key that fits counts. A
    table that lacks its columns is left out, with the reason."""
    with source_of(oracle, tmp_path, key=KEY, columns_include=ONLY) as source:
        source.configure({"name": "LOG_A"}, {"name": "*"})
        source.begin()
        keys = {
            name: source.pipeline.store.schemas.newest()[table_id(name)].key
            for name in ("LOG_A", "LOG_B", "OTHER")
        }
        assert keys == {"LOG_A": ("AT", "SEQ"), "LOG_B": ("AT", "SEQ"), "OTHER": ("ID",)}
        found = {one.table: one.left_out for one in source.pipeline.find_tables()}
        assert found[C] == "key names columns that the table does not have"
        oracle.run(
            "INSERT INTO LOG_A VALUES (1, 2, 'b', 'hush')",
            "UPDATE LOG_B SET SEQ = 3, SECRET = 'hush hush' WHERE AT = 1",
            "UPDATE OTHER SET SECRET = 'seen' WHERE ID = 1",
        )
        windows = source.windows()
        assert source.lake.image(A) == [(1, 1, "a"), (1, 2, "b")]
        assert source.lake.image(B) == [(1, 3, "a")]
        assert source.lake.image(OTHER) == [(1, "seen")]
        for name in ("LOG_A", "LOG_B", "OTHER"):
            source.check_current(name)
            source.check_replayed(name, windows)
        caplog.set_level(logging.WARNING)
        oracle.run("ALTER TABLE LOG_B ADD (TOLD VARCHAR2(9), NOTE2 VARCHAR2(9))")
        oracle.run("UPDATE LOG_B SET TOLD = 'hush', NOTE2 = 'n' WHERE AT = 1")
        source.windows()
        assert source.lake.image(B) == [(1, 3, "a", "n")]
        assert f"new columns are not captured table={B}" in caplog.text
        assert "columns=TOLD" in caplog.text
        assert source.status("LOG_B").columns_left_out == ("SECRET", "TOLD")
        assert "TOLD is left out" in str(source.pipeline.records.definitions(B)[-1].changes)
        assert not has_landed(tmp_path, "hush")


def test_an_entry_s_own_words_count_first(oracle: Oracle, tmp_path: Path) -> None:
    """Exclusions of the entry count beside the source's columns, its own columns in place of them."""
    with source_of(oracle, tmp_path, key=KEY, columns_include=ONLY) as source:
        source.configure(
            {"name": "LOG_A", "columns_exclude": ["NOTE"]},
            {"name": "LOG_B", "columns_include": ["AT", "SECRET"], "key": ["AT"]},
        )
        source.begin()
        assert source.lake.image(A) == [(1, 1)]
        assert source.lake.image(B) == [(1, "hush")]


def test_another_key_of_the_source_asks_for_new_delta_tables(
    oracle: Oracle, tmp_path: Path
) -> None:
    with source_of(oracle, tmp_path, key=KEY) as source:
        source.configure({"name": "LOG_A"})
        source.begin()
        source.close()
        source.more["key"] = {f"{OWNER}.LOG_A": ["AT"]}
        source.run()
        assert source.record("LOG_A").state == "failed"
        assert "the key is (AT) now" in (source.record("LOG_A").reason or "")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        pytest.param({"key": {"LOG": ["ID"]}}, "not a table name or a pattern", id="no table"),
        pytest.param({"key": {f"{OWNER}.T": []}}, "at least 1 item", id="no columns"),
        pytest.param({"columns_include": ["T.A"]}, "not a pattern of columns", id="no columns of tables"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused(
    oracle: Oracle, tmp_path: Path, given: dict[str, Any], said: str
) -> None:
    with source_of(oracle, tmp_path, "OTHER") as source:
        written = source.written().model_dump()
    with pytest.raises(ValidationError, match=said):
        SourceConfig.model_validate(written | given)

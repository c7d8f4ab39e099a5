"""Whatever comes from outside is taken, or refused by an error of ours that says why: no other error, and no wrong value.

``make test`` runs the same few cases each time, ``make test-slow`` a thousand new ones of each and prints how to repeat a failure.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError

from cdc_core.config import SourceConfig, TableConfig
from cdc_core.decode.lob import read_lob_row
from cdc_core.decode.plan import plan_table
from cdc_core.errors import CdcError, ConfigError, LandingDamagedError, PartitionKeyError
from cdc_core.landing.manifest import (
    LandedFile,
    WindowManifest,
    read_chunk_manifest,
    read_window_manifest,
    window_manifest_bytes,
)
from cdc_core.model.chunks import ChunkKey
from cdc_core.model.identifiers import TableId
from cdc_core.model.json_form import as_json, from_json
from cdc_core.model.operations import Operation
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.schema.ddl_reading import moves_rows, removes_rows, removes_table
from cdc_core.schema.ddl_text import version_after
from cdc_core.schema.table import TableSchema
from cdc_core.signals.data_collections import tables_of_collections
from cdc_core.signals.signal_types import ExecuteSnapshot, conditions_asked, parse_signal
from cdc_core.snapshot.conditions import checked_condition
from tests.decode.golden_table import GOLDEN
from tests.landing.facts import LANDED, PLANNED
from tests.stage.landed import orders_schema

ORDERS = orders_schema()
MANIFEST = WindowManifest(
    source="src", window=ScnWindow(Scn(100), Scn(200)), ordinal=5, mining_low=100,
    redo_files=(LandedFile("redo-00000.parquet", 3, 900, "ab" * 32),), files_by_table={"SHOP.ORDERS": (0,)}, transactions_file=LandedFile("t", 0, 0, ""),
    rows_by_table={"SHOP.ORDERS": 3}, tables_committed=("SHOP.ORDERS",), transactions_committed=1, transactions_rolled_back=0,
    transactions_open=0, logs=(), schemas=(ORDERS,), schema_changes=(), resetlogs_change=1, seconds=0.5,
    positions=(), planned=PLANNED, landed=LANDED,
)  # fmt: skip
PLAN = plan_table(GOLDEN)
PRINTED = window_manifest_bytes(MANIFEST)

names = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=20)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | names
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)
pieces = st.lists(
    st.sampled_from(
        ["ID", "NAME", "name", '"ID"', "'x'", "''", "'", '"', "1", "-", "=", "<", ">", "(", ")", ",", " ", "AND", "OR", "NOT", "IN", "IS",
         "NULL", "BETWEEN", "LIKE", "--", "/*", "*/", ";", ":b", "SELECT", "FROM", "DUAL", "TO_DATE", "UPPER", "DROP", "TABLE",
         "TRUNCATE", "PARTITION", "RENAME", "TO", "ALTER", "ADD", "\n", "é", "\x00"]
    ) | names,
    max_size=14,
)  # fmt: skip
texts = st.tuples(pieces, st.sampled_from(["", " "])).map(lambda one: one[1].join(one[0]))


@given(st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1))
def test_windows_come_back_from_their_texts(one: int, other: int) -> None:
    if one == other:
        return
    window = ScnWindow(Scn(min(one, other)), Scn(max(one, other)))
    assert ScnWindow.parse(window.key) == ScnWindow.parse(window.folder) == window


@given(names | st.from_regex(r"[0-9_:TZ-]{0,30}", fullmatch=True))
@example("1-2")
@example("2026-01-01T00:00:00Z_5-4")
@example("²-3")
def test_a_text_is_a_window_or_a_chunk_or_is_refused(text: str) -> None:
    for parse in (ScnWindow.parse, lambda one: ChunkKey.parse(ORDERS.table, one)):
        try:
            found = parse(text)
        except PartitionKeyError:
            continue
        assert parse(found.key) == found


@given(names)
@example('"a"."b"')
@example("A..B")
def test_a_table_name_is_read_or_refused(text: str) -> None:
    try:
        table = TableId.parse(text)
    except ConfigError:
        return
    assert TableId.parse(table.sql) == table
    assert TableId.parse(str(table)) == table


@given(texts)
@example("ID = 1 OR NAME LIKE 'a%' ESCAPE '\\'")
@example("ID IN (SELECT 1 FROM DUAL)")
def test_a_condition_is_one_comparison_or_is_refused(text: str) -> None:
    try:
        condition = checked_condition(text, ORDERS)
    except ConfigError:
        return
    assert condition == text.strip()
    outside = condition.split("'")[::2]
    assert not any(mark in part for part in outside for mark in (";", "--", "/*", "SELECT"))


@given(st.just("execute-snapshot") | names, st.dictionaries(names, anything, max_size=4))
def test_a_signal_is_understood_or_refused(kind: str, data: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        parse_signal(kind, data)


@given(texts | names, anything, texts)
def test_a_signal_for_tables_is_understood_or_refused(
    table: str, kind: Any, condition: str
) -> None:
    wanted = {"type": kind, "data-collections": [table], "additional-conditions": []}
    if condition:
        wanted["additional-conditions"] = [{"data-collection": table, "filter": condition}]
    try:
        request = parse_signal("execute-snapshot", wanted)
        assert isinstance(request, ExecuteSnapshot)
        captured = [TableId("SHOP", "ORDERS"), TableId("SHOP", "LINES")]
        tables = tables_of_collections(request.data_collections, captured, ("PDB",))
        found = conditions_asked(request, tables, captured, ("PDB",))
        assert found == (dict.fromkeys(tables, condition) if condition else {})
    except ConfigError:
        pass


@given(texts)
@example("alter table t drop /* partition */ column c")
@example("ALTER TABLE T DROP PARTITION P1")
def test_what_a_ddl_takes_away_does_not_depend_on_its_look(text: str) -> None:
    """Case, blanks around it, and a comment in front change nothing."""
    for judge in (moves_rows, removes_rows, removes_table):
        assert judge(text) == judge(text.swapcase()) == judge(f"\n  {text} ")


alterations = st.lists(
    st.sampled_from(
        ["ADD", "MODIFY", "DROP", "RENAME", "COLUMN", "TO", "SET", "UNUSED", "(", ")", ",", "ID", "NAME", "X", '"X"', "NUMBER", "(9)",
         "VARCHAR2(20)", "CLOB", "DEFAULT", "'it''s'", "'", "NOT NULL", "PRIMARY KEY", "CONSTRAINT", "ENABLE", "--", "/*", "*/"]
    ) | names,
    max_size=14,
).map(" ".join)  # fmt: skip
ADDED = replace(ORDERS.columns[1], name="X")
PRESENT = replace(ORDERS, scn_from=Scn(9), columns=(*ORDERS.columns, ADDED))


@given(st.sampled_from(["ALTER TABLE SHOP.ORDERS ", "alter table orders ", ""]), alterations)
@example("ALTER TABLE SHOP.ORDERS ", "ADD X VARCHAR2(20) DEFAULT 'it''s'")
@example("ALTER TABLE SHOP.ORDERS ", "ADD (X VARCHAR2(20")
def test_what_a_ddl_s_text_says_is_a_version_or_nothing(head: str, text: str) -> None:
    """What it says can be stored, whatever it is; the key stays."""
    found = version_after(ORDERS, head + text, PRESENT, TableConfig(name=str(ORDERS.table)))
    if found is None:
        return
    assert len(set(found.column_names)) == len(found.column_names)
    assert found.key == ORDERS.key
    assert from_json(TableSchema, as_json(found)) == found


BLOCK = """DECLARE
 loc_c CLOB;
 buf_c VARCHAR2(6150);
BEGIN
 select "L" into loc_c from "S"."T" where "ID" = '7' and "V" = 'it''s; for update;' and "D" IS NULL for update;
 buf_c := 'dbms_lob.write(loc_c, 1, 1, buf_c);';
  dbms_lob.write(loc_c, 35, 1, buf_c);
END;
"""
LOB_OPERATIONS = (Operation.SELECT_LOB_LOCATOR, Operation.LOB_WRITE, Operation.LOB_TRIM, Operation.LOB_ERASE)  # fmt: skip


@given(
    st.sampled_from(LOB_OPERATIONS),
    st.lists(st.tuples(st.integers(0, len(BLOCK)), st.integers(0, 9), texts), max_size=3),
)
@example(Operation.LOB_WRITE, [])
def test_a_changed_statement_about_a_lob_is_read_or_refused(
    operation: int, edits: list[tuple[int, int, str]]
) -> None:
    text = BLOCK
    for at, cut, put in edits:
        text = text[:at] + put + text[at + cut :]
    try:
        place, call = read_lob_row(text, operation, PLAN, GOLDEN.key, None)
    except CdcError:
        return
    assert place.column in GOLDEN.column_names or not place.is_captured
    assert len(place.key) == len(GOLDEN.key)
    assert operation == Operation.SELECT_LOB_LOCATOR or call is not None


@given(st.data())
def test_a_changed_manifest_is_refused(data: st.DataObject) -> None:
    """A digest holds its content together: it is read as it was printed, or not at all."""
    at = data.draw(st.integers(0, len(PRINTED) - 1))
    cut = data.draw(st.integers(0, 3))
    put = data.draw(st.binary(max_size=4))
    changed = PRINTED[:at] + put + PRINTED[at + cut :]
    with suppress(LandingDamagedError):
        assert read_window_manifest(changed, where="here") == MANIFEST


@given(st.binary(max_size=60) | anything.map(lambda value: json.dumps(value).encode()))
@example(b"{}")
@example(b'{"body": {}, "kind": "window", "version": 1, "sha256": ""}')
def test_what_is_no_manifest_is_refused(content: bytes) -> None:
    for read in (read_window_manifest, read_chunk_manifest):
        with pytest.raises(LandingDamagedError):
            read(content, where="here")


@given(
    st.dictionaries(
        st.sampled_from(sorted(SourceConfig.model_fields)) | names, anything, max_size=6
    )
)
@example({"tables": [None]})
@example({"tables": ["SHOP.ORDERS"], "columns_exclude": ["*.*.PHOTO"]})
def test_a_configuration_is_understood_or_refused(values: dict[str, Any]) -> None:
    """Pydantic's error is what the reader of files tells; nothing else comes out, and nothing unknown is passed over."""
    try:
        config = SourceConfig.model_validate(values)
    except (ValidationError, CdcError):
        return
    assert set(values) <= set(SourceConfig.model_fields)
    assert SourceConfig.model_validate_json(config.model_dump_json()) == config


@pytest.mark.parametrize("text", ["SHOP.Orders", "shop.orders", "SHOP.ORDER LINES", "SHOP"])
@pytest.mark.parametrize("field", ["tables_committed", "tables_late"])
def test_a_window_whose_tables_are_named_in_another_form_is_refused(field: str, text: str) -> None:
    """Tables are looked up by their text: a window that an older version wrote would be passed over silently."""
    other: dict[str, Any] = {field: (text,)}
    printed = window_manifest_bytes(replace(MANIFEST, **other))
    with pytest.raises(LandingDamagedError):
        read_window_manifest(printed, where="here")

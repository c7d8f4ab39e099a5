"""Ranges of keys and ROWIDs, without a database."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from cdc_core.errors import ConfigError
from cdc_core.model.identifiers import TableId
from cdc_core.model.json_form import as_json
from cdc_core.model.scn import Scn
from cdc_core.schema.table import (
    ROW_ID,
    ROW_ID_COLUMN,
    Column,
    TableSchema,
)
from cdc_core.snapshot.cutting import cut_extents, rowid_text
from cdc_core.snapshot.plan import (
    ChunkKeys,
    ChunkRange,
    chunk_part,
    part_predicate,
    range_predicate,
    where_clause,
)
from cdc_core.snapshot.read import chunk_query


def schema_of(*types: str) -> TableSchema:
    columns = tuple(
        Column(f"K{at}", kind, 22, 10, None, None, False) for at, kind in enumerate(types, 1)
    )
    return TableSchema(TableId("HR", "EMP"), Scn(1), columns, tuple(one.name for one in columns))


@pytest.mark.parametrize(
    ("kinds", "low", "high", "sql"),
    [
        pytest.param(("NUMBER",), None, None, "", id="whole"),
        pytest.param(("NUMBER",), ("5",), None, '"K1" >= TO_NUMBER(:low0)', id="last-is-open"),
        pytest.param(("VARCHAR2",), None, ("m",), '"K1" < :high0', id="first-is-open"),
        pytest.param(
            ("NUMBER", "VARCHAR2"), ("5", "a"), None,
            '"K1" >= TO_NUMBER(:low0) AND ("K1" > TO_NUMBER(:low0) OR ("K2" >= :low1))',
            id="two-columns-from",
        ),
        pytest.param(
            ("NUMBER", "VARCHAR2", "RAW"), None, ("5", "a", "FF"),
            '"K1" <= TO_NUMBER(:high0) AND ("K1" < TO_NUMBER(:high0) OR ("K2" <= :high1 AND '
            '("K2" < :high1 OR ("K3" < HEXTORAW(:high2)))))',
            id="three-columns-to",
        ),
        pytest.param(
            ("DATE",), ("2013-01-01 00:00:00",), None,
            "\"K1\" >= TO_DATE(:low0, 'SYYYY-MM-DD HH24:MI:SS')", id="dates",
        ),
        pytest.param(
            ("TIMESTAMP(9)",), ("x",), None,
            "\"K1\" >= TO_TIMESTAMP(:low0, 'SYYYY-MM-DD HH24:MI:SS.FF9')", id="timestamps",
        ),
    ],
)  # fmt: skip
def test_key_ranges_compare_column_after_column(
    kinds: tuple[str, ...], low: Any, high: Any, sql: str
) -> None:
    predicate, binds = range_predicate(ChunkRange("key", low, high), schema_of(*kinds))
    assert predicate == sql
    assert sorted(binds.values()) == sorted([*(low or ()), *(high or ())])


def test_rowid_ranges_compare_rowids() -> None:
    predicate, binds = range_predicate(ChunkRange("rowid", ("A",), ("B",)), schema_of("NUMBER"))
    assert predicate == "ROWID >= CHARTOROWID(:low0) AND ROWID < CHARTOROWID(:high0)"
    assert binds == {"low0": "A", "high0": "B"}


def test_a_key_without_order_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"snapshot\.cut"):
        range_predicate(ChunkRange("key", ("x",), None), schema_of("CLOB"))


def test_ranges_survive_json_and_hide_their_bounds() -> None:
    chunk = ChunkRange("key", ("secret", "é"), None)
    assert chunk_part(json.loads(json.dumps(as_json(chunk)))) == chunk
    assert chunk_part(as_json(ChunkRange.whole())) == ChunkRange.whole()
    assert "secret" not in repr(chunk)


def test_the_chunk_query_has_the_condition_in_parentheses() -> None:
    sql, binds = chunk_query(
        schema_of("NUMBER"), ChunkRange("key", ("5",), None), Scn(7), "A = 1 OR B = 2"
    )
    assert sql.endswith(
        'FROM "HR"."EMP" AS OF SCN :scn WHERE ("K1" >= TO_NUMBER(:low0)) AND (A = 1 OR B = 2)'
    )
    assert binds == {"scn": 7, "low0": "5"}
    assert where_clause(None, "") == ""


def test_rowids_are_printed_as_oracle_prints_them() -> None:
    # From the SQL Language Reference: AAAAaoAATAAABrXAAA is object 0x1a28 = 6696, file 19, block 6871, row 0.
    assert rowid_text(6696, 19, 6871) == "AAABooAATAAABrXAAA"


def test_a_rowid_of_a_bigfile_tablespace_has_all_its_bits_for_the_block() -> None:
    """Its file is shown as 1024, which ten bits do not hold."""
    assert rowid_text(6696, 1024, 6871) == rowid_text(6696, 0, 6871)
    assert rowid_text(6696, 1024, 2**22) == rowid_text(6696, 1, 0)
    last = rowid_text(6696, 1024, 2**32 - 1)
    assert last == rowid_text(6696, 1023, 2**22 - 1)
    bounds = cut_extents([(1, 1024, 2**22 - 8, 8), (1, 1024, 2**22, 8)], 2)
    assert bounds == [(rowid_text(1, 1, 0),)]


@pytest.mark.parametrize(
    ("extents", "chunks", "expected"),
    [
        pytest.param([(1, 1, 100, 8)], 1, [], id="one-chunk"),
        pytest.param([(1, 1, 100, 8)], 0, [], id="no-rows"),
        pytest.param([(1, 1, 100, 8), (1, 1, 200, 8)], 2, [(1, 1, 200)], id="between-extents"),
        pytest.param([(1, 1, 100, 8)], 2, [(1, 1, 104)], id="inside-an-extent"),
        pytest.param(
            [(1, 1, 100, 2), (1, 2, 100, 2)],
            4,
            [(1, 1, 101), (1, 2, 100), (1, 2, 101)],
            id="each-block",
        ),
        pytest.param([(1, 1, 100, 2)], 5, [(1, 1, 101)], id="more-chunks-than-blocks"),
    ],
)
def test_extents_are_cut_into_parts_of_as_many_blocks(
    extents: list[tuple[int, ...]], chunks: int, expected: list[tuple[int, int, int]]
) -> None:
    assert cut_extents(extents, chunks) == [(rowid_text(*one),) for one in expected]


def test_the_rowid_as_key_is_asked_for_by_its_own_name() -> None:
    schema = replace(schema_of("NUMBER"), columns=(ROW_ID_COLUMN,), key=(ROW_ID,))
    predicate, _ = range_predicate(ChunkRange("key", ("A",), ("B",)), schema)
    assert predicate == "ROWID >= CHARTOROWID(:low0) AND ROWID < CHARTOROWID(:high0)"
    predicate, _ = part_predicate(ChunkKeys((("A",), ("B",))), schema)
    assert predicate == "ROWID IN (CHARTOROWID(:k0_0), CHARTOROWID(:k1_0))"

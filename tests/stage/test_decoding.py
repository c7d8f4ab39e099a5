"""What stops a window: rows that cannot become a change without guessing. No Spark."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from cdc_core.errors import CdcError, DecodeError, SchemaMismatchError
from cdc_core.model.scn import Scn
from cdc_core.schema.table import ROW_ID, ROW_ID_COLUMN
from cdc_core.stage.decoding import ChangeDecoder
from cdc_core.stage.statements import UNKNOWN_ROW_ID
from tests.stage.landed import Source

INSERT = (
    """insert into "SHOP"."ORDERS"("ID","NAME","AMOUNT","NOTE") values ('1','secret','2.50',NULL)"""
)


def _rows(**values: Any) -> pa.Table:
    row = {
        "ordinal": 7,
        "scn": 1234,
        "xid": "0a",
        "operation_code": 1,
        "row_id": "AAAB1",
        "sql_redo": INSERT,
        "status": 0,
        "timestamp": datetime(2026, 1, 1),
        "thread": 1,
        "rs_id": "0x1",
        "commit_scn": 1300,
        "commit_timestamp": datetime(2026, 1, 1),
        "username": "CLERK",
        "problem": None,
        **values,
    }
    kinds = {
        "operation_code": pa.int32(),
        "status": pa.int32(),
        "thread": pa.int32(),
        "problem": pa.string(),
    }
    return pa.Table.from_pydict(
        {name: pa.array([value], kinds.get(name)) for name, value in row.items()}
    )


def _raised(rows: pa.Table, schema: Any) -> CdcError:
    with pytest.raises(CdcError) as caught:
        ChangeDecoder(schema, 2000)(rows)
    return caught.value


def test_a_row_becomes_a_change(source: Source) -> None:
    changes = ChangeDecoder(source.schema, 2000)(_rows())
    (change,) = changes.to_pylist()
    assert change["_cdc_op"] == "c"
    assert (change["_cdc_commit_scn"], change["_cdc_ordinal"], change["_cdc_window"]) == (
        1300,
        7,
        2000,
    )
    assert change["before"] is None
    assert change["after"]["NAME"] == "secret"
    assert change["_cdc_columns"] == 4


@pytest.mark.parametrize(
    ("values", "kind", "message"),
    [
        pytest.param({"status": 2}, DecodeError, "STATUS 2 or 3", id="status-2"),
        pytest.param({"status": 3}, DecodeError, "STATUS 2 or 3", id="status-3"),
        pytest.param({"operation_code": 5}, SchemaMismatchError, "truncated", id="truncate"),
        pytest.param({"operation_code": 9}, DecodeError, "SELECT_LOB_LOCATOR", id="lob-locator"),
        pytest.param({"operation_code": 10}, DecodeError, "LOB_WRITE", id="lob-write"),
        pytest.param({"operation_code": 11}, DecodeError, "LOB_TRIM", id="lob-trim"),
        pytest.param({"operation_code": 29}, DecodeError, "LOB_ERASE", id="lob-erase"),
        pytest.param({"operation_code": 68}, DecodeError, "XML", id="xml"),
        pytest.param({"operation_code": 92}, DecodeError, "EXTENDED_WRITE", id="extended-strings"),
        pytest.param({"operation_code": 255}, DecodeError, "UNSUPPORTED", id="unsupported"),
        pytest.param({"operation_code": 77}, DecodeError, "operation 77", id="unknown-code"),
        pytest.param({"problem": "undo-unmatched"}, DecodeError, "does not have", id="undo-alone"),
        pytest.param({"problem": "undo-row-id-unknown"}, DecodeError, "address", id="undo-unknown"),
        pytest.param(
            {"operation_code": 3}, DecodeError, "not what its operation", id="code-and-text"
        ),
        pytest.param(
            {"sql_redo": INSERT.replace("'1'", "NULL")}, DecodeError, "row's key", id="key-null"
        ),
        pytest.param({"sql_redo": "insert in"}, DecodeError, "", id="not-a-statement"),
    ],
)
def test_rows_that_would_need_a_guess_are_refused(
    values: dict[str, Any], kind: type[CdcError], message: str, source: Source
) -> None:
    error = _raised(_rows(**values), source.schema)
    assert type(error) is kind
    assert message in str(error)
    assert "SHOP.ORDERS" in str(error)
    assert "1234" in str(error)
    assert error.hint
    assert "secret" not in str(error)


OLD_ROW = """insert into "SHOP"."ORDERS"("COL 1","COL 2","COL 3","COL 4") values (HEXTORAW('c102'),HEXTORAW('7368'),NULL,NULL);"""


def test_a_column_that_is_left_out_now_is_null_in_rows_that_landed_with_it(source: Source) -> None:
    changes = ChangeDecoder(source.schema, 2000, excluded=("NAME",))(_rows())
    (change,) = changes.to_pylist()
    assert change["after"] == {"ID": 1, "NAME": None, "AMOUNT": Decimal("2.50"), "NOTE": None}


def test_rows_are_decoded_by_the_version_in_which_they_were_written(source: Source) -> None:
    """Up to the DDL at 1200 the table has no NOTE, and LogMiner no names; after it all is as ever."""
    new = replace(source.schema, scn_from=Scn(1200))
    old = replace(
        source.schema,
        columns=source.schema.columns[:2],
        stored=("ID", "NAME", "X", "Y"),
        charset="AL32UTF8",
    )
    batch = pa.concat_tables(
        [_rows(), _rows(ordinal=6, scn=1200, status=2, sql_redo=OLD_ROW)]
    ).combine_chunks()
    changes = ChangeDecoder(new, 2000, earlier=(old,))(batch)
    by_ordinal = {change["_cdc_ordinal"]: change for change in changes.to_pylist()}
    assert by_ordinal[6]["after"] == {"ID": 1, "NAME": "sh", "AMOUNT": None, "NOTE": None}
    assert (by_ordinal[6]["_cdc_columns"], by_ordinal[7]["_cdc_columns"]) == (2, 4)
    assert by_ordinal[6]["_cdc_absent"] == ["AMOUNT", "NOTE"]
    assert by_ordinal[7]["_cdc_absent"] == []
    assert by_ordinal[6]["_cdc_before_absent"] == []


def test_a_row_at_the_very_scn_of_a_ddl_has_the_new_layout(source: Source) -> None:
    """It waited for the DDL, whose COMMIT has the same SCN; its columns are named."""
    new = replace(source.schema, scn_from=Scn(1200))
    old = replace(source.schema, columns=source.schema.columns[:2])
    decoder = ChangeDecoder(new, 2000, earlier=(old,))
    [change] = decoder(_rows(scn=1200)).to_pylist()
    assert change["after"]["AMOUNT"] is not None
    assert decoder.version_at(1200).column_names == new.column_names
    with pytest.raises(SchemaMismatchError):
        decoder(_rows(scn=1199))


def test_rows_without_names_that_are_not_guaranteed_are_refused(source: Source) -> None:
    schema = replace(source.schema, stored=("ID", "NAME", "AMOUNT", "NOTE"), charset="AL32UTF8")
    changes = ChangeDecoder(schema, 2000)(_rows(status=2, sql_redo=OLD_ROW))
    assert changes.num_rows == 1
    assert "STATUS 2 or 3" in str(_raised(_rows(status=3, sql_redo=OLD_ROW), schema))


@pytest.mark.parametrize(
    "stored",
    [
        pytest.param((), id="positions-not-known"),
        pytest.param(("ID", "NAME", "COL 1", "Y"), id="a-column-is-called-so-itself"),
    ],
)
def test_rows_without_names_are_refused_where_the_names_are_not_certain(
    stored: tuple[str, ...], source: Source
) -> None:
    schema = replace(source.schema, stored=stored, charset="AL32UTF8")
    error = _raised(_rows(status=2, sql_redo=OLD_ROW), schema)
    assert "STATUS 2" in str(error)


@pytest.mark.parametrize(
    ("code", "sql", "absent", "before_absent"),
    [
        pytest.param(1, INSERT, [], [], id="insert"),
        pytest.param(
            3,
            """update "SHOP"."ORDERS" set "NAME" = 'new' where "ID" = '1' and "AMOUNT" = '2.50'""",
            ["NOTE"],
            ["NAME", "NOTE"],
            id="update-without-the-old-name",
        ),
        pytest.param(
            2,
            """delete from "SHOP"."ORDERS" where "ID" = '1' and "NAME" IS NULL""",
            ["AMOUNT", "NOTE"],
            ["AMOUNT", "NOTE"],
            id="delete",
        ),
        pytest.param(
            3,
            """update "SHOP"."ORDERS" a set a."NAME" = NULL where a."ID" = '1' and a."NOTE" = 'x'""",
            ["AMOUNT"],
            ["NAME", "AMOUNT"],
            id="a-statement-that-the-plain-form-reads",
        ),
    ],
)
def test_what_an_image_does_not_carry_is_named(
    source: Source, code: int, sql: str, absent: list[str], before_absent: list[str]
) -> None:
    changes = ChangeDecoder(source.schema, 2000)(_rows(operation_code=code, sql_redo=sql))
    assert changes["_cdc_absent"].to_pylist() == [absent]
    assert changes["_cdc_before_absent"].to_pylist() == [before_absent]


def by_row_id(schema: Any) -> Any:
    return replace(schema, columns=(ROW_ID_COLUMN, *schema.columns), key=(ROW_ID,))


def test_the_rowid_is_a_column_of_both_images(source: Source) -> None:
    """An update names what it changes alone; its row is known all the same."""
    text = 'update "SHOP"."ORDERS" set "NAME" = \'b\' where "NAME" = \'a\';'
    schema = by_row_id(source.schema)
    (change,) = ChangeDecoder(schema, 2000)(_rows(operation_code=3, sql_redo=text)).to_pylist()
    assert change["before"]["_cdc_row_id"] == change["after"]["_cdc_row_id"] == "AAAB1"
    assert (change["before"]["NAME"], change["after"]["NAME"]) == ("a", "b")
    assert set(change["_cdc_absent"]) == {"ID", "AMOUNT", "NOTE"}
    (change,) = ChangeDecoder(schema, 2000)(_rows()).to_pylist()
    assert (change["before"], change["after"]["_cdc_row_id"]) == (None, "AAAB1")


def test_a_row_whose_rowid_is_its_key_and_not_shown_is_refused(source: Source) -> None:
    error = _raised(_rows(row_id=UNKNOWN_ROW_ID), by_row_id(source.schema))
    assert "does not carry its row's ROWID" in str(error)


@pytest.mark.parametrize(
    ("sql", "operation", "message"),
    [
        pytest.param(INSERT, 1, None, id="null"),
        pytest.param(INSERT.replace("NULL)", "'text')"), 1, "gives a LONG a value", id="value"),
        pytest.param(INSERT.replace("NULL)", "Unsupported Type)"), 1, "", id="not-printed"),
        pytest.param(
            """insert into "SHOP"."ORDERS"("ID","NAME","AMOUNT") values ('1','n','2.50')""",
            1, "gives a LONG a value", id="not-listed",
        ),
        pytest.param(
            """update "SHOP"."ORDERS" set "NAME" = 'm' where "ID" = '1' and "NAME" = 'n' and "AMOUNT" = '2.50'""",
            3, None, id="not-changed",
        ),
        pytest.param(
            """update "SHOP"."ORDERS" set "NOTE" = 'text' where "ID" = '1' and "NAME" = 'n' and "AMOUNT" = '2.50'""",
            3, "gives a LONG a value", id="changed",
        ),
    ],
)  # fmt: skip
def test_no_change_gives_a_long_a_value(
    source: Source, sql: str, operation: int, message: str | None
) -> None:
    """Nor may it leave open whether a new row has one."""
    *others, note = source.schema.columns
    long = replace(note, data_type="LONG", held_as="snapshot")
    schema = replace(source.schema, columns=(*others, long))
    rows = _rows(sql_redo=sql, operation_code=operation)
    if message is None:
        assert ChangeDecoder(schema, 2000)(rows)["after"][0].as_py()["NOTE"] is None
    else:
        assert message in _raised(rows, schema).message

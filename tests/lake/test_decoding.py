"""What stops a window: rows that cannot become a change without guessing. No Spark."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest

from cdc_core.errors import CdcError, DecodeError, SchemaMismatchError
from cdc_core.lake.decoding import ChangeDecoder
from cdc_core.lake.spark import _unpacked_error

INSERT = (
    """insert into "SHOP"."ORDERS"("ID","NAME","AMOUNT","NOTE") values ('1','secret','2.50',NULL)"""
)


def _batch(**values: Any) -> pa.RecordBatch:
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
    return pa.RecordBatch.from_pydict(
        {name: pa.array([value], kinds.get(name)) for name, value in row.items()}
    )


def _raised(batch: pa.RecordBatch, schema: Any) -> CdcError:
    with pytest.raises(RuntimeError) as caught:
        list(ChangeDecoder(schema, 2000)([batch]))
    error = _unpacked_error(f"Spark says: {caught.value} and more")
    assert error is not None
    return error


def test_a_row_becomes_a_change(source: Any) -> None:
    (changes,) = ChangeDecoder(source.schema, 2000)([_batch()])
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
        pytest.param({"status": 2}, DecodeError, "STATUS = 2", id="status-2"),
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
    values: dict[str, Any], kind: type[CdcError], message: str, source: Any
) -> None:
    error = _raised(_batch(**values), source.schema)
    assert type(error) is kind
    assert message in str(error)
    assert "SHOP.ORDERS" in str(error)
    assert "1234" in str(error)
    assert error.hint
    assert "secret" not in str(error)

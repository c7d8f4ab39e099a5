"""Documents and long texts of which the redo carries a part, or rows of a form that nobody described, are read from Oracle as of their
commit, as a snapshot reads them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from oracle_embedded.redo import DEFAULT_WARTS, XmlRows, lob
from tests.oracle.embedded import Oracle, running_oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import source_of, table_id
from tests.steps.test_excluded import landed
from tests.steps.test_reselected_lobs import RESELECT

T = table_id("T")
_ASKED = '"T" AS OF SCN :p'
CHANGED = '<xd:xdiff xmlns:xd="http://xmlns.oracle.com/xdb/xdiff.xsd">{}</xd:xdiff>'


documents = oracle_with(
    "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, N NUMBER(9), DOC XMLTYPE)",
    *(f"INSERT INTO T VALUES ({key}, 0, XMLTYPE('<old/>'))" for key in range(1, 6)),
    warts=DEFAULT_WARTS,
    xml_rows=XmlRows.AMOUNT,
)


def test_a_changed_portion_is_not_taken_for_the_document(documents: Oracle, tmp_path: Path) -> None:
    """Without the option the table stops; with it, each change has the document of its commit, or says that it does not carry it."""
    with source_of(documents, tmp_path, "T") as source:
        source.run()
        with documents.owner() as connection:
            cursor = connection.cursor()
            update = "UPDATE T SET DOC = :1 WHERE ID = :2"
            cursor.execute(update, [CHANGED.format("first"), 1])
            cursor.execute("UPDATE T SET N = 1 WHERE ID = 1")
            cursor.execute(update, [CHANGED.format("it's"), 1])
            cursor.execute(update, [CHANGED.format("é" * 3000), 2])
            cursor.execute(update, [CHANGED.format("gone"), 3])
            cursor.execute("DELETE FROM T WHERE ID = 3")
            cursor.execute(update, [CHANGED.format("then"), 4])
            cursor.execute(update, ["<whole/>", 4])
            connection.commit()
            cursor.execute(update, ["<later/>", 1])
            cursor.execute("UPDATE T SET DOC = NULL WHERE ID = 2")
            connection.commit()
        [window] = source.windows()
        assert "a part of a LOB" in (source.record("T").reason or "")
        source.close()
        source.more = RESELECT
        list(source.pipeline.recapture(first=window))
        source.pipeline.resume_tables([T])
        source.windows()
        source.check_current("T")
        assert source.record("T").state == "ready"
        made = [one for one in source.lake.tables[T].changes if one["_cdc_op"] != "r"]
        docs = [
            (one["after"]["ID"], one["after"]["DOC"])
            for one in made
            if one["after"] and "DOC" not in one["_cdc_absent"]
        ]
        assert docs == [
            (1, CHANGED.format("it's")),
            (2, CHANGED.format("é" * 3000)),
            (4, "<whole/>"),
            (1, "<later/>"),
            (2, None),
        ]


_written = lob.write_extended


def _another_form(place: lob.Place, value: bytes) -> Iterator[tuple[int, bytes]]:
    """The frame of an extended string whose data is appended by another call."""
    for code, text in _written(place, value):
        yield code, text.replace(b"DBMS_LOB.WriteAppend(", b"Put(")


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Oracle]:
    monkeypatch.setattr(lob, "write_extended", _another_form)
    with running_oracle(warts=DEFAULT_WARTS, extended_strings=True) as running:
        running.run(
            "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(32767), N NVARCHAR2(16000), R RAW(32767), S VARCHAR2(32767))",
            "INSERT INTO T (ID, V) VALUES (1, 'old')",
        )
        yield running


_VALUES: dict[str, Any] = {
    "v": "it's " * 2000,
    "n": "é🔥" * 2000,
    "r": bytes(range(256)) * 30,
    "s": "secret" * 900,
}


def _change(cursor: Any) -> None:
    cursor.execute("UPDATE T SET V = :v, N = :n, R = :r, S = :s WHERE ID = 1", _VALUES)


def test_long_texts_whose_rows_are_not_understood_are_read_as_a_snapshot_reads_them(
    texts: Oracle, tmp_path: Path
) -> None:
    """All of a row by one query, in the form that the lake holds; what is left out is not read."""
    with source_of(texts, tmp_path, **RESELECT) as source:
        source.configure({"name": "T", "columns_exclude": ["S"], "types_as": {"RAW": "hex"}})
        sent = source.asked()
        source.run()
        with texts.owner() as connection:
            _change(connection.cursor())
            connection.commit()
        texts.run("UPDATE T SET V = 'later' WHERE ID = 1")
        source.windows()
        assert source.record("T").state == "ready", source.record("T").reason
        [asked] = [sql for sql in sent if _ASKED in sql]
        assert '"S"' not in asked
        assert "secret" not in landed(source)
        assert source.lake.image(T) == [(1, "later", _VALUES["n"], _VALUES["r"].hex())]
        values = [one["after"]["V"] for one in source.lake.tables[T].changes]
        assert [one for one in values if one] == [_VALUES["v"], "later"]


def test_a_value_that_is_masked_meanwhile_lands_as_its_mask(texts: Oracle, tmp_path: Path) -> None:
    """Its transaction wrote it before the mask was configured, and commits after."""
    with source_of(texts, tmp_path, **RESELECT) as source:
        source.configure("T")
        source.run()
        with texts.owner() as connection:
            _change(connection.cursor())
            source.windows()
            mask = {"name": "T", "columns_mask": {"S": "stars(3)"}}
            source.configure(mask)
            source.run()
            connection.commit()
        source.windows()
        assert source.record("T").state == "ready", source.record("T").reason
        assert source.lake.image(T) == [(1, _VALUES["v"], _VALUES["n"], _VALUES["r"], "***")]

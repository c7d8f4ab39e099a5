"""Documents of XMLTYPE columns through the driver, LogMiner, landing and the stage of LOBs."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from oracle_embedded.redo import DEFAULT_WARTS, XmlRows
from tests.oracle.embedded import Oracle, running_oracle
from tests.steps.harness import run_random_changes, source_of, table_id
from tests.steps.test_excluded import landed

T = table_id("T")


@pytest.fixture(params=list(XmlRows), ids=lambda shape: shape.value)
def oracle(request: pytest.FixtureRequest) -> Iterator[Oracle]:
    with running_oracle(
        "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, A NUMBER(9), SECRET VARCHAR2(40), DOC XMLTYPE, NOTE CLOB, MORE XMLTYPE)",
        warts=DEFAULT_WARTS,
        xml_rows=request.param,
    ) as running:
        yield running


def document(rng: random.Random, size: int) -> str | None:
    """With what redo must quote, characters of two to four bytes wherever pieces are cut, and what looks like redo."""
    text = "".join(rng.choices("ab':;()é日🔥 \n", k=size))
    return f"<a x='1'>XML_REDO := NULL{text}</a>" if size else None


def change(rng: random.Random, cursor: Any, key: int, *, is_new: bool) -> None:
    one, two = (document(rng, rng.choice((0, 3, 900, 5000))) for _ in range(2))
    if is_new:
        sql = "INSERT INTO T VALUES (:1, 1, 'hidden', :2, :3, :4)"
        cursor.execute(sql, [key, one, rng.choice((None, "note", "n" * 5000)), two])
        return
    which = rng.choice(("DOC = :1", "MORE = :1", "A = A + 1, DOC = :1"))
    cursor.execute(f"UPDATE T SET {which} WHERE ID = :2", [one, key])


def test_documents_of_any_size_are_the_same_in_the_mirror(oracle: Oracle, tmp_path: Path) -> None:
    """NULL ones and several in a row, unchanged ones, in transactions that take rows back, and that lie in several windows."""
    rng = random.Random(11)
    with source_of(oracle, tmp_path, "T") as source:
        with oracle.owner() as connection:
            change(rng, connection.cursor(), 50, is_new=True)
            connection.commit()
        source.run()
        last = "UPDATE T SET A = 7 WHERE ID = 50; DELETE FROM T WHERE ID = 3"
        run_random_changes(source, rng, change, steps=26, created=10, last=last)
        source.check_current("T")
        assert source.record("T").state == "ready"
        docs = [row[at] for row in source.lake.image(T) for at in (3, 5)]
        assert None in docs
        assert "" not in docs
        assert any(doc is not None and len(doc) > 5000 for doc in docs)


def test_an_excluded_document_beside_a_captured_one_does_not_land(
    oracle: Oracle, tmp_path: Path
) -> None:
    """Nor does an excluded value by which the rows of a document name their table's row."""
    with source_of(oracle, tmp_path) as source:
        source.configure({"name": "T", "columns_exclude": ["SECRET", "MORE"]})
        source.begin()
        oracle.run(
            "INSERT INTO T VALUES (1, 1, 'hidden', XMLTYPE('<seen/>'), NULL, XMLTYPE('<concealed/>'))"
        )
        source.windows()
        assert source.lake.image(T) == [(1, 1, "<seen/>", None)]
        text = landed(source)
        assert "<seen/>" in text or b"<seen/>".hex() in text
        assert "hidden" not in text
        assert "<concealed/>" not in text
        assert b"<concealed/>".hex() not in text

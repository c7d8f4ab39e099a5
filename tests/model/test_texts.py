"""Which texts are no UTF-8, and what stands for their bytes?"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_core.model.texts import TextReplacement, is_utf8, readable_batch, replaced, spoiled_rows

TEXTS = st.lists(st.one_of(st.none(), st.binary(max_size=6), st.text(max_size=6).map(str.encode)))


def array_of(texts: list[bytes | None], kind: pa.DataType) -> pa.Array:
    binary = pa.large_binary() if kind == pa.large_string() else pa.binary()
    return pa.array(texts, binary).view(kind)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
@given(TEXTS)
def test_they_are_found_and_replaced_as_python_does(
    kind: pa.DataType, texts: list[bytes | None]
) -> None:
    expected = [None if one is None else one.decode("utf-8", "replace") for one in texts]
    spoiled = [one is not None and one.decode("utf-8", "ignore").encode() != one for one in texts]
    array = array_of(texts, kind)
    assert is_utf8(array) is not any(spoiled)
    assert spoiled_rows(array).tolist() == spoiled
    assert replaced(array, np.array(spoiled, bool)).to_pylist() == expected


def test_two_halves_of_a_character_side_by_side_are_no_text() -> None:
    assert spoiled_rows(array_of([b"a\xc3", b"\xa4b"], pa.string())).tolist() == [True, True]


def test_some_among_many_are_found() -> None:
    texts: list[bytes | None] = [b"fine"] * 1000
    texts[0] = texts[64] = texts[500] = texts[999] = b"\xff"
    found = spoiled_rows(array_of(texts, pa.large_string()).slice(1))
    assert np.flatnonzero(found).tolist() == [63, 499, 998]


def test_names_of_a_batch_are_readable_and_statements_wait() -> None:
    spoiled = array_of([b"\xff", b"x"], pa.string())
    batch = pa.record_batch({"name": spoiled, "sql_redo": spoiled, "scn": pa.array([1, 2])})
    shown = readable_batch(batch, but="sql_redo")
    assert shown["name"].to_pylist() == ["\ufffd", "x"]
    assert not is_utf8(shown["sql_redo"])


def test_a_key_column_is_never_one_of_those_that_are_replaced() -> None:
    everywhere = TextReplacement(everywhere=True)
    assert everywhere.takes("V", ("ID",))
    assert not everywhere.takes("ID", ("ID",))
    assert not TextReplacement().takes("V", ("ID",))

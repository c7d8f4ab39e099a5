"""The words of a SQL text, as every reader of DDL takes them."""

from __future__ import annotations

import pytest

from cdc_core.schema.ddl_tokens import tokens_of


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        pytest.param("a /* b ' */ -- c\n\"d /*\"", [("word", "A"), ("name", "d /*")], id="comments"),
        pytest.param("'it''s' N'x'", [("string", "it's"), ("string", "x")], id="strings"),
        pytest.param("q'[a'b]' NQ'!c'!'", [("string", "a'b"), ("string", "c'")], id="own-quotes"),
        pytest.param("T$1# 10 1.5 é", [("word", "T$1#"), ("number", "10"), ("number", "1.5"), ("word", "É")], id="words"),
        pytest.param("a.b", [("word", "A"), ("sign", "."), ("word", "B")], id="dot"),
        pytest.param("a 'b", [("word", "A"), ("open", "")], id="a-text-without-an-end"),
        pytest.param("a /* b", [("word", "A"), ("open", "")], id="a-comment-without-an-end"),
        pytest.param('a "b', [("word", "A"), ("open", "")], id="a-name-without-an-end"),
    ],
)  # fmt: skip
def test_tokens_are_what_oracle_reads(text: str, tokens: list[tuple[str, str]]) -> None:
    assert [(one.kind, one.text) for one in tokens_of(text)] == tokens


def test_parentheses_and_lines_are_counted() -> None:
    found = [(one.text, one.depth, one.line) for one in tokens_of("a (b\n('(' c\n)) d")]
    assert found == [
        ("A", 0, 1), ("(", 0, 1), ("B", 1, 1), ("(", 1, 2), ("(", 2, 2), ("C", 2, 2), (")", 1, 3), (")", 0, 3), ("D", 0, 3),
    ]  # fmt: skip

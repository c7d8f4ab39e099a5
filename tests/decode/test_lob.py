"""Rows that write a part of a LOB, in the shapes of 23ai and of older releases."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from cdc_core.decode import decode_dml
from cdc_core.decode.lob import (
    LobAppend,
    LobEnd,
    LobErase,
    LobPlace,
    LobTrim,
    LobUnclear,
    LobWrite,
    is_difference,
    lob_literal,
    read_lob_row,
)
from cdc_core.decode.plan import plan_table
from cdc_core.errors import DecodeError
from cdc_core.model.operations import Operation
from tests.decode.golden_table import GOLDEN

HEAD = "DECLARE \n loc_c CLOB; \n buf_c VARCHAR2(6150); \n e_len NUMBER; \nBEGIN\n"
SELECT = (
    ' select "L" into loc_c from "S"."T" where "ID" = \'7\' and "V" = \'it\'\'s; for update;\''
    ' and "D" IS NULL for update;\n'
)
WRITE = " buf_c := '{}'; \n  dbms_lob.write(loc_c, {}, {}, buf_c);\n"
PLACE = LobPlace("L", (7,), ("\"ID\" = '7'",), is_captured=True)
PLAN = plan_table(GOLDEN)


def read(sql: str, operation: int, before: LobPlace | None = None) -> object:
    return read_lob_row(sql, operation, PLAN, GOLDEN.key, before)


@pytest.mark.parametrize(
    ("sql", "operation", "call"),
    [
        pytest.param(
            HEAD + SELECT + WRITE.format("it''s; END;", 10, 1) + "END;\n\n",
            Operation.LOB_WRITE,
            LobWrite(1, "it's; END;"),
            id="a-write",
        ),
        pytest.param(
            HEAD + SELECT + WRITE.format("dbms_lob.write(loc_c, 1, 1, buf_c);\n🔥", 37, 5) + "END;",
            Operation.LOB_WRITE,
            LobWrite(5, "dbms_lob.write(loc_c, 1, 1, buf_c);\n🔥"),
            id="data-that-looks-like-a-call",
        ),
        pytest.param(
            HEAD + SELECT + "  dbms_lob.trim(loc_c, 12);\nEND;\n\n",
            Operation.LOB_TRIM,
            LobTrim(12),
            id="a-trim",
        ),
        pytest.param(
            HEAD + SELECT + " e_len := 5; \n  dbms_lob.erase(loc_c, e_len, 3);\nEND;\n\n",
            Operation.LOB_ERASE,
            LobErase(3, 5),
            id="an-erase",
        ),
        pytest.param(HEAD + SELECT, Operation.SELECT_LOB_LOCATOR, None, id="a-locator"),
    ],
)
def test_a_row_tells_its_lob_and_what_it_does(sql: str, operation: int, call: object) -> None:
    assert read(sql, operation) == (PLACE, call)


def test_a_fragment_goes_on_with_the_lob_before_it() -> None:
    sql = WRITE.format("abc", 3, 4) + "END;"
    assert read(sql, Operation.LOB_WRITE, PLACE) == (PLACE, LobWrite(4, "abc"))
    binary = replace(PLACE, column="B")
    sql = " buf_b := HEXTORAW('00ff'); \n  dbms_lob.write(loc_b, 2, 1, buf_b);\nEND;"
    assert read(sql, Operation.LOB_WRITE, binary) == (binary, LobWrite(1, b"\x00\xff"))


def test_the_value_of_a_column_that_is_left_out_is_not_read() -> None:
    sql = HEAD + SELECT.replace('"L"', '"GEO"') + " buf_c := anything"
    place, call = read_lob_row(sql, Operation.LOB_WRITE, PLAN, GOLDEN.key, None)
    assert (place.column, place.is_captured, call) == ("GEO", False, None)


@pytest.mark.parametrize(
    ("sql", "before"),
    [
        pytest.param(WRITE.format("abc", 3, 1) + "END;", None, id="of-no-lob"),
        pytest.param(
            HEAD + SELECT.replace("\"ID\" = '7' and ", "") + WRITE.format("a", 1, 1),
            None,
            id="without-the-key",
        ),
        pytest.param(
            HEAD + SELECT.replace('"S"."T"', '"S"."U"') + WRITE.format("a", 1, 1),
            None,
            id="of-another-table",
        ),
    ],
)
def test_what_is_not_understood_is_refused(sql: str, before: LobPlace | None) -> None:
    with pytest.raises(DecodeError) as caught:
        read(sql, Operation.LOB_WRITE, before)
    assert caught.value.hint


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(WRITE.format("abc", 4, 1), id="of-another-length"),
        pytest.param(" buf_c := 'abc'; \n", id="without-a-call"),
        pytest.param(WRITE.format("abc", 3, 1) + "more", id="with-something-behind"),
    ],
)
def test_which_lob_is_written_can_be_clear_where_nothing_else_is(call: str) -> None:
    assert read(HEAD + SELECT + call, Operation.LOB_WRITE) == (PLACE, LobUnclear())


@pytest.mark.parametrize(
    ("value", "literal"),
    [("it's", "'it''s'"), ("", "EMPTY_CLOB()"), (b"\xab", "HEXTORAW('ab')"), (b"", "EMPTY_BLOB()")],
)
def test_a_lob_has_the_literal_of_one_that_lies_in_its_row(
    value: str | bytes, literal: str
) -> None:
    assert lob_literal(value) == literal


LONG = (
    replace(GOLDEN.column("V"), name="X", length=32767, char_length=32767),
    replace(GOLDEN.column("R"), name="XR", length=32767),
)
EXTENDED = replace(GOLDEN, columns=(*GOLDEN.columns, *LONG))
FRAME = "DECLARE\n TempLob CLOB;\n buf_c   VARCHAR2(32767);\n Stmt    CLOB;\nBEGIN\n DBMS_LOB.CreateTemporary(TempLob, FALSE);\n"
BOUND = (
    FRAME
    + """ Stmt := 'update "S"."T"{} set {}"{}" = :DATA where {}"ID" = ''7'' and {}"V" = ''it''''s'';';"""
)
APPENDED = " buf_c := {}; DBMS_LOB.WriteAppend(TempLob, LENGTH(buf_c), buf_c);"


def read_long(sql: str, operation: int, before: LobPlace | None = None) -> object:
    return read_lob_row(sql, operation, plan_table(EXTENDED), EXTENDED.key, before)


@pytest.mark.parametrize("alias", ["", "a"])
def test_a_long_text_is_bound_to_an_update(alias: str) -> None:
    """With an alias or without; a column that is left out is known as such."""
    dot = alias and f"{alias}."
    for column, is_captured in (("X", True), ("LEFT_OUT", False)):
        schema = replace(EXTENDED, excluded=("LEFT_OUT",))
        sql = BOUND.format(alias and f" {alias}", dot, column, dot, dot)
        place = LobPlace(column, (7,), ("\"ID\" = '7'",), is_captured)
        assert read_lob_row(
            sql, Operation.EXTENDED_BEGIN, plan_table(schema), schema.key, None
        ) == (place, None)


@pytest.mark.parametrize(
    ("column", "literal", "data"),
    [
        pytest.param("X", "'it''s; END;'", "it's; END;", id="quotes"),
        pytest.param("X", "'dbms_lob.append(x);'", "dbms_lob.append(x);", id="like-a-call"),
        pytest.param("X", "UNISTR('\\00E9')||'b'", "éb", id="unistr"),
        pytest.param("XR", "HEXTORAW('00ff')", b"\x00\xff", id="bytes"),
    ],
)
def test_what_is_appended_is_a_literal(column: str, literal: str, data: str | bytes) -> None:
    place = replace(PLACE, column=column)
    found = read_long(APPENDED.format(literal), Operation.EXTENDED_WRITE, place)
    assert found == (place, LobAppend(data))
    assert read_long("END;", Operation.EXTENDED_END, place) == (place, LobEnd())


@pytest.mark.parametrize(
    ("sql", "operation", "before"),
    [
        pytest.param(APPENDED.format("'x'"), Operation.EXTENDED_WRITE, None, id="of-nothing"),
        pytest.param(FRAME, Operation.EXTENDED_BEGIN, PLACE, id="no-statement"),
        pytest.param(
            BOUND.format("", "", "X", "", "").replace(":DATA", "NULL"),
            Operation.EXTENDED_BEGIN,
            None,
            id="nothing-bound",
        ),
        pytest.param(
            BOUND.format("", "", "X", "", "").replace("''7''", "NULL"),
            Operation.EXTENDED_BEGIN,
            None,
            id="no-key",
        ),
    ],
)
def test_other_forms_of_long_texts_are_refused(
    sql: str, operation: int, before: LobPlace | None
) -> None:
    with pytest.raises(DecodeError):
        read_long(sql, operation, before)


@pytest.mark.parametrize(
    "sql",
    [
        pytest.param(APPENDED.format("'it's'"), id="lone-quote"),
        pytest.param(" buf_c := 'x';", id="not-appended"),
    ],
)
def test_a_row_of_a_long_text_that_is_not_understood_is_about_the_one_that_began(sql: str) -> None:
    assert read_long(sql, Operation.EXTENDED_WRITE, PLACE) == (PLACE, LobUnclear())


DOCUMENTS = replace(
    GOLDEN, columns=(*GOLDEN.columns, replace(GOLDEN.column("L"), name="DOC", data_type="XMLTYPE"))
)
DOC = LobPlace("DOC", (7,), ("\"ID\" = '7'",), is_captured=True)


def read_document(sql: str, operation: int, before: LobPlace | None = None) -> object:
    return read_lob_row(sql, operation, plan_table(DOCUMENTS), DOCUMENTS.key, before)


@pytest.mark.parametrize(
    ("sql", "is_text"),
    [
        pytest.param(
            """XML DOC BEGIN:  select "DOC" from "S"."T" where "ID" = '7' and "V" IS NULL""",
            False,
            id="binary",
        ),
        pytest.param(
            """update "S"."T" a set a."DOC" = XMLType(:1)  where a."ID" = '7';""", True, id="text"
        ),
    ],
)
def test_a_document_begins_with_its_place(sql: str, is_text: bool) -> None:
    place = replace(DOC, is_text=is_text)
    assert read_document(sql, Operation.XML_DOC_BEGIN) == (place, None)
    assert read_document("XML DOC END", Operation.XML_DOC_END, place) == (place, LobEnd())


@pytest.mark.parametrize(
    ("sql", "data"),
    [
        pytest.param("XML_REDO := HEXTORAW('3c612f3e'):4", b"<a/>", id="bytes"),
        pytest.param("XML_REDO := HEXTORAW('3c612f3e):4", b"<a/>", id="no-closing-quote"),
        pytest.param("XML_REDO := '<a b=\"''\"/>':11", "<a b=\"''\"/>", id="two-quotes"),
        pytest.param("XML_REDO := '<a b=\"''\"/>':10", '<a b="\'"/>', id="a-doubled-quote"),
        pytest.param("XML_REDO := '<é/>':5", "<é/>", id="length-in-bytes"),
        pytest.param(
            "XML_REDO := '<a b=\"2\"/>'\n amount: 10", '<a b="2"/>', id="as-19.3-prints-it"
        ),
        pytest.param(
            "XML_REDO := '<a>'\n amount: 3</a>'\n amount: 19",
            "<a>'\n amount: 3</a>",
            id="like-its-end",
        ),
        pytest.param("XML_REDO := NULL", b"", id="nothing"),
    ],
)
def test_a_piece_of_a_document_is_as_long_as_it_says(sql: str, data: str | bytes) -> None:
    assert read_document(sql, Operation.XML_DOC_WRITE, DOC) == (DOC, LobAppend(data))
    text = replace(DOC, is_text=True)
    assert read_document(sql, Operation.XML_DOC_WRITE, text) == (text, LobAppend(sql))


@pytest.mark.parametrize(
    "sql",
    [
        pytest.param("XML_REDO := HEXTORAW('3c612f3e'):5", id="cut"),
        pytest.param("XML_REDO := '<a/>':7", id="cut-text"),
        pytest.param("XML_REDO := '<a/>'\n amount: 5", id="cut-in-another-form"),
        pytest.param("XML_REDO := HEXTORAW('3c6'):1", id="half-a-byte"),
        pytest.param("<a/>", id="text-in-binary"),
    ],
)
def test_a_piece_of_a_document_in_another_form_is_not_read(sql: str) -> None:
    assert read_document(sql, Operation.XML_DOC_WRITE, DOC) == (DOC, LobUnclear())


def test_a_piece_of_a_document_that_fits_with_quotes_doubled_and_undone_is_ambiguous() -> None:
    """Three characters, or one of two bytes and another one."""
    found = read_document("XML_REDO := 'é''':3", Operation.XML_DOC_WRITE, DOC)
    assert found == (DOC, LobUnclear(is_ambiguous=True))


@pytest.mark.parametrize(
    "sql",
    [
        pytest.param('XML DOC BEGIN:  select "DOC" from "S"."T"', id="no-key"),
        pytest.param("""update "S"."T" set "DOC" = NULL where "ID" = '7';""", id="no-bind"),
    ],
)
def test_a_document_whose_place_is_not_named_is_refused(sql: str) -> None:
    with pytest.raises(DecodeError):
        read_document(sql, Operation.XML_DOC_BEGIN, DOC)


@pytest.mark.parametrize(
    ("document", "is_part"),
    [
        pytest.param('<?xml version="1.0"?><xd:xdiff xmlns:xd="http://xmlns.oracle.com/xdb/xdiff.xsd">', True, id="a-difference"),
        pytest.param(b"<xd:xdiff xsi:x='' xmlns:xd='http://xmlns.oracle.com/xdb/xdiff.xsd'>", True, id="in-bytes"),
        pytest.param("<a>http://xmlns.oracle.com/xdb/xdiff.xsd</a>", False, id="its-name-in-text"),
        pytest.param("<xdiff/>", False, id="another-xdiff"),
    ],
)  # fmt: skip
def test_a_difference_of_documents_is_known_by_its_root(
    document: str | bytes, is_part: bool
) -> None:
    assert is_difference(document) is is_part


def test_a_statement_does_not_carry_a_document_that_follows() -> None:
    """``XMLType(:1)`` says nothing of the value: the column is absent, never NULL."""
    sql = """insert into "S"."T"("ID","DOC") values ('1',XMLType(:1));"""
    [absent] = decode_dml(pa.array([sql]), DOCUMENTS).absent.to_pylist()
    assert "DOC" in absent
    null = sql.replace("XMLType(:1)", "NULL")
    [absent] = decode_dml(pa.array([null]), DOCUMENTS).absent.to_pylist()
    assert "DOC" not in absent


UNNAMED = plan_table(replace(GOLDEN, stored=GOLDEN.column_names))


def _col(name: str) -> str:
    return f'"COL {GOLDEN.column_names.index(name) + 1}"'


@pytest.mark.parametrize(
    ("sql", "operation"),
    [
        pytest.param(
            f'{HEAD} select {_col("L")} into loc_c from "S"."T" where {_col("ID")} = HEXTORAW(\'c108\') and {_col("D")} IS NULL for update;\n'
            + WRITE.format("x", 1, 1),
            Operation.LOB_WRITE,
            id="a-write",
        ),
        pytest.param(
            f'XML DOC BEGIN:  select {_col("L")} from "S"."T" where {_col("ID")} = HEXTORAW(\'c108\')',
            Operation.XML_DOC_BEGIN,
            id="a-document",
        ),
        pytest.param(
            f"DECLARE BEGIN Stmt := 'update \"S\".\"T\" set {_col('L')} = :DATA where {_col('ID')} = HEXTORAW(''c108'');';",
            Operation.EXTENDED_BEGIN,
            id="an-extended-string",
        ),
    ],
)
def test_rows_from_before_a_ddl_name_columns_by_their_places(sql: str, operation: int) -> None:
    place, _ = read_lob_row(sql, operation, UNNAMED, GOLDEN.key, None)
    where = f"{_col('ID')} = HEXTORAW('c108')"
    assert place == LobPlace("L", (7,), (where,), is_captured=True)
    update = f'update "S"."T" set "L" = \'x\' where {place.where};'
    schema = replace(GOLDEN, stored=GOLDEN.column_names)
    [image] = decode_dml(pa.array([update]), schema).after.to_pylist()
    assert (image["ID"], image["L"]) == (7, "x")

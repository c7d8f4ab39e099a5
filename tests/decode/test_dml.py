"""Batches: their shapes, sizes and mixtures, which row an error names, and that common forms are decoded by the loops."""

from __future__ import annotations

import pickle
import random
from datetime import datetime

import pyarrow as pa
import pytest

from cdc_core.decode import decode_dml
from cdc_core.decode.batch import scan_batch
from cdc_core.decode.kernels import table
from cdc_core.decode.plan import Kind, plan_table
from cdc_core.errors import DecodeError, SchemaMismatchError, UnsupportedTypeError
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn
from cdc_core.schema.table import TableSchema
from cdc_core.schema.types import arrow_schema
from tests.decode.golden_table import GOLDEN, column
from tests.decode.test_golden import PAIRS

INSERT = 'insert into "S"."T"("ID","V") values (\'{0}\',\'text {0}\');'
UPDATE = 'update "S"."T" set "V" = \'new {0}\' where "ID" = \'{0}\' and "V" = \'text {0}\';'
DELETE = 'delete from "S"."T" where "ID" = \'{0}\' and "V" = \'text {0}\';'

_RARE = (
    "exponent", "plus sign", "empty fraction", "fraction of zeros", "more zeros than its scale",
    "over two parts", "many digits", "not a number", "infinite",
    "with a format", "TO_TIMESTAMP without fraction", "hint", "excluded column with a number",
)  # fmt: skip
"""Words in the titles of golden pairs whose literals may go to the plain form."""


def test_common_forms_are_never_left_to_the_plain_form() -> None:
    """Speed is a promise: only literals that Oracle hardly ever prints are decoded one by one."""
    common = [p for p in PAIRS if not p.is_refusal and not any(word in p.title for word in _RARE)]
    assert len(common) > 90
    scanned = scan_batch(
        pa.array([pair.sql for pair in common], pa.large_string()), plan_table(GOLDEN)
    )
    left = [pair.title for pair, op in zip(common, scanned.operations, strict=True) if op == 0]
    assert left == []


def test_kinds_are_the_same_numbers_in_the_loops() -> None:
    assert {kind.name: kind.value for kind in Kind} == {
        kind.name: getattr(table, kind.name) for kind in Kind
    }


@pytest.mark.parametrize("make", ["string", "large_string", "slice", "chunks"])
def test_any_arrow_form_of_text_is_taken(make: str) -> None:
    texts = [INSERT.format(row) for row in range(50)]
    arrays = {
        "string": pa.array(texts, pa.string()),
        "large_string": pa.array(texts, pa.large_string()),
        "slice": pa.array(["x", *texts, "y"], pa.large_string()).slice(1, 50),
        "chunks": pa.chunked_array([texts[:20], [], texts[20:]], pa.string()),
    }
    decoded = decode_dml(arrays[make], GOLDEN)
    assert decoded.after.field("ID").to_pylist() == list(range(50))
    assert decoded.after.field("V").to_pylist() == [f"text {row}" for row in range(50)]


def test_an_empty_batch_has_typed_empty_columns() -> None:
    decoded = decode_dml(pa.array([], pa.large_string()), GOLDEN)
    row_type = pa.struct(list(arrow_schema(GOLDEN)))
    assert (len(decoded.op), decoded.op.type) == (0, pa.int8())
    assert decoded.before.type == decoded.after.type == row_type
    assert (len(decoded.before), len(decoded.after), len(decoded.absent)) == (0, 0, 0)
    assert decoded.absent.type == pa.list_(pa.string())


def test_missing_images_are_null_structs_with_null_columns() -> None:
    """A reader who takes a column out of ``before`` must not find an insert's new values there."""
    decoded = decode_dml(pa.array([INSERT.format(1), UPDATE.format(2), DELETE.format(3)]), GOLDEN)
    assert decoded.before.is_null().to_pylist() == [True, False, False]
    assert decoded.after.is_null().to_pylist() == [False, False, True]
    assert decoded.before.field("ID").to_pylist() == [None, 2, 3]
    assert decoded.after.field("ID").to_pylist() == [1, 2, None]
    assert decoded.before.field("V").to_pylist() == [None, "text 2", "text 3"]
    assert decoded.after.field("V").to_pylist() == ["text 1", "new 2", None]


def test_updates_alone_share_columns_that_none_sets() -> None:
    decoded = decode_dml(pa.array([UPDATE.format(row) for row in range(100)]), GOLDEN)
    ids = [images.field("ID").buffers()[1].address for images in (decoded.before, decoded.after)]
    assert ids[0] == ids[1]
    assert decoded.after.field("ID").to_pylist() == list(range(100))
    assert decoded.after.field("V").to_pylist() == [f"new {row}" for row in range(100)]


def test_rows_of_rare_forms_stand_among_the_others() -> None:
    rare = 'insert into "S"."T"("ID","N92") values (\'7\',\'1.2E-01\');'
    decoded = decode_dml(pa.array([INSERT.format(1), rare, DELETE.format(2)]), GOLDEN)
    assert decoded.op.to_pylist() == [1, 1, 2]
    assert [row and row["ID"] for row in decoded.after.to_pylist()] == [1, 7, None]
    assert str(decoded.after.to_pylist()[1]["N92"]) == "0.12"
    absent = decoded.absent.to_pylist()
    assert "N92" in absent[0]
    assert "N92" not in absent[1]
    assert "V" in absent[1]


def test_an_error_names_the_first_bad_row_and_shows_no_value() -> None:
    bad = 'insert into "S"."T"("ID","N92") values (\'7\',\'1.23456\');'
    with pytest.raises(DecodeError) as raised:
        decode_dml(pa.array([INSERT.format(1), bad, "nonsense", bad]), GOLDEN)
    assert raised.value.facts == {"row": 1, "table": '"S"."T"', "column": "N92"}
    assert "1.23456" not in str(raised.value)
    again = pickle.loads(pickle.dumps(raised.value))
    assert (type(again), str(again)) == (DecodeError, str(raised.value))


@pytest.mark.parametrize("text", [None, ""])
def test_a_row_without_text_is_refused(text: str | None) -> None:
    with pytest.raises(DecodeError, match="no SQL_REDO") as raised:
        decode_dml(pa.array([INSERT.format(1), text], pa.large_string()), GOLDEN)
    assert raised.value.facts["row"] == 1


def test_a_table_with_a_type_that_is_not_captured_is_refused() -> None:
    schema = TableSchema(TableId("S", "T"), Scn(1), (column("G", "SDO_GEOMETRY"),), ("G",))
    with pytest.raises(UnsupportedTypeError):
        decode_dml(pa.array([INSERT.format(1)]), schema)


def test_names_are_exact() -> None:
    """Neither case nor a common beginning makes a name."""
    columns = (column("A", "VARCHAR2"), column("AB", "VARCHAR2"), column("a", "VARCHAR2"))
    schema = TableSchema(TableId("S", "T"), Scn(1), columns, ("A",))
    sql = 'insert into "S"."T"("AB","a","A") values (\'1\',\'2\',\'3\');'
    assert decode_dml(pa.array([sql]), schema).after.to_pylist() == [
        {"A": "3", "AB": "1", "a": "2"}
    ]
    with pytest.raises(SchemaMismatchError):
        decode_dml(pa.array([sql.replace('"AB"', '"ABC"')]), schema)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("x" * 2**20, id="plain"),
        pytest.param("it's " * 2**18, id="a-quote-in-every-word"),
        pytest.param("'" * 2**20, id="only-quotes"),
    ],
)
def test_a_megabyte_of_text_is_one_value(text: str) -> None:
    literal = "'" + text.replace("'", "''") + "'"
    sql = f'insert into "S"."T"("ID","L") values (\'1\',{literal});'
    decoded = decode_dml(pa.array([sql, INSERT.format(2), sql]), GOLDEN)
    assert decoded.after.field("L").to_pylist() == [text, None, text]


def test_a_megabyte_that_never_ends_is_refused() -> None:
    """Reading that looks back at every quote would take hours."""
    for tail in ("'" * (2**20 + 1), "x" * 2**20, "UNISTR('" * 2**17, "9" * 2**20, "F(" * 2**19):
        with pytest.raises(DecodeError):
            decode_dml(pa.array([f'delete from "S"."T" where "V" = \'a\' || {tail}']), GOLDEN)


def test_wide_tables_with_changing_columns() -> None:
    """400 columns, other ones set in each statement: names are found wherever they stand."""
    chance = random.Random(4)
    columns = tuple(column(f"C{place}", "NUMBER", 10, 0) for place in range(400))
    schema = TableSchema(TableId("S", "T"), Scn(1), columns, ("C0",))
    statements, expected = [], []
    for _row in range(200):
        places = chance.sample(range(1, 400), 5)
        sets = ", ".join(f"\"C{place}\" = '{place * 3}'" for place in places)
        statements.append(f'update "S"."T" set {sets} where "C0" = \'1\';')
        expected.append({"C0": 1} | {f"C{place}": place * 3 for place in places})
    decoded = decode_dml(pa.array(statements), schema)
    found = [
        {name: value for name, value in row.items() if value is not None}
        for row in decoded.after.to_pylist()
    ]
    assert found == expected
    assert [len(names) for names in decoded.absent.to_pylist()] == [394] * 200


def test_batches_of_every_small_size_are_right() -> None:
    """Sizes around those at which bitmaps, blocks and the padded last rows change."""
    for count in (*range(1, 20), 63, 64, 65, 127, 128, 129):
        texts = [(INSERT, UPDATE, DELETE)[row % 3].format(row) for row in range(count)]
        decoded = decode_dml(pa.array(texts), GOLDEN)
        decoded.before.validate(full=True)
        decoded.after.validate(full=True)
        ids = [
            (a or b)["ID"]
            for a, b in zip(decoded.after.to_pylist(), decoded.before.to_pylist(), strict=True)
        ]
        assert ids == list(range(count))


def test_every_day_of_the_calendar_is_right() -> None:
    chance = random.Random(5)
    days = [datetime.fromordinal(chance.randint(1, 3652059)) for _ in range(5000)]
    texts = [
        f'delete from "S"."T" where "D" = TO_DATE(\'{day}\', \'YYYY-MM-DD HH24:MI:SS\');'
        for day in days
    ]
    assert decode_dml(pa.array(texts), GOLDEN).before.field("D").to_pylist() == days

"""No value of an excluded column stays in redo text, whatever stands around it, and everything else stays."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from cdc_core.decode.dml import decode_dml
from cdc_core.decode.plan import plan_table
from cdc_core.decode.redact import redact_column, redact_statement
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn
from cdc_core.schema.table import Column, TableSchema

SCHEMA = TableSchema(
    TableId("HR", "EMP"),
    Scn(1),
    (
        Column("ID", "NUMBER", 22, 0, 9, 0, nullable=False),
        Column("PAY", "NUMBER", 22, 0, 9, 2, nullable=True),
        Column("NOTE", "VARCHAR2", 40, 40, None, None, nullable=True),
    ),
    ("ID",),
    stored=("ID", "PAY", "NOTE"),
)
T = '"HR"."EMP"'

CASES = [
    pytest.param(
        f"insert into {T}(\"ID\",\"PAY\",\"NOTE\") values ('1','9000','x');",
        f"insert into {T}(\"ID\",\"PAY\",\"NOTE\") values ('1',NULL,'x');",
        id="insert",
    ),
    pytest.param(
        f"update {T} set \"PAY\" = '9000', \"NOTE\" = 'y' where \"ID\" = '1' and \"PAY\" = '8000' and ROWID = 'AAA';",
        f"update {T} set \"PAY\" = NULL, \"NOTE\" = 'y' where \"ID\" = '1' and \"PAY\" = NULL and ROWID = 'AAA';",
        id="update-and-where",
    ),
    pytest.param(
        f"delete from {T} where \"ID\" = '1' and \"PAY\" IS NULL and \"NOTE\" = 'z';",
        f"delete from {T} where \"ID\" = '1' and \"PAY\" IS NULL and \"NOTE\" = 'z';",
        id="null-stays",
    ),
    pytest.param(
        f"insert into {T}(\"ID\",\"PAY\",\"NOTE\") values ('1',TO_NUMBER('9''0')||UNISTR('\\00e9'),'\"PAY\" = ''1''');",
        f"insert into {T}(\"ID\",\"PAY\",\"NOTE\") values ('1',NULL,'\"PAY\" = ''1''');",
        id="calls-and-text-that-looks-like-it",
    ),
    pytest.param(
        f"update {T} set \"COL 2\" = HEXTORAW('c25b') where \"COL 1\" = HEXTORAW('c102');",
        f"update {T} set \"COL 2\" = NULL where \"COL 1\" = HEXTORAW('c102');",
        id="columns-without-names",
    ),
    pytest.param(
        f"update {T} set \"NEW\" = 'n', \"PAY\" = '1' where \"ID\" = '1';",
        f"update {T} set \"NEW\" = 'n', \"PAY\" = NULL where \"ID\" = '1';",
        id="a-column-that-is-not-known-yet",
    ),
    pytest.param(f"update {T} set \"PAY\" = secret('9000') where \"ID\" = '1'", f"update {T} set \"PAY\" = NULL where \"ID\" = '1'", id="any-function"),
    pytest.param(f"update {T} set \"PAY\" = '9000' returning 1", None, id="unknown-end"),
    pytest.param(f"merge into {T} using \"PAY\" '9000'", None, id="no-statement"),
    pytest.param(f"update {T} set \"PAY\" = :b1 where \"ID\" = '1'", None, id="no-literal"),
    pytest.param("update \"HR\".\"OTHER\" set \"PAY\" = '9000'", None, id="another-table"),
    pytest.param(f"update {T} set \"COL 9\" = HEXTORAW('c25b')", None, id="a-column-without-a-known-place"),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "wanted"), CASES)
def test_a_statement_loses_the_excluded_values_and_nothing_else(
    statement: str, wanted: str | None
) -> None:
    assert redact_statement(statement, plan_table(SCHEMA), frozenset({"PAY"})) == wanted


def test_a_batch_keeps_what_names_no_excluded_column() -> None:
    texts = pa.array(
        [
            f"delete from {T} where \"ID\" = '1'",
            None,
            f"update {T} set \"PAY\" = '9' where \"ID\" = '1'",
        ],
        pa.large_string(),
    )
    assert redact_column(texts, SCHEMA, ["PAY"]).to_pylist() == [
        texts[0].as_py(),
        None,
        f'update {T} set "PAY" = NULL where "ID" = \'1\'',
    ]
    untouched = texts.slice(0, 2)
    assert redact_column(untouched, SCHEMA, ["PAY"]) is untouched


def test_what_is_left_decodes_as_the_table_without_the_column() -> None:
    statement = f"update {T} set \"PAY\" = '9000', \"NOTE\" = 'y' where \"ID\" = '1' and \"PAY\" = '1' and \"NOTE\" = 'x'"
    [left] = redact_column(pa.array([statement]), SCHEMA, ["PAY"]).to_pylist()
    decoded = decode_dml(pa.array([left]), SCHEMA.without(["PAY"]))
    assert decoded.before.to_pylist() == [{"ID": 1, "NOTE": "x"}]
    assert decoded.after.to_pylist() == [{"ID": 1, "NOTE": "y"}]
    assert decoded.absent.to_pylist() == [[]]


MASKS = {"NOTE": str.upper}


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        pytest.param(
            f"insert into {T}(\"ID\",\"NOTE\") values ('1','it''s x');",
            f"insert into {T}(\"ID\",\"NOTE\") values ('1','IT''S X');",
            id="quotes",
        ),
        pytest.param(
            f"update {T} set \"NOTE\" = UNISTR('\\00e9') || 'a' where \"ID\" = '1' and \"NOTE\" IS NULL;",
            f"update {T} set \"NOTE\" = 'ÉA' where \"ID\" = '1' and \"NOTE\" IS NULL;",
            id="a chain, and NULL stays",
        ),
        pytest.param(
            f"update {T} set \"COL 3\" = HEXTORAW('6161') where \"COL 3\" = NULL;",
            f"update {T} set \"COL 3\" = 'AA' where \"COL 3\" = NULL;",
            id="by place",
        ),
        pytest.param(f"update {T} set \"NOTE\" = Unsupported Type;", None, id="not shown"),
        pytest.param(f"update {T} set \"NOTE\" = HEXTORAW('6');", None, id="not understood"),
        pytest.param(f"update {T} set \"COL 4\" = HEXTORAW('61'), \"NOTE\" = 'a';", f"update {T} set \"COL 4\" = HEXTORAW('61'), \"NOTE\" = 'A';", id="a later column"),
    ],
)  # fmt: skip
def test_a_mask_stands_in_place_of_a_value(text: str, masked: str | None) -> None:
    schema = replace(SCHEMA, charset="AL32UTF8")
    [found] = redact_column(pa.array([text]), schema, (), MASKS).to_pylist()
    assert found == masked


@pytest.mark.parametrize(
    ("name", "value"), [("PAY", "'9000'"), ("LATER", "9000"), ("LATER", "HEXTORAW('61')")]
)
def test_a_value_that_cannot_be_masked_does_not_pass(name: str, value: str) -> None:
    """A number, and something else than a text of a column that the definition does not have yet."""
    text = f'update {T} set "{name}" = {value};'
    assert redact_statement(text, plan_table(SCHEMA), frozenset(), {name: str.upper}) is None


def test_a_text_of_a_column_that_comes_later_is_masked() -> None:
    text = f'update {T} set "LATER" = \'a\' where "LATER" IS NULL;'
    masked = redact_statement(text, plan_table(SCHEMA), frozenset(), {"LATER": str.upper})
    assert masked == text.replace("'a'", "'A'")

"""Columns that the lake holds in another form: by type, on both paths, and what becomes of a value that a form does not hold."""

from __future__ import annotations

from datetime import datetime

from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, capturing, table_id

T = table_id("T")
TYPES_AS = {
    "NUMBER(1)": "boolean",
    "NUMBER": "text",
    "RAW": "hex",
    "INTERVAL DAY TO SECOND": "iso8601",
    "TIMESTAMP": "timestamp",
}
FORMS = {"types_as": TYPES_AS, "columns_as": {"AMOUNT": "double"}}

oracle = oracle_with(
    "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, FLAG NUMBER(1), N NUMBER(9), AMOUNT NUMBER(9,2), TOKEN RAW(8), "
    "SPENT INTERVAL DAY TO SECOND, AT TIMESTAMP(9))",
    "INSERT INTO T VALUES (1, 0, 7, 1.5, HEXTORAW('00FF'), INTERVAL '1' DAY, TIMESTAMP '2001-02-03 04:05:06')",
)


source = capturing({"name": "T", **FORMS}, policies={"on_undecodable": "quarantine"})


ROW = (1, False, "7", 1.5, "00ff", "P0Y0M1DT0H0M0S", datetime(2001, 2, 3, 4, 5, 6))


def test_the_forms_of_types_hold_on_both_paths(oracle: Oracle, source: Source) -> None:
    """The key keeps its type; columns_as comes before types_as, NUMBER(1) before NUMBER."""
    assert source.lake.image(T) == [ROW]
    oracle.run(
        "INSERT INTO T SELECT 2, FLAG, N, AMOUNT, TOKEN, SPENT, AT FROM T",
        "UPDATE T SET FLAG = 1, TOKEN = HEXTORAW('AB') WHERE ID = 1",
    )
    source.run()
    assert source.lake.image(T) == [(1, True, *ROW[2:4], "ab", *ROW[5:]), (2, *ROW[1:])]


def test_a_new_column_has_the_form_of_its_type(oracle: Oracle, source: Source) -> None:
    oracle.run(
        "ALTER TABLE T ADD (ACTIVE NUMBER(1))",
        "INSERT INTO T (ID, ACTIVE) VALUES (2, 0)",
    )
    source.run()
    assert [(row[0], row[-1]) for row in source.lake.image(T)] == [(1, None), (2, False)]


def test_a_value_that_a_form_does_not_hold_goes_to_quarantine(
    oracle: Oracle, source: Source
) -> None:
    oracle.run(
        "INSERT INTO T (ID, FLAG) VALUES (2, 2)",
        "INSERT INTO T (ID, FLAG) VALUES (3, 1)",
    )
    source.run()
    assert [row[0] for row in source.lake.image(T)] == [1, 3]
    [kept] = source.lake.tables[T].in_quarantine.to_pylist()
    assert "(column=FLAG)" in kept["reason"]
    assert source.record("T").state == "ready"


def test_another_form_asks_for_new_delta_tables(oracle: Oracle, source: Source) -> None:
    source.configure({"name": "T", **FORMS, "types_as": {**TYPES_AS, "RAW": "base64"}})
    source.run()
    assert source.record("T").state == "failed"
    assert "types_as" in (source.record("T").reason or "")
    assert "TOKEN" in (source.record("T").reason or "")
    source.pipeline.resnapshot_tables([T], fresh=True)
    source.run()
    assert [row[4] for row in source.lake.image(T)] == ["AP8="]

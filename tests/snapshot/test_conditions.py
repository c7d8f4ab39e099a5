"""Which conditions may stand in our SQL?"""

from __future__ import annotations

import pytest

from cdc_core.errors import ConfigError
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn
from cdc_core.schema.table import Column, TableSchema
from cdc_core.snapshot.conditions import checked_condition

SCHEMA = TableSchema(
    TableId("HR", "EMP"),
    Scn(1),
    (
        Column("ID", "NUMBER", 22, 0, 10, 0, False),
        Column("NAME", "VARCHAR2", 40, 10, None, None, True),
        Column("HIRED", "DATE", 7, 0, None, None, True),
        Column("lower", "NUMBER", 22, 0, 10, 0, True),
    ),
    ("ID",),
)


@pytest.mark.parametrize(
    "condition",
    [
        "ID > 5",
        "  id >= 10 and id < 20 ",
        "NAME = 'O''Brien; -- not a comment /* nor this */'",
        "NAME LIKE 'A%' ESCAPE '!'",
        "NAME IN ('a', 'b') OR NAME IS NULL",
        "NOT (ID BETWEEN 1 AND 5)",
        "HIRED >= TO_DATE('2013-01-01', 'YYYY-MM-DD')",
        "TRUNC(HIRED) = TO_DATE('2013-01-01', 'YYYY-MM-DD')",
        "UPPER(SUBSTR(NAME, 1, 2)) = 'AB'",
        "MOD(ID, 10) = 3",
        '"lower" <> -1',
        "ID + 1 <= 2 * 3",
        "NVL(NAME, 'x') != 'y'",
        "NAME || 'x' = 'yx'",
        "((ID = 1))",
        "COALESCE(NAME, 'x') = 'x' AND ID IS NOT NULL",
        "HIRED > SYSDATE - 7",
        "HIRED > DATE '2013-01-01'",
        "HIRED > TIMESTAMP '2013-01-01 00:00:00'",
        "HIRED > SYSDATE - INTERVAL '7' DAY",
        "CASE WHEN ID = 1 THEN 1 ELSE 0 END = 1",
        "EXTRACT(YEAR FROM HIRED) = 2013",
        "REGEXP_LIKE(NAME, '^A.*')",
        "NVL2(NAME, 1, 0) = 1",
        "DECODE(ID, 1, 'a', 'b') = 'a'",
        "HIRED > SYSDATE - TO_DSINTERVAL('7 00:00:00')",
        "ADD_MONTHS(HIRED, 1) > SYSDATE",
    ],
)
def test_comparisons_over_the_tables_columns_are_taken_as_they_are(condition: str) -> None:
    assert checked_condition(condition, SCHEMA) == condition.strip()


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("", "empty"),
        ("ID > 5" + " " * 5000 + "x", "longer"),
        ("ID = 1; DELETE FROM EMP", "comment|more than one|parsed"),
        ("ID = 1) OR (1 = 1", "more than one|parsed|behind"),
        ("ID = 1) UNION SELECT 1 FROM T WHERE (1 = 1", "UNION"),
        ("ID = 1) FOR UPDATE --", "comment"),
        ("ID = 1) ORDER BY (ID", "ORDER"),
        ("ID = 1 -- x", "comment"),
        ("ID = /* x */ 1", "comment"),
        ("ID = :b", "bind"),
        ("NAME = 'open", "quote"),
        ("NAME = q'[x]'", "special literal"),
        ("NAME = n'x'", "special literal"),
        ("ID", "not a comparison"),
        ("5", "not a comparison"),
        ("ID IN (SELECT ID FROM OTHER)", "SELECT"),
        ("EXISTS (SELECT 1 FROM OTHER)", "EXISTS"),
        ("SELECT * FROM SHOP.ORDERS WHERE ID > 5", "more than a condition.*behind WHERE"),
        (" (select ID from T where ID > 5)", "more than a condition.*behind WHERE"),
        ("WHERE ID > 5", "more than a condition.*behind WHERE"),
        ("WITH X AS (SELECT 1 FROM DUAL) SELECT 1 FROM X", "behind WHERE"),
        ("NOPE = 1", "neither columns.*NOPE"),
        ('"id" = 1', "no column id"),
        ("EMP.ID = 1", "neither columns.*EMP"),
        ('"EMP".ID = 1', "without a table"),
        ("SYSDATE", "not a comparison"),
        ("ID = 1 FROM T", "neither"),
        ("ID = 1 FROM ID", "parsed"),
        ("ID IN (CASE WHEN 1 = 1 THEN (SELECT 1 FROM T) END)", "SELECT"),
        ("UTL_HTTP.REQUEST('x') = 'y'", "UTL_HTTP"),
        ("HIRED > CURRENT_DATE", "CURRENT_DATE"),
        ("NAME = USER", "USER"),
        ("DBMS_RANDOM.VALUE() > 1", "DBMS_RANDOM"),
        ("USERENV('x') = 'y'", "USERENV"),
        ("MY_FUNCTION(ID) = 1", "MY_FUNCTION"),
        ("ID = UPPER(NAME, ID) AND", "parsed"),
        ("ID(5) = 1", "not allowed|parsed|ID"),
        ("MAX(ID) = 1", "MAX"),
        ("ROWNUM < 5", "ROWNUM"),
        ("ID @ 5 = 1", "comment|parsed"),
        ("ID = ID(+)", "ID"),
        ("ROW_NUMBER() OVER (ORDER BY ID) = 1", "ROW_NUMBER"),
    ],
)
def test_everything_else_is_refused(condition: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        checked_condition(condition, SCHEMA)

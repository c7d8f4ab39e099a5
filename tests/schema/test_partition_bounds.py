"""Which rows a partition has, by the bounds that the dictionary shows."""

from __future__ import annotations

import pyarrow as pa
import pytest

from cdc_core.errors import SchemaMismatchError
from cdc_core.model.json_form import as_json, from_json
from cdc_core.model.partition_rows import PartitionRows
from cdc_core.schema.ddl_reading import emptied_partitions, exchanged_partition
from cdc_core.schema.ddl_tokens import tokens_of
from cdc_core.schema.partition_bounds import (
    bound_value,
    partition_of_value,
    rows_of_partition,
)
from cdc_core.schema.table import Column

DAY = "TO_DATE(' 2026-03-0{} 00:00:00', 'SYYYY-MM-DD HH24:MI:SS', 'NLS_CALENDAR=GREGORIAN')"


def column(
    data_type: str, precision: int | None = 9, scale: int | None = 0, held_as: str = ""
) -> Column:
    return Column("K", data_type, 22, 9, precision, scale, nullable=True, held_as=held_as)


@pytest.mark.parametrize(
    ("name", "method", "kind", "before", "others", "found"),
    [
        pytest.param("B", "RANGE", "NUMBER", {"A": "-5", "C": "20", "B": "10"}, (), {"low": "-5", "high": "10"}, id="a-range-in-any-order"),
        pytest.param("A", "RANGE", "NUMBER", {"A": "-5", "B": "MAXVALUE"}, (), {"high": "-5"}, id="the-first-range"),
        pytest.param("B", "RANGE", "NUMBER", {"A": "9", "B": "MAXVALUE"}, (), {"low": "9", "has_null": True}, id="the-last-range"),
        pytest.param(
            "C", "RANGE", "DATE", {"A": DAY.format(1), "C": DAY.format(5)}, [DAY.format(1), DAY.format(3)],
            {"low": "2026-03-03 00:00:00", "high": "2026-03-05 00:00:00"}, id="an-interval-that-came-in-between",
        ),
        pytest.param(
            "B", "RANGE", "TIMESTAMP(6)", {"A": "TIMESTAMP' 2026-03-01 00:00:00'", "B": "TIMESTAMP' 2026-03-01 00:00:00.5'"}, (),
            {"low": "2026-03-01 00:00:00", "high": "2026-03-01 00:00:00.5"}, id="moments",
        ),
        pytest.param("A", "LIST", "VARCHAR2", {"A": "'x', 'it''s', NULL", "B": "DEFAULT"}, (), {"listed": ("x", "it's"), "has_null": True}, id="a-list"),
        pytest.param(
            "D", "LIST", "VARCHAR2", {"A": "'x', 'y'", "D": "DEFAULT"}, ["'x', 'y'", "DEFAULT", "'z'"],
            {"unlisted": ("x", "y", "z"), "has_null": True}, id="the-default",
        ),
        pytest.param("D", "LIST", "NUMBER", {"A": "1, NULL", "D": "DEFAULT"}, (), {"unlisted": ("1",)}, id="the-default-without-null"),
    ],
)  # fmt: skip
def test_bounds_say_which_rows_a_partition_has(
    name: str, method: str, kind: str, before: dict[str, str | None], others: list[str], found: dict[str, object]
) -> None:  # fmt: skip
    wanted = PartitionRows(partition=name, column="K", **found)  # type: ignore[arg-type]
    assert rows_of_partition(name, method, column(kind), before, others) == wanted
    assert from_json(PartitionRows, as_json(wanted)) == wanted


@pytest.mark.parametrize(
    ("method", "kind", "before"),
    [
        pytest.param("HASH", column("NUMBER"), {"A": None}, id="hash"),
        pytest.param("REFERENCE", column("NUMBER"), {"A": None}, id="reference"),
        pytest.param("RANGE", column("NUMBER"), {"B": "10"}, id="no-such-partition"),
        pytest.param("RANGE", column("NUMBER"), {"A": "10, 20"}, id="two-columns"),
        pytest.param("LIST", column("NUMBER"), {"A": "( 1, 2 ), ( 3, 4 )"}, id="lists-of-two-columns"),
        pytest.param("RANGE", column("NUMBER"), {"A": "10", "B": "TO_NUMBER('20')"}, id="an-expression"),
        pytest.param("RANGE", column("NUMBER"), {"A": "10.5"}, id="a-bound-that-the-column-cannot-have"),
        pytest.param("RANGE", column("NUMBER"), {"A": "'10'"}, id="a-bound-of-another-kind"),
        pytest.param("LIST", column("VARCHAR2"), {"A": "''"}, id="an-empty-text"),
        pytest.param("LIST", column("VARCHAR2"), {"A": "'a' 'b'"}, id="no-comma"),
        pytest.param("RANGE", column("DATE"), {"A": "TO_DATE('01-03-26', 'DD-MM-YY')"}, id="a-date-of-another-form"),
        pytest.param("RANGE", column("DATE"), {"A": DAY.replace("2026", "-4712").format(1)}, id="before-christ"),
        pytest.param("RANGE", column("VARCHAR2"), {"A": "'m'"}, id="a-range-of-texts"),
        pytest.param("RANGE", column("NUMBER", None, None), {"A": "10"}, id="held-as-text"),
        pytest.param("RANGE", column("NUMBER", held_as="double"), {"A": "10"}, id="held-as-double"),
        pytest.param("LIST", column("CHAR"), {"A": "'x'"}, id="padded"),
        pytest.param("LIST", column("NVARCHAR2"), {"A": "'x'"}, id="national"),
        pytest.param("RANGE", column("TIMESTAMP(9)"), {"A": "TIMESTAMP' 2026-03-01 00:00:00'"}, id="nanoseconds"),
    ],
)  # fmt: skip
def test_what_they_do_not_say_is_refused(
    method: str, kind: Column, before: dict[str, str | None]
) -> None:
    with pytest.raises(SchemaMismatchError):
        rows_of_partition("A", method, kind, before)


def test_moments_finer_than_the_lake_are_no_bounds() -> None:
    with pytest.raises(ValueError, match=r"\.0000001"):
        bound_value("2026-03-01 00:00:00.0000001", pa.timestamp("us"))


@pytest.mark.parametrize(
    ("ddl", "names"),
    [
        pytest.param("ALTER TABLE S.T DROP PARTITION P1;", ("P1",), id="drop"),
        pytest.param('alter table "s"."T" truncate partition "p 1"', ("p 1",), id="quoted"),
        pytest.param("ALTER TABLE T DROP PARTITIONS A, B UPDATE GLOBAL INDEXES PARALLEL 4", ("A", "B"), id="several"),
        pytest.param("ALTER TABLE T TRUNCATE PARTITION A DROP ALL STORAGE UPDATE INDEXES (I (PARTITION A)) CASCADE", ("A",), id="with-clauses"),
        pytest.param("ALTER TABLE T DROP PARTITION FOR (-10), B", ("-10", "B"), id="by-a-value"),
        pytest.param("ALTER TABLE T DROP PARTITION FOR (TO_DATE('2026','YYYY')) UPDATE INDEXES", ("TO_DATE(2026,YYYY)",), id="by-a-date"),
        pytest.param("ALTER TABLE T TRUNCATE SUBPARTITION A", ("sub", "A"), id="a-subpartition"),
        pytest.param("ALTER TABLE T DROP SUBPARTITIONS FOR (F(1, 2), 'a')", ("sub", "F(1,2)", "a"), id="subpartitions-by-values"),
        pytest.param("ALTER TABLE T DROP PARTITION FOR, B", ("FOR", "B"), id="a-partition-of-that-name"),
        pytest.param("ALTER TABLE T DROP PARTITION FOR (10", (), id="without-an-end"),
        pytest.param("ALTER TABLE T EXCHANGE PARTITION A WITH TABLE X", (), id="exchange"),
        pytest.param("ALTER TABLE T DROP PARTITION A, DROP PARTITION B", (), id="two-clauses"),
        pytest.param("ALTER TABLE T DROP COLUMN PARTITION", (), id="a-column"),
        pytest.param("ALTER INDEX I DROP PARTITION A", (), id="of-an-index"),
        pytest.param("TRUNCATE TABLE T", (), id="a-table"),
    ],
)  # fmt: skip
def test_the_partitions_that_a_statement_empties_are_those_that_it_names(
    ddl: str, names: tuple[str, ...]
) -> None:
    found = emptied_partitions(ddl)
    chosen = [] if found is None else ["sub"] * found.is_sub
    for one in () if found is None else found.chosen:
        values = [one] if isinstance(one, str) else ["".join(t.text for t in each) for each in one]
        chosen += values
    assert tuple(chosen) == names


@pytest.mark.parametrize(
    ("ddl", "chosen"),
    [
        pytest.param("alter table s.t exchange partition p1 with table x.t1;", "P1", id="plain"),
        pytest.param(
            'ALTER TABLE t EXCHANGE PARTITION "p" WITH TABLE t1 INCLUDING INDEXES WITHOUT VALIDATION UPDATE GLOBAL INDEXES PARALLEL 4', "p", id="with-all",
        ),
        pytest.param("alter table t exchange partition for (date '2026-03-01') with table t1", "for", id="for-a-value"),
        pytest.param("alter table t exchange subpartition s with table t1 cascade", "sub S", id="subpartition"),
        pytest.param("alter table t exchange partition p1 with table t1, drop partition p2", None, id="more"),
        pytest.param("alter table t exchange partition p1 with table t1 exceptions into bad", None, id="unknown-words"),
        pytest.param("alter table t exchange partition p1", None, id="with-nothing"),
        pytest.param("alter table t exchange partition", None, id="of-nothing"),
        pytest.param("alter table t truncate partition p1", None, id="another-statement"),
        pytest.param("exchange partition p1 with table t1", None, id="no-alter"),
        pytest.param("", None, id="empty"),
    ],
)  # fmt: skip
def test_the_partition_of_an_exchange_is_read(ddl: str, chosen: str | None) -> None:
    found = exchanged_partition(ddl)
    if found is None:
        assert chosen is None
        return
    [one] = found.chosen
    assert ("sub " if found.is_sub else "") + (one if isinstance(one, str) else "for") == chosen
    assert emptied_partitions(ddl) is None


NUMBERS = {"A": "-5", "C": "20", "B": "10"}
DAYS = {"A": DAY.format(1), "B": DAY.format(5), "C": "MAXVALUE"}
TEXTS = {"A": "'x', NULL", "B": "'y'", "C": "DEFAULT"}


@pytest.mark.parametrize(
    ("value", "method", "kind", "before", "found"),
    [
        pytest.param("-6", "RANGE", "NUMBER", NUMBERS, "A", id="the-lowest"),
        pytest.param("-5", "RANGE", "NUMBER", NUMBERS, "B", id="a-bound-is-in-the-next"),
        pytest.param("20", "RANGE", "NUMBER", NUMBERS, None, id="above-all"),
        pytest.param("10.5", "RANGE", "NUMBER", NUMBERS, None, id="more-digits-than-the-column"),
        pytest.param("5 + 5", "RANGE", "NUMBER", NUMBERS, None, id="an-expression"),
        pytest.param("'5'", "RANGE", "NUMBER", NUMBERS, None, id="a-text-for-a-number"),
        pytest.param("DATE '2026-03-04'", "RANGE", "DATE", DAYS, "B", id="a-date"),
        pytest.param("NULL", "RANGE", "DATE", DAYS, "C", id="null-is-above-all"),
        pytest.param("to_date('20260301', 'yyyymmdd')", "RANGE", "DATE", DAYS, "B", id="a-format"),
        pytest.param("TO_DATE('28.02.2026 23:59:59', 'DD.MM.YYYY HH24:MI:SS')", "RANGE", "DATE", DAYS, "A", id="a-format-with-a-time"),
        pytest.param("TO_DATE('01-MAR-2026', 'DD-MON-YYYY')", "RANGE", "DATE", DAYS, None, id="a-month-by-its-name"),
        pytest.param("TO_DATE('03-26', 'MM-DD')", "RANGE", "DATE", DAYS, None, id="a-date-of-the-present-year"),
        pytest.param("TO_DATE('2026-03-01 BC', 'YYYY-MM-DD BC')", "RANGE", "DATE", DAYS, None, id="a-date-before-christ"),
        pytest.param("TO_DATE('2026-03-01')", "RANGE", "DATE", DAYS, None, id="a-format-of-the-session"),
        pytest.param("TIMESTAMP '2026-03-01 00:00:00.5'", "RANGE", "DATE", DAYS, None, id="a-fraction-of-a-date"),
        pytest.param("DATE '2026-13-01'", "RANGE", "DATE", DAYS, None, id="no-date"),
        pytest.param("'y'", "LIST", "VARCHAR2", TEXTS, "B", id="listed"),
        pytest.param("null", "LIST", "VARCHAR2", TEXTS, "A", id="null-is-listed"),
        pytest.param("'Y'", "LIST", "VARCHAR2", TEXTS, "C", id="not-listed"),
        pytest.param("DEFAULT", "LIST", "VARCHAR2", TEXTS, None, id="the-word-default"),
        pytest.param("'y'", "RANGE", "VARCHAR2", {"A": "'z'"}, None, id="ranges-of-texts"),
        pytest.param("1", "HASH", "NUMBER", {"A": "1"}, None, id="hash"),
    ],
)  # fmt: skip
def test_a_value_names_the_partition_that_takes_it(
    value: str, method: str, kind: str, before: dict[str, str], found: str | None
) -> None:
    tokens = list(tokens_of(value))
    if found is not None:
        assert partition_of_value(tokens, method, column(kind), before) == found
        return
    with pytest.raises(SchemaMismatchError):
        partition_of_value(tokens, method, column(kind), before)

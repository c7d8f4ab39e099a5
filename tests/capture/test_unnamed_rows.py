"""Whose are rows without a name, and what becomes of those that nobody knows?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cdc_core.capture.logs.shown_names import read_shown_names
from cdc_core.capture.passes.mining import mined_batches
from cdc_core.capture.passes.reading_position import Reading
from cdc_core.capture.passes.rows import RowReader, landing_rows
from cdc_core.capture.passes.unnamed_rows import KnownSegments, SeenRows, note_rows
from cdc_core.capture.passes.wanted_rows import WantedRows
from cdc_core.errors import OracleUnavailableError, PreflightError, SnapshotTooOldError
from cdc_core.model.identifiers import TableId
from cdc_core.model.json_form import as_json, from_json
from cdc_core.model.operations import Operation
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.schema.dictionary_queries import LIST_MAX, in_lists
from cdc_core.schema.segments import knowing, read_segments
from cdc_core.schema.table import TableSchema
from tests.capture.test_rows import DEPT, EMP, batch, row
from tests.oracle.fake_session import FakeSession, times_of

WINDOW = ScnWindow(Scn(100), Scn(200))
NO_RIGHT = PreflightError("the view cannot be read", ora="ORA-00942")
NO_UNDO = SnapshotTooOldError("no undo", ora="ORA-01555")
SEGMENTED = knowing(EMP, [601, 602])
NONE: Mapping[str, Any] = {}


class Objects(FakeSession):
    """A dictionary: at each SCN, and now (None), the objects by number with type, name and their table's number."""

    def __init__(
        self,
        now: Mapping[int, tuple[str, str, int | None]] = NONE,  # type: ignore[assignment]
        then: Mapping[int, Mapping[int, tuple[str, str, int | None]] | Exception] = NONE,  # type: ignore[assignment]
        *,
        sees_all: bool = True,
        unaltered: list[int] | Exception | None = None,
    ) -> None:
        super().__init__()
        self.now, self.then = now, then
        self.sees_all, self.unaltered = sees_all, unaltered

    def fetch_all(self, sql: str, binds: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        self.sent.append((sql, dict(binds or {})))
        if "DBA_OBJECTS" in sql and not self.sees_all:
            raise NO_RIGHT
        if "SCN_TO_TIMESTAMP" in sql:
            if isinstance(self.unaltered, Exception):
                raise self.unaltered
            return times_of(binds or {})
        if "LAST_DDL_TIME" in sql:
            assert not isinstance(self.unaltered, Exception)
            return [(number,) for number in self.unaltered or []]
        found = self.now if "AS OF SCN" not in sql else self.then[(binds or {})["scn"]]
        if isinstance(found, Exception):
            raise found
        asked = sql.split("P.OBJECT_ID IN (")[1].split(")")[0].split(", ")
        return [(number, *facts) for number, facts in found.items() if str(number) in asked]


def seen(**more: Any) -> dict[int, SeenRows]:
    return {int(name[1:]): one for name, one in more.items()}


def test_a_number_that_is_a_segment_of_the_table_now_is_learned() -> None:
    known = KnownSegments([SEGMENTED, DEPT])
    session = Objects({700: ("TABLE PARTITION", "EMP", 501), 701: ("TABLE", "X", 9)})
    rows = seen(n700=SeenRows(150, 160, 2), n701=SeenRows(150, 150, 1))
    assert known.resolve(session, rows) == (True, {})
    assert known.of(EMP.table) == (601, 602, 700)
    assert known.of(DEPT.table) == ()


def test_a_number_is_looked_up_as_of_its_last_row() -> None:
    """What other numbers had been then is told by the same question."""
    known = KnownSegments([SEGMENTED])
    session = Objects(
        {},
        {
            160: {700: ("TABLE SUBPARTITION", "EMP", 501), 702: ("TABLE PARTITION", "OTHER", 8)},
            170: {},
        },
    )
    rows = seen(n700=SeenRows(150, 160, 2), n701=SeenRows(155, 170, 1), n702=SeenRows(120, 180, 1))
    assert known.resolve(session, rows) == (True, {})
    assert [binds.get("scn") for _, binds in session.sent] == [None, 160, 170]
    assert known.of(EMP.table) == (601, 602, 700)


@pytest.mark.parametrize(
    ("name", "learned", "left"),
    [
        pytest.param("SYS_IOT_TOP_501", True, [], id="named-by-its-table"),
        pytest.param("SYS_IOT_TOP_9", False, [], id="another-tables"),
        pytest.param("PK_EMP", False, [700], id="named-by-a-user"),
    ],
)
def test_the_name_of_a_top_index_tells_its_table(name: str, learned: bool, left: list[int]) -> None:
    known = KnownSegments([SEGMENTED])
    session = Objects({}, {160: {700: ("INDEX", name, None)}})
    told, doubtful = known.resolve(session, seen(n700=SeenRows(150, 160, 2)))
    assert (told, list(doubtful)) == (learned, left)


@pytest.mark.parametrize(
    ("session", "left"),
    [
        pytest.param(Objects({}, {160: {}}), [], id="no-object-has-it-where-all-are-shown"),
        pytest.param(Objects({}, {160: {}}, sees_all=False), [700], id="only-some-objects-are-shown"),
        pytest.param(Objects({}, {160: NO_UNDO}), [700], id="no-undo"),
        pytest.param(Objects({}, {160: NO_RIGHT}), [700], id="no-right-to-look-back"),
    ],
)  # fmt: skip
def test_what_oracle_does_not_show_is_doubtful_unless_it_shows_all(
    session: Objects, left: list[int]
) -> None:
    told, doubtful = KnownSegments([SEGMENTED]).resolve(session, seen(n700=SeenRows(150, 160, 2)))
    assert (told, list(doubtful)) == (False, left)


def test_a_lost_session_is_not_taken_for_an_answer() -> None:
    session = Objects({}, {160: OracleUnavailableError("gone", ora="DPY-4011")})
    with pytest.raises(OracleUnavailableError):
        KnownSegments([SEGMENTED]).resolve(session, seen(n700=SeenRows(150, 160, 2)))


@pytest.mark.parametrize(
    ("unaltered", "ends"),
    [
        pytest.param([501], [], id="not-altered-since"),
        pytest.param([], ["HR.EMP"], id="altered-since-or-gone"),
        pytest.param(NO_UNDO, ["HR.EMP"], id="no-time-known"),
    ],
)
def test_doubtful_rows_stop_the_tables_that_may_have_lost_them(
    unaltered: list[int] | Exception, ends: list[str]
) -> None:
    known = KnownSegments([SEGMENTED, DEPT])
    doubtful = seen(n700=SeenRows(150, 160, 2), n701=SeenRows(170, 170, 1))
    found = known.doubtful(Objects(unaltered=unaltered), doubtful, WINDOW)
    assert [(str(end.table), end.scn, end.trouble) for end in found] == [
        (name, 149, "unsupported_ddl") for name in ends
    ]


def test_a_table_never_leaves_before_its_window() -> None:
    [end] = KnownSegments([SEGMENTED]).doubtful(Objects(), seen(n700=SeenRows(90, 95, 1)), WINDOW)
    assert end.scn == 100


def test_rows_without_doubt_ask_nothing() -> None:
    session = Objects()
    known = KnownSegments([SEGMENTED])
    assert known.resolve(session, {}) == (False, {})
    assert known.doubtful(session, {}, WINDOW) == []
    assert len(session.sent) <= 1


def test_a_table_whose_segments_one_may_not_see_is_watched_and_may_lose_rows() -> None:
    known = KnownSegments([EMP, DEPT])
    assert not known.is_watching
    shown: dict[str, Any] = {"P.OBJECT_NAME = T.OBJECT_NAME": [], "ALL_TABLES": [("HR", "EMP")]}
    known.look(FakeSession(shown))
    assert not known.is_watching, "all objects are shown"
    known.look(FakeSession({"DBA_OBJECTS": NO_RIGHT, **shown}))
    assert known.is_watching
    [end] = known.doubtful(Objects(), seen(n700=SeenRows(150, 160, 2)), WINDOW)
    assert end.table == EMP.table


@pytest.mark.parametrize(
    ("tables", "ddl", "again"),
    [
        pytest.param([EMP], "alter table emp modify partition by hash (id)", True, id="becomes"),
        pytest.param([EMP], "alter table emp add (x number)", False, id="other-ddl"),
        pytest.param([SEGMENTED], "alter table emp move partition p", False, id="watched"),
    ],
)
def test_the_first_partitions_of_a_table_make_its_window_read_again(
    tables: list[TableSchema], ddl: str, again: bool
) -> None:
    known = KnownSegments(tables)
    assert known.watch([ddl]) is again
    assert known.is_watching is (again or bool(tables[0].segments))


def test_segments_are_read_by_the_tables_number() -> None:
    session = FakeSession({"P.OBJECT_NAME = T.OBJECT_NAME": [(501, 601), (501, 602), (502, 700)]})
    found = {EMP.table: {601, 602}, DEPT.table: {700}}
    assert read_segments(session, [EMP, DEPT]) == (found, True)
    assert "T.OBJECT_ID IN (501, 502)" in session.sent[0][0]


def test_lists_are_as_long_as_oracle_takes_them() -> None:
    lists = list(in_lists(range(2500)))
    assert [len(one.split(", ")) for one in lists] == [LIST_MAX, LIST_MAX, 500]
    assert list(in_lists([])) == []


def test_names_and_numbers_of_many_tables_are_asked_for_in_lists() -> None:
    session: Any = FakeSession({"ALL_OBJECTS": []})
    tables = [
        replace(EMP, table=replace(EMP.table, name=f"T{n}"), object_id=n) for n in range(1, 1002)
    ]
    read_shown_names(session, tables)
    wanted = WantedRows(tables, {}, False, Reading(Scn(100), (), {}))
    list(mined_batches(session, wanted, Scn(200), rows=10))
    (shown, _), (mined, _) = session.sent
    for sql, name, number in (
        (shown, "OBJECT_NAME", "OBJECT_ID"),
        (mined, "TABLE_NAME", "DATA_OBJ#"),
    ):
        assert sql.count(f"{name} IN (") == sql.count(f"{number} IN (") == 2
        lists = re.findall(r"IN \(([^()]*)\)", sql)
        assert max(len(one.split(", ")) for one in lists) == LIST_MAX


@pytest.mark.parametrize(("unnamed", "asked"), [(True, True), (False, False)])
def test_numbers_and_rows_without_a_name_are_asked_for(unnamed: bool, asked: bool) -> None:
    many = knowing(EMP, range(10_000, 11_500))
    session: Any = FakeSession()
    wanted = WantedRows([many, DEPT], {}, unnamed, Reading(Scn(100), (), {}))
    list(mined_batches(session, wanted, Scn(200), rows=10))
    [(sql, _)] = session.sent
    assert sql.count("DATA_OBJ# IN (") == 2
    assert "11499" in sql
    assert ("TABLE_NAME IS NULL" in sql) is asked


def test_rows_of_a_segment_that_is_gone_land_under_the_tables_name() -> None:
    reader = RowReader(0, [SEGMENTED, DEPT], Reading(0, (), {}))
    text = 'insert into "UNKNOWN"."OBJ# {}"("COL 1") values (HEXTORAW(\'c102\'));'
    rows = [
        row(1, seg_owner=None, table_name=None, data_obj=601, sql_redo=text.format(601)),
        row(1, seg_owner="UNKNOWN", table_name="OBJ# 602", data_obj=602, sql_redo=text.format(602)),
        row(1, seg_owner=None, table_name=None, data_obj=700, scn=150),
        row(1, seg_owner="UNKNOWN", table_name="OBJ# 700", data_obj=700, scn=160),
        row(1, seg_owner="HR", table_name="SWAPPED", data_obj=601),
        row(255, seg_owner=None, table_name=None, data_obj=0),
        row(Operation.DDL, seg_owner=None, table_name=None, data_obj=800),
        row(Operation.START, seg_owner=None, table_name=None, data_obj=900),
    ]
    [taken] = reader.read(iter([batch(*rows)]))
    assert taken.tables.tolist() == [-1, 0, 0, -1, -1, -1, -1, -1], "a START stands before its rows"
    assert reader.unnamed == {700: SeenRows(150, 160, 2)}
    found = landing_rows(taken, [SEGMENTED, DEPT])
    assert found is not None
    assert (
        found.column("sql_redo").to_pylist()
        == ['insert into "HR"."EMP"("COL 1") values (HEXTORAW(\'c102\'));'] * 2
    )
    assert found.column("table_name").to_pylist() == ["EMP", "EMP"]


def test_rows_are_added_to_what_was_seen() -> None:
    found: dict[int, SeenRows] = {}
    note_rows(found, np.array([7, 0, 7, 8]), np.array([5, 1, 3, 9]))
    note_rows(found, np.array([7]), np.array([11]))
    assert found == {7: SeenRows(3, 11, 3), 8: SeenRows(9, 9, 1)}


def test_segments_are_kept_with_the_definition_and_are_no_part_of_it() -> None:
    assert from_json(TableSchema, as_json(SEGMENTED)).segments == (601, 602)
    assert replace(SEGMENTED, segments=()) == SEGMENTED
    assert knowing(SEGMENTED, [601]) is SEGMENTED
    assert TableId("HR", "EMP") == SEGMENTED.table

"""LOBs of which the redo carries a part are read from Oracle as of their commit, land once, and need no Oracle afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import oracledb
import pyarrow.parquet as pq
import pytest

from cdc_core.errors import SnapshotTooOldError
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import ScnWindow
from cdc_core.oracle.session import settings_block
from cdc_core.snapshot.present_names import present_names
from cdc_core.snapshot.read import exact_rows_by_scn
from cdc_core.steps.windows import past_rows, reselecting
from oracle_embedded.database import ADMIN
from oracle_embedded.faults import Fault, FaultKind
from oracle_embedded.redo import DEFAULT_WARTS, LobRows
from tests.oracle.embedded import Oracle, running_oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, source_of, table_id

_TABLE = "CREATE TABLE DOCS (ID NUMBER(9) PRIMARY KEY, N NUMBER(9), C CLOB, NC NCLOB, B BLOB)"
_OLD = "plain at its beginning, " + "🔥 it's " * 900
ASKED = '"DOCS" AS OF SCN :p'
RESELECT = {"capture": {"close_at": "online", "lobs": "reselect"}}


@pytest.fixture(params=list(LobRows), ids=lambda shape: shape.value)
def oracle(request: pytest.FixtureRequest) -> Iterator[Oracle]:
    with running_oracle(_TABLE, _add_eight, warts=DEFAULT_WARTS, lob_rows=request.param) as running:
        yield running


def _add_eight(oracle: Oracle) -> None:
    _add_rows(oracle, range(1, 9))


def _add_two(oracle: Oracle) -> None:
    _add_rows(oracle, (1, 2))


def _add_rows(oracle: Oracle, keys: Iterable[int]) -> None:
    with oracle.owner() as connection:
        for key in keys:
            _insert(connection.cursor(), key)
        connection.commit()


def _insert(cursor: Any, key: int) -> None:
    kinds = (None, oracledb.DB_TYPE_CLOB, oracledb.DB_TYPE_NCLOB, oracledb.DB_TYPE_BLOB)
    cursor.setinputsizes(*kinds)
    row = (key, _OLD, "n" * 3000, bytes(range(256)) * 40)
    cursor.execute("INSERT INTO DOCS VALUES (:1, 0, :2, :3, :4)", row)


def call(cursor: Any, key: int, column: str, name: str, *arguments: Any) -> None:
    """A call of the LOB of a row, through its locator."""
    cursor.execute(f"SELECT {column} FROM DOCS WHERE ID = :1 FOR UPDATE", [key])
    (lob,) = cursor.fetchone()
    getattr(lob, name)(*arguments)


def changes_of(source: Source, key: int) -> list[tuple[Any, ...]]:
    """Operation, what C is afterwards (None where the change does not carry it), and whether it is carried."""
    found = []
    for one in source.lake.tables[table_id("DOCS")].changes:
        image = one["after"] or one["before"]
        if image["ID"] == key and one["_cdc_op"] != "r":
            value = None if one["after"] is None else one["after"]["C"]
            found.append((one["_cdc_op"], value, "C" not in one["_cdc_absent"]))
    return found


def test_parts_of_lobs_become_the_values_of_their_commit(oracle: Oracle, tmp_path: Path) -> None:
    """Each change is exact, or says that it does not carry the LOB; what came later is never taken for it."""
    with source_of(oracle, tmp_path, "DOCS", **RESELECT) as source:
        source.begin()
        with oracle.owner() as connection:
            cursor = connection.cursor()
            call(cursor, 1, "C", "write", "NEW", 5)
            call(cursor, 1, "B", "write", b"\xff\xfe", 9000)
            call(cursor, 2, "C", "trim", 7)
            call(cursor, 3, "C", "write", "first", 1)
            cursor.execute("UPDATE DOCS SET N = 1 WHERE ID = 3")
            call(cursor, 3, "C", "write", "second", 3)
            call(cursor, 4, "C", "write", "gone", 2)
            cursor.execute("DELETE FROM DOCS WHERE ID = 4")
            call(cursor, 5, "C", "write", "before", 2)
            cursor.execute("UPDATE DOCS SET C = 'then a literal' WHERE ID = 5")
            source.windows()  # of an open transaction
            call(cursor, 6, "NC", "write", "🔥", 4000)
            connection.commit()
            # All of these come after the commit, and before its window is captured.
            call(cursor, 1, "C", "write", "LATER", 2)
            connection.commit()
            cursor.execute("UPDATE DOCS SET ID = 22 WHERE ID = 2")
            cursor.execute("DELETE FROM DOCS WHERE ID = 6")
            connection.commit()
        source.windows()
        source.check_current("DOCS")
        assert source.record("DOCS").state == "ready"
        new = f"{_OLD[:4]}NEW{_OLD[7:]}"
        assert (
            changes_of(source, 1)
            == [
                ("u", new, True),
                ("u", None, False),  # of B
                ("u", f"{new[:1]}LATER{new[6:]}", True),
            ]
        )
        assert changes_of(source, 2)[0] == ("u", _OLD[:7], True)
        assert changes_of(source, 3) == [
            ("u", None, False),
            ("u", None, False),
            ("u", f"{'first' + _OLD[5:]}"[:2] + "second" + _OLD[8:], True),
        ]
        assert changes_of(source, 4) == [("u", None, False), ("d", None, False)]
        assert changes_of(source, 5) == [("u", None, False), ("u", "then a literal", True)]


def _part(cursor: Any) -> None:
    call(cursor, 1, "C", "write", "part", 2)


def _moved(cursor: Any) -> None:
    _part(cursor)
    cursor.execute("UPDATE DOCS SET ID = 100 WHERE ID = 1")


def _replaced(cursor: Any) -> None:
    """The row with the key at the commit is another one."""
    _moved(cursor)
    cursor.execute("UPDATE DOCS SET ID = 1 WHERE ID = 2")


one_shape = oracle_with(_TABLE, _add_two)


def _committed(oracle: Oracle, change: Callable[[Any], None]) -> None:
    with oracle.owner() as connection:
        change(connection.cursor())
        connection.commit()


def _folder(source: Source, window: ScnWindow) -> Path:
    return source.path / "landing" / "src" / "windows" / window.folder


def test_without_the_option_a_part_stops_its_table_and_says_what_helps(
    one_shape: Oracle, tmp_path: Path
) -> None:
    """The window is captured again with the option, and nothing is lost."""
    with source_of(one_shape, tmp_path, "DOCS") as source:
        source.begin()
        _committed(one_shape, _part)
        [window] = source.pipeline.plan_windows()
        source.pipeline.capture_window(window)
        [end] = source.pipeline.apply_window(window).stopped
        assert "a part of a LOB" in end.reason
        assert "capture.lobs: reselect" in end.way_out
        assert not (_folder(source, window) / "reselected-00001.parquet").exists()
        source.close()
        source.more = RESELECT
        list(source.pipeline.recapture(first=window))
        source.pipeline.resume_tables([table_id("DOCS")])
        source.windows()
        source.check_current("DOCS")
        assert source.record("DOCS").state == "ready"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        pytest.param(_part, 1555, id="the-undo-is-gone"),
        pytest.param(_part, 1466, id="the-table-was-altered"),
        pytest.param(_part, 942, id="the-table-is-gone"),
        pytest.param(_moved, None, id="its-row-got-another-key"),
        pytest.param(_replaced, None, id="another-row-has-its-key"),
    ],
)
def test_what_oracle_does_not_tell_stays_a_part(
    one_shape: Oracle, tmp_path: Path, change: Callable[[Any], None], code: int | None
) -> None:
    """It is never given another value; the policy decides."""
    with source_of(one_shape, tmp_path, "DOCS", **RESELECT) as source:
        source.begin()
        one_shape.clock.ahead += 60  # the DDL is not near
        _committed(one_shape, change)
        if code is not None:
            query = 'FROM "DEMO"."DOCS" AS OF SCN'
            one_shape.server.faults.arm(Fault(FaultKind.ORA_ERROR, sql_contains=query, code=code))
        source.windows()
        assert source.record("DOCS").state == "failed"
        assert "a part of a LOB" in (source.record("DOCS").reason or "")


def test_what_landed_needs_no_oracle_and_is_the_same_when_it_lands_again(
    one_shape: Oracle, tmp_path: Path
) -> None:
    """A process ends right before the manifest; Oracle is gone when the window is applied, and when it is replayed."""
    with source_of(one_shape, tmp_path, "DOCS", **RESELECT) as source:
        source.begin()
        _committed(one_shape, _part)
        [window] = source.pipeline.plan_windows()
        landing = source.pipeline.landing
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(landing, "write_manifest", _killed)
            with pytest.raises(_Killed):
                source.pipeline.capture_window(window)
        file = _folder(source, window) / "reselected-00001.parquet"
        landed = file.read_bytes()
        _committed(one_shape, lambda cursor: call(cursor, 1, "C", "write", "later", 2))
        source.pipeline.capture_window(window)
        assert file.read_bytes() == landed
        wanted = source.oracle_rows("DOCS", window.scn_high)
        one_shape.server.stop()
        source.pipeline.apply_window(window)
        assert source.lake.image(table_id("DOCS"), of_oracle=True) == wanted
        source.pipeline.replay_window(window)
        assert source.lake.image(table_id("DOCS"), of_oracle=True) == wanted


class _Killed(BaseException):
    """The process ends here."""


def _killed(*_arguments: Any) -> None:
    raise _Killed


def test_a_lob_that_is_left_out_is_not_read_and_oracle_is_only_read(
    one_shape: Oracle, tmp_path: Path
) -> None:
    with source_of(one_shape, tmp_path, **RESELECT) as source:
        source.configure({"name": "DOCS", "columns_exclude": ["C"]})
        sent = source.asked()
        source.run()
        _committed(one_shape, _part)
        _committed(one_shape, lambda cursor: call(cursor, 2, "B", "trim", 5000))
        sent.clear()
        source.windows()
        source.check_current("DOCS")
    [asked] = [sql for sql in sent if ASKED in sql]
    assert asked.count(ASKED) == 1  # the other commit changed C alone
    assert '"B"' in asked
    assert all('"C"' not in sql for sql in sent)
    allowed = ("SELECT", "WITH", "ALTER SESSION", settings_block(), "BEGIN SYS.DBMS_LOGMNR")
    assert all(sql.strip().startswith(allowed) for sql in sent)


def _many(oracle: Oracle) -> list[str]:
    """Each commit changes one of two rows, the last one both; what the first row has after each that changes it."""
    found, value = [], _OLD
    for at in range(12):
        with oracle.owner() as connection:
            cursor = connection.cursor()
            call(cursor, 1 + at % 2, "C", "write", f"<{at:02d}>", 5)
            if at == 11:
                call(cursor, 1, "C", "trim", 20)
            connection.commit()
        if at % 2 == 0:
            value = f"{value[:4]}<{at:02d}>{value[8:]}"
            found.append(value)
    return [*found, value[:20]]


@pytest.mark.parametrize("fails", [0, 1, 3], ids=["", "at-its-first-fetch", "in-its-middle"])
def test_values_of_many_commits_come_with_few_statements(
    one_shape: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: int
) -> None:
    """Each row has the value of its own commit. What a statement gave before it failed is not asked for again, and lands once."""
    monkeypatch.setattr(past_rows, "COMMITS_AT_ONCE", 8)
    monkeypatch.setattr(reselecting, "VALUES_AT_ONCE", 2)
    with source_of(one_shape, tmp_path, "DOCS", **RESELECT) as source:
        sent = source.asked()
        source.run()
        wanted = _many(one_shape)
        if fails:
            one_shape.server.faults.arm(
                Fault(FaultKind.ORA_ERROR, sql_contains=ASKED, nth=fails, code=1555)
            )
        [window] = source.windows()
        source.check_current("DOCS")
        assert changes_of(source, 1) == [("u", value, True) for value in wanted]
        statements = [sql.count(ASKED) for sql in sent if ASKED in sql]
        assert statements[:1] == [8]
        assert statements[1:] == {0: [4], 1: [4, 4, 4], 3: [2, 2, 4]}[fails]
        landed = pq.read_table(_folder(source, window) / "reselected-00001.parquet")
        assert landed.num_rows == 13


def test_a_commit_that_oracle_does_not_tell_leaves_the_others(
    one_shape: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is found by halves, however many were asked for at once."""
    gone: list[int] = []

    def told(session: Any, schema: Any, parts: Any, options: Any) -> Any:
        gone.append(gone[0] if gone else min(scn for scn, _ in parts))
        if gone[0] in [scn for scn, _ in parts]:
            raise SnapshotTooOldError("no undo", hint="none", ora="ORA-01555")
        return exact_rows_by_scn(session, schema, parts, options)

    monkeypatch.setattr(reselecting, "exact_rows_by_scn", told)
    with source_of(one_shape, tmp_path, "DOCS", **RESELECT) as source:
        source.run()
        _many(one_shape)
        [window] = source.windows()
        assert "a part of a LOB" in (source.record("DOCS").reason or "")
        landed = pq.read_table(_folder(source, window) / "reselected-00001.parquet")
        assert landed.num_rows == 12  # of 13 changes
        assert len(gone) == 9  # 12 commits by halves: 12, 6, 3, 2, 1, and the other half of each


SWAP = ("C", "SWAPPED"), ("NC", "C"), ("SWAPPED", "NC")


def _renamed(oracle: Oracle, *names: tuple[str, str]) -> None:
    oracle.run(*(f"ALTER TABLE DOCS RENAME COLUMN {old} TO {new}" for old, new in names))


@pytest.mark.parametrize(
    "names", [[("C", "TEXT")], [("ID", "NUM")], SWAP], ids=["the-lob", "the-key", "swapped"]
)
def test_columns_with_other_names_since_have_their_own_values(
    one_shape: Oracle, tmp_path: Path, names: Sequence[tuple[str, str]]
) -> None:
    """They get them behind the window, and before it is captured."""
    with source_of(one_shape, tmp_path, "DOCS", **RESELECT) as source:
        source.begin()
        _committed(one_shape, _part)
        [window] = source.pipeline.plan_windows()
        _renamed(one_shape, *names)
        source.pipeline.capture_window(window)
        source.pipeline.apply_window(window)
        assert source.record("DOCS").reason is None
        assert changes_of(source, 1) == [("u", f"{_OLD[:1]}part{_OLD[5:]}", True)]


def test_columns_with_other_names_in_the_window_have_their_own_values(
    one_shape: Oracle, tmp_path: Path
) -> None:
    with source_of(one_shape, tmp_path, "DOCS", **RESELECT) as source:
        source.begin()
        _committed(one_shape, _part)
        _renamed(one_shape, ("C", "TEXT"), ("ID", "NUM"))
        with one_shape.owner() as connection:
            cursor = connection.cursor()
            cursor.execute("SELECT TEXT FROM DOCS WHERE NUM = 2 FOR UPDATE")
            cursor.fetchone()[0].write("more", 3)
            connection.commit()
        source.run()
        assert source.record("DOCS").reason is None
        source.check_current("DOCS")


@pytest.mark.parametrize("times", [1, 3])
def test_names_that_change_while_oracle_is_asked_have_it_asked_again(
    one_shape: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """A query may have been compiled before or behind the DDL. If they change each time, the change stays a part of a value."""
    calls = []

    def names(session: Any, table: TableId) -> tuple[str, ...]:
        calls.append(table)
        found = present_names(session, table)
        if len(calls) in range(1, 2 * times, 2):
            _renamed(one_shape, *SWAP)
        return found

    with source_of(one_shape, tmp_path, "DOCS", **RESELECT) as source:
        source.begin()
        _committed(one_shape, _part)
        [window] = source.pipeline.plan_windows()
        monkeypatch.setattr("cdc_core.snapshot.present_names.present_names", names)
        source.pipeline.capture_window(window)
        source.pipeline.apply_window(window)
        if times == 1:
            assert changes_of(source, 1) == [("u", f"{_OLD[:1]}part{_OLD[5:]}", True)]
        else:
            assert "a part of a LOB" in (source.record("DOCS").reason or "")
        assert len(calls) == 2 * min(times + 1, 3)


def test_keys_of_several_types_find_their_rows(one_shape: Oracle, tmp_path: Path) -> None:
    one_shape.run(
        "CREATE TABLE KEYED (A CHAR(5), D DATE, T TIMESTAMP(9), R RAW(4), X NUMBER, C CLOB,"
        " PRIMARY KEY (A, D, T, R, X))",
        *(
            f"INSERT INTO KEYED VALUES ('it''s', DATE '2026-03-15' + {at}, TIMESTAMP '2026-01-01 00:00:00.123456789',"
            f" HEXTORAW('00FF'), 1E-20 + {at}, 'old {at}')"
            for at in range(3)
        ),
    )
    with source_of(one_shape, tmp_path, **RESELECT) as source:
        source.configure("KEYED")
        source.begin()

        def change(cursor: Any) -> None:
            cursor.execute("SELECT C FROM KEYED ORDER BY D FOR UPDATE")
            for (lob,) in cursor.fetchall()[1:]:
                lob.write("new", 6)

        _committed(one_shape, change)
        source.windows()
        found = source.lake.image(table_id("KEYED"))
        assert [row[-1] for row in found] == ["old 0", "old 1new", "old 2new"]
        assert source.record("KEYED").state == "ready"


def test_a_policy_that_hides_values_gives_none(one_shape: Oracle, tmp_path: Path) -> None:
    """The policy came after the table was read; what it shows is not taken for the value."""
    with source_of(one_shape, tmp_path, "DOCS", **RESELECT) as source:
        source.begin()
        _committed(one_shape, _part)
        one_shape.run(
            "BEGIN DBMS_REDACT.ADD_POLICY(object_schema => 'DEMO', object_name => 'DOCS', policy_name => 'HIDE', column_name => 'C',"
            " function_type => DBMS_REDACT.FULL, expression => '1=1'); END;",
            user=ADMIN,
        )
        source.windows()
        assert source.record("DOCS").state == "failed"
        assert "a part of a LOB" in (source.record("DOCS").reason or "")


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("BINARY_DOUBLE", ["0.1d", "-1e300d", "BINARY_DOUBLE_NAN", "BINARY_DOUBLE_INFINITY"]),
        ("BINARY_FLOAT", ["0.1f", "-0f", "BINARY_FLOAT_NAN", "16777217f"]),
        ("INTERVAL DAY TO SECOND", ["INTERVAL '-3 04:05:06.5' DAY TO SECOND"]),
        ("INTERVAL YEAR TO MONTH", ["INTERVAL '-2-11' YEAR TO MONTH"]),
        ("TIMESTAMP WITH LOCAL TIME ZONE", ["TIMESTAMP '2026-01-02 03:04:05.6 +02:00'"]),
    ],
)
def test_keys_by_which_no_chunk_is_cut_find_their_rows(
    tmp_path: Path, kind: str, values: list[str]
) -> None:
    """Exactly: 0.1 as a BINARY_FLOAT is not the 0.1 of a BINARY_DOUBLE, and NaN is one key."""
    with running_oracle() as oracle:
        oracle.run(f"CREATE TABLE DOCS (ID {kind} PRIMARY KEY, C CLOB)")
        with oracle.owner() as connection:
            cursor = connection.cursor()
            for value in values:
                cursor.setinputsizes(oracledb.DB_TYPE_CLOB)
                cursor.execute(f"INSERT INTO DOCS VALUES ({value}, :1)", [_OLD])
            connection.commit()
            with source_of(oracle, tmp_path, "DOCS", **RESELECT) as source:
                source.run()
                cursor.execute("SELECT C FROM DOCS FOR UPDATE")
                for at, (lob,) in enumerate(cursor.fetchall()):
                    lob.write(f"NEW{at}", 5)
                connection.commit()
                source.windows()
                record = source.record("DOCS")
                assert (record.state, record.reason) == ("ready", None)
                texts = sorted(row[1] for row in source.lake.image(table_id("DOCS")))
                assert texts == [f"{_OLD[:4]}NEW{at}{_OLD[8:]}" for at in range(len(values))]

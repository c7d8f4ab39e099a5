"""Each belief is turned in the database itself, and its probe sees that through the real driver.

``LOOK`` and ``MINE`` turn views, ``TRIED`` the redo of one scratch table each. What has no switch is in ``test_look.py``,
``test_mine.py`` and :data:`OWN_SWITCH`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from cdc_core.model.identifiers import TableId
from cdc_core.model.operations import Operation
from cdc_core.oracle.scratch import PREFIX
from cdc_core.oracle.session import connect
from diagnosis.certify.certifying import TRY_PROBES
from diagnosis.certify.look import LOOK_PROBES, look
from diagnosis.certify.mine import MINE_PROBES, MineProbe, mine
from diagnosis.certify.probes import LookProbe, Outcome, Verdict
from diagnosis.certify.trying import try_out
from oracle_embedded.database import ADMIN, CAPTURE
from oracle_embedded.engine.storage.catalog import TableDef
from oracle_embedded.faults import Fault, FaultEvent, FaultKind
from oracle_embedded.redo import LobRows
from tests.certify.test_look import NEVER_REFUTED, WITHOUT_SWITCH
from tests.certify.test_mine import SEEN_OR_NOT
from tests.certify.test_try import SCRATCH, with_scratch
from tests.certify.turned import Row, Turn, Turned, with_values
from tests.oracle.embedded import Oracle, running_oracle

TABLE = TableId("DEMO", "T")


@dataclass(frozen=True)
class Switch:
    """What makes a belief untrue: turned views, statements of the capture user's session, statements of the administrator with
    those that take them back, or a statement that is refused with a code."""

    views: dict[str, Turn] = field(default_factory=dict)
    session: Sequence[str] = ()
    database: Sequence[str] = ()
    undo: Sequence[str] = ()
    refused: tuple[str, int] | None = None


def turn(view: str, **values: Any) -> Switch:
    return Switch({view: with_values(**values)})


def rows_of(view: str, change: Turn) -> Switch:
    return Switch({view: change})


def each(change: Callable[[Row], Row]) -> Turn:
    return lambda rows: [change(row) for row in rows]


def falling() -> Turn:
    """CURRENT_SCN is lower with each look."""
    looks = iter(range(2_000_000, 0, -1_000))
    return lambda rows: [{**row, "CURRENT_SCN": next(looks)} for row in rows]


VIEW_NAMES = {
    "data_obj": "DATA_OBJ#",
    "data_objv": "DATA_OBJV#",
    "data_objd": "DATA_OBJD#",
    "container_id": "SRC_CON_ID",
}
DML = (Operation.INSERT, Operation.DELETE, Operation.UPDATE)
PARTIAL = b"\xff" * 4


def changed(row: Row, values: dict[str, Any]) -> Row:
    return {**row, **{VIEW_NAMES.get(name, name.upper()): value for name, value in values.items()}}


def is_change(row: Row) -> bool:
    return row["OPERATION_CODE"] in DML and not row["ROLLBACK"]


def each_row(**values: Any) -> Turn:
    """Every redo row of the table, and of its transactions, with other columns."""
    return lambda rows: [changed(row, values) for row in rows]


def last_row(**values: Any) -> Turn:
    """The same of its last change."""

    def turned(rows: list[Row]) -> list[Row]:
        last = [row for row in rows if is_change(row)][-1:]
        return [changed(row, values) if row in last else row for row in rows]

    return turned


def without(*codes: int, rollback: int | None = None) -> Turn:
    return lambda rows: [
        row
        for row in rows
        if row["OPERATION_CODE"] not in codes or rollback not in (None, row["ROLLBACK"])
    ]


def without_last(rows: list[Row]) -> list[Row]:
    """LogMiner loses a change."""
    lost = [row for row in rows if row["OPERATION_CODE"] in (*DML, Operation.UNSUPPORTED)][-1:]
    return [row for row in rows if row not in lost]


def behind_commit(rows: list[Row]) -> list[Row]:
    """The last change has an SCN above that of its COMMIT."""
    return last_row(scn=max(row["SCN"] for row in rows) + 1)(rows)


def with_ddl(rows: list[Row]) -> list[Row]:
    first = next(row for row in rows if is_change(row))
    return [*rows, changed(first, {"operation_code": Operation.DDL, "sql_redo": "ALTER TABLE"})]


LOOK: dict[str, Switch] = {
    "database.release": turn("PRODUCT_COMPONENT_VERSION", VERSION="12.2.0.1.0"),
    "database.container": turn("V$DATABASE", CDB="MAY"),
    "logging.words": turn("V$DATABASE", SUPPLEMENTAL_LOG_DATA_MIN="PERHAPS"),
    "logging.forced": turn("V$DATABASE", FORCE_LOGGING="NO"),
    "database.string-size": turn("V$PARAMETER", VALUE="HUGE"),
    "undo.retention": turn("V$PARAMETER", VALUE="60"),
    "flashback.dictionary": Switch(refused=("ALL_TAB_COLS AS OF SCN", 1466)),
    "flashback.fixed-view": Switch(
        database=[f'CREATE TABLE {CAPTURE}."V$LOG" (A NUMBER)'], undo=[f'DROP TABLE {CAPTURE}."V$LOG"']
    ),
    "table.types": turn("ALL_TAB_COLS", DATA_TYPE="BOOLEAN"),
    "table.name-length": turn("ALL_TAB_COLS", COLUMN_NAME="C" * 31),
    "table.hidden-columns": turn("ALL_TAB_COLS", HIDDEN_COLUMN="YES", VIRTUAL_COLUMN="YES", SEGMENT_COLUMN_ID=1),
    "table.segments": rows_of("ALL_OBJECTS", lambda rows: [*rows, *({**row, "DATA_OBJECT_ID": 7} for row in rows)]),
    "table.untranslated": Switch(
        database=[
            f"CREATE TABLE {CAPTURE}.DBA_LOGSTDBY_UNSUPPORTED_TABLE (OWNER VARCHAR2(30), TABLE_NAME VARCHAR2(30))",
            f"INSERT INTO {CAPTURE}.DBA_LOGSTDBY_UNSUPPORTED_TABLE VALUES ('DEMO', 'T')",
        ],
        undo=[f"DROP TABLE {CAPTURE}.DBA_LOGSTDBY_UNSUPPORTED_TABLE"],
    ),
    "scn.moves-forward": rows_of("V$DATABASE", falling()),
    "scn.fits-64-bits": turn("V$DATABASE", CURRENT_SCN=2**63),
    "log.one-current": turn("V$LOG", STATUS="CURRENT"),
    "log.open-end": turn("V$LOG", NEXT_CHANGE_H=1500),
    "log.chain": rows_of("V$ARCHIVED_LOG", each(lambda row: {**row, "FIRST_CHANGE#": row["FIRST_CHANGE#"] + 1})),
    "log.copies-agree": rows_of("V$ARCHIVED_LOG", each(lambda row: {**row, "FIRST_CHANGE#": row["FIRST_CHANGE#"] + 1})),
    "log.states": turn("V$LOG", STATUS="RESTING"),
    "log.archived-states": turn("V$ARCHIVED_LOG", STATUS="Z"),
    "log.archived-size": turn("V$ARCHIVED_LOG", BLOCKS=10**9),
    "log.members": rows_of("V$LOGFILE", lambda rows: []),
    "log.incarnation": turn("V$ARCHIVED_LOG", RESETLOGS_CHANGE_H=7),
    "log.switches": rows_of("V$ARCHIVED_LOG", lambda rows: rows * 200),
    "log.kept": Switch(),
    "log.destination": turn("V$ARCHIVE_DEST_STATUS", STATUS="ERROR"),
    "thread.words": turn("V$THREAD", ENABLED="SHARED"),
    "thread.last-redo": turn("V$THREAD", LAST_REDO_CHANGE_H=2**40),
    "thread.idle-redo": turn("V$THREAD", LAST_REDO_CHANGE_H=5),
    "transaction.start-below-scn": turn("V$TRANSACTION", START_SCN=2**40),
    "nls.formats": Switch(session=["ALTER SESSION SET NLS_DATE_FORMAT = 'DD-MON-RR'"]),
    "nls.binary-order": Switch(session=["ALTER SESSION SET NLS_COMP = LINGUISTIC", "ALTER SESSION SET NLS_SORT = BINARY_CI"]),
    "nls.time-zone": Switch(session=["ALTER SESSION SET TIME_ZONE = '+02:00'"]),
    "charset.database": turn("NLS_DATABASE_PARAMETERS", VALUE="XX8NOWHERE"),
    "charset.national": turn("NLS_DATABASE_PARAMETERS", VALUE="XX8NOWHERE"),
    "value.redaction": Switch(
        database=[
            "BEGIN DBMS_REDACT.ADD_POLICY(object_schema => 'DEMO', object_name => 'T', policy_name => 'P', column_name => 'V', "
            "function_type => DBMS_REDACT.FULL, expression => '1=1'); END;"
        ],
        undo=["BEGIN DBMS_REDACT.DROP_POLICY('DEMO', 'T', 'P'); END;"],
    ),
    "time.of-scn": rows_of("V$DATABASE", each(lambda row: {**row, "CURRENT_SCN": row["RESETLOGS_CHANGE#"] + 20})),
    "time.of-old-scn": Switch(refused=("SCN_TO_TIMESTAMP(1)", 1555)),
}  # fmt: skip
"""Per probe what makes its belief untrue."""


@pytest.fixture(scope="module")
def patch() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as found:
        yield found


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    """With a transaction that is open, and archived logs."""
    with running_oracle() as running:
        running.run("CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(10))")
        for _ in range(3):
            running.run("ALTER SYSTEM SWITCH LOGFILE", user=ADMIN)
        running.run("CREATE TABLE U (ID NUMBER(9) PRIMARY KEY)", "INSERT INTO U VALUES (1)")
        running.clock.ahead += 60
        with running.owner() as writing:
            writing.cursor().execute("INSERT INTO T VALUES (1, 'a')")
            yield running


@pytest.fixture(scope="module")
def turned(oracle: Oracle, patch: pytest.MonkeyPatch) -> Turned:
    return Turned(oracle, patch)


def asked(oracle: Oracle, probe: LookProbe, path: Path, session: Sequence[str] = ()) -> Outcome:
    with connect(oracle.config(path, "T").oracle) as capture:
        for statement in session:
            capture.execute_block(statement)
        [found] = look(capture, [TABLE], probes=[probe], sleep=lambda _: None)
    return found.verdict.outcome


@pytest.mark.parametrize(
    "probe", [pytest.param(one, id=one.id) for one in LOOK_PROBES if one.id in LOOK]
)
def test_look(probe: LookProbe, oracle: Oracle, turned: Turned, tmp_path: Path) -> None:
    switch = LOOK[probe.id]
    oracle.run(*switch.database, user=ADMIN)
    turned.turns = dict(switch.views)
    if switch.refused is not None:
        text, code = switch.refused
        oracle.database.faults.arm(
            Fault(FaultKind.ORA_ERROR, FaultEvent.EXECUTE, sql_contains=text, code=code)
        )
    try:
        assert asked(oracle, probe, tmp_path, switch.session) is Outcome.OTHERWISE
    finally:
        turned.turns = {}
        oracle.database.faults.disarm_all()
        oracle.run(*switch.undo, user=ADMIN)


@pytest.mark.parametrize(
    "probe", [pytest.param(one, id=one.id) for one in LOOK_PROBES if one.is_described]
)
def test_view(
    probe: LookProbe,
    oracle: Oracle,
    turned: Turned,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turned.retype(probe.id.removeprefix("view.").upper(), monkeypatch)
    assert asked(oracle, probe, tmp_path) is Outcome.OTHERWISE


def changes(**values: Any) -> Turn:
    """Every change that LogMiner shows has other columns."""
    return each(lambda row: changed(row, values) if is_change(row) else row)


MINE: dict[str, Turn] = {
    "mine.decodable": changes(sql_redo="select something else"),
    "mine.status": changes(status=2),
    "mine.supported": changes(operation_code=Operation.UNSUPPORTED),
    "mine.operations": changes(operation_code=99),
    "mine.whole": lambda rows: [changed(rows[0], {"operation_code": Operation.MISSING_SCN}), *rows],
    "mine.ends": without(Operation.START),
    "mine.addresses": changes(rs_id=" 0x000000.00000000.0000 "),
    "mine.containers": changes(container_id=None),
    "mine.row-ids": changes(row_id=None),
    "mine.behind-commit": lambda rows: rows,
}
"""Per probe what the newest redo shows. The others only say what they met, or measure (``test_mine.py``)."""


@pytest.mark.parametrize(
    "probe", [pytest.param(one, id=one.id) for one in MINE_PROBES if one.id in MINE]
)
def test_mine(probe: MineProbe, oracle: Oracle, turned: Turned, tmp_path: Path) -> None:
    turned.turns = {"V$LOGMNR_CONTENTS": MINE[probe.id]}
    config = oracle.config(tmp_path, "U")
    with connect(config.oracle) as capture:
        [found] = mine(config, capture, [probe])
    assert found.verdict.outcome is Outcome.OTHERWISE, found.verdict.seen


# -- level try: the redo of one scratch table is turned ------------------------------------------------------------------------

OTHER_TEXT = each_row(sql_redo="select something else")
OTHER_ROWID = each_row(row_id="AAARF1AAMAAAACDZZZ")
TRIED: dict[str, Turn] = {
    **{f"redo.{name}": OTHER_TEXT for name in ("insert", "update", "delete", "null", "set-null", "names")},
    **{one.id: OTHER_TEXT for one in TRY_PROBES if one.id.startswith("redo.literal-")},
    "redo.no-rowid": each_row(sql_redo="delete from \"A\".\"B\" where ROWID = 'AAA'"),
    "redo.long-statement": each_row(csf=0),
    "redo.row-id": each_row(row_id="A" * 18),
    "redo.status": last_row(status=2),
    "redo.object-number": last_row(data_obj=1),
    "redo.address": last_row(rs_id="nowhere"),
    "redo.address-order": last_row(rs_id=" 0x000001.00000001.0001 "),
    "redo.xid": last_row(xid=b"1234"),
    "redo.container": last_row(container_id=None),
    "transaction.start": without(6),
    "transaction.commit": without(7),
    "transaction.commit-scn": behind_commit,
    "transaction.user": each_row(username="UNKNOWN"),
    "transaction.key-change": without(3),
    "transaction.many-rows": last_row(operation_code=2),
    "transaction.savepoint-undo": lambda rows: rows[::-1],
    "transaction.savepoint-undo-form": each_row(sql_redo="delete from \"A\".\"B\" where \"ID\" = '1'"),
    "transaction.rollback": without(36),
    "transaction.partial-xid": each_row(xid=b"\1\0\2\0\3\0\0\0"),
    "transaction.spurious-rollback": without(36),
    "transaction.late-redo-comes": without_last,
    "transaction.late-redo-below": behind_commit,
    "transaction.start-scn": lambda rows: rows,
    "ddl.before-unnamed": each_row(sql_redo='insert into "A"."B"("ID") values (1)', status=0),
    "ddl.before-raw": each_row(sql_redo="insert into \"A\".\"B\"(\"COL 1\") values ('1')"),
    "ddl.after-named": last_row(status=2),
    "ddl.rename-column": last_row(status=2),
    "ddl.text": without(5),
    "ddl.version": each_row(data_objv=1),
    "ddl.truncate": each_row(data_objd=7),
    "ddl.move": each_row(data_objd=7),
    "ddl.dropped-table": each_row(table_name="STILL_THERE"),
    "ddl.recycle-bin": each_row(table_name="STILL_THERE"),
    "ddl.recycle-bin-text": without(5),
    "ddl.flashback-drop": last_row(data_obj=1),
    "ddl.redefinition-silent": with_ddl,
    "lob.placeholder": each_row(row_id="AAARF1AAMAAAACDAAA"),
    "lob.closing-row": without(0, 3),
    "lob.statement-undo": without(1, 2, 3, rollback=1),
    "lob.blocks": each_row(sql_redo=" buf_c := 'x'; dbms_lob.write(loc_c, 1, 1, buf_c);"),
    "lob.trim": without(11),
    "lob.offset-units": lambda rows: rows,
    "rowid.own": OTHER_ROWID,
    "rowid.migrated": OTHER_ROWID,
    "rowid.index-organized": OTHER_ROWID,
    "row.partition-numbers": last_row(data_obj=1),
    "row.long-names": each_row(operation_code=1),
    "row.boolean": each_row(operation_code=1),
    "row.json": each_row(operation_code=1),
    "row.archival": without(1),
    "row.json-rowid": each_row(row_id="A" * 18),
}  # fmt: skip
"""Per probe what LogMiner shows in place of the redo of its table. The others believe that both paths are equal: a change is lost."""


@dataclass
class TurnedRedo:
    """Turns the redo of every scratch table at once, each in its own way."""

    oracle: Oracle
    owners: dict[int, str] = field(default_factory=dict)

    def on_statement(self, sql: str) -> None:
        """Notes the number of a scratch table that has just been created."""
        if sql.startswith("ALTER TABLE") and "SUPPLEMENTAL LOG" in sql:
            name = sql.split()[2]
            table = self.oracle.database.engine.store.catalog.find(SCRATCH.schema, name)
            assert isinstance(table, TableDef)
            self.owners[table.object_id] = probe_of(name)

    def __call__(self, rows: list[Row]) -> list[Row]:
        of: dict[bytes, str] = {}
        for row in rows:
            found = self.owners.get(row["DATA_OBJ#"]) or probe_of(row["TABLE_NAME"] or "")
            if found and row["XID"] is not None:
                of[row["XID"]] = found
        kept: dict[str, list[Row]] = defaultdict(list)
        order: list[str | Row] = []
        now = ""
        for row in rows:
            partial = (row["XID"] or b"").endswith(PARTIAL)
            now = now if partial else of.get(row["XID"], "")
            if not now:
                order.append(row)
                continue
            if now not in kept:
                order.append(now)
            kept[now].append(row)
        told: list[Row] = []
        for one in order:
            told += TRIED.get(one, without_last)(kept[one]) if isinstance(one, str) else [one]
        return told


def probe_of(table: str) -> str:
    """The probe whose scratch table has this name; empty for none."""
    number = table.removeprefix(PREFIX).partition("_")[0] if table.startswith(PREFIX) else ""
    return TRY_PROBES[int(number) - 1].id if number else ""


def table_of(probe: str) -> str:
    return f"{PREFIX}{[one.id for one in TRY_PROBES].index(probe) + 1}"


def of_table(probe: str, **values: Any) -> Turn:
    """Rows of a dictionary view that are about a probe's table, with other values."""
    name = table_of(probe)
    return each(
        lambda row: (
            {**row, **values} if name in (row.get("TABLE_NAME"), row.get("OBJECT_NAME")) else row
        )
    )


REFUSED = {":behind": 1466, "ROWID_CREATE(1": 1410}
"""Statements of probes that Oracle refuses, and the codes."""
OWN_SWITCH = {
    "transaction.late-redo": "Wart.LATE_REDO, in test_try.py with the other warts",
    "lob.savepoint-large": "Wart.LOB_STATEMENTS, likewise",
    "lob.written-at": "what the redo shows of it is not decoded",
    "ddl.flashback-across": "the embedded Oracle has no rows of a column that is gone",
}
"""What is not turned here, and why."""


@pytest.fixture(scope="module")
def otherwise(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Verdict]:
    """What each probe of level try says of a database on which no belief is true."""
    with (
        pytest.MonkeyPatch.context() as patch,
        running_oracle(release="23ai", extended_strings=True, lob_rows=LobRows.PIECES) as oracle,
    ):
        with_scratch(oracle)
        oracle.run("CREATE TABLE T (ID NUMBER(9) PRIMARY KEY)")
        views, redo = Turned(oracle, patch), TurnedRedo(oracle)
        guard, time, number = (
            of_table("ddl.default-guard", HIDDEN_COLUMN="NO"),
            "ddl.time",
            "ddl.redefinition",
        )
        views.of_now = {"ALL_TAB_COLS"}
        views.turns = {
            "V$LOGMNR_CONTENTS": redo,
            "V$TRANSACTION": with_values(XID=b"12345678"),
            "ALL_TAB_COLS": guard,
            "ALL_OBJECTS": lambda rows: of_table(number, OBJECT_ID=7)(
                [
                    {**row, "LAST_DDL_TIME": row["LAST_DDL_TIME"] - timedelta(minutes=1)}
                    if row["OBJECT_NAME"] == table_of(time)
                    else row
                    for row in rows
                ]
            ),
        }
        for text, code in REFUSED.items():
            oracle.database.faults.arm(
                Fault(
                    FaultKind.ORA_ERROR, FaultEvent.EXECUTE, sql_contains=text, code=code, times=0
                )
            )
        config = oracle.config(tmp_path_factory.mktemp("turned"), "T")
        with connect(config.oracle) as session:
            found = try_out(
                config,
                session,
                SCRATCH,
                TRY_PROBES,
                sleep=lambda _: None,
                on_statement=redo.on_statement,
            )
    return {one.probe.id: one.verdict for one in found}


@pytest.mark.parametrize("name", [one.id for one in TRY_PROBES if one.id not in OWN_SWITCH])
def test_try(name: str, otherwise: dict[str, Verdict]) -> None:
    assert otherwise[name].outcome is Outcome.OTHERWISE, otherwise[name].seen


def test_every_belief_is_turned_or_said_to_have_no_switch() -> None:
    looked = {one.id for one in LOOK_PROBES if not one.is_described}
    assert looked == LOOK.keys() | WITHOUT_SWITCH.keys() | NEVER_REFUTED
    assert {one.id for one in MINE_PROBES} == MINE.keys() | SEEN_OR_NOT.keys() | {
        "mine.shown",
        "mine.speed",
    }
    assert {one.id for one in TRY_PROBES} >= TRIED.keys() | OWN_SWITCH.keys()

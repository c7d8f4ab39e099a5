"""What an error tells people to do works when it is done: the commands are typed as printed, and end in equal tables or in the next honest word."""

from __future__ import annotations

import json
import logging
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from typer.testing import CliRunner

from cdc_core import steps
from cdc_core.config import LakeConfig
from cdc_core.errors import TRACEBACKS
from cdc_core.lake.delta_lake import DeltaLake
from cdc_core.lake.lake import Lake
from cdc_core.oracle import session
from docs.tools.mentions import code_pieces, commands_in
from oracle_embedded.database import ADMIN
from oracle_embedded.faults import Fault as Fault_
from oracle_embedded.faults import FaultKind
from pipelines.cli import app
from tests.invariants.compare import compare
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, source_of, table_id
from tests.steps.memory_lake import MemoryLake
from tests.steps.test_lost_windows import FolderLake

Fault = Callable[["Desk"], None]
PASSWORD = "REDOLAKE_TEST_PASSWORD"
_FAILED = re.compile(r"^(?:Error:|\S+ has failed:) (.*?)^What to do: (.*?)(?=^\S+ has failed:|\Z)", re.DOTALL | re.MULTILINE)  # fmt: skip


@dataclass
class Desk:
    """Somebody at a terminal, who knows of Redolake what it prints."""

    source: Source
    typed: list[str] = field(default_factory=list)
    triggers: pytest.MonkeyPatch = field(default_factory=pytest.MonkeyPatch)

    @property
    def oracle(self) -> Oracle:
        return self.source.oracle

    @property
    def landing(self) -> Path:
        return self.source.path / "landing"

    def type(self, command: str) -> Any:
        """Type a command, as a process of its own, so to speak; WINDOW is the newest one."""
        if "WINDOW" in command:
            command = command.replace("WINDOW", self.source.pipeline.records.windows()[-1].key)
        self.source.close()
        written = self.source.written().model_dump(mode="json", exclude_unset=True)
        written["oracle"]["password_env"] = PASSWORD
        password = self.source.written().oracle.password.get_secret_value()
        del written["oracle"]["password"]
        file = self.source.path / "defs.yaml"
        file.write_text(json.dumps({"type": "assets.components.OracleCdc", "attributes": written}))
        environ = {"REDOLAKE_CONFIG": str(file), PASSWORD: password, "NO_COLOR": "1", "COLUMNS": "80"}  # fmt: skip
        result = CliRunner(env=environ).invoke(app, command.split())
        for name in ("cdc_core", TRACEBACKS):
            logging.getLogger(name).handlers.clear()
            logging.getLogger(name).propagate = True
        self.typed.append(command)
        assert "Traceback" not in result.stderr, result.stderr
        return result

    def set_of_capture(self, **options: str) -> None:
        """Write options of the source's capture into the configuration."""
        self.source.close()
        self.source.more["capture"] = {**self.source.more.get("capture", {}), **options}

    def set(self, option: str, value: Any) -> None:
        """Write an option of the table into the configuration, as a hint shows it."""
        [table, *others] = self.source.tables
        held = {**table.get(option, {}), **value} if isinstance(value, dict) else value
        self.source.close()
        self.source.tables = [{**table, option: held}, *others]

    def check(self, lacks: int = 0) -> None:
        """Both tables have the last window and equal Oracle there but for some rows, in the columns that are captured."""
        self.source.check_current("U")
        left_out = self.source.tables[0].get("columns_exclude", [])
        found = self.source.lake.rows_by_name(table_id("T"))
        images = [tuple(v for n, v in row.items() if n not in left_out) for row in found]
        position = self.source.record("T").mirror_scn
        assert position is not None
        assert position >= (self.source.record("U").mirror_scn or 0)
        rows = self.source.oracle_rows("T", position)
        assert len(images) == len(rows)
        assert len(set(rows) - set(images)) == lacks


class DeltaDesk(Desk):
    """The same with Delta tables in a folder."""

    def folder(self, layer: str) -> Path:
        return self.source.path / "lake" / "src" / layer / table_id("T").path

    def check(self, lacks: int = 0) -> None:
        position = self.source.record("T").mirror_scn or 0
        with self.oracle.owner() as connection:
            key = tuple(self.source.tables[0].get("key", ["ID"]))
            found = compare(connection, "T", key, self.folder("mirror"), position)
        assert found.is_equal, found
        assert lacks == 0


def told(result: Any) -> tuple[str, str]:
    """What happened, and what to do."""
    found = _FAILED.search(result.stderr)
    assert found, result.stderr
    return found[1], found[2]


def files(desk: Desk, kind: str) -> list[Path]:
    """Landing files of the newest window or chunk."""
    found = (desk.source.path / "landing" / "src").rglob("*.parquet")
    return [one for one in found if one.name.startswith(kind)]


def newest(desk: Desk, kind: str) -> Path:
    return max(files(desk, kind), key=lambda one: one.stat().st_mtime_ns)


def damaged(path: Path) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[:40] + bytes([whole[40] ^ 255]) + whole[41:])


def captured(harm: Callable[[Path], None]) -> Fault:
    """A window is captured, and a file of it harmed before it is applied."""

    def fault(desk: Desk) -> None:
        desk.oracle.run("UPDATE T SET V = 'new' WHERE ID = 3")
        assert desk.type("capture").exit_code == 0
        harm(newest(desk, "redo-"))

    return fault


def read(harm: Callable[[Path], None]) -> Fault:
    """A chunk is read, and its file harmed before it is applied."""

    def fault(desk: Desk) -> None:
        for key in desk.source.pipeline.resnapshot_tables([table_id("T")]):
            desk.source.pipeline.snapshot_chunk(key)
        desk.source.close()
        harm(newest(desk, "rows-"))

    return fault


def moved_aside(desk: Desk) -> None:
    """The folder of the newest chunk, as the hint says."""
    folder = newest_chunk(desk)
    folder.rename(desk.source.path / "aside")


def newest_chunk(desk: Desk) -> Path:
    found = (desk.source.path / "landing" / "src" / "chunks" / "demo.t").glob("*/*")
    return max(found, key=lambda one: one.stat().st_mtime_ns)


def untranslated(desk: Desk) -> None:
    """A redo row that LogMiner does not translate."""
    desk.oracle.run("BEGIN DBMS_REDOLAKE_FAULTS.LEAVE_UNTRANSLATED('odd'); END;", user=ADMIN)
    desk.oracle.run("UPDATE T SET V = 'odd' WHERE ID = 3")


def without_undo(desk: Desk) -> None:
    """Each time that a chunk of the table is read."""
    asked = 'SELECT "ID", "V", "D" FROM "DEMO"."T" AS OF SCN'
    faults = desk.oracle.server.faults
    faults.arm(Fault_(FaultKind.ORA_ERROR, sql_contains=asked, times=3, code=1555))
    assert desk.type("table resnapshot DEMO.T").exit_code == 0


def lob_call(desk: Desk) -> None:
    """What is behind a character outside of the basic plane is written through a locator."""
    with desk.oracle.owner() as connection:
        cursor = connection.cursor()
        cursor.execute("UPDATE T SET C = '🔥' WHERE ID = 1")
        cursor.execute("SELECT C FROM T WHERE ID = 1 FOR UPDATE")
        (clob,) = cursor.fetchone()
        clob.write("behind", clob.size() + 1)
        connection.commit()


def lob_taken_back(desk: Desk) -> None:
    """A statement that writes a large LOB is rolled back to a savepoint, and the transaction commits."""
    with desk.oracle.owner() as connection:
        cursor = connection.cursor()
        cursor.execute("UPDATE T SET V = 'kept' WHERE ID = 1")
        cursor.execute("SAVEPOINT BEFORE")
        cursor.execute("UPDATE T SET C = :1 WHERE ID = 2", ["b" * 9_000])
        cursor.execute("ROLLBACK TO BEFORE")
        connection.commit()


def other_dates(desk: Desk) -> None:
    """A trigger of the database sets another format behind capture's own statement."""
    others = session.SETTINGS.replace("'SYYYY-MM-DD HH24:MI:SS'", "'DD-MON-RR'")
    desk.triggers.setattr(session, "SETTINGS", others)
    desk.oracle.run("UPDATE T SET V = 'new', D = DATE '2024-03-01' WHERE ID = 3")


def logging_gone(desk: Desk) -> None:
    """Supplemental logging of the whole database is dropped, that of all columns with it."""
    kinds = ("DATA (ALL) COLUMNS", "DATA")
    desk.oracle.run(*(f"ALTER DATABASE DROP SUPPLEMENTAL LOG {one}" for one in kinds), user=ADMIN)
    desk.oracle.run("UPDATE T SET V = 'new' WHERE ID = 3", "UPDATE U SET V = 'new'")


def logging_back(desk: Desk) -> None:
    """As the hint says, which is about both tables."""
    desk.oracle.run("ALTER DATABASE ADD SUPPLEMENTAL LOG DATA", user=ADMIN)
    desk.oracle.run(LOGGED, LOGGED.replace('"T"', '"U"'))
    assert desk.type("table resnapshot DEMO.U").exit_code == 0


def logged_by_table(desk: Desk) -> None:
    """Supplemental logging of all columns is that of the tables, not of the database."""
    desk.oracle.run("ALTER DATABASE ADD SUPPLEMENTAL LOG DATA", user=ADMIN)
    desk.oracle.run(*(f"ALTER TABLE {one} ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS" for one in "TU"))
    desk.oracle.run("ALTER DATABASE DROP SUPPLEMENTAL LOG DATA (ALL) COLUMNS", user=ADMIN)


def older_store(desk: Desk) -> None:
    """The metadata store comes from a copy that is older than landing."""
    desk.source.close()
    store = desk.source.path / "state.db"
    copy = store.read_bytes()
    desk.oracle.run("UPDATE T SET V = 'new' WHERE ID = 3")
    assert desk.type("run").exit_code == 0
    store.write_bytes(copy)


def lost_store(desk: Desk) -> None:
    desk.source.close()
    (desk.source.path / "state.db").unlink()


oracle = oracle_with(
    "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20), D DATE)",
    "INSERT INTO T SELECT LEVEL, 'first', DATE '2024-02-29' FROM DUAL CONNECT BY LEVEL <= 20",
    "CREATE TABLE U (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))",
    "INSERT INTO U VALUES (1, 'first')",
)


@pytest.fixture
def desk(oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    source = Source.of(oracle, tmp_path, "T", "U")
    monkeypatch.setattr(steps, "Pipeline", partial(steps.Pipeline, open_lake=source.lake.open))
    desk = Desk(source)
    yield desk
    desk.triggers.undo()
    source.close()


def sql(*statements: str, user: str | None = None) -> Fault:
    """Somebody else at the database."""
    return lambda desk: desk.oracle.run(*statements, **({"user": user} if user else {}))


@dataclass(frozen=True, kw_only=True)
class Way:
    """A fault, and the way out that its error prints.

    Args:
        before: What is so before the first run.
        fault: What happens between two runs.
        met_by: The command that meets it.
        says: What the message and the hint say.
        options: Which of the options that the hint shows are written into the configuration; none that it does not show.
        by_hand: What else somebody does who reads it.
        typed: The commands that are typed; each stands in the hint, in this order.
        then: The way out that the last command prints, where the first one is not the end.
        lacks: How many rows of the table differ in the end, since its hint leaves their changes out.
    """

    before: Fault = lambda _desk: None
    fault: Fault = lambda _desk: None
    met_by: str = "run"
    says: tuple[str, ...]
    options: tuple[str, ...] = ()
    by_hand: Fault = lambda _desk: None
    typed: tuple[str, ...]
    then: Way | None = None
    lacks: int = 0


LOGGED = 'ALTER TABLE "DEMO"."T" ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS'
BC = "TO_DATE('-0044-03-15', 'SYYYY-MM-DD')"
CLOB = "ALTER TABLE T ADD (C CLOB)"
FRESH = "table resnapshot --fresh DEMO.T"
AGAIN = "table resnapshot DEMO.T"
AS_TEXT = "columns_as: {D: text}"
WITHOUT = "columns_exclude: [D]"

WAYS = {
    "a-date-before-christ-in-the-snapshot": Way(
        before=sql(f"UPDATE T SET D = {BC} WHERE ID = 7"),
        says=("a date is before the year 1", "table=DEMO.T", "column=D"),
        options=(AS_TEXT,),
        typed=(FRESH,),
    ),
    "a-date-before-christ-in-the-snapshot-left-out": Way(
        before=sql(f"UPDATE T SET D = {BC} WHERE ID = 7"),
        says=("a date is before the year 1",),
        options=(WITHOUT,),
        typed=(AGAIN,),
    ),
    "a-date-before-christ-in-the-snapshot-corrected": Way(
        before=sql(f"UPDATE T SET D = {BC} WHERE ID = 7"),
        says=("orrect the row in Oracle",),
        by_hand=sql("UPDATE T SET D = DATE '2044-03-15' WHERE ID = 7"),
        typed=(AGAIN,),
    ),
    "a-date-before-christ-in-the-redo": Way(
        fault=sql(f"INSERT INTO T VALUES (100, 'x', {BC})"),
        says=("a date is outside the years 1 to 9999", "table=DEMO.T", "column=D"),
        options=(AS_TEXT,),
        typed=(FRESH,),
    ),
    "a-date-before-christ-in-the-redo-left-out": Way(
        fault=sql(f"INSERT INTO T VALUES (100, 'x', {BC})"),
        says=("a date is outside the years 1 to 9999",),
        options=(WITHOUT,),
        typed=(AGAIN,),
    ),
    "a-date-before-christ-in-the-redo-corrected": Way(
        fault=sql(f"INSERT INTO T VALUES (100, 'x', {BC})"),
        says=("orrect the row in Oracle",),
        by_hand=sql("DELETE FROM T WHERE ID = 100"),
        typed=(AGAIN,),
    ),
    "a-leap-day-of-the-julian-calendar-in-the-redo": Way(
        fault=sql("UPDATE T SET D = TO_DATE('1500-02-29', 'YYYY-MM-DD') WHERE ID = 7"),
        says=("not in the Gregorian calendar", "column=D"),
        options=(AS_TEXT,),
        typed=(FRESH,),
    ),
    "a-leap-day-of-the-julian-calendar-in-the-snapshot": Way(
        before=sql("UPDATE T SET D = TO_DATE('1500-02-29', 'YYYY-MM-DD') WHERE ID = 7"),
        says=("only in the Julian calendar", "column=D"),
        options=(AS_TEXT,),
        typed=(FRESH,),
    ),
    "a-time-with-zone-before-christ-in-the-snapshot": Way(
        before=sql(
            "ALTER TABLE T ADD (Z TIMESTAMP WITH TIME ZONE)",
            "UPDATE T SET Z = TO_TIMESTAMP_TZ('-0044-03-15 00:00:00 +00:00', "
            "'SYYYY-MM-DD HH24:MI:SS TZH:TZM') WHERE ID = 7",
        ),
        says=("a date is before the year 1", "column=Z"),
        options=("columns_exclude: [Z]",),
        typed=(AGAIN,),
    ),
    "a-time-with-zone-before-christ-in-the-redo": Way(
        before=sql("ALTER TABLE T ADD (Z TIMESTAMP WITH TIME ZONE)"),
        fault=sql(
            "UPDATE T SET Z = TO_TIMESTAMP_TZ('-0044-03-15 00:00:00 +00:00', "
            "'SYYYY-MM-DD HH24:MI:SS TZH:TZM') WHERE ID = 7",
        ),
        says=("a time with zone is outside the years 1 to 9999", "column=Z"),
        options=("columns_exclude: [Z]",),
        typed=(AGAIN,),
    ),
    "two-columns-of-which-one-has-a-date-before-christ": Way(
        before=sql('ALTER TABLE T ADD ("no" TIMESTAMP(3))', f'UPDATE T SET "no" = {BC}'),
        says=("a date is before the year 1", "column=no"),
        options=('columns_as: {"no": text}',),
        typed=(FRESH,),
    ),
    "truncate": Way(
        fault=sql("TRUNCATE TABLE T", "INSERT INTO T VALUES (1, 'new', NULL)"),
        says=("rows were removed without redo for each",),
        typed=(AGAIN,),
    ),
    "drop": Way(
        fault=sql("DROP TABLE T"),
        says=("there is no such table",),
        typed=(AGAIN,),
        then=Way(
            says=("there is no such table, or the capture user may not read it (table=DEMO.T)",),
            by_hand=sql("CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20), D DATE)"),
            typed=("table add DEMO.T",),
        ),
    ),
    "dropped-and-created-again": Way(
        fault=sql(
            "DROP TABLE T",
            "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20), D DATE)",
            "INSERT INTO T VALUES (1, 'new', NULL)",
        ),
        says=("there is no such table",),
        typed=(AGAIN,),
    ),
    "renamed": Way(
        fault=sql("ALTER TABLE T RENAME TO T2"),
        says=("there is no such table",),
        typed=(AGAIN,),
        then=Way(
            says=("Did you mean DEMO.T2",),
            by_hand=sql("ALTER TABLE T2 RENAME TO T"),
            typed=("table add DEMO.T",),
        ),
    ),
    "a-column-of-another-type": Way(
        fault=sql("DELETE FROM T", "ALTER TABLE T MODIFY (V NUMBER(9))"),
        says=("columns changed their type: V",),
        typed=(AGAIN,),
    ),
    "the-key-dropped": Way(
        fault=sql("ALTER TABLE T DROP PRIMARY KEY"),
        says=("the table has no primary key",),
        typed=(AGAIN,),
        then=Way(
            says=("Name unique NOT NULL columns under the table's key",),
            by_hand=sql("ALTER TABLE T ADD PRIMARY KEY (ID)"),
            typed=("table add DEMO.T",),
        ),
    ),
    "a-column-that-is-not-captured": Way(
        fault=sql("ALTER TABLE T ADD (L LONG)"),
        says=("columns of types that are not captured",),
        typed=(AGAIN,),
        then=Way(
            says=("Name them under columns_exclude of the table", "columns=L LONG"),
            by_hand=lambda desk: desk.set("columns_exclude", ["L"]),
            typed=("table add DEMO.T",),
        ),
    ),
    "supplemental-logging-lost": Way(
        before=logged_by_table,
        fault=sql(
            "ALTER TABLE T DROP SUPPLEMENTAL LOG DATA (ALL) COLUMNS", "UPDATE T SET V = 'new'"
        ),
        says=("supplemental logging of the table was dropped", 'ALTER TABLE "DEMO"."T" ADD'),
        by_hand=sql(LOGGED),
        typed=(AGAIN,),
    ),
    "supplemental-logging-lost-and-not-given-back": Way(
        before=logged_by_table,
        fault=sql(
            "ALTER TABLE T DROP SUPPLEMENTAL LOG DATA (ALL) COLUMNS", "UPDATE T SET V = 'new'"
        ),
        says=("supplemental logging of the table was dropped",),
        typed=(AGAIN,),
        then=Way(
            says=(LOGGED,),
            by_hand=sql(LOGGED),
            typed=("table add DEMO.T",),
        ),
    ),
    "supplemental-logging-of-the-database-lost": Way(
        fault=logging_gone,
        says=("supplemental logging of the database", "ALTER DATABASE ADD SUPPLEMENTAL LOG DATA"),
        by_hand=logging_back,
        typed=(AGAIN,),
    ),
    "a-lob-of-which-the-redo-has-two-readings": Way(
        before=sql(CLOB),
        fault=lob_call,
        says=("can be read in two ways", "`capture.lobs: reselect`"),
        by_hand=lambda desk: desk.set_of_capture(lobs="reselect"),
        typed=("recapture --from WINDOW", "table resume DEMO.T"),
    ),
    "dates-in-another-format": Way(
        fault=other_dates,
        says=("a date has a format that is not understood", "trigger AFTER LOGON", "column=D"),
        by_hand=lambda desk: desk.triggers.undo(),
        typed=("recapture --from WINDOW", "table resume DEMO.T"),
    ),
    "a-lob-that-was-taken-back": Way(
        before=sql(CLOB),
        fault=lob_taken_back,
        says=("takes back a statement that wrote LOBs",),
        typed=(AGAIN,),
    ),
    "a-lob-that-was-taken-back-left-out": Way(
        before=sql(CLOB),
        fault=lob_taken_back,
        says=("name their columns under columns_exclude of the table",),
        by_hand=lambda desk: desk.set("columns_exclude", ["C"]),
        typed=(AGAIN,),
    ),
    "a-row-that-is-not-translated": Way(
        fault=untranslated,
        says=("LogMiner could not translate a change",),
        by_hand=sql("BEGIN DBMS_REDOLAKE_FAULTS.LEAVE_UNTRANSLATED(NULL); END;", user=ADMIN),
        typed=(AGAIN,),
    ),
    "a-row-that-is-not-translated-kept-beside": Way(
        fault=untranslated,
        says=("LogMiner could not translate a change",),
        options=("on_undecodable: quarantine",),
        typed=("table resume DEMO.T",),
        lacks=1,
    ),
    "a-damaged-file-of-a-window": Way(
        fault=captured(damaged),
        says=("a landing file does not match its manifest",),
        typed=("recapture", "run"),
    ),
    "a-lost-file-of-a-window": Way(
        fault=captured(Path.unlink),
        says=("a landing file is missing",),
        typed=("recapture", "run"),
    ),
    "a-lost-folder-of-a-window": Way(
        fault=captured(lambda path: shutil.rmtree(path.parent)),
        says=("a landing file is missing",),
        typed=("recapture", "run"),
    ),
    "a-damaged-file-of-a-chunk": Way(
        fault=read(damaged),
        says=("a landing file does not match its manifest", "move its folder aside"),
        by_hand=moved_aside,
        typed=("snapshot",),
    ),
    "a-lost-file-of-a-chunk": Way(
        fault=read(Path.unlink),
        says=("a landing file is missing", "move its folder aside"),
        by_hand=moved_aside,
        typed=("snapshot",),
    ),
    "undo-of-a-chunk-gone": Way(
        fault=without_undo,
        says=("Oracle no longer has the undo",),
        typed=("table resume DEMO.T",),
    ),
    "an-older-metadata-store": Way(
        fault=older_store,
        says=("the metadata store is older than landing",),
        typed=("state rebuild --dry-run", "state rebuild --replace"),
    ),
    "a-lost-metadata-store": Way(
        fault=lost_store,
        says=("the metadata store is older than landing, or empty",),
        typed=("state rebuild --dry-run", "state rebuild --replace"),
    ),
}


def follow(desk: Desk, way: Way) -> None:
    """Meet the fault, and do what is printed, to the end."""
    way.before(desk)
    printed = desk.type("run")
    if printed.exit_code == 0:
        desk.check()
        way.fault(desk)
        printed = desk.type(way.met_by)
    step: Way | None = way
    while step is not None:
        printed = take(desk, step, *told(printed))
        step = step.then
    assert desk.type("run").exit_code == 0
    desk.oracle.run("UPDATE T SET V = 'after' WHERE ID < 5", "INSERT INTO U VALUES (77, 'after')")
    printed = desk.type("run")
    assert printed.exit_code == 0, printed.stderr
    desk.check(way.lacks)


def take(desk: Desk, way: Way, what: str, hint: str) -> Any:
    """Do what one error says; the result of the last command."""
    for words in way.says:
        assert words in f"{what} {hint}"
    for option in way.options:
        assert option in code_pieces(hint)
        [(name, value)] = yaml.safe_load(option).items()
        desk.set(name, value)
    way.by_hand(desk)
    commands = commands_in(hint)
    for command in way.typed:
        assert command in commands, commands
        commands = commands[commands.index(command) + 1 :]
        printed = desk.type(command)
        is_next = way.then is not None and command == way.typed[-1]
        assert (printed.exit_code != 0) == is_next, printed.stderr
    return printed


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
def test_the_way_out_that_is_printed_works_as_typed(desk: Desk, way: Way) -> None:
    follow(desk, way)


def test_a_table_that_is_paused_says_how_it_goes_on(desk: Desk) -> None:
    assert desk.type("run").exit_code == 0
    assert desk.type("table pause DEMO.T").exit_code == 0
    desk.oracle.run("UPDATE T SET V = 'new' WHERE ID = 3")
    assert desk.type("run").exit_code == 0
    shown = desk.type("status").stdout
    [command] = [one for one in commands_in(shown) if one.startswith("table ")]
    assert command == "table resume DEMO.T"
    assert desk.type(command).exit_code == 0
    assert desk.type("run").exit_code == 0
    desk.check()


def lost_rows(layer: str) -> Fault:
    """Somebody deletes the data files of one Delta table."""

    def fault(desk: Desk) -> None:
        assert isinstance(desk, DeltaDesk)
        desk.oracle.run("UPDATE T SET V = 'new' WHERE ID = 3")
        assert desk.type("run").exit_code == 0
        for file in desk.folder(layer).glob("*.parquet"):
            file.unlink()
        desk.oracle.run("UPDATE T SET V = 'newer' WHERE ID = 3")

    return fault


def lost_folder(layer: str) -> Fault:
    def fault(desk: Desk) -> None:
        assert isinstance(desk, DeltaDesk)
        shutil.rmtree(desk.folder(layer))
        desk.oracle.run("UPDATE T SET V = 'newer' WHERE ID = 3")

    return fault


def older_table(desk: Desk) -> None:
    """The newest commit of the change log is cut."""
    assert isinstance(desk, DeltaDesk)
    desk.oracle.run("UPDATE T SET V = 'new' WHERE ID = 3")
    assert desk.type("run").exit_code == 0
    max((desk.folder("changelog") / "_delta_log").glob("*.json")).write_bytes(b"")
    desk.oracle.run("UPDATE T SET V = 'newer' WHERE ID = 3")


def not_unique(desk: Desk) -> None:
    """A key that the configuration names, and that Oracle does not enforce."""
    desk.oracle.run(
        "DROP TABLE T",
        "CREATE TABLE T (ID NUMBER(9) NOT NULL, N NUMBER(9) NOT NULL, V VARCHAR2(20))",
        "INSERT INTO T VALUES (1, 1, 'one')",
    )
    desk.set("key", ["ID"])


def not_unique_from_the_start(desk: Desk) -> None:
    not_unique(desk)
    desk.oracle.run("INSERT INTO T VALUES (1, 2, 'two')")


FROM_LANDING = "table rebuild --from-landing DEMO.T"

WAYS_OF_DELTA = {
    "files-of-a-change-log-gone": Way(
        fault=lost_rows("changelog"),
        met_by="replay --from 0",
        says=("reading the change log: a file of the Delta table is missing",),
        typed=(FROM_LANDING,),
    ),
    "a-change-log-gone": Way(
        fault=lost_folder("changelog"),
        says=("the change log does not exist",),
        typed=(FROM_LANDING,),
    ),
    "a-commit-of-a-change-log-cut": Way(
        fault=older_table,
        says=("DEMO.T",),
        typed=(FROM_LANDING,),
    ),
    "a-key-that-is-double-in-the-snapshot": Way(
        before=not_unique_from_the_start,
        says=("key",),
        by_hand=lambda desk: desk.set("key", ["ID", "N"]),
        typed=(FRESH,),
    ),
    "a-key-that-is-double-in-a-window": Way(
        before=not_unique,
        fault=sql("INSERT INTO T VALUES (1, 2, 'two')"),
        says=("key",),
        by_hand=lambda desk: desk.set("key", ["ID", "N"]),
        typed=(FRESH,),
    ),
}


def delta_source(oracle: Oracle, path: Path) -> AbstractContextManager[Source]:
    return source_of(oracle, path, "T", "U")


@pytest.fixture
def delta_desk(
    oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[DeltaDesk]:
    with delta_source(oracle, tmp_path) as source:
        source.lake = cast("MemoryLake", FolderLake())
        monkeypatch.setattr(steps, "Pipeline", partial(steps.Pipeline, open_lake=source.lake.open))
        yield DeltaDesk(source)


@pytest.mark.parametrize("way", WAYS_OF_DELTA.values(), ids=WAYS_OF_DELTA.keys())
def test_the_way_out_of_a_fault_of_delta_tables_works_as_typed(
    delta_desk: DeltaDesk, way: Way
) -> None:
    follow(delta_desk, way)


def test_a_mirror_whose_newest_commit_is_cut_takes_its_window_again(delta_desk: DeltaDesk) -> None:
    """No command is needed: the log says that the window is not there."""
    assert delta_desk.type("run").exit_code == 0
    delta_desk.oracle.run("UPDATE T SET V = 'new' WHERE ID = 3")
    assert delta_desk.type("run").exit_code == 0
    max((delta_desk.folder("mirror") / "_delta_log").glob("*.json")).write_bytes(b"")
    delta_desk.oracle.run("UPDATE T SET V = 'newer' WHERE ID = 4")
    assert delta_desk.type("run").exit_code == 0
    delta_desk.check()


class WholeLake:
    """Delta tables in a folder, with Spark where it is needed."""

    def open(self, config: LakeConfig, source: str) -> Lake:
        return DeltaLake(config, source)


def test_the_way_out_of_a_mirror_whose_files_are_gone_works_as_typed(
    oracle: Oracle, tmp_path: Path
) -> None:
    way = Way(
        fault=lost_rows("mirror"),
        says=("reading a mirror's keys: a file of the Delta table is missing",),
        typed=("table rebuild DEMO.T", "table resume DEMO.T"),
    )
    with delta_source(oracle, tmp_path) as source:
        source.lake = cast("MemoryLake", WholeLake())
        follow(DeltaDesk(source), way)

"""Each form of DDL, at each place beside rows and windows, on tables of each kind: the table follows and equals Oracle, or stops with
the reason that the documentation gives, and a new snapshot brings it back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import oracledb
import pytest

from oracle_embedded.faults import Fault, FaultEvent, FaultKind
from tests.oracle.embedded import Oracle, running_oracle
from tests.steps.harness import Source, source_of, table_id
from tests.steps.test_excluded import landed
from tests.steps.ways import ARCHIVE, WAYS, build_in_file, build_in_redo, in_root

PLAIN, LOBS, OUT, ROWS = "PLAIN", "LOBS", "OUT", "ROWS_"
LONG, LONG_OUT, PARTS, TREE, MASKED = "LONG_", "LONG_OUT", "PARTS", "TREE", "MASKED"
TABLES: list[str | dict[str, Any]] = [
    PLAIN,
    LOBS,
    {"name": OUT, "columns_exclude": ["SECRET", "B"]},
    {"name": ROWS, "identity": "rowid"},
    LONG,
    {"name": LONG_OUT, "columns_exclude": ["SECRET", "OTHER"]},
    PARTS,
    TREE,
    {"name": MASKED, "columns_mask": {"SECRET": "stars(3)"}},
]
NAMES = (PLAIN, LOBS, OUT, ROWS, LONG, LONG_OUT, PARTS, TREE, MASKED)
_COLUMNS = "N NUMBER(9), V VARCHAR2(20), D DATE, X VARCHAR2(20)"
CREATED = (
    f"CREATE TABLE {PLAIN} (ID NUMBER(9) PRIMARY KEY, {_COLUMNS})",
    f"CREATE TABLE {LOBS} (ID NUMBER(9) PRIMARY KEY, {_COLUMNS}, C CLOB, B BLOB)",
    f"CREATE TABLE {OUT} (ID NUMBER(9) PRIMARY KEY, SECRET VARCHAR2(20), {_COLUMNS}, C CLOB, B BLOB)",
    f"CREATE TABLE {ROWS} (ID NUMBER(9), {_COLUMNS})",
    f"CREATE TABLE {LONG} (ID NUMBER(9) PRIMARY KEY, {_COLUMNS}, DOC XMLTYPE, T VARCHAR2(32767))",
    f"CREATE TABLE {LONG_OUT} (ID NUMBER(9) PRIMARY KEY, SECRET VARCHAR2(32767), {_COLUMNS}, OTHER XMLTYPE, DOC XMLTYPE, T VARCHAR2(32767))",
    f"CREATE TABLE {PARTS} (ID NUMBER(9) PRIMARY KEY, {_COLUMNS}) PARTITION BY RANGE (ID) (PARTITION P1 VALUES LESS THAN (4), PARTITION P2 VALUES LESS THAN (MAXVALUE))",
    f"CREATE TABLE {TREE} (ID NUMBER(9) PRIMARY KEY, {_COLUMNS}) ORGANIZATION INDEX",
    f"CREATE TABLE {MASKED} (ID NUMBER(9) PRIMARY KEY, SECRET VARCHAR2(40), {_COLUMNS}, C CLOB)",
)
_LONG_COLUMNS = {"DOC": oracledb.DB_TYPE_VARCHAR, "T": oracledb.DB_TYPE_VARCHAR}
MORE: dict[str, dict[str, Any]] = {
    PLAIN: {},
    ROWS: {},
    LOBS: {"C": oracledb.DB_TYPE_CLOB, "B": oracledb.DB_TYPE_BLOB},
    OUT: {"C": oracledb.DB_TYPE_CLOB, "B": oracledb.DB_TYPE_BLOB, "SECRET": oracledb.DB_TYPE_VARCHAR},
    LONG: _LONG_COLUMNS,
    LONG_OUT: {**_LONG_COLUMNS, "SECRET": oracledb.DB_TYPE_VARCHAR, "OTHER": oracledb.DB_TYPE_VARCHAR},
    PARTS: {},
    TREE: {},
    MASKED: {"C": oracledb.DB_TYPE_CLOB, "SECRET": oracledb.DB_TYPE_VARCHAR},
}  # fmt: skip
"""Columns with large values, and the types of their binds."""
SECRET = "HUSHHUSH"


def large(column: str, number: int) -> str | bytes:
    """A value that lies outside of its row."""
    if column == "B":
        return b"\xab\xcd" * 3000
    if column in ("DOC", "OTHER"):
        return f"<a>{SECRET * 900 if column == 'OTHER' else f'{number} é🔥 ' * 900}</a>"
    return SECRET * 2 if column == "SECRET" else f"{number} é🔥 " * 900


@dataclass(frozen=True, slots=True)
class Form:
    """Statements for a table; the key's name afterwards; and which tables they stop, with words of the reason: in any case, and with rows
    between them. ``refused``: why a snapshot does not bring these back, where they are as they are now. ``others``: the
    statements for a table of another kind."""

    statements: tuple[str, ...]
    key: str = "ID"
    stops: dict[str, str] = field(default_factory=dict)
    between: dict[str, str] = field(default_factory=dict)
    refused: str = ""
    others: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def moves_places(self) -> bool:
        """Have columns other places afterwards?"""
        return any(word in one for one in self.statements for word in ("DROP COLUMN", "UNUSED"))

    def of(self, table: str) -> list[str]:
        """The statements for a table."""
        return [one.format(table) for one in self.others.get(table, self.statements)]


FORMS = {
    "add": Form(("ALTER TABLE {0} ADD (E NUMBER(5))",)),
    "add-a-lob": Form(
        ("ALTER TABLE {0} ADD (E CLOB)",), stops={ROWS: "LOB", TREE: "LOB"}, refused="LOB"
    ),
    "add-virtual": Form(("ALTER TABLE {0} ADD (E GENERATED ALWAYS AS (N + 1) VIRTUAL)",)),
    "drop": Form(("ALTER TABLE {0} DROP COLUMN X",)),
    "unused": Form(("ALTER TABLE {0} SET UNUSED (X)",)),
    "drop-the-first": Form(("ALTER TABLE {0} DROP COLUMN N",)),
    "rename": Form(("ALTER TABLE {0} RENAME COLUMN X TO Y",)),
    "rename-the-key": Form(("ALTER TABLE {0} RENAME COLUMN ID TO NUM",), key="NUM"),
    "longer": Form(("ALTER TABLE {0} MODIFY (V VARCHAR2(90))",)),
    "wider": Form(("ALTER TABLE {0} MODIFY (N NUMBER(20))",)),
    "default": Form(("ALTER TABLE {0} MODIFY (N DEFAULT 7)",)),
    "not-null": Form(("ALTER TABLE {0} MODIFY (D NOT NULL)",)),
    "invisible": Form(("ALTER TABLE {0} MODIFY (X INVISIBLE)",)),
    "check": Form(("ALTER TABLE {0} ADD CONSTRAINT {0}_C CHECK (D > DATE '2000-01-01')",)),
    "index": Form(("CREATE INDEX {0}_I ON {0} (D)",)),
    "comment": Form(("COMMENT ON COLUMN {0}.V IS 'ALTER TABLE {0} DROP COLUMN V'",)),
    "drop-and-add": Form(
        ("ALTER TABLE {0} DROP COLUMN X", "ALTER TABLE {0} ADD (X DATE)"),
        between={OUT: "left out", LONG_OUT: "left out", MASKED: "masked columns"},
    ),
    "add-and-rename": Form(
        ("ALTER TABLE {0} ADD (E NUMBER(5))", "ALTER TABLE {0} RENAME COLUMN E TO F")
    ),
    "add-twice-and-drop": Form(
        ("ALTER TABLE {0} ADD (E NUMBER(5))", "ALTER TABLE {0} ADD (F DATE)", "ALTER TABLE {0} DROP COLUMN X")
    ),
    "rename-and-add": Form(
        ("ALTER TABLE {0} RENAME COLUMN X TO Y", "ALTER TABLE {0} ADD (E NUMBER(5))")
    ),
    "rename-twice": Form(
        ("ALTER TABLE {0} RENAME COLUMN X TO Y", "ALTER TABLE {0} RENAME COLUMN Y TO Z")
    ),
    "move": Form(
        ("ALTER TABLE {0} MOVE",),
        stops={ROWS: "ROWID"},
        others={PARTS: ("ALTER TABLE {0} MOVE PARTITION P1",)},
    ),
    "truncate": Form(("TRUNCATE TABLE {0}",)),
}  # fmt: skip


@dataclass
class World:
    """A database with the tables, their source, and a load that knows the key's name."""

    oracle: Oracle
    source: Source
    closes_logs: bool = False
    key: str = "ID"
    numbers: Iterator[int] = field(default_factory=count)

    def rows(self) -> None:
        """Rows come, change and go in each table; those with LOBs get large ones."""
        at = next(self.numbers)
        first, second = 2 * at + 1, 2 * at + 2
        with self.oracle.owner() as connection:
            cursor = connection.cursor()
            for name in NAMES:
                for number in (first, second):
                    self._insert(cursor, name, number)
                values = {"v": f"changed {at}", "k": first}
                cursor.execute(f"UPDATE {name} SET V = :v WHERE {self.key} = :k", values)
                for column in MORE[name].keys() & {"C", "DOC", "T"}:
                    cursor.setinputsizes(c=MORE[name][column])
                    change = {"c": large(column, 1000 + at), "k": first}
                    cursor.execute(f"UPDATE {name} SET {column} = :c WHERE {self.key} = :k", change)
                    cursor.setinputsizes()
                if at:
                    cursor.execute(f"DELETE FROM {name} WHERE {self.key} = :k", {"k": first - 1})
                values = {"k": first + 1}
                cursor.execute(f"UPDATE {name} SET V = 'kept' WHERE {self.key} = :k", values)
                cursor.execute("SAVEPOINT here")
                cursor.execute(f"UPDATE {name} SET V = 'taken back', D = D + 1")
                cursor.execute(f"DELETE FROM {name} WHERE {self.key} = :k", values)
                cursor.execute(f"INSERT INTO {name} ({self.key}, D) VALUES (99, SYSDATE)")
                cursor.execute("ROLLBACK TO SAVEPOINT here")
                cursor.execute(f"UPDATE {name} SET D = D + 1 WHERE {self.key} = :k", values)
            connection.commit()

    def run(self) -> None:
        """Read all redo that there is."""
        if self.closes_logs:
            in_root(self.oracle, ARCHIVE)
        self.source.run()

    def check(self, names: set[str]) -> None:
        """These tables equal Oracle, but for masks."""
        self.source.check_current(*(name for name in NAMES if name in names - {MASKED}))
        if MASKED in names:
            position = self.source.record(MASKED).mirror_scn or 0
            rows = self.source.lake.image(table_id(MASKED), of_oracle=True)
            wanted = self.source.oracle_rows(MASKED, position)
            masked = [tuple("***" if one == SECRET * 2 else one for one in row) for row in wanted]
            assert rows == sorted(masked, key=repr)

    def _insert(self, cursor: Any, name: str, number: int) -> None:
        kinds = MORE[name]
        columns = [self.key, "V", "D", *kinds]
        values: dict[str, Any] = {"p0": number, "p1": f"v {number}"}
        values |= {f"p{at}": large(column, number) for at, column in enumerate(kinds, 3)}
        cursor.setinputsizes(**{f"p{at}": kind for at, kind in enumerate(kinds.values(), 3)})
        binds = ", ".join("DATE '2026-05-05'" if at == 2 else f":p{at}" for at in range(len(columns)))  # fmt: skip
        cursor.execute(f"INSERT INTO {name} ({', '.join(columns)}) VALUES ({binds})", values)
        cursor.setinputsizes()

    def ddl(self, form: Form, statements: slice = slice(None)) -> None:
        """Alter each table."""
        for name in NAMES:
            self.oracle.run(*form.of(name)[statements])
        self.key = form.key


def _before(world: World, form: Form) -> None:
    world.ddl(form)
    world.rows()
    world.run()


def _inside(world: World, form: Form) -> None:
    """Rows of both versions are in one window."""
    world.rows()
    world.ddl(form)
    world.rows()
    world.run()


def _behind(world: World, form: Form) -> None:
    """The DDL comes behind a window, and before its redo is read."""
    world.rows()
    if world.closes_logs:
        in_root(world.oracle, ARCHIVE)
    windows = world.source.pipeline.plan_windows()
    world.ddl(form)
    world.rows()
    for window in windows:
        world.source.pipeline.capture_window(window)
        world.source.pipeline.apply_window(window)
    world.run()


def _alone(world: World, form: Form) -> None:
    """A window has nothing but the DDL."""
    world.rows()
    world.run()
    world.ddl(form)
    world.run()
    world.rows()
    world.run()


def _between(world: World, form: Form) -> None:
    """Each statement is followed by rows, and the window after it by another one."""
    for at in range(len(form.statements)):
        world.rows()
        world.ddl(form, slice(at, at + 1))
    world.rows()
    world.run()
    world.rows()
    world.run()


def _pause(world: World, form: Form) -> None:
    """When the window is read, Oracle shows no dictionary of then."""
    world.rows()
    world.ddl(form)
    world.rows()
    world.oracle.clock.ahead += 4 * 24 * 3600
    fault = Fault(FaultKind.ORA_ERROR, FaultEvent.EXECUTE, "AS OF SCN", times=0)
    world.oracle.server.faults.arm(fault)
    if world.closes_logs:
        in_root(world.oracle, ARCHIVE)
    try:
        world.source.windows()
    finally:
        world.oracle.server.faults.disarm_all()
    world.run()


PLACES: dict[str, Callable[[World, Form], None]] = {
    "before": _before,
    "inside": _inside,
    "behind": _behind,
    "alone": _alone,
    "between": _between,
    "pause": _pause,
}


@pytest.fixture(scope="module")
def database() -> Iterator[Oracle]:
    with running_oracle(extended_strings=True) as oracle:
        yield oracle


@pytest.fixture
def world(database: Oracle, tmp_path: Path, way: str) -> Iterator[World]:
    for name in NAMES:
        database.run(f"BEGIN EXECUTE IMMEDIATE 'DROP TABLE {name} PURGE'; EXCEPTION WHEN OTHERS THEN NULL; END;")  # fmt: skip
    database.run(*CREATED)
    capture = {"close_at": "completed_logs", **WAYS[way]} if way in WAYS else {"close_at": "online"}
    if way in WAYS:
        build_in_redo(database)
        build_in_file(database)
    more = {"capture": capture, "policies": {"on_truncate": "follow"}}  # fmt: skip
    with source_of(database, tmp_path, **more) as source:
        source.configure(*TABLES)
        found = World(database, source, way in WAYS)
        found.rows()
        found.run()
        yield found


@pytest.mark.parametrize(
    "way", ["online", *(pytest.param(one, marks=pytest.mark.slow) for one in WAYS)]
)
@pytest.mark.parametrize(
    "place",
    [pytest.param(one, marks=[] if one == "inside" else pytest.mark.slow) for one in PLACES],
)
@pytest.mark.parametrize("form", FORMS)
def test_a_table_follows_or_stops_with_its_reason(
    world: World, form: str, place: str, way: str
) -> None:
    case = FORMS[form]
    PLACES[place](world, case)
    records = {name: world.source.record(name) for name in NAMES}
    assert SECRET not in landed(world.source)
    wanted = dict(case.stops)
    if (
        place == "between" and "redo_log_catalog" not in way
    ):  # that dictionary follows the DDLs, and names the rows between two
        wanted |= case.between
    stopped = {name: one.reason for name, one in records.items() if one.state != "ready"}
    if "dictionary_from_file" in way and case.moves_places:
        # The dictionary is older than the DDL, so rows behind it have no names until the definition is known.
        wanted |= {name: "left out" if "LOB" in (stopped[name] or "") else "masked columns"
                   for name in (OUT, LONG_OUT, MASKED) if name in stopped}  # fmt: skip
    assert stopped.keys() == wanted.keys(), stopped
    for name, words in wanted.items():
        assert words in (stopped[name] or "")
    world.check({*NAMES} - stopped.keys())
    if stopped:
        world.source.pipeline.resnapshot_tables([table_id(name) for name in stopped])
        world.run()
        reasons = {name: world.source.record(name).reason for name in NAMES}
        refused = {name for name, reason in reasons.items() if reason}
        assert refused == ({*stopped} if case.refused else set()), reasons
        assert all(case.refused in (reasons[name] or "") for name in refused), reasons
        world.check({*NAMES} - refused)

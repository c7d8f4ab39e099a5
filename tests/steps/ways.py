"""The ways in which one source can be read through LogMiner, side by side on one database, and a second judge: LogMiner itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import oracledb

from oracle_embedded.redo.miner import COMMITTED_DATA_ONLY
from tests.oracle.embedded import ADMIN, CAPTURE, PASSWORDS, SCRIPTS, Oracle
from tests.oracle_embedded.redo.driver import NO_ROWID, ONLINE_CATALOG, Miner
from tests.steps.harness import Source, source_of, table_id

FILE = "/opt/oracle/dictionaries/redolake.ora"
SWITCH = "ALTER SYSTEM SWITCH LOGFILE"
ARCHIVE = "ALTER SYSTEM ARCHIVE LOG CURRENT"
"""Of every redo thread."""
WINDOW = "window"
"""In a story: all windows up to here are read."""

Step = str | tuple[str, str]
"""A statement in a transaction of its own, or (session, statement): that session's transaction goes on until its COMMIT or ROLLBACK."""

WAYS: dict[str, dict[str, Any]] = {
    "online_catalog": {},
    "redo_log_catalog": {"strategy": "redo_log_catalog"},
    "dictionary_from_file": {"strategy": "dictionary_from_file", "dictionary_file": FILE},
}
"""Every dictionary."""
_OPS = {1: "c", 2: "d", 3: "u"}
_NUMBERING = ("_cdc_ordinal", "_cdc_landed", "_cdc_redo_sql")
"""What is not the database's: how a pass numbers its rows, and when."""


def build_in_redo(oracle: Oracle) -> None:
    """What deploy/oracle has for a database administrator, in the root."""
    lines = (SCRIPTS / "build_dictionary.sql").read_text().splitlines()
    in_root(oracle, *(line.rstrip(";") if not line.startswith("BEGIN") else line
                      for line in lines if line.startswith(("BEGIN", "ALTER"))))  # fmt: skip


def build_in_file(oracle: Oracle) -> None:
    folder, _, name = FILE.rpartition("/")
    in_root(
        oracle,
        f"BEGIN SYS.DBMS_LOGMNR_D.BUILD('{name}', '{folder}', OPTIONS => SYS.DBMS_LOGMNR_D.STORE_IN_FLAT_FILE); END;",
    )


def in_root(oracle: Oracle, *statements: str) -> None:
    with oracledb.connect(
        user=ADMIN, password=PASSWORDS[ADMIN], dsn=oracle.server.dsn
    ) as connection:
        cursor = connection.cursor()
        cursor.execute("ALTER SESSION SET CONTAINER = CDB$ROOT")
        for statement in statements:
            cursor.execute(statement)


@contextmanager
def sources_of(
    oracle: Oracle,
    path: Path,
    *names: str,
    ways: Mapping[str, dict[str, Any]] = WAYS,
    entry: Mapping[str, Any] | None = None,
) -> Iterator[dict[str, Source]]:
    """One source of these tables for each way, all joined, for the block. The dictionaries are built before. ``entry`` is what each table
    has under its name."""
    build_in_redo(oracle)
    build_in_file(oracle)
    with ExitStack() as stack:
        opened = {}
        for name, capture in ways.items():
            folder = path / name
            folder.mkdir()
            more = {"capture": {"close_at": "completed_logs", **capture}}
            opened[name] = stack.enter_context(source_of(oracle, folder, *names, **more))
            opened[name].tables = [{**one, **(entry or {})} for one in opened[name].tables]
            opened[name].run()
        yield opened


def play(oracle: Oracle, sources: Mapping[str, Source], story: Sequence[Step]) -> None:
    """Run a story; read windows where it says so, and at its end."""
    with ExitStack() as stack:
        sessions: dict[str, Any] = {}
        for step in [*story, WINDOW]:
            if step == WINDOW:
                oracle.run(ARCHIVE, user=ADMIN)
                for source in sources.values():
                    source.windows()
            elif isinstance(step, str):
                oracle.run(step)
            else:
                name, statement = step
                if name not in sessions:
                    sessions[name] = stack.enter_context(oracle.owner())
                try:
                    sessions[name].cursor().execute(statement)
                except oracledb.IntegrityError:
                    assert "ORA-00001" in statement, statement


def check_whole(oracle: Oracle, source: Source, name: str = "T") -> None:
    """The change log has the changes that LogMiner shows where it assembles the transactions itself (COMMITTED_DATA_ONLY), in the
    order of their commits. For tables without LOBs, whose rows keep their keys."""
    record = source.record(name)
    with oracledb.connect(
        user=CAPTURE, password=PASSWORDS[CAPTURE], dsn=oracle.server.dsn
    ) as connection:
        connection.cursor().execute("ALTER SESSION SET CONTAINER = CDB$ROOT")
        miner = Miner(connection)
        miner.add_all()
        miner.start(options=ONLINE_CATALOG + NO_ROWID + COMMITTED_DATA_ONLY)
        shown = miner.query(
            "SELECT RAWTOHEX(XID) AS XID, OPERATION_CODE FROM V$LOGMNR_CONTENTS WHERE TABLE_NAME = :name"
            " AND OPERATION_CODE IN (1, 2, 3) AND COMMIT_SCN > :low AND COMMIT_SCN <= :high",
            name=name, low=record.snapshot_scn, high=record.mirror_scn,
        )  # fmt: skip
        miner.end()
    found = [(one["_cdc_xid"], one["_cdc_op"]) for one in changes(source, name)]
    found = [(xid, op) for xid, op in found if op != "r"]
    expected = [(one["XID"].lower(), _OPS[one["OPERATION_CODE"]]) for one in shown]
    assert found == expected


def changes(source: Source, name: str = "T") -> list[dict[str, Any]]:
    """The change log without what is numbered by the pass, in its order."""
    return [
        {key: value for key, value in change.items() if key not in _NUMBERING}
        for change in source.lake.tables[table_id(name)].changes
    ]


def check_equal(sources: dict[str, Source], *names: str) -> None:
    first, *others = sources.values()
    for name in names:
        assert changes(first, name), "the story changes the table"
        for source in sources.values():
            source.check_current(name)
        for other in others:
            assert changes(other, name) == changes(first, name)
            assert other.record(name).state == first.record(name).state

"""The ways in which one source can be read through LogMiner, side by side on one database: every dictionary, both readings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import oracledb

from tests.oracle.embedded import ADMIN, PASSWORDS, SCRIPTS, Oracle
from tests.steps.harness import Source, source_of, table_id

FILE = "/opt/oracle/dictionaries/redolake.ora"
SWITCH = "ALTER SYSTEM SWITCH LOGFILE"
ARCHIVE = "ALTER SYSTEM ARCHIVE LOG CURRENT"
"""Of every redo thread."""
WINDOW = "window"
"""In a story: all windows up to here are read."""

Step = str | tuple[str, str]
"""A statement in a transaction of its own, or (session, statement): that session's transaction goes on until its COMMIT or ROLLBACK."""

_DICTIONARIES: dict[str, dict[str, Any]] = {
    "online_catalog": {},
    "hybrid": {"strategy": "hybrid"},
    "redo_log_catalog": {"strategy": "redo_log_catalog"},
    "dictionary_from_file": {"strategy": "dictionary_from_file", "dictionary_file": FILE},
}
ALL_WAYS: dict[str, dict[str, Any]] = {
    f"{strategy}-{reading}": {**capture, "reading": reading}
    for strategy, capture in _DICTIONARIES.items()
    for reading in ("uncommitted", "committed")
}
WAYS = {
    name: ALL_WAYS[name]
    for name in (
        "online_catalog-uncommitted",
        "redo_log_catalog-uncommitted",
        "dictionary_from_file-uncommitted",
        "online_catalog-committed",
        "redo_log_catalog-committed",
    )
}
"""Every dictionary and both readings; ``hybrid`` is another name of the first."""
_NUMBERING = ("_cdc_ordinal", "_cdc_landed")
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

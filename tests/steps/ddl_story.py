"""One story for every DDL of a table: rows before it, the DDL with rows between, rows behind it,
and what the lake has then."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from oracle_embedded.faults import Fault, FaultEvent, FaultKind
from oracle_embedded.redo import Wart
from tests.oracle.embedded import Oracle, running_oracle
from tests.steps.harness import Source, source_of, table_id

T = table_id("T")
FIRST = {"ID": "NUMBER(9) PRIMARY KEY", "A": "VARCHAR2(20)", "B": "VARCHAR2(20)", "C": "NUMBER(9)"}
LOBS = {"D": "CLOB", "E": "CLOB"}
"""The table's columns: two texts that may change places, a number like the key, and two CLOBs that
other changes do not carry."""
_KEYS = range(1, 9)
_UNTOUCHED = 8

CUTS = ("", "everywhere", "in-front", "behind", "pause", "named")
"""Where windows end: one for all; behind each statement; before the DDL; right behind it. A
``pause`` is one for all after which Oracle shows no dictionary of then any more; ``named`` one for
all whose rows from before a DDL LogMiner still shows with their names."""


def _row(key: int) -> dict[str, Any]:
    """A row as it is before the story."""
    return {
        "ID": key,
        "A": f"a{key}",
        "B": f"b{key}",
        "C": key * 10,
        "D": f"d{key}",
        "E": f"e{key}",
    }


@dataclass(frozen=True)
class DdlStory:
    """A case. ``clauses`` stand behind ``ALTER TABLE T``; ``wanted`` are the mirror's columns
    afterwards, in order, each with what it is stored as where that is another name (``A=B``), and
    with a minus those that Oracle has dropped. ``more`` is of the table's configuration. A table
    without ``has_lobs`` has the first four columns alone."""

    clauses: tuple[str, ...]
    wanted: str
    more: dict[str, Any] = field(default_factory=dict)
    has_lobs: bool = True

    @property
    def first(self) -> dict[str, str]:
        """The columns that the table has before the story, with their types."""
        return FIRST | (LOBS if self.has_lobs else {})

    @property
    def columns(self) -> dict[str, str]:
        """What each of the mirror's columns is stored as, in order."""
        pairs = (one.lstrip("-").partition("=") for one in self.wanted.split())
        return {name: stored_as or name for name, _, stored_as in pairs}

    @property
    def living(self) -> list[str]:
        """The names of the columns that Oracle has at the end."""
        tokens = self.wanted.split()
        return [one.partition("=")[0] for one in tokens if not one.startswith("-")]


@contextmanager
def running_story(folder: Path, story: DdlStory) -> Iterator[tuple[Oracle, Source]]:
    """The table, its rows, and a source that has read them."""
    with running_oracle(warts=[Wart.UNNAMED_COLUMNS]) as oracle:
        columns = ", ".join(f"{name} {kind}" for name, kind in story.first.items())
        oracle.run(f"CREATE TABLE T ({columns})")
        for key in _KEYS:
            values = (repr(_row(key)[name]) for name in story.first)
            oracle.run(f"INSERT INTO T VALUES ({', '.join(values)})")
        with source_of(oracle, folder, "T") as source:
            source.tables[0] |= story.more
            source.run()
            yield oracle, source


def tell(oracle: Oracle, source: Source, story: DdlStory, cut: str) -> None:
    """Run the story. The row 3 moves to another key at each step, 5 and 6 change, 2 and others go
    and come, 8 is never touched."""
    oracle.database.redo.set_wart(Wart.UNNAMED_COLUMNS, shown=cut != "named")
    last = ", E = 'last'" if story.has_lobs else ""
    oracle.run(f"UPDATE T SET C = C + 1{last} WHERE ID = 1", "DELETE FROM T WHERE ID = 2")
    oracle.run("UPDATE T SET ID = 500 WHERE ID = 3")
    if cut in ("in-front", "everywhere"):
        source.windows()
    for number, clause in enumerate(story.clauses):
        oracle.run(f"ALTER TABLE T {clause}")
        oracle.run("UPDATE T SET ID = ID WHERE ID = 5")
        oracle.run(f"UPDATE T SET ID = {501 + number} WHERE ID = {500 + number}")
        oracle.run(f"INSERT INTO T (ID) VALUES ({number + 100})")
        if cut == "everywhere":
            source.windows()
    if cut == "behind":
        source.windows()
    for name in story.living[1:]:
        oracle.run(f"UPDATE T SET {name} = NULL WHERE ID = 6")
    oracle.run("DELETE FROM T WHERE ID = 4")
    if cut == "pause":
        oracle.clock.ahead += 4 * 24 * 3600
        fault = Fault(FaultKind.ORA_ERROR, FaultEvent.EXECUTE, "AS OF SCN", times=0)
        oracle.server.faults.arm(fault)
    source.windows()
    oracle.server.faults.disarm_all()


def rows_of(source: Source) -> dict[int, dict[str, Any]]:
    """The mirror's rows by key."""
    return {values["ID"]: values for values in source.lake.rows_by_name(T)}


def check(source: Source, story: DdlStory) -> None:
    """The mirror equals Oracle, has its columns, and a row that nothing changed has all that it
    had, whatever columns are called now. Windows that are taken again leave it as it is, and so
    does a mirror that is made of landing alone."""
    record = source.record("T")
    assert (record.state, record.generation) == ("ready", 1), record.reason
    source.check_current("T")
    schema = source.lake.tables[T].schema
    assert schema is not None
    own = schema.as_in_rows()
    assert own.stored_names == story.columns
    before, rows = _row(_UNTOUCHED), rows_of(source)
    for column in own.columns:
        if column.stored_as in story.first:
            assert rows[_UNTOUCHED][column.name] == before[column.stored_as], column.name
        if column.stored_as in schema.dropped:
            assert rows[100 + len(story.clauses) - 1][column.name] is None
    for window in reversed(source.pipeline.store.windows.find()):
        source.pipeline.replay_window(window.window)
    assert rows_of(source) == rows
    source.pipeline.rebuild_from_landing(T)
    assert rows_of(source) == rows

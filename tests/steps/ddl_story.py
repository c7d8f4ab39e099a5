"""One story for every DDL of a table, with its cases as data: the table and its rows, what changes
in front of the DDL, between its clauses and behind it, and what the lake has then."""

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

CUTS = ("", "everywhere", "in-front", "behind", "pause", "named")
"""Where windows end: one for all; behind each statement; before the DDL; right behind it. A
``pause`` is one for all after which Oracle shows no dictionary of then any more; ``named`` one for
all whose rows from before a DDL LogMiner still shows with their names."""


@dataclass(frozen=True, kw_only=True)
class DdlStory:
    """A case.

    Attributes:
        table: Statements that make the table T and its rows.
        before: What changes in front of the DDL.
        ddl: Clauses behind ``ALTER TABLE T``.
        between: What changes behind each of them; ``{n}`` is its number.
        after: What changes behind all.
        columns: The mirror's columns afterwards, in order, each with what it is stored as where
            that is another name (``A=B``), and with a minus those that Oracle has dropped.
        key: The mirror's key afterwards.
        rows: Some values of rows that the mirror has afterwards.
        config: Of the table's configuration.
        cuts: Those with which the story is told by ``make test``; the others are its long form.
        never: Those that it has not.
    """

    table: tuple[str, ...]
    before: tuple[str, ...] = ()
    ddl: tuple[str, ...]
    between: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    columns: str
    key: tuple[str, ...] = ("ID",)
    rows: tuple[dict[str, Any], ...] = ()
    config: dict[str, Any] = field(default_factory=dict)
    cuts: tuple[str, ...] = ("",)
    never: tuple[str, ...] = ()

    @property
    def stored_names(self) -> dict[str, str]:
        """What each of the mirror's columns is stored as, in order."""
        pairs = (one.lstrip("-").partition("=") for one in self.columns.split())
        return {name: stored_as or name for name, _, stored_as in pairs}


@contextmanager
def running_story(folder: Path, story: DdlStory) -> Iterator[tuple[Oracle, Source]]:
    """The table, its rows, and a source that has read them."""
    with (
        running_oracle(*story.table, warts=[Wart.UNNAMED_COLUMNS]) as oracle,
        source_of(oracle, folder, "T") as source,
    ):
        source.tables[0] |= story.config
        source.begin()
        yield oracle, source


def tell(oracle: Oracle, source: Source, story: DdlStory, cut: str) -> None:
    """Run the story."""
    oracle.database.redo.set_wart(Wart.UNNAMED_COLUMNS, shown=cut != "named")
    oracle.run(*story.before)
    if cut in ("in-front", "everywhere"):
        source.windows()
    for number, clause in enumerate(story.ddl):
        oracle.run(f"ALTER TABLE T {clause}", *(one.format(n=number) for one in story.between))
        if cut == "everywhere":
            source.windows()
    if cut == "behind":
        source.windows()
    oracle.run(*story.after)
    if cut == "pause":
        oracle.clock.ahead += 4 * 24 * 3600
        fault = Fault(FaultKind.ORA_ERROR, FaultEvent.EXECUTE, "AS OF SCN", times=0)
        oracle.server.faults.arm(fault)
    source.windows()
    oracle.server.faults.disarm_all()


def check(source: Source, story: DdlStory) -> None:
    """The mirror equals Oracle in the stream that it began with, and has its columns, its key and
    the wanted values. Windows that are taken again leave it as it is, and so does a mirror that is
    made of landing alone."""
    source.check_followed("T")
    schema = source.lake.tables[T].schema
    assert schema is not None
    assert schema.as_in_rows().stored_names == story.stored_names
    if "identity" not in story.config:
        assert schema.key == story.key
    mirror, rows = source.lake.image(T), source.lake.rows_by_name(T)
    for wanted in story.rows:
        assert any(wanted.items() <= row.items() for row in rows), wanted
    for window in reversed(source.pipeline.store.windows.find()):
        source.pipeline.replay_window(window.window)
    assert source.lake.image(T) == mirror
    source.pipeline.rebuild_from_landing(T)
    assert source.lake.image(T) == mirror

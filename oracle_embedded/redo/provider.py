"""How does the redo side join the engine?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from oracle_embedded.api import (
    DatabaseView,
    PackageConstant,
    Procedure,
    VirtualTable,
)
from oracle_embedded.faults import FaultRegistry
from oracle_embedded.redo import store, threads
from oracle_embedded.redo.contents import Contents
from oracle_embedded.redo.miner import Miner
from oracle_embedded.redo.settings import RedoSettings, Wart
from oracle_embedded.redo.sink import Sink
from oracle_embedded.redo.supplemental import register_hooks
from oracle_embedded.redo.testing import set_wart, testing_procedures
from oracle_embedded.redo.threads import FIRST
from oracle_embedded.redo.view_facts import Facts
from oracle_embedded.redo.views import contents_tables, fact_tables


@dataclass(frozen=True, slots=True)
class Redo:
    """The :class:`~oracle_embedded.api.RedoProvider`, with what tests may do to the logs."""

    database: DatabaseView
    sink: Sink
    contents: Contents
    virtual_tables: Sequence[VirtualTable]
    procedures: Sequence[Procedure]
    constants: Sequence[PackageConstant]

    def keep_for_standby(self) -> None:
        """From now on a standby has a copy of each archived log, whatever becomes of the
        primary's."""
        self.sink.writer.keep_for_standby()

    def connect_session(self, session_id: int, thread: int) -> None:
        """Let a session be one of the instance that writes a thread: ORA-01034 while that one is
        down."""
        with self.database.writing():
            self.sink.connect_session(session_id, thread)

    def switch_log(self, *threads: int) -> int:
        """Switch the logs of these threads, of the first when none is named; returns the first SCN
        of the new ones."""
        with self.database.writing():
            return self.sink.writer.switch(*(threads or (FIRST,)))

    def hold_archiver(self, *, held: bool) -> None:
        """Stop archiving, or catch up with it; meanwhile ended logs stand in V$LOG only."""
        with self.database.writing():
            self.sink.writer.hold_archiver(held=held)

    def open_resetlogs(self) -> int:
        """Begin a new incarnation, as after an incomplete recovery; returns its first SCN.

        Raises:
            OracleError: ORA-01126 while transactions are open.
        """
        with self.database.writing():
            return self.sink.open_resetlogs()

    def change_dbid(self, dbid: int) -> None:
        """Give the database another DBID, as a restored clone gets by DBNEWID."""
        with self.database.writing():
            store.write_meta(self.sink.writer.connection, {"dbid": dbid})

    def open_pluggable_resetlogs(self) -> int:
        """Begin a new incarnation of the pluggable database alone, as after FLASHBACK PLUGGABLE
        DATABASE; returns the SCN at which it was opened. What it took back is for the caller to
        take back, without redo (:meth:`set_unlogged`)."""
        with self.database.writing():
            return self.sink.writer.reset_pluggable()

    def set_wart(self, wart: Wart, *, shown: bool) -> None:
        """Show an oddity from now on, or no longer; redo that waits in strands is bound when it is
        not to wait any more."""
        set_wart(self.database, self.sink, wart, shown=shown)

    def open_threads(self, count: int) -> None:
        """Start instances until so many redo threads are open."""
        with self.database.writing():
            known = {one.thread for one in threads.read_threads(self.sink.writer.connection)}
            for thread in range(1, count + 1):
                if thread not in known:
                    self.sink.writer.enable_thread(thread, threads.PUBLIC)
                self.sink.writer.open_thread(thread)

    def set_unlogged(self, *tables: str) -> None:
        """Change these tables (``OWNER.NAME``) without redo from now on, as direct loads (APPEND)
        into NOLOGGING tables do; no table when none is named."""
        with self.database.writing():
            self.sink.unlogged = frozenset(tables)

    def delete_archived_log(self, sequence: int, *, thread: int = FIRST) -> None:
        """Delete an archived log, as RMAN or a full disk's administrator does.

        Raises:
            OracleError: ORA-00308 when there is none of that sequence.
        """
        with self.database.writing():
            self.sink.writer.delete_archived(sequence, thread)

    def forget_archived_log(self, sequence: int, *, thread: int = FIRST) -> None:
        """Delete an archived log whose entry has aged out of the control file, or that was never
        cataloged after a restore: V$ARCHIVED_LOG shows later ones only.

        Raises:
            OracleError: ORA-00308 when there is none of that sequence.
        """
        with self.database.writing():
            self.sink.writer.forget_archived(sequence, thread)

    def remove_archived_log(self, sequence: int, *, thread: int = FIRST) -> None:
        """Remove the file of an archived log behind the control file's back, as ``rm`` does.

        Raises:
            OracleError: ORA-00308 when there is none of that sequence.
        """
        with self.database.writing():
            self.sink.writer.remove_archived(sequence, thread)


def open_redo(
    database: DatabaseView,
    *,
    settings: RedoSettings | None = None,
    faults: FaultRegistry | None = None,
) -> Redo:
    """Open the redo in the engine's storage, or create it there; registers the ALTER hooks."""
    settings = settings or RedoSettings()
    faults = faults or FaultRegistry()
    sink = Sink(database, settings)
    with database.writing():
        sink.open()
    miner = Miner(database, sink, settings)
    facts = Facts(database, sink, miner, settings, faults)
    contents = Contents(database, sink, miner, settings, faults)
    register_hooks(database, sink)
    return Redo(
        database,
        sink,
        contents,
        (*fact_tables(facts), *contents_tables(contents, facts)),
        (*miner.procedures(), *testing_procedures(database, sink)),
        tuple(miner.constants()),
    )

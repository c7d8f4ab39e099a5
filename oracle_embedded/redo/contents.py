"""Which rows does V$LOGMNR_CONTENTS show, and are the logs still there that they come from?"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from heapq import merge
from itertools import chain
from operator import itemgetter

from oracle_embedded.api import DatabaseView, EngineSession, OracleError, Value
from oracle_embedded.faults import FaultEvent, FaultRegistry
from oracle_embedded.redo import contents_row as layout
from oracle_embedded.redo import standby, store
from oracle_embedded.redo.dictionary import Resolved, resolve
from oracle_embedded.redo.lob_statements import LobStatements
from oracle_embedded.redo.miner import COMMITTED_DATA_ONLY, AddedLog, Miner, Mining, in_root
from oracle_embedded.redo.reading import Reading
from oracle_embedded.redo.settings import RedoSettings, Wart
from oracle_embedded.redo.sink import Sink
from oracle_embedded.redo.statements import TableStatements

_SCN = "SCN"
_SCN_AT = layout.COLUMN_NAMES.index(_SCN)


class Contents:
    """The view, for all sessions."""

    def __init__(
        self,
        database: DatabaseView,
        sink: Sink,
        miner: Miner,
        settings: RedoSettings,
        faults: FaultRegistry,
    ) -> None:
        self.database = database
        self._sink = sink
        self._miner = miner
        self._faults = faults
        self.settings = settings
        self.container_name = database.container_name
        self.container_id = database.container_id
        self.beside: list[Contents] = []

    @property
    def warts(self) -> frozenset[Wart]:
        """The oddities that are shown now."""
        return self._sink.warts

    @property
    def untranslated(self) -> frozenset[bytes]:
        """Rows whose SQL_REDO holds one of these texts are shown with STATUS 2."""
        return self._sink.untranslated

    def rows(
        self,
        session: EngineSession,
        constraints: Sequence[tuple[str, str, Value]],
        columns: frozenset[str] | None,
    ) -> Iterator[layout.Row]:
        """Rows in the order of the redo, or of the commits with COMMITTED_DATA_ONLY.

        Raises:
            OracleError: ORA-01306 and ORA-01031 at once; ORA-00308 and ORA-00310 when a log
                vanishes while it is read.
        """
        mining = self._miner.mining(session)
        if not self.beside or not in_root(session):
            return self._read(session, mining, constraints, columns)
        columns = None if columns is None else columns | {_SCN}
        streams = [self._read(session, mining, constraints, columns)]
        for other in self.beside:
            found = replace(mining, logs=other._same_logs(mining))
            streams.append(other._read(session, found, constraints, columns))
        # What LogMiner shows by transactions stays together.
        is_committed = bool(mining.options & COMMITTED_DATA_ONLY)
        return chain(*streams) if is_committed else _in_redo_order(streams)

    def _same_logs(self, mining: Mining) -> tuple[AddedLog, ...]:
        """The part of the logs on another container's list that holds this one's redo."""
        own = {(log.thread, log.sequence): log for log in self._miner.current_logs()}
        return tuple(
            AddedLog(one.name, own[one.log.thread, one.log.sequence]) for one in mining.logs
        )

    def _read(
        self,
        session: EngineSession,
        mining: Mining,
        constraints: Sequence[tuple[str, str, Value]],
        columns: frozenset[str] | None,
    ) -> Iterator[layout.Row]:
        """Two connections: one holds still what it read at the start, the other sees what becomes
        of the logs."""
        connection = self.database.read_connection()
        watch = self.database.read_connection()
        try:
            connection.execute("BEGIN")
            reading = Reading(self, connection, session, mining, constraints, columns, watch=watch)
            yield from reading.rows(self._faults.shown(FaultEvent.MINING))
        finally:
            connection.close()
            watch.close()

    def resolve(
        self, number: int, packed: bytes, mining: Mining
    ) -> tuple[Resolved, layout.ObjectFacts]:
        """A stored definition, and its number, as the session's dictionary shows it."""
        row_version = store.unpack_table(packed)
        unnamed = Wart.UNNAMED_COLUMNS in self.warts
        resolved = resolve(number, row_version, mining, self.database, unnamed=unnamed)
        return resolved, layout.object_facts(resolved, row_version)

    def lob_statements(self, statements: TableStatements) -> LobStatements:
        """What prints the changes of a table with LOBs."""
        return LobStatements(
            statements, self.warts, shape=self.settings.lob_rows, xml=self.settings.xml_rows
        )

    def check_log(self, session: EngineSession, added: AddedLog, watch: sqlite3.Connection) -> None:
        """Is the file still there, and still the log it was?

        Raises:
            OracleError: ORA-00308 or ORA-00310.
        """
        logs = store.read_logs(watch)
        online = store.online_logs(logs)
        site = session.standby
        if site is not None and standby.has_file(added.log, added.name, site, self.settings):
            return
        for log in logs:
            if log.log_id == added.log.log_id and log.is_in(added.name, online):
                return
        for log in online.values():
            if log.member == added.name:
                raise OracleError(
                    310,
                    f"archived log contains sequence {log.sequence};"
                    f" sequence {added.log.sequence} required",
                )
        raise OracleError(308, f"cannot open archived log '{added.name}'")


def _in_redo_order(streams: Iterable[Iterator[layout.Row]]) -> Iterator[layout.Row]:
    """Rows of several containers in one order of the redo that keeps each one's own."""
    return map(itemgetter(1), merge(*map(_rising, streams), key=itemgetter(0)))


def _rising(rows: Iterable[layout.Row]) -> Iterator[tuple[bytes, layout.Row]]:
    """Each row behind the highest SCN so far: what enters the log late does so where its stream has
    come to. NUMBERs sort as bytes."""
    highest = b""
    for row in rows:
        scn = row[_SCN_AT]
        assert isinstance(scn, bytes)
        highest = max(highest, scn)
        yield highest, row

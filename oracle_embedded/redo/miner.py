"""What does a session's LogMiner hold, and which calls of DBMS_LOGMNR does it accept?

Source: Oracle Database PL/SQL Packages and Types Reference 19c, DBMS_LOGMNR and DBMS_LOGMNR_D.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from typing import cast
from weakref import WeakKeyDictionary

from oracle_embedded.api import (
    DatabaseView,
    EngineSession,
    OracleError,
    OraType,
    PackageConstant,
    Parameter,
    Procedure,
)
from oracle_embedded.redo import standby, store
from oracle_embedded.redo.settings import NEXT_CHANGE_OPEN, RedoSettings, Wart
from oracle_embedded.redo.sink import Sink

NEW = 1
REMOVEFILE = 2
ADDFILE = 3

COMMITTED_DATA_ONLY = 2
SKIP_CORRUPTION = 4
DDL_DICT_TRACKING = 8
DICT_FROM_ONLINE_CATALOG = 16
DICT_FROM_REDO_LOGS = 32
NO_SQL_DELIMITER = 64
PRINT_PRETTY_SQL = 512
CONTINUOUS_MINE = 1024
NO_ROWID_IN_STMT = 2048
STRING_LITERALS_IN_STMT = 4096

STORE_IN_FLAT_FILE = 1
STORE_IN_REDO_LOGS = 2

_OPTIONS = {
    "COMMITTED_DATA_ONLY": COMMITTED_DATA_ONLY,
    "SKIP_CORRUPTION": SKIP_CORRUPTION,
    "DDL_DICT_TRACKING": DDL_DICT_TRACKING,
    "DICT_FROM_ONLINE_CATALOG": DICT_FROM_ONLINE_CATALOG,
    "DICT_FROM_REDO_LOGS": DICT_FROM_REDO_LOGS,
    "NO_SQL_DELIMITER": NO_SQL_DELIMITER,
    "PRINT_PRETTY_SQL": PRINT_PRETTY_SQL,
    "CONTINUOUS_MINE": CONTINUOUS_MINE,
    "NO_ROWID_IN_STMT": NO_ROWID_IN_STMT,
    "STRING_LITERALS_IN_STMT": STRING_LITERALS_IN_STMT,
}
ROOT = "CDB$ROOT"
_WRITING = DDL_DICT_TRACKING | DICT_FROM_ONLINE_CATALOG | DICT_FROM_REDO_LOGS
"""Dictionaries for which LogMiner writes into tables of its own. Source: Oracle's manual (which
dictionary where the database is not open for writing), and ORA-01300 as met with the online catalog
on standbys of 12c and later."""
_GONE = (
    "error occurred at recursive SQL level 1\nORA-01284: file %s cannot be opened\n"
    "ORA-00308: cannot open archived log '%s'\nORA-27037: unable to obtain file status"
)


@dataclass(frozen=True, slots=True)
class AddedLog:
    """A file on the session's list and the log that it held when it was added."""

    name: str
    log: store.Log


@dataclass(frozen=True, slots=True)
class Mining:
    """A started LogMiner: SCN range (both ends included), options, and the logs by thread and
    sequence."""

    scn_low: int
    scn_high: int
    options: int
    logs: tuple[AddedLog, ...]
    start_time: datetime | None
    end_time: datetime | None
    dictionary: store.Dictionary | None = None


@dataclass(slots=True)
class MinerState:
    """LogMiner of one session."""

    added: list[AddedLog] = field(default_factory=list)
    mining: Mining | None = None


class Miner:
    """DBMS_LOGMNR and DBMS_LOGMNR_D for all sessions."""

    def __init__(self, database: DatabaseView, sink: Sink, settings: RedoSettings) -> None:
        self._database = database
        self._sink = sink
        self._settings = settings
        self._states: WeakKeyDictionary[EngineSession, MinerState] = WeakKeyDictionary()

    def state(self, session: EngineSession) -> MinerState:
        """LogMiner of a session."""
        return self._states.setdefault(session, MinerState())

    def mining(self, session: EngineSession) -> Mining:
        """The started LogMiner of a session.

        Raises:
            OracleError: ORA-01031 without the privilege, ORA-01306 before START_LOGMNR.
        """
        self._require_privilege(session)
        mining = self.state(session).mining
        if mining is None:
            raise OracleError(
                1306,
                "dbms_logmnr.start_logmnr() must be invoked before selecting from v$logmnr_contents",
            )
        return mining

    def current_logs(self) -> list[store.Log]:
        """All logs as committed."""
        connection = self._database.read_connection()
        try:
            return store.read_logs(connection)
        finally:
            connection.close()

    # --- procedures -------------------------------------------------------------------------------

    def procedures(self) -> list[Procedure]:
        """What PL/SQL blocks may call."""
        number, text, date = OraType.NUMBER, OraType.VARCHAR, OraType.DATE
        return [
            Procedure(
                "DBMS_LOGMNR",
                "ADD_LOGFILE",
                (Parameter("LOGFILENAME", text), Parameter("OPTIONS", number, False, ADDFILE)),
                self._add_logfile,
            ),
            Procedure(
                "DBMS_LOGMNR", "REMOVE_LOGFILE", (Parameter("LOGFILENAME", text),), self._remove
            ),
            Procedure(
                "DBMS_LOGMNR",
                "START_LOGMNR",
                (
                    Parameter("STARTSCN", number, False, 0),
                    Parameter("ENDSCN", number, False, 0),
                    Parameter("STARTTIME", date, False),
                    Parameter("ENDTIME", date, False),
                    Parameter("DICTFILENAME", text, False, ""),
                    Parameter("OPTIONS", number, False, 0),
                ),
                self._start,
            ),
            Procedure("DBMS_LOGMNR", "END_LOGMNR", (), self._end),
            Procedure(
                "DBMS_LOGMNR_D",
                "BUILD",
                (
                    Parameter("DICTIONARY_FILENAME", text, False),
                    Parameter("DICTIONARY_LOCATION", text, False),
                    Parameter("OPTIONS", number, False, STORE_IN_FLAT_FILE),
                ),
                self._build,
            ),
        ]

    @staticmethod
    def constants() -> list[PackageConstant]:
        """Constants of both packages."""
        found = {"NEW": NEW, "REMOVEFILE": REMOVEFILE, "ADDFILE": ADDFILE, **_OPTIONS}
        return [
            *(PackageConstant("DBMS_LOGMNR", name, value) for name, value in found.items()),
            PackageConstant("DBMS_LOGMNR_D", "STORE_IN_FLAT_FILE", STORE_IN_FLAT_FILE),
            PackageConstant("DBMS_LOGMNR_D", "STORE_IN_REDO_LOGS", STORE_IN_REDO_LOGS),
        ]

    def _add_logfile(self, session: EngineSession, arguments: Mapping[str, object]) -> None:
        self._require_privilege(session)
        if not in_root(session):
            raise OracleError(65040, "operation not allowed from within a pluggable database")
        name = _text(arguments["LOGFILENAME"])
        options = _scn(arguments["OPTIONS"])
        if options == REMOVEFILE:
            self._remove(session, arguments)
            return
        if options not in (NEW, ADDFILE):
            raise OracleError(1283, "Options parameter specified is invalid")
        log = self._open_file(session, name)
        state = self.state(session)
        if options == NEW:
            state.added.clear()
        if any((a.log.thread, a.log.sequence) == (log.thread, log.sequence) for a in state.added):
            raise OracleError(1289, f"cannot add duplicate logfile {name}")
        if any(added.log.resetlogs_change != log.resetlogs_change for added in state.added):
            raise OracleError(1287, f"file {name} is from a different database incarnation")
        state.added.append(AddedLog(name, log))
        state.mining = None

    def _remove(self, session: EngineSession, arguments: Mapping[str, object]) -> None:
        name = _text(arguments["LOGFILENAME"])
        state = self.state(session)
        kept = [added for added in state.added if added.name != name]
        if len(kept) == len(state.added):
            raise OracleError(1290, f"cannot remove unlisted logfile {name}")
        state.added = kept
        state.mining = None

    def _start(self, session: EngineSession, arguments: Mapping[str, object]) -> None:
        self._require_privilege(session)
        options = _scn(arguments["OPTIONS"])
        _check_options(options)
        if session.standby is not None and options & _WRITING:
            raise OracleError(1300, "writable database required for specified LogMiner options")
        start, end = _scn(arguments["STARTSCN"]), _scn(arguments["ENDSCN"])
        state = self.state(session)
        state.mining = None
        self._sink.write_log()
        if not in_root(session):
            state.added = self._chosen(start, end)
        elif self._database.closed_containers:
            closed = min(self._database.closed_containers)
            raise OracleError(16331, f'container "{closed}" is not open')
        if not state.added:
            raise OracleError(
                1292, "no log file has been specified for the current LogMiner session"
            )
        logs = self._reopened(session, state.added)
        start_time = cast(datetime | None, arguments.get("STARTTIME"))
        end_time = cast(datetime | None, arguments.get("ENDTIME"))
        if start_time and end_time and end_time < start_time:
            raise OracleError(1282, "date range specified is invalid")
        dictionary = self._dictionary(options, arguments.get("DICTFILENAME"), start, logs)
        if options & DDL_DICT_TRACKING and dictionary is not None and start:
            # LogMiner reads from the dictionary on, so as to miss no DDL.
            _range(min(start, dictionary.scn), end, logs, start_time, end_time)
        low, high = _range(start, end, logs, start_time, end_time)
        state.mining = Mining(low, high, options, tuple(logs), start_time, end_time, dictionary)

    def _dictionary(
        self, options: int, file: object, start: int, logs: list[AddedLog]
    ) -> store.Dictionary | None:
        """The dictionary that the session asks for: of those in its logs the newest from before the
        range, else the oldest.

        Raises:
            OracleError: ORA-01371 when no log on the list has one, ORA-01336 when there is no such
                file.
        """
        if not file and not options & DICT_FROM_REDO_LOGS:
            return None
        connection = self._database.read_connection()
        try:
            found = store.read_dictionaries(connection)
        finally:
            connection.close()
        if options & DICT_FROM_REDO_LOGS:
            listed = {added.log.log_id for added in logs}
            own = [one for one in found if one.log_id in listed]
            if not own:
                raise OracleError(1371, "Complete LogMiner dictionary not found")
            return next((one for one in reversed(own) if one.scn <= start), own[0])
        for one in found:
            if one.file == file:
                return one
        raise OracleError(1336, "specified dictionary file cannot be opened")

    def _chosen(self, start: int, end: int) -> list[AddedLog]:
        """The logs of a range, which LogMiner finds by itself inside a pluggable database.

        Source: measured on 23ai and RDS: no file can be added there, a range is enough; a file that
        is gone comes as an error of recursive SQL.

        Raises:
            OracleError: ORA-01291 when the range begins before the oldest redo, ORA-00604 when a
                file is gone.
        """
        logs = self.current_logs()
        online = store.online_logs(logs)
        incarnation = max(log.resetlogs_change for log in logs)
        wanted = [
            log
            for log in logs
            if log.resetlogs_change == incarnation
            and not (log.next_change is not None and log.next_change <= start)
            and not (end and log.first_change > end)
        ]
        known = [log for log in wanted if log.name is not None or log.log_id in online]
        if len(known) < len(wanted):
            raise OracleError(1291, "missing log file")
        for log in known:
            if log.gone and log.log_id not in online:
                raise OracleError(604, _GONE % (log.name, log.name))
        return [
            AddedLog(log.member if log.gone or not log.name else log.name, log) for log in known
        ]

    def _end(self, session: EngineSession, _arguments: Mapping[str, object]) -> None:
        state = self.state(session)
        if not state.added and state.mining is None:
            raise OracleError(1307, "no LogMiner session is currently active")
        state.added.clear()
        state.mining = None

    def _build(self, session: EngineSession, arguments: Mapping[str, object]) -> None:
        self._require_privilege(session)
        if _scn(arguments["OPTIONS"]) != STORE_IN_REDO_LOGS:
            self._build_file(arguments)
            return
        with self._database.writing():
            meta = store.read_meta(self._sink.connection)
            if meta["log_mode"] != "ARCHIVELOG":
                raise OracleError(
                    1325, "archive log mode must be enabled to build into the logstream"
                )
            if not self._sink.supplemental:
                raise OracleError(1354, "Supplemental log data must be added to run this command")
            self._sink.write_dictionary()

    def _build_file(self, arguments: Mapping[str, object]) -> None:
        """A dictionary file. Any location is taken: a real database wants a directory object, or a
        folder of UTL_FILE_DIR, and from 19c on no containers (Oracle's manual)."""
        name, location = arguments.get("DICTIONARY_FILENAME"), arguments.get("DICTIONARY_LOCATION")
        if not name or not location:
            raise OracleError(1308, "initialization parameter utl_file_dir is not set")
        with self._database.writing():
            self._sink.write_dictionary_file(f"{location}/{name}")

    # --- checks -----------------------------------------------------------------------------------

    def _require_privilege(self, session: EngineSession) -> None:
        if not any(
            session.has_privilege(name) for name in ("LOGMINING", "SELECT ANY TRANSACTION", "DBA")
        ):
            raise OracleError(1031, "insufficient privileges")

    def _open_file(self, session: EngineSession, name: str) -> store.Log:
        """The log that a file holds now, on the host of the session's database."""
        logs = self.current_logs()
        online = store.online_logs(logs)
        site = session.standby
        for log in reversed(logs):
            is_there = (
                log.is_in(name, online)
                if site is None
                else standby.has_file(log, name, site, self._settings)
            )
            if is_there:
                return log
        raise OracleError(1284, f"file {name} cannot be opened")

    def _reopened(self, session: EngineSession, added: list[AddedLog]) -> list[AddedLog]:
        """The list with each file's header read again."""
        found = []
        for entry in added:
            log = self._open_file(session, entry.name)
            if log.log_id != entry.log.log_id:
                raise self._reused(entry.log, log)
            found.append(AddedLog(entry.name, log))
        return sorted(found, key=lambda entry: (entry.log.thread, entry.log.sequence))

    def _reused(self, expected: store.Log, found: store.Log) -> OracleError:
        """What a file that another log was written over raises."""
        if Wart.REUSED_LOGS in self._sink.warts:
            thread, sequence = expected.thread, expected.sequence
            text = f"Redo log file header mismatch for thread {thread} sequence {sequence}."
            return OracleError(1368, text)
        return OracleError(
            310,
            f"archived log contains sequence {found.sequence}; sequence {expected.sequence} required",
        )


def in_root(session: EngineSession) -> bool:
    """Is the session in the root container?"""
    return session.parameter("CONTAINER").upper() == ROOT


def _check_options(options: int) -> None:
    known = 0
    for bit in _OPTIONS.values():
        known |= bit
    if options & CONTINUOUS_MINE:
        raise OracleError(
            44609, "CONTINOUS_MINE is desupported for use with DBMS_LOGMNR.START_LOGMNR"
        )
    if options & ~known:
        raise OracleError(1283, "Options parameter specified is invalid")
    if options & DICT_FROM_ONLINE_CATALOG and options & (DICT_FROM_REDO_LOGS | DDL_DICT_TRACKING):
        raise OracleError(1283, "Options parameter specified is invalid")


def _range(
    start: int,
    end: int,
    logs: list[AddedLog],
    start_time: datetime | None,
    end_time: datetime | None,
) -> tuple[int, int]:
    """The SCN range to mine, proved to be covered by each thread's logs.

    A log that is still written has no end: an ``end`` beyond the last redo is accepted when it is
    on the list.

    Raises:
        OracleError: ORA-01281 for a range that is none, ORA-01291 for one that the logs do not
            cover.
    """
    if start < 0 or end < 0 or (end and end < start):
        raise OracleError(1281, "SCN range specified is invalid")
    if start and start < min(added.log.first_change for added in logs):
        raise OracleError(1291, "missing log file")
    covered: list[tuple[int, int]] = []
    for thread in sorted({added.log.thread for added in logs}):
        own = [added.log for added in logs if added.log.thread == thread]
        if start_time is not None and not start:
            own = [log for log in own if _after(log.next_time, start_time)]
        if end_time is not None and not end:
            own = [
                log for log in own if datetime.fromtimestamp(log.first_time, UTC) <= _utc(end_time)
            ]
        if not own:
            raise OracleError(1291, "missing log file")
        covered.append(_covered(own, start, end))
    return start or min(low for low, _ in covered), end or max(high for _, high in covered)


def _covered(logs: list[store.Log], start: int, end: int) -> tuple[int, int]:
    """What one thread's logs cover: they go on without a gap, but where the thread was closed."""
    low = max((log.first_change for log in logs if log.first_change <= start), default=None)
    if start and low is None:
        if not logs[0].opens:
            raise OracleError(1291, "missing log file")
        low = logs[0].first_change
    needed = [
        log
        for log in logs
        if (not start or log.first_change >= cast(int, low))
        and (not end or log.first_change <= end)
    ]
    for earlier, later in pairwise(needed):
        if later.sequence != earlier.sequence + 1:
            raise OracleError(1291, "missing log file")
    last = needed[-1] if needed else None
    is_ended = last is not None and last.next_change is not None and not last.closes
    high = cast(int, last.next_change) if last is not None and is_ended else NEXT_CHANGE_OPEN
    if max(start, end) > high:
        raise OracleError(1291, "missing log file")
    return (needed or logs)[0].first_change, high


def _after(when: int | None, start_time: datetime) -> bool:
    return when is None or datetime.fromtimestamp(when, UTC) >= _utc(start_time)


def _utc(when: datetime) -> datetime:
    return when.replace(tzinfo=UTC)


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise OracleError(1284, "file  cannot be opened")
    return value


def _scn(value: object) -> int:
    """A NUMBER argument; PL/SQL converts text as well."""
    if value is None:
        return 0
    try:
        return int(Decimal(str(value)))
    except (InvalidOperation, ValueError) as error:
        raise OracleError(6502, "PL/SQL: numeric or value error") from error

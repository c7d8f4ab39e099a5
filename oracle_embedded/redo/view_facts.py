"""What do the V$ views about redo, logs and transactions show?

Source: Oracle Database Reference 19c, Dynamic Performance Views.
"""

from __future__ import annotations

import resource
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime

from oracle_embedded.api import (
    COMPATIBLE,
    ROOT_DBID,
    DatabaseView,
    EngineSession,
    TransactionInfo,
    session_address,
)
from oracle_embedded.faults import FaultEvent, FaultKind, FaultRegistry
from oracle_embedded.redo import standby, store, threads
from oracle_embedded.redo.logs import (
    BLOCK_BYTES,
    archive_directory,
    blocks_from_bytes,
    group_of,
    member_name,
    resetlogs_id,
)
from oracle_embedded.redo.miner import ROOT, Miner
from oracle_embedded.redo.settings import RedoSettings, Wart
from oracle_embedded.redo.sink import Sink

Fact = str | int | bytes | None
Row = dict[str, Fact]
_DESTINATIONS = 31
_STATISTICS = (
    "session uga memory",
    "session uga memory max",
    "session pga memory",
    "session pga memory max",
    "SQL*Net roundtrips to/from client",
    "parse count (total)",
    "execute count",
    "user commits",
    "user rollbacks",
    "opened cursors current",
)
_ACTIVE_SEQUENCES = 1
_USERS = "USERS"
_TABLESPACES = ("SYSTEM", "SYSAUX", "UNDOTBS1", _USERS)
_CONTAINER = 3


class Facts:
    """All views but V$LOGMNR_CONTENTS as facts by column name; what a view does not name is NULL.

    A row with ``INST_ID`` belongs to one instance; one without is of the control file, which every
    instance shows.
    """

    def __init__(
        self,
        database: DatabaseView,
        sink: Sink,
        miner: Miner,
        settings: RedoSettings,
        faults: FaultRegistry,
    ) -> None:
        self._database = database
        self._sink = sink
        self._miner = miner
        self._settings = settings
        self._faults = faults
        self._shown_transactions: set[bytes] = set()

    def _logs(self) -> list[store.Log]:
        with self._database.reading() as connection:
            return store.read_logs(connection)

    def sources(self) -> dict[str, Callable[[EngineSession], Iterable[Row]]]:
        """What fills each view."""
        return {
            "V$DATABASE": self._database_facts,
            "V$DATABASE_INCARNATION": self._incarnations,
            "V$PDB_INCARNATION": self._pdb_incarnations,
            "V$LOG": self._log_facts,
            "V$LOGFILE": self._logfiles,
            "V$ARCHIVED_LOG": self._archived_logs,
            "V$LOG_HISTORY": self._log_history,
            "V$ARCHIVE_DEST": self._destinations,
            "V$ARCHIVE_DEST_STATUS": self._destination_states,
            "V$DATAFILE": self._datafiles,
            "V$TABLESPACE": self._tablespaces,
            "V$THREAD": self._threads,
            "V$TRANSACTION": self._transactions,
            "V$LOGMNR_LOGS": self._logmnr_logs,
            "V$LOGMNR_PARAMETERS": self._logmnr_parameters,
            "V$STATNAME": self._statistic_names,
            "V$MYSTAT": self._statistics,
            "V$SESSTAT": self._session_statistics,
            "V$SYSSTAT": self._system_statistics,
        }

    # --- database and incarnation -----------------------------------------------------------------

    def _database_facts(self, session: EngineSession) -> Iterator[Row]:
        [facts] = self._primary_facts()
        in_root = session.parameter("CONTAINER").upper() == ROOT
        facts["CON_DBID"] = ROOT_DBID if in_root else self._database.container_dbid
        site = session.standby
        if site is not None:
            scn = facts["CURRENT_SCN"] if site.applied_scn is None else site.applied_scn
            facts |= {
                "DB_UNIQUE_NAME": site.name,
                "DATABASE_ROLE": site.role,
                "OPEN_MODE": site.open_mode,
                "CONTROLFILE_TYPE": "STANDBY",
                "CURRENT_SCN": scn,
                "CHECKPOINT_CHANGE#": scn,
                "CONTROLFILE_CHANGE#": scn,
            }
            if site.dbid is not None:
                facts["DBID"] = site.dbid
            reset = standby.incarnation(self._logs(), site)
            if reset is not None:
                facts["RESETLOGS_CHANGE#"], facts["RESETLOGS_TIME"] = reset
        yield facts

    def _primary_facts(self) -> Iterator[Row]:
        scn = self._database.current_scn()
        with self._database.reading() as connection:
            meta = store.read_meta(connection)
            logs = store.read_logs(connection)
        incarnation = len({log.resetlogs_change for log in logs})
        kinds = set(meta["supplemental"])
        archived = [log for log in logs if log.archived]
        yes = {kind: "YES" if kind in kinds else "NO" for kind in ("PK", "UI", "FK", "ALL")}
        minimal = "YES" if "MIN" in kinds else "IMPLICIT" if kinds else "NO"
        yield {
            "DBID": meta["dbid"],
            "NAME": self._database.database_name,
            "DB_UNIQUE_NAME": self._database.database_name,
            "CREATED": meta["created"],
            "RESETLOGS_CHANGE#": meta["resetlogs_change"],
            "RESETLOGS_TIME": meta["resetlogs_time"],
            "PRIOR_RESETLOGS_CHANGE#": 0,
            "LOG_MODE": meta["log_mode"],
            "CHECKPOINT_CHANGE#": scn,
            "ARCHIVE_CHANGE#": archived[-1].next_change if archived else 0,
            "ARCHIVELOG_CHANGE#": archived[-1].next_change if archived else 0,
            "CONTROLFILE_TYPE": "CURRENT",
            "CONTROLFILE_CREATED": meta["created"],
            "CONTROLFILE_CHANGE#": scn,
            "OPEN_RESETLOGS": "NOT ALLOWED",
            "VERSION_TIME": meta["created"],
            "OPEN_MODE": self._sink.open_mode,
            "PROTECTION_MODE": "MAXIMUM PERFORMANCE",
            "PROTECTION_LEVEL": "MAXIMUM PERFORMANCE",
            "REMOTE_ARCHIVE": "ENABLED",
            "DATABASE_ROLE": self._sink.role,
            "ARCHIVELOG_COMPRESSION": "DISABLED",
            "SWITCHOVER_STATUS": "NOT ALLOWED",
            "DATAGUARD_BROKER": "DISABLED",
            "GUARD_STATUS": "NONE",
            "SUPPLEMENTAL_LOG_DATA_MIN": minimal,
            **{f"SUPPLEMENTAL_LOG_DATA_{kind}": flag for kind, flag in yes.items()},
            "SUPPLEMENTAL_LOG_DATA_PL": "NO",
            "SUPPLEMENTAL_LOG_DATA_SR": "NO",
            "FS_FAILOVER_MODE": "DISABLED",
            "FS_FAILOVER_STATUS": "DISABLED",
            "FS_FAILOVER_THRESHOLD": 0,
            "CONTROLFILE_CONVERTED": "NO",
            "PENDING_ROLE_CHANGE_TASKS": "NOT APPLICABLE",
            "FORCE_FULL_DB_CACHING": "NO",
            "FORCE_LOGGING": "NO",
            "PLATFORM_ID": 13,
            "PLATFORM_NAME": "Linux x86 64-bit",
            "RECOVERY_TARGET_INCARNATION#": incarnation,
            "LAST_OPEN_INCARNATION#": incarnation,
            "CURRENT_SCN": scn,
            "FLASHBACK_ON": "NO",
            "CDB": "YES",
            "CON_ID": 0,
        }

    def _datafiles(self, _session: EngineSession) -> Iterator[Row]:
        with self._database.reading() as connection:
            meta = store.read_meta(connection)
        for number, name in enumerate(_TABLESPACES):
            yield {
                "FILE#": number + 1,
                "TS#": number,
                "RFILE#": number + 1,
                "STATUS": "SYSTEM" if name == "SYSTEM" else "ONLINE",
                "ENABLED": "READ WRITE",
                "CHECKPOINT_CHANGE#": self._database.current_scn(),
                "UNRECOVERABLE_CHANGE#": meta.get("unrecoverable_change", 0)
                if name == _USERS
                else 0,
                "BLOCK_SIZE": 8192,
                "NAME": f"{self._settings.directory}/{name.lower()}01.dbf",
                "CON_ID": _CONTAINER,
            }

    def _tablespaces(self, _session: EngineSession) -> Iterator[Row]:
        for number, name in enumerate(_TABLESPACES):
            yield {"TS#": number, "NAME": name, "BIGFILE": "NO", "CON_ID": _CONTAINER}

    def _incarnations(self, _session: EngineSession) -> Iterator[Row]:
        known = sorted({(log.resetlogs_change, log.resetlogs_time) for log in self._logs()})
        for number, (scn, when) in enumerate(known, 1):
            prior = known[number - 2] if number > 1 else (0, None)
            yield {
                "INCARNATION#": number,
                "RESETLOGS_CHANGE#": scn,
                "RESETLOGS_TIME": when,
                "PRIOR_RESETLOGS_CHANGE#": prior[0],
                "PRIOR_RESETLOGS_TIME": prior[1],
                "STATUS": "CURRENT" if number == len(known) else "PARENT",
                "RESETLOGS_ID": resetlogs_id(when),
                "PRIOR_INCARNATION#": number - 1,
                "CON_ID": 0,
            }

    def _pdb_incarnations(self, _session: EngineSession) -> Iterator[Row]:
        with self._database.reading() as connection:
            meta = store.read_meta(connection)
            logs = store.read_logs(connection)
        database = len({log.resetlogs_change for log in logs})
        opened = [(1, meta["created"]), *meta.get("pdb_resets", [])]
        for number, (scn, when) in enumerate(opened):
            yield {
                "DB_INCARNATION#": database,
                "PDB_INCARNATION#": number,
                "STATUS": "CURRENT" if number == len(opened) - 1 else "PARENT",
                "INCARNATION_SCN": scn,
                "INCARNATION_TIME": when,
                "BEGIN_RESETLOGS_SCN": scn,
                "BEGIN_RESETLOGS_TIME": when,
                "END_RESETLOGS_SCN": scn,
                "END_RESETLOGS_TIME": when,
                "PRIOR_DB_INCARNATION#": database if number else 0,
                "PRIOR_PDB_INCARNATION#": str(max(number - 1, 0)),
                "FLASHBACK_DATABASE_ALLOWED": "NO",
                "CON_ID": _CONTAINER,
            }

    # --- logs -------------------------------------------------------------------------------------

    def _groups(self) -> Iterator[tuple[int, int]]:
        """Each log group with its thread."""
        with self._database.reading() as connection:
            known = threads.read_threads(connection)
        for thread in known:
            for sequence in range(1, self._settings.groups + 1):
                yield group_of(thread.thread, sequence, self._settings), thread.thread

    def _log_facts(self, session: EngineSession) -> Iterator[Row]:
        if session.standby is not None:
            for group, thread in self._groups():
                yield {
                    "GROUP#": group,
                    "THREAD#": thread,
                    "SEQUENCE#": 0,
                    "BYTES": self._settings.log_bytes,
                    "BLOCKSIZE": BLOCK_BYTES,
                    "MEMBERS": 1,
                    "ARCHIVED": "YES",
                    "STATUS": "UNUSED",
                    "FIRST_CHANGE#": 0,
                    "NEXT_CHANGE#": 0,
                    "CON_ID": 0,
                }
            return
        logs = self._logs()
        if FaultKind.SWITCH_IN_PROGRESS in self._faults.shown(FaultEvent.LOGS):
            logs = logs[:-1]
        held = {log.group_number: log for log in store.online_logs(logs).values()}
        newest = {log.thread: log.sequence for log in logs}
        for group, thread in self._groups():
            log = held.get(group)
            yield {
                "GROUP#": group,
                "THREAD#": thread,
                "SEQUENCE#": log.sequence if log else 0,
                "BYTES": self._settings.log_bytes,
                "BLOCKSIZE": BLOCK_BYTES,
                "MEMBERS": 1,
                "ARCHIVED": "YES" if log is None or log.archived else "NO",
                "STATUS": _log_status(log, newest),
                "FIRST_CHANGE#": log.first_change if log else 0,
                "FIRST_TIME": log.first_time if log else None,
                "NEXT_CHANGE#": (log.next_change or self._settings.next_change_open) if log else 0,
                "NEXT_TIME": log.next_time if log else None,
                "CON_ID": 0,
            }

    def _logfiles(self, _session: EngineSession) -> Iterator[Row]:
        for group, _thread in self._groups():
            yield {
                "GROUP#": group,
                "TYPE": "ONLINE",
                "MEMBER": member_name(group, self._settings, self._database),
                "IS_RECOVERY_DEST_FILE": "NO",
                "CON_ID": 0,
            }

    def _archived_logs(self, session: EngineSession) -> Iterator[Row]:
        for log, facts in self._archived():
            site = session.standby
            if site is not None:
                if not standby.received([log], site):
                    continue
                name = standby.file_name(log, site, self._settings)
                facts |= {
                    "NAME": name,
                    "REGISTRAR": "RFS",
                    "APPLIED": "YES" if standby.is_applied(log, site) else "NO",
                    "DELETED": "YES" if name is None else "NO",
                    "STATUS": "D" if name is None else "A",
                }
            yield facts

    def _archived(self) -> Iterator[tuple[store.Log, Row]]:
        with self._database.reading() as connection:
            meta = store.read_meta(connection)
            logs = store.read_logs(connection)
        for record, log in enumerate((log for log in logs if log.archived), 1):
            facts: Row = {
                **_log_span(log, record),
                "NAME": log.name,
                "DEST_ID": 1,
                "RESETLOGS_ID": resetlogs_id(log.resetlogs_time),
                "NEXT_TIME": log.next_time,
                "BLOCKS": blocks_from_bytes(log.bytes_used),
                "BLOCK_SIZE": BLOCK_BYTES,
                "CREATOR": "ARCH",
                "REGISTRAR": "ARCH",
                "STANDBY_DEST": "NO",
                "ARCHIVED": "YES",
                "APPLIED": "NO",
                "DELETED": "YES" if log.deleted else "NO",
                "STATUS": "D" if log.deleted else "A",
                "COMPLETION_TIME": log.completed,
                "DICTIONARY_BEGIN": "YES" if log.dictionary_begin else "NO",
                "DICTIONARY_END": "YES" if log.dictionary_end else "NO",
                "END_OF_REDO": "NO",
                "BACKUP_COUNT": 0,
                "ARCHIVAL_THREAD#": log.thread,
                "ACTIVATION#": meta["dbid"],
                "IS_RECOVERY_DEST_FILE": "NO",
                "COMPRESSED": "NO",
                "FAL": "NO",
                "BACKED_BY_VSS": "NO",
            }
            yield log, facts

    def _log_history(self, _session: EngineSession) -> Iterator[Row]:
        ended = (log for log in self._logs() if log.next_change is not None)
        for record, log in enumerate(ended, 1):
            yield _log_span(log, record)

    def _destinations(self, _session: EngineSession) -> Iterator[Row]:
        for number in range(1, _DESTINATIONS + 1):
            valid = number == 1
            yield {
                **_destination(number),
                "BINDING": "OPTIONAL",
                "NAME_SPACE": "SYSTEM",
                "TARGET": "PRIMARY",
                "ARCHIVER": "ARCH",
                "SCHEDULE": "ACTIVE" if valid else "INACTIVE",
                "DESTINATION": self._archive_directory() if valid else None,
                "LOG_SEQUENCE": max(
                    (log.sequence for log in self._logs() if log.archived), default=0
                )
                if valid
                else 0,
                "VALID_NOW": "YES" if valid else "UNKNOWN",
                "VALID_TYPE": "ALL_LOGFILES",
                "VALID_ROLE": "ALL_ROLES",
            }

    def _destination_states(self, _session: EngineSession) -> Iterator[Row]:
        newest = max((log.sequence for log in self._logs() if log.archived), default=0)
        for number in range(1, _DESTINATIONS + 1):
            valid = number == 1
            yield {
                **_destination(number),
                "TYPE": "LOCAL",
                "DATABASE_MODE": "OPEN" if valid else "UNKNOWN",
                "RECOVERY_MODE": "IDLE",
                "PROTECTION_MODE": "MAXIMUM PERFORMANCE",
                "DESTINATION": self._archive_directory() if valid else None,
                "ARCHIVED_THREAD#": 1 if valid and newest else 0,
                "ARCHIVED_SEQ#": newest if valid else 0,
                "APPLIED_THREAD#": 0,
                "APPLIED_SEQ#": 0,
                "SRL": "NO",
                "DB_UNIQUE_NAME": "NONE",
                "SYNCHRONIZATION_STATUS": "CHECK CONFIGURATION",
                "SYNCHRONIZED": "NO",
            }

    def _archive_directory(self) -> str:
        return archive_directory(self._settings, self._database)

    def _threads(self, session: EngineSession) -> Iterator[Row]:
        """On a standby LAST_REDO_CHANGE# means nothing (Oracle Database Reference): it stands at 0
        here."""
        self._sink.keep_alive()
        of_standby: Row = {} if session.standby is None else {"LAST_REDO_CHANGE#": 0}
        with self._database.reading() as connection:
            for thread in threads.read_threads(connection):
                yield self._thread_facts(thread, connection) | of_standby

    def _thread_facts(self, thread: threads.Thread, connection: sqlite3.Connection) -> Row:
        logs = [log for log in store.read_logs(connection) if log.thread == thread.thread]
        facts: Row = {
            "THREAD#": thread.thread,
            "STATUS": "OPEN" if thread.is_open else "CLOSED",
            "ENABLED": thread.enabled,
            "GROUPS": self._settings.groups,
            "INSTANCE": self._instance_name(thread.thread),
            "OPEN_TIME": thread.open_time,
            "ENABLE_CHANGE#": thread.enable_change,
            "ENABLE_TIME": thread.enable_time,
            "DISABLE_CHANGE#": thread.disable_change,
            "DISABLE_TIME": thread.disable_time,
            "CON_ID": 0,
        }
        if not logs:
            return facts
        newest = logs[-1]
        (time,) = connection.execute(
            "SELECT time FROM redo_record WHERE log_id = ? AND id >= ? ORDER BY id DESC LIMIT 1",
            (newest.log_id, newest.first_id),
        ).fetchone() or (newest.first_time,)
        return {
            **facts,
            "CURRENT_GROUP#": newest.group_number,
            "SEQUENCE#": newest.sequence,
            "CHECKPOINT_CHANGE#": newest.first_change if thread.is_open else thread.close_change,
            "CHECKPOINT_TIME": newest.first_time,
            "LAST_REDO_SEQUENCE#": newest.sequence,
            "LAST_REDO_BLOCK": blocks_from_bytes(newest.bytes_used),
            "LAST_REDO_CHANGE#": max(
                newest.last_change or newest.first_change,
                self._sink.writer.written_beside(thread.thread),
            ),
            "LAST_REDO_TIME": time,
        }

    def _instance_name(self, thread: int) -> str:
        name = self._database.instance_name
        return name if thread == threads.FIRST else f"{name}{thread}"

    # --- instances --------------------------------------------------------------------------------

    def instances(self) -> list[int]:
        """Numbers of the running instances: each writes the thread of its number."""
        with self._database.reading() as connection:
            return [found.thread for found in threads.read_threads(connection) if found.is_open]

    def instance_of(self, session: EngineSession) -> int:
        """The instance to which a session is connected."""
        return self._sink.thread_of(session.session_id)

    # --- sessions ---------------------------------------------------------------------------------

    def _transactions(self, session: EngineSession) -> Iterator[Row]:
        """A standby shows none of the primary's."""
        if session.standby is not None:
            return
        known, hides = self._shown_transactions, Wart.UNASSIGNED_START_SCNS in self._sink.warts
        transactions = self._database.open_transactions()
        self._shown_transactions = {one.xid for one in transactions}
        for transaction in transactions:
            facts = _transaction_facts(transaction)
            if hides and transaction.xid not in known:
                facts |= {"START_SCN": 0, "START_SCNB": 0, "START_SCNW": 0}
            yield facts | {"INST_ID": self._sink.thread_of_transaction(transaction)}

    def _logmnr_logs(self, session: EngineSession) -> Iterator[Row]:
        with self._database.reading() as connection:
            meta = store.read_meta(connection)
        for added in self._miner.state(session).added:
            log = added.log
            yield {
                "LOG_ID": log.sequence,
                "FILENAME": added.name,
                "LOW_TIME": log.first_time,
                "HIGH_TIME": log.next_time,
                "DB_ID": meta["dbid"],
                "DB_NAME": self._database.database_name,
                "RESET_SCN": log.resetlogs_change,
                "RESET_SCN_TIME": log.resetlogs_time,
                "COMPATIBLE": COMPATIBLE,
                "THREAD_ID": log.thread,
                "THREAD_SQN": log.sequence,
                "LOW_SCN": log.first_change,
                "NEXT_SCN": log.next_change or self._settings.next_change_open,
                "DICTIONARY_BEGIN": "YES" if log.dictionary_begin else "NO",
                "DICTIONARY_END": "YES" if log.dictionary_end else "NO",
                "TYPE": "ONLINE" if added.name == log.member else "ARCHIVED",
                "BLOCKSIZE": BLOCK_BYTES,
                "FILESIZE": blocks_from_bytes(log.bytes_used) * BLOCK_BYTES,
                "STATUS": 0,
                "CON_ID": 0,
            }

    def _logmnr_parameters(self, session: EngineSession) -> Iterator[Row]:
        mining = self._miner.state(session).mining
        if mining is not None:
            yield {
                "START_DATE": _seconds(mining.start_time),
                "END_DATE": _seconds(mining.end_time),
                "START_SCN": mining.scn_low,
                "REQUIRED_START_SCN": 0,
                "END_SCN": mining.scn_high,
                "OPTIONS": mining.options,
                "STATUS": 0,
                "CON_ID": 0,
            }

    def _statistic_names(self, _session: EngineSession) -> Iterator[Row]:
        for number, name in enumerate(_STATISTICS):
            yield {
                "STATISTIC#": number,
                "NAME": name,
                "DISPLAY_NAME": name,
                "CLASS": 1,
                "CON_ID": 0,
            }

    def _statistics(self, session: EngineSession) -> Iterator[Row]:
        counts = self._database.session_statistics().get(session.session_id, {})
        yield from _statistics_of(session.session_id, counts)

    def _session_statistics(self, _session: EngineSession) -> Iterator[Row]:
        for session_id, counts in self._database.session_statistics().items():
            yield from _statistics_of(session_id, counts)

    def _system_statistics(self, _session: EngineSession) -> Iterator[Row]:
        """What all sessions have counted since the start; memory is that of the process."""
        total = Counter(self._database.ended_statistics())
        for counts in self._database.session_statistics().values():
            total.update(counts)
        for row in _statistics_of(0, total):
            number = row["STATISTIC#"]
            assert isinstance(number, int)
            yield {"STATISTIC#": number, "NAME": _STATISTICS[number], "CLASS": 1, "VALUE": row["VALUE"], "CON_ID": 0}  # fmt: skip


def _statistics_of(session_id: int, counts: Mapping[str, int]) -> Iterator[Row]:
    """What a session has counted; the rest is memory."""
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    for number, name in enumerate(_STATISTICS):
        value = counts.get(name, used)
        yield {"SID": session_id, "STATISTIC#": number, "VALUE": value, "CON_ID": 0}


def _log_status(log: store.Log | None, newest: Mapping[int, int]) -> str:
    """STATUS in V$LOG; ``newest`` is the highest sequence of each thread."""
    if log is None:
        return "UNUSED"
    if log.next_change is None:
        return "CURRENT"
    behind = newest[log.thread] - log.sequence
    return "ACTIVE" if behind <= _ACTIVE_SEQUENCES else "INACTIVE"


def _log_span(log: store.Log, record: int) -> Row:
    return {
        "RECID": record,
        "STAMP": log.next_time,
        "THREAD#": log.thread,
        "SEQUENCE#": log.sequence,
        "FIRST_CHANGE#": log.first_change,
        "FIRST_TIME": log.first_time,
        "NEXT_CHANGE#": log.next_change,
        "RESETLOGS_CHANGE#": log.resetlogs_change,
        "RESETLOGS_TIME": log.resetlogs_time,
        "CON_ID": 0,
    }


def _destination(number: int) -> Row:
    return {
        "DEST_ID": number,
        "DEST_NAME": f"LOG_ARCHIVE_DEST_{number}",
        "STATUS": "VALID" if number == 1 else "INACTIVE",
        "CON_ID": 0,
    }


def _transaction_facts(transaction: TransactionInfo) -> Row:
    xid = transaction.xid
    usn, slot, sequence = (int.from_bytes(xid[a:b], "little") for a, b in ((0, 2), (2, 4), (4, 8)))
    when = datetime.fromtimestamp(transaction.start_time, UTC)
    return {
        "ADDR": session_address(sequence),
        "XIDUSN": usn,
        "XIDSLOT": slot,
        "XIDSQN": sequence,
        "STATUS": "ACTIVE",
        "START_TIME": when.strftime("%m/%d/%y %H:%M:%S"),
        "START_SCNB": transaction.start_scn & 0xFFFFFFFF,
        "START_SCNW": transaction.start_scn >> 32,
        "SES_ADDR": session_address(transaction.session_id),
        "FLAG": 3587,
        "SPACE": "NO",
        "RECURSIVE": "NO",
        "NOUNDO": "NO",
        "PTX": "NO",
        "USED_UBLK": 1,
        "USED_UREC": 1,
        "START_DATE": int(transaction.start_time),
        "START_SCN": transaction.start_scn,
        "DEPENDENT_SCN": 0,
        "XID": xid,
        "PRV_XID": bytes(8),
        "PTX_XID": bytes(8),
        "CON_ID": 0,
    }


def _seconds(when: datetime | None) -> int | None:
    return None if when is None else int(when.replace(tzinfo=UTC).timestamp())

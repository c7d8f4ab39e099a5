"""What do ALTER DATABASE and ALTER SYSTEM change about the redo?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations

from oracle_embedded.api import DatabaseView, EngineSession, OracleError
from oracle_embedded.redo import store, threads
from oracle_embedded.redo.sink import Sink

_KINDS = {"ALL": "ALL", "PRIMARY KEY": "PK", "UNIQUE": "UI", "FOREIGN KEY": "FK"}
THREADS_MAX = 4
Hook = Callable[[EngineSession], None]


def register_hooks(database: DatabaseView, sink: Sink) -> None:
    """Offer the engine the ALTER statements that are about redo."""
    system = database.alter_system_hooks()
    system["SWITCH LOGFILE"] = _switch_hook(database, sink)
    system["ARCHIVE LOG CURRENT"] = _switch_all_hook(database, sink)
    system["CHECKPOINT"] = _nothing
    hooks = database.alter_database_hooks()
    for add, verb in ((True, "ADD"), (False, "DROP")):
        for clause, kinds in _clauses():
            hooks[f"{verb} SUPPLEMENTAL LOG DATA{clause}"] = _supplemental_hook(
                database, sink, kinds, add
            )
    for thread in range(1, THREADS_MAX + 1):
        for clause, kind in (("", threads.PRIVATE), ("PUBLIC ", threads.PUBLIC)):
            hooks[f"ENABLE {clause}THREAD {thread}"] = _enable_hook(database, sink, thread, kind)
        hooks[f"DISABLE THREAD {thread}"] = _disable_hook(database, sink, thread)
    for mode in ("ARCHIVELOG", "NOARCHIVELOG"):
        hooks[mode] = _refuse_mode


def _clauses() -> Iterator[tuple[str, tuple[str, ...]]]:
    yield "", ("MIN",)
    for size in range(1, len(_KINDS) + 1):
        for kinds in permutations(_KINDS, size):
            yield f" ({', '.join(kinds)}) COLUMNS", tuple(_KINDS[kind] for kind in kinds)


def _supplemental_hook(
    database: DatabaseView, sink: Sink, kinds: tuple[str, ...], add: bool
) -> Hook:
    def alter(_session: EngineSession) -> None:
        with database.writing():
            before = set(sink.supplemental)
            after = before | set(kinds) if add else before - set(kinds)
            if not add and "MIN" in kinds and after:
                raise OracleError(32589, "unable to drop minimal supplemental logging")
            store.write_meta(sink.connection, {"supplemental": sorted(after)})
            sink.load_supplemental()

    return alter


def _switch_hook(database: DatabaseView, sink: Sink) -> Hook:
    """SWITCH LOGFILE is about the thread of the session's instance."""

    def switch(session: EngineSession) -> None:
        with database.writing():
            sink.writer.switch(sink.thread_of(session.session_id))

    return switch


def _switch_all_hook(database: DatabaseView, sink: Sink) -> Hook:
    """ARCHIVE LOG CURRENT is about all threads."""

    def switch(_session: EngineSession) -> None:
        with database.writing():
            sink.writer.switch(*sink.writer.open_threads)

    return switch


def _enable_hook(database: DatabaseView, sink: Sink, thread: int, kind: str) -> Hook:
    def enable(_session: EngineSession) -> None:
        with database.writing():
            sink.writer.enable_thread(thread, kind)

    return enable


def _disable_hook(database: DatabaseView, sink: Sink, thread: int) -> Hook:
    def disable(_session: EngineSession) -> None:
        with database.writing():
            sink.writer.disable_thread(thread)

    return disable


def _nothing(_session: EngineSession) -> None:
    """A checkpoint moves data files, which this database has none of."""


def _refuse_mode(_session: EngineSession) -> None:
    raise OracleError(
        1126, "database must be mounted in this instance and not open in any instance"
    )

"""How do two pluggable databases stand in one container database?

Each is a storage of its own, so owners, tables, object numbers and transaction numbers of both can be equal, as in Oracle. They share the
SCNs, the lock of the writer, and the logs: a log that is switched ends in both at one SCN, and LogMiner in the root shows the redo of
both, each row with its container. Each is served by a listener of its own, and either listener leads to the root.

Known differences from Oracle: sessions do not change from one to the other; LAST_REDO_CHANGE#, V$TRANSACTION and the size of a log are
those of the container through which the root was reached; rows of the other one are named by the present dictionary alone.
"""

from __future__ import annotations

import threading

from oracle_embedded.database import OpenDatabase


def plug_in(database: OpenDatabase, other: OpenDatabase) -> None:
    """Make ``other`` a pluggable database beside that of ``database``; both are new and served to nobody yet."""
    first, second = database.engine, other.engine
    with first.store.lock, second.store.lock:
        clock = first.store.clock
        clock.value = max(clock.value, second.store.clock.value)
        second.store.clock = clock
        second.store.lock = first.store.lock
        second.store.changed = threading.Condition(first.store.lock)
        with second.writing():
            other.redo.sink.writer.join(database.redo.sink.writer)
    database.redo.contents.beside.append(other.redo.contents)
    other.redo.contents.beside.append(database.redo.contents)
    first.other_containers[second.container_name] = second.container_id
    second.other_containers[first.container_name] = first.container_id

"""Which answers of the metadata store still hold, so that nobody has to ask for them again?

A step looks before it acts, so a window asks for the same records a dozen times. A connection to a
SQLite file tells cheaply whether another one has committed to it
(``PRAGMA data_version``, https://sqlite.org/pragma.html#pragma_data_version). An answer is cached
with that version, and with how often this connection itself has written to the tables that were
asked. It is served while both stand, so it is what the store would answer now. PostgreSQL has no
such version, and is asked each time.
"""

from __future__ import annotations

import re
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sized
from contextlib import contextmanager
from copy import copy
from functools import lru_cache
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from cdc_core.state.sql_tables import METADATA

T = TypeVar("T")

_ANSWERS_MAX = 1_000
"""Behind so many, all are forgotten: a process that works alone has one version for days."""
_ROWS_MAX = 1_000
"""Longer answers, such as all chunks of a large snapshot, are not cached."""
_CLOSING_SECONDS = 0.1
_NAMES = re.compile(rf"\b({'|'.join(METADATA.tables)})\b", re.IGNORECASE)


class ProcessConnection:
    """The connection to a SQLite file that a process keeps open. One thread uses it at a time; a
    thread that needs a connection meanwhile takes another one from the engine's pool."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._turn = threading.Lock()
        self._connection: Connection | None = None
        self._openings = 0
        self._is_closed = False

    @contextmanager
    def connected(self) -> Iterator[Connection]:
        """A connection without a transaction, for the block."""
        if not self._turn.acquire(blocking=False):
            with self._engine.connect() as connection:
                yield connection
            return
        try:
            connection = self._opened()
            try:
                yield connection
            finally:
                connection.rollback()  # ends what was read
        except (SQLAlchemyError, sqlite3.Error):
            self._drop()
            raise
        finally:
            self._end_turn()

    def version(self) -> tuple[int, int] | None:
        """A value that differs from an earlier one if another connection, of this process or any
        other, has committed in between; None while a thread uses the connection, and where the
        file cannot be read."""
        if not self._turn.acquire(blocking=False):
            return None
        try:
            connection: Any = self._opened().connection.dbapi_connection
            [(version,)] = connection.execute("PRAGMA data_version").fetchall()
            return self._openings, version
        except (SQLAlchemyError, sqlite3.Error):
            self._drop()
            return None
        finally:
            self._end_turn()

    def close(self) -> None:
        """Close the connection, as soon as no thread uses it. May be called twice."""
        self._is_closed = True
        if self._turn.acquire(timeout=_CLOSING_SECONDS):
            self._end_turn()

    def _opened(self) -> Connection:
        if self._connection is None:
            self._connection = self._engine.connect()
            self._openings += 1
        return self._connection

    def _end_turn(self) -> None:
        if self._is_closed:
            self._drop()
        self._turn.release()

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


class ReadCache:
    """The answers of one version of the database. Safe for use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._version: Hashable = None
        self._answers: dict[Hashable, tuple[Any, dict[str, int]]] = {}
        self._writes: Counter[str] = Counter()
        self._local = threading.local()

    def note(self, statement: str) -> None:
        """Note which of the store's tables a statement of the calling thread reads or writes."""
        is_read = statement.startswith("SELECT")
        names = getattr(self._local, "reads" if is_read else "writes", None)
        if names is not None:
            names.update(_tables_in(statement))

    @contextmanager
    def writing(self) -> Iterator[None]:
        """For a transaction that writes, from before its beginning until behind its end."""
        self._local.writes = written = set[str]()
        try:
            yield
        finally:  # a commit that raises may have been one
            self._local.writes = None
            with self._lock:
                self._writes.update(written)

    def answer(self, version: Hashable, question: Hashable, ask: Callable[[], T]) -> T:
        """The cached answer to a question, or what ``ask`` gives. Lists and dictionaries are
        copied: the caller may change them.

        Args:
            version: What the database said before the question came up.
            question: Equal for equal questions.
            ask: Asks the database. If somebody commits meanwhile, the answer is of a later version,
                and is not served again: the next caller comes with that version.
        """
        outer = getattr(self._local, "reads", None)
        read = set[str]()
        with self._lock:
            if version != self._version:
                self._version, self._answers = version, {}
            answers, before = self._answers, self._writes.copy()
            found: Any
            found, asked = answers.get(question, (None, None))
        if asked is not None and all(before[name] == count for name, count in asked.items()):
            read.update(asked)
        else:
            self._local.reads = read
            try:
                found = ask()
            finally:
                self._local.reads = outer
            is_short = not isinstance(found, Sized) or len(found) <= _ROWS_MAX
            if is_short:
                if len(answers) >= _ANSWERS_MAX:
                    answers.clear()
                answers[question] = found, {name: before[name] for name in read}
        if outer is not None:  # this question came up within another one
            outer.update(read)
        answer: T = _copied(found)
        return answer


@lru_cache(maxsize=1024)
def _tables_in(statement: str) -> frozenset[str]:
    return frozenset(name.lower() for name in _NAMES.findall(statement))


def _copied(found: T) -> T:
    return copy(found) if isinstance(found, list | dict) else found

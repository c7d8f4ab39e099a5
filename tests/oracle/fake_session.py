"""A database session that answers from a table of prepared results, for cases that a real one shows only by accident."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import pyarrow as pa

Answer = list[tuple[Any, ...]] | Exception | Callable[[Mapping[str, Any]], list[tuple[Any, ...]]]


CHARACTER_SETS: Answer = [
    ("NLS_CHARACTERSET", "AL32UTF8"),
    ("NLS_NCHAR_CHARACTERSET", "AL16UTF16"),
    ("VERSION", "19.0.0.0.0"),
]


def times_of(binds: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """The present, in UTC and at the host, and the times of SCNs."""
    return [(datetime(2026, 6, 1, 12),) * (2 + len(binds))]


_PART = re.compile(r"\s*SELECT (.+?), ('\w+')\s+FROM\s", re.DOTALL)
"""A part of a UNION ALL whose last column says which part a row is of."""


class FakeSession:
    """Answers the first statement part that occurs in the SQL; keeps all statements in ``sent``.
    The parts of a UNION ALL that say which a row is of are answered each by itself, their rows as wide as they must be.

    ``batches`` are what Arrow queries give; an exception among them is raised when its turn comes.
    """

    user = "CAPTURE"
    is_cdb = False
    container = "ORCL"
    dbid = container_dbid = 42
    database_name = "ORCL"
    is_mining = False

    def __init__(
        self,
        answers: dict[str, Answer] | None = None,
        batches: list[pa.RecordBatch | Exception] | None = None,
        blocks: dict[str, Exception] | None = None,
    ) -> None:
        self.answers = {
            **(answers or {}),
            "NLS_DATABASE_PARAMETERS": CHARACTER_SETS,
            "SCN_TO_TIMESTAMP(:scn0)": times_of,
        }
        self.batches = batches or []
        self.blocks = blocks or {}
        self.sent: list[tuple[str, dict[str, Any]]] = []

    def fetch_all(self, sql: str, binds: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        self.sent.append((sql, dict(binds or {})))
        parts = sql.split("UNION ALL")
        heads = [_PART.match(part) for part in parts]
        if len(parts) == 1 or not all(heads):
            return self._answer(sql, binds)
        found = []
        for part, head in zip(parts, heads, strict=True):
            assert head is not None
            width = head[1].count(",") + 1
            for row in self._answer(part, binds):
                found.append((*row, *[None] * (width - len(row)), head[2].strip("'")))
        return found

    def _answer(self, sql: str, binds: Mapping[str, Any] | None) -> list[tuple[Any, ...]]:
        for part, answer in self.answers.items():
            if part in sql:
                if isinstance(answer, Exception):
                    raise answer
                return answer(binds or {}) if callable(answer) else answer
        raise AssertionError(f"no answer for {sql}")

    fetch_once = fetch_all

    def fetch_batches(
        self,
        sql: str,
        binds: Mapping[str, Any] | None = None,
        *,
        rows: int,
        schema: pa.Schema | None = None,
    ) -> Generator[pa.RecordBatch]:
        self.sent.append((sql, dict(binds or {})))
        for batch in self.batches:
            if isinstance(batch, Exception):
                raise batch
            yield batch

    def execute_block(self, plsql: str, binds: Mapping[str, Any] | None = None) -> None:
        self.sent.append((plsql, dict(binds or {})))
        for part, error in self.blocks.items():
            if part in plsql:
                raise error

    @contextmanager
    def in_root(self) -> Iterator[None]:
        yield

"""How does a source give each session so many rows a second and no more, on a machine that a real
one would share with us?

The rows of some queries are fetched once from the embedded Oracle through the real driver and kept,
and are then given again at that rate, to each session for itself. So what a query costs the
embedded Oracle, which has the same cores, does not hold several sessions up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from cdc_core.oracle.prefetch import prefetched
from cdc_core.oracle.session import OracleSession

Fetch = Any
KeyOf = Callable[[str, Mapping[str, Any]], Hashable | None]
"""What tells one answer from another, by a query and its binds; None of queries that Oracle
answers each time."""


@dataclass(slots=True)
class Slowed:
    """Keeps what some queries fetch, and gives it again slowly. ``fetched`` are the rows that the
    last replay gave."""

    rows_per_second: int
    key_of: KeyOf
    batches: dict[Hashable, list[pa.RecordBatch]] = field(default_factory=dict)
    fetched: int = 0
    fetch_really: Fetch = OracleSession.fetch_batches
    _counting: Lock = field(default_factory=Lock)

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Keep the rows for the block."""

        def fetch(session: OracleSession, sql: str, binds: Any = None, **more: Any) -> Any:
            found, key = self.fetch_really(session, sql, binds, **more), self.key_of(sql, binds)
            return found if key is None else self._kept(key, found)

        with patch.object(OracleSession, "fetch_batches", fetch):
            yield

    @contextmanager
    def replaying(self) -> Iterator[None]:
        """Give them slowly for the block."""
        self.fetched = 0

        def fetch(session: OracleSession, sql: str, binds: Any = None, **more: Any) -> Any:
            key = self.key_of(sql, binds)
            if key is None:
                return self.fetch_really(session, sql, binds, **more)
            return prefetched(self._slowly(key))

        with patch.object(OracleSession, "fetch_batches", fetch):
            yield

    def _kept(self, key: Hashable, found: Generator[pa.RecordBatch]) -> Generator[pa.RecordBatch]:
        kept = self.batches[key] = []
        for batch in found:
            kept.append(batch)
            yield batch

    def _slowly(self, key: Hashable) -> Iterator[pa.RecordBatch]:
        due = time.perf_counter()
        for batch in self.batches[key]:
            due += batch.num_rows / self.rows_per_second
            time.sleep(max(0.0, due - time.perf_counter()))
            with self._counting:
                self.fetched += batch.num_rows
            yield batch

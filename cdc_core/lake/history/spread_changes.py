"""How does a process look through a change log of any size, part of the keys by part, without
reading it once per part?

It goes through the log once and writes each change to the files of its key's part, in a temporary
folder that takes as much space as the log; then each part is read alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq

from cdc_core.delta.storage import storing
from cdc_core.stage.changes import LoggedChanges

_HELD_BYTES = 256 * 1024 * 1024
"""So much waits in memory, of all parts together."""


@contextmanager
def spread(changes: LoggedChanges, parts: int, **facts: object) -> Iterator[list[list[str]]]:
    """The files of each part of the keys, for as long as the block lasts.

    Raises:
        StoreUnavailableError: The disk is full or fails.
    """
    with (
        storing("spreading the changes of a change log over files", **facts),
        TemporaryDirectory(prefix="redolake-", ignore_cleanup_errors=True) as folder,
    ):
        files = _PartFiles(Path(folder), parts)
        try:
            changes.spread(parts, files.take)
        finally:
            files.close()
        yield files.names


class _PartFiles:
    """Files of parts: one per part and schema, since older files of a change log may have fewer
    columns."""

    def __init__(self, folder: Path, parts: int) -> None:
        self._folder = folder
        self._schemas: list[pa.Schema] = []
        self._held: dict[tuple[int, int], list[pa.Table]] = {}
        self._bytes = 0
        self._writers: dict[tuple[int, int], pq.ParquetWriter] = {}
        self.names: list[list[str]] = [[] for _ in range(parts)]

    def take(self, part: int, rows: pa.Table) -> None:
        """Take rows of a part."""
        if rows.schema not in self._schemas:
            self._schemas.append(rows.schema)
        self._held.setdefault((part, self._schemas.index(rows.schema)), []).append(rows)
        self._bytes += rows.nbytes
        if self._bytes >= _HELD_BYTES:
            self._flush()

    def close(self) -> None:
        """Write what is held, and close the files."""
        self._flush()
        for writer in self._writers.values():
            writer.close()

    def _flush(self) -> None:
        for (part, number), held in self._held.items():
            if (part, number) not in self._writers:
                path = str(self._folder / f"{part}-{number}.parquet")
                writer = pq.ParquetWriter(path, self._schemas[number], compression="zstd")
                self._writers[part, number] = writer
                self.names[part].append(path)
            self._writers[part, number].write_table(pa.concat_tables(held))
        self._held.clear()
        self._bytes = 0

"""How do the changes of a window get into files, where a reader gives typed values?

Each file has the columns of one version of one table, and its rows in the order in which they
came. A file is begun with its first rows, and some are open at once.
"""

from __future__ import annotations

from contextlib import ExitStack
from types import TracebackType

import pyarrow as pa

from cdc_core.landing.layout import change_file_schema
from cdc_core.landing.manifest import LandedFile
from cdc_core.landing.redo_files import FILE_ROWS_MAX, OWN_FILES_MAX, REDO_DICTIONARY
from cdc_core.landing.store import LandingStore, LandingWriter
from cdc_core.model.identifiers import TableId
from cdc_core.schema.table import TableSchema

_Version = tuple[TableId, int]


class ChangeFiles:
    """The change files of a window. Leaving the block by an exception gives the open ones up."""

    def __init__(self, landing: LandingStore, folder: str) -> None:
        self._landing, self._folder = landing, folder
        self._stack = ExitStack()
        self._open: dict[_Version, tuple[int, LandingWriter]] = {}
        self._rows: dict[int, int] = {}
        self._closed: dict[int, LandedFile] = {}
        self._by_table: dict[str, list[int]] = {}

    def __enter__(self) -> ChangeFiles:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    @property
    def by_table(self) -> dict[str, tuple[int, ...]]:
        """Per table (``OWNER.NAME``), the numbers of the files with its rows, once all are
        closed."""
        return {table: tuple(numbers) for table, numbers in sorted(self._by_table.items())}

    def write(self, version: TableSchema, rows: pa.RecordBatch) -> None:
        """Append rows of ``change_file_schema(version)`` as a row group of their own."""
        key = (version.table, int(version.scn_from))
        number, writer = self._open.get(key) or self._begin(key, version)
        writer.write(rows)
        writer.end_group()
        self._rows[number] += rows.num_rows
        if self._rows[number] >= FILE_ROWS_MAX:
            self._close(key)

    def close(self) -> list[LandedFile]:
        """All files, in the order in which they were begun."""
        for key in list(self._open):
            self._close(key)
        return [file for _, file in sorted(self._closed.items())]

    def _begin(self, key: _Version, version: TableSchema) -> tuple[int, LandingWriter]:
        if len(self._open) >= OWN_FILES_MAX:
            self._close(next(iter(self._open)))
        number = len(self._rows)
        writer = self._stack.enter_context(
            self._landing.writer(
                self._folder,
                f"changes-{number:05d}.parquet",
                change_file_schema(version),
                dictionary=REDO_DICTIONARY,
            )
        )
        self._rows[number] = 0
        self._open[key] = (number, writer)
        self._by_table.setdefault(str(version.table), []).append(number)
        return number, writer

    def _close(self, key: _Version) -> None:
        number, writer = self._open.pop(key)
        self._closed[number] = writer.close()

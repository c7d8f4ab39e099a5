"""How do the changes of a window get into files, where a reader gives typed values?

Each file has the columns of one version of one table, and its rows in the order in which they
came. A file is begun with its first rows, and some are open at once.
"""

from __future__ import annotations

import pyarrow as pa

from cdc_core.landing.layout import change_file_schema
from cdc_core.landing.redo_files import OWN_FILES_MAX, WindowFiles
from cdc_core.model.identifiers import TableId
from cdc_core.schema.table import TableSchema


class ChangeFiles(WindowFiles[tuple[TableId, int]]):
    """The change files of a window, each for one version of one table."""

    prefix = "changes"

    def write(self, version: TableSchema, rows: pa.RecordBatch) -> None:
        """Append rows of ``change_file_schema(version)`` as a row group of their own."""
        place = (version.table, int(version.scn_from))
        file = self._open.get(place)
        if file is None:
            if len(self._open) >= OWN_FILES_MAX:
                self._close(next(iter(self._open)))
            file = self._begin(place, change_file_schema(version))
            self._by_table.setdefault(str(version.table), []).append(file.number)
        self._append(place, file, rows)

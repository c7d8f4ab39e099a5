"""How are the driver's cursors closed, so that it never waits for itself?

python-oracledb (thin, 26.1) prepares a statement under a lock of the connection, and a cursor that
is destroyed takes the same lock to give its statement back. If Python's garbage collector runs
while a statement is being prepared, and finds a cursor of that connection, the thread waits for
itself, for ever. The cursors of our connections are therefore closed by hand and never by the
collector, also the one that ``Connection.fetch_df_batches`` keeps to itself.
"""

from __future__ import annotations

import contextlib
from typing import Any

import oracledb


class ManualCursor(oracledb.Cursor):  # type: ignore[misc]
    """A cursor that does nothing when it is destroyed; what was not closed ends with its
    session."""

    def __del__(self) -> None:
        """Leave the connection alone."""


class ManualConnection(oracledb.Connection):  # type: ignore[misc]
    """A connection with such cursors, which remembers the last one."""

    _last: ManualCursor | None = None

    def cursor(self, scrollable: bool = False, handle: Any = None) -> ManualCursor:
        """A new cursor, to be closed by the caller."""
        self._verify_connected()
        self._last = ManualCursor(self, scrollable, handle)
        return self._last

    def close_last_cursor(self) -> None:
        """Close the cursor that was made last, unless it is closed or its connection is lost."""
        last, self._last = self._last, None
        if last is not None:
            with contextlib.suppress(oracledb.Error):
                last.close()

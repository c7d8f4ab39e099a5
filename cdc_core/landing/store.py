"""What can be asked of the place where landing files live, whichever place it is?

Folders and names are those of ``layout.py``; ``/`` separates the parts of a folder everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import BinaryIO, Protocol

import pyarrow as pa

from cdc_core.landing.manifest import LandedFile


class LandingWriter(AbstractContextManager["LandingWriter"], Protocol):
    """One Parquet file in the making. Nobody sees it under its name before :meth:`close`.

    Leaving the ``with`` block closes it; leaving by an exception gives the file up.
    """

    def write(self, rows: pa.RecordBatch | pa.Table) -> None:
        """Append rows. They are held back until a row group is full, never longer."""

    def end_group(self) -> None:
        """Write buffered rows as a separate row group; later rows go to another one. Does nothing
        if nothing is buffered."""

    def close(self) -> LandedFile:
        """Write what is left, make it durable, give it its name. May be called twice."""

    def abort(self) -> None:
        """Give the file up. Does nothing after :meth:`close`; may be called twice."""

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()


class LandingStore(Protocol):
    """Immutable files in folders; a folder has landed once it has a manifest.

    Until then its files may be written again (a crashed attempt is simply overwritten). Afterwards
    the store refuses to write into it. Safe for use from many threads and processes.
    """

    def exists(self, folder: str, name: str) -> bool:
        """Is there a complete file of that name?

        Raises:
            StoreUnavailableError: The store cannot be reached.
        """

    def read(self, folder: str, name: str) -> bytes:
        """The whole content of a small file, such as a manifest.

        Raises:
            LandingDamagedError: There is no such file.
        """

    def writer(
        self, folder: str, name: str, schema: pa.Schema, *, dictionary: Sequence[str] | None = None
    ) -> LandingWriter:
        """Begin a Parquet file. ``dictionary`` names the columns that are worth dictionary encoding
        (None: all).

        Raises:
            OvertakenError: The folder has landed already.
        """

    def write_manifest(self, folder: str, content: bytes) -> None:
        """Make the folder landed. The same content once more is fine.

        Raises:
            OvertakenError: The folder has landed with another manifest.
        """

    def local_paths(self, folder: str, files: Sequence[LandedFile]) -> list[str]:
        """Paths at which Spark on this machine can read the files, in order. Sizes are checked each
        time, digests once per process and file, but for files that this process wrote.

        Raises:
            LandingDamagedError: A file is missing, cut or changed.
        """

    def scratch(self) -> BinaryIO:
        """A new file on this machine, to write and to read, for rows that wait to be landed. It is
        unnamed, so it vanishes when it is closed or the process ends in any way.

        Raises:
            StoreUnavailableError: It cannot be made.
        """

    def list_folders(self, prefix: str, *, after: str = "") -> list[str]:
        """Folders below ``prefix`` (a folder itself) that have landed, in text order; only those
        that come behind the folder ``after`` in it, which is quick however many come before."""

    def remove(self, folder: str) -> None:
        """Remove a folder whose window is not needed any more; its manifest goes first. May be
        called twice."""

    def remove_unlanded(self, folder: str) -> None:
        """Remove what a crashed attempt left in a folder. A folder that has landed is left
        alone."""

"""How does a process that lost its lease leave landing as it is?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import BinaryIO

import pyarrow as pa

from cdc_core.landing.manifest import LandedFile
from cdc_core.landing.store import LandingStore, LandingWriter

Fence = Callable[[], None]
"""Raises FencedError if a lease is lost."""


class FencedLanding:
    """A :class:`~cdc_core.landing.store.LandingStore` that asks right before each of its effects.

    Args:
        inner: Where the files live.
        fence_here: Gives what asks for the leases that the calling thread holds. A file asks for
            those under which it was begun, whichever thread ends it.
    """

    def __init__(self, inner: LandingStore, fence_here: Callable[[], Fence]) -> None:
        self._inner, self._fence_here = inner, fence_here

    def exists(self, folder: str, name: str) -> bool:
        """See :class:`LandingStore`."""
        return self._inner.exists(folder, name)

    def read(self, folder: str, name: str) -> bytes:
        """See :class:`LandingStore`."""
        return self._inner.read(folder, name)

    def writer(
        self, folder: str, name: str, schema: pa.Schema, *, dictionary: Sequence[str] | None = None
    ) -> LandingWriter:
        """See :class:`LandingStore`."""
        inner = self._inner.writer(folder, name, schema, dictionary=dictionary)
        return _FencedWriter(inner, self._fence_here())

    def write_manifest(self, folder: str, content: bytes) -> None:
        """See :class:`LandingStore`."""
        self._fence_here()()
        self._inner.write_manifest(folder, content)

    def local_paths(self, folder: str, files: Sequence[LandedFile]) -> list[str]:
        """See :class:`LandingStore`."""
        return self._inner.local_paths(folder, files)

    def scratch(self) -> BinaryIO:
        """See :class:`LandingStore`."""
        return self._inner.scratch()

    def list_folders(self, prefix: str, *, after: str = "") -> list[str]:
        """See :class:`LandingStore`."""
        return self._inner.list_folders(prefix, after=after)

    def remove(self, folder: str) -> None:
        """See :class:`LandingStore`."""
        self._fence_here()()
        self._inner.remove(folder)

    def remove_unlanded(self, folder: str) -> None:
        """See :class:`LandingStore`."""
        self._fence_here()()
        self._inner.remove_unlanded(folder)


class _FencedWriter(LandingWriter):
    def __init__(self, inner: LandingWriter, fence: Fence) -> None:
        self._inner, self._fence = inner, fence

    def write(self, rows: pa.RecordBatch | pa.Table) -> None:
        self._inner.write(rows)

    def end_group(self) -> None:
        self._inner.end_group()

    def close(self) -> LandedFile:
        try:
            self._fence()
        except BaseException:
            self.abort()
            raise
        return self._inner.close()

    def abort(self) -> None:
        self._inner.abort()

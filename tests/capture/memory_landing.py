"""A landing store in memory that keeps what was written as rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from cdc_core.landing.manifest import LandedFile


@dataclass
class MemoryWriter:
    name: str
    rows: list[dict[str, Any]] = field(default_factory=list)

    def write(self, rows: pa.RecordBatch | pa.Table) -> None:
        self.rows += rows.to_pylist()

    def end_group(self) -> None:
        """There are no row groups here."""

    def close(self) -> LandedFile:
        return LandedFile(self.name, len(self.rows), 1, "0" * 64)

    def abort(self) -> None:
        self.rows.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            self.abort()


class MemoryLanding:
    """Files by folder and name; a folder has landed with its manifest."""

    def __init__(self) -> None:
        self.files: dict[str, dict[str, MemoryWriter]] = {}
        self.landed: dict[str, bytes] = {}

    def writer(
        self, folder: str, name: str, schema: pa.Schema, *,
        dictionary: Sequence[str] | None = None,
    ) -> MemoryWriter:  # fmt: skip
        assert folder not in self.landed
        written = self.files.setdefault(folder, {})[name] = MemoryWriter(name)
        return written

    def write_manifest(self, folder: str, content: bytes) -> None:
        assert folder not in self.landed
        self.landed[folder] = content

    def remove_unlanded(self, folder: str) -> None:
        if folder not in self.landed:
            self.files.pop(folder, None)

    def rows(self, folder: str, prefix: str) -> list[dict[str, Any]]:
        """Rows of the folder's files of that name."""
        return [
            row
            for name, file in sorted(self.files[folder].items())
            if name.startswith(prefix)
            for row in file.rows
        ]

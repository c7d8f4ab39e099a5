"""The lake in memory, kept in files, so that the process that applies can be killed without a JVM.

Each commit of a table is a new file that is linked into its folder if no other process has made it: as with Delta, a version is
there whole or not at all, and the second writer of one loses. The judge reads the first of a file's two parts.
"""

from __future__ import annotations

import os
import pickle
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from cdc_core.config import LakeConfig
from cdc_core.errors import CommitConflictError
from cdc_core.lake.lake import Lake
from cdc_core.lake.table_part import TablePart
from cdc_core.model.identifiers import TableId
from tests.steps.memory_lake import MemoryLake, MemoryTable


@dataclass(frozen=True, slots=True)
class Version:
    """What a commit left: the SCN that it says of itself (None: nothing), the mirror's rows, the change log's."""

    scn_high: int | None
    rows: list[dict[str, Any]]
    history: list[dict[str, Any]]


def versions(folder: Path, table: str) -> list[Path]:
    """The files of a table's commits, oldest first."""
    return sorted((folder / table).glob("*.version"))


def folder_of(lake: Path, table: str) -> str:
    """The folder of a table, by its name as people write it, which the folder says."""
    [found] = [one.parent.name for one in lake.glob("*/name") if one.read_text() == table]
    return found


def read_version(path: Path) -> Version:
    """The part of a commit that the judge reads."""
    with path.open("rb") as file:
        return cast("Version", pickle.load(file))


class KeptLake(MemoryLake):
    """The tables of one source below a folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self._read: dict[TableId, int] = {}

    def open(self, _config: LakeConfig, _source: str) -> Lake:
        return self

    def prepare_schema(self, change: Any, generation: int = 0, **options: Any) -> None:
        schema = getattr(change, "schema", change)
        with self._commit(schema.table, None):
            super().prepare_schema(change, generation, **options)

    def definition(self, table: TableId, generation: int = 0) -> Any:
        self._refresh(table)
        return super().definition(table, generation)

    def apply_window(self, part: TablePart, *args: Any, **options: Any) -> Any:
        with self._commit(part.table, part.window.scn_high):
            return super().apply_window(part, *args, **options)

    def truncate(self, table: TableId, truncation: Any, *args: Any, **options: Any) -> Any:
        with self._commit(table, truncation.scn):
            return super().truncate(table, truncation, *args, **options)

    def replay_window(self, table: TableId, *args: Any, **options: Any) -> Any:
        with self._commit(table, None):
            return super().replay_window(table, *args, **options)

    def apply_chunk(self, manifest: Any, paths: Any, **options: Any) -> Any:
        table = manifest.schema.table
        with self._commit(table, manifest.scn):
            return super().apply_chunk(manifest, paths, **options)

    def delete_missing_keys(
        self, table: TableId, snapshot_id: str, scn_lowest: int, **options: Any
    ) -> Any:
        with self._commit(table, None):
            return super().delete_missing_keys(table, snapshot_id, scn_lowest, **options)

    def set_aside(self, table: TableId, **options: Any) -> list[str]:
        with self._commit(table, None):
            return super().set_aside(table, **options)

    def position(self, table: TableId, generation: int = 0) -> Any:
        self._refresh(table)
        return super().position(table, generation)

    def applied(self, table: TableId, generation: int = 0) -> Any:
        self._refresh(table)
        return super().applied(table, generation)

    def quarantine_reasons(self, table: TableId) -> dict[tuple[str, str], int]:
        self._refresh(table)
        return super().quarantine_reasons(table)

    @contextmanager
    def _commit(self, table: TableId, scn_high: int | None) -> Iterator[None]:
        """What the block changes is one version, or, where it raises, nothing."""
        number = self._refresh(table)
        before = len(self.calls)
        try:
            yield
        except BaseException:
            self._read.pop(table, None)
            raise
        if len(self.calls) > before:
            self._publish(table, number + 1, scn_high)

    def _refresh(self, table: TableId) -> int:
        """Take the newest version; returns its number, 0 for none."""
        found = versions(self._folder, table.path)
        number = len(found)
        if not found:
            self.tables[table] = MemoryTable()
        elif self._read.get(table) != number:
            with found[-1].open("rb") as file:
                pickle.load(file)
                self.tables[table] = pickle.load(file)
        self._read[table] = number
        return number

    def _publish(self, table: TableId, number: int, scn_high: int | None) -> None:
        place = self._folder / table.path
        place.mkdir(parents=True, exist_ok=True)
        (place / "name").write_text(str(table))
        name = f"{number:06d}.version"
        scratch = place / f"{name}.{os.getpid()}.{threading.get_ident()}"
        found = self.tables[table]
        rows = self.rows_by_name(table)
        with scratch.open("wb") as file:
            pickle.dump(Version(scn_high, rows, found.history), file)
            pickle.dump(found, file)
        self._link(scratch, place / name, table)
        scratch.unlink()
        self._read[table] = number

    def _link(self, scratch: Path, target: Path, table: TableId) -> None:
        try:
            os.link(scratch, target)
        except FileExistsError as error:
            self._read.pop(table, None)
            raise CommitConflictError(
                "another writer committed this version", table=table
            ) from error

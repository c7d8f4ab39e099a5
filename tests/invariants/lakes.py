"""What does the judge read of a lake? Nothing of the pipeline: files, and Delta tables through delta-rs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from deltalake import DeltaTable

from tests.invariants.changelog import rows_of
from tests.invariants.compare import read_delta, version_at
from tests.invariants.kept_lake import Version, folder_of, read_version, versions

Row = dict[str, Any]


class JudgedLake(Protocol):
    """The tables of the source, by their names in Oracle."""

    def values(self, table: str, scn: int, names: Sequence[str]) -> list[tuple[Any, ...]]:
        """The named columns of the mirror as of an SCN."""

    def mirror(self, table: str) -> list[Row]:
        """The mirror as it stands."""

    def changelog(self, table: str) -> list[Row]:
        """The change log."""


class JudgedDelta:
    """Delta tables. ``write`` gives a table's whole name as people write it, which the tables say of themselves."""

    def __init__(self, lake: Path, write: Callable[[str], str]) -> None:
        self._lake, self._write = lake, write
        self._paths: dict[tuple[str, str], Path] = {}

    def values(self, table: str, scn: int, names: Sequence[str]) -> list[tuple[Any, ...]]:
        path = self._path("mirror", table)
        return read_delta(path, names, version_at(path, scn))

    def mirror(self, table: str) -> list[Row]:
        return rows_of(self._path("mirror", table))

    def changelog(self, table: str) -> list[Row]:
        return rows_of(self.changelog_path(table))

    def changelog_path(self, table: str) -> Path:
        """The folder of the change log."""
        return self._path("changelog", table)

    def _path(self, kind: str, table: str) -> Path:
        if (kind, table) not in self._paths:
            [self._paths[kind, table]] = [
                one
                for one in (self._lake / "proof" / kind).iterdir()
                if DeltaTable.is_deltatable(str(one)) and self._is_of(one, table)
            ]
        return self._paths[kind, table]

    def _is_of(self, path: Path, table: str) -> bool:
        said = DeltaTable(str(path)).metadata().configuration.get("redolake.table")
        return said == self._write(table)


class JudgedKept:
    """The lake in memory that is kept in files."""

    def __init__(self, lake: Path, write: Callable[[str], str]) -> None:
        self._lake, self._write = lake, write
        self._reached: dict[Path, int | None] = {}

    def values(self, table: str, scn: int, names: Sequence[str]) -> list[tuple[Any, ...]]:
        rows = self._as_of(table, scn).rows
        return [tuple(row.get(name) for name in names) for row in rows]

    def mirror(self, table: str) -> list[Row]:
        return read_version(self._versions(table)[-1]).rows

    def changelog(self, table: str) -> list[Row]:
        return read_version(self._versions(table)[-1]).history

    def _versions(self, table: str) -> list[Path]:
        return versions(self._lake, folder_of(self._lake, self._write(table)))

    def _as_of(self, table: str, scn: int) -> Version:
        """The newest version before the table went past the SCN; one that says nothing leaves it where it was."""
        found, reached = None, None
        for path in self._versions(table):
            if path not in self._reached:
                self._reached[path] = read_version(path).scn_high
            said = self._reached[path]
            if said is not None:
                reached = max(said, reached or 0)
            if reached is not None and reached <= scn:
                found = path
        assert found is not None, f"no version of {table} is as old as SCN {scn}"
        return read_version(found)

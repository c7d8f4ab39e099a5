"""How do landing files live in a folder of this machine (or of a file system that it mounts)?"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from stat import S_ISREG
from typing import BinaryIO
from uuid import uuid4

import pyarrow as pa

from cdc_core.errors import ConfigError
from cdc_core.landing.damage import landed_already, missing_file, unavailable
from cdc_core.landing.manifest import MANIFEST_NAME, LandedFile
from cdc_core.landing.store import LandingWriter
from cdc_core.landing.store_parquet import (
    TEMPORARY_SUFFIX,
    FileVerifier,
    ParquetLandingWriter,
    scratch_file,
    sync_folder,
)

PRIVATE = 0o700
"""Redo and rows are for the user who captures them. A folder that is there already keeps its
rights."""


class LocalLandingStore:
    """A :class:`~cdc_core.landing.store.LandingStore` in a local folder."""

    def __init__(self, path: str) -> None:
        self._root = Path(path).absolute()
        self._verifier = FileVerifier()
        try:
            self._root.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(
                "the landing folder cannot be created",
                hint="Name a folder under landing.path that this user may write to.",
                path=path,
                reason=error.strerror,
            ) from error

    def exists(self, folder: str, name: str) -> bool:
        """Is there a complete file of that name?"""
        try:
            return S_ISREG((self._root / folder / name).stat().st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:  # no "no": what has not landed is removed
            raise unavailable("a landing folder cannot be read", error) from error

    def read(self, folder: str, name: str) -> bytes:
        """The whole content of a small file."""
        path = self._root / folder / name
        try:
            return path.read_bytes()
        except FileNotFoundError as error:
            raise missing_file(str(path)) from error
        except OSError as error:
            raise unavailable("a landing file cannot be read", error) from error

    def writer(
        self, folder: str, name: str, schema: pa.Schema, *, dictionary: Sequence[str] | None = None
    ) -> LandingWriter:
        """Begin a Parquet file."""
        self._refuse_landed(folder)

        def publish(temporary: Path, landed: LandedFile) -> None:
            self._refuse_landed(folder)
            place = self._root / folder / landed.name
            temporary.replace(place)
            self._verifier.know(place, landed)

        return ParquetLandingWriter(
            self._root / folder, name, schema, dictionary=dictionary, publish=publish
        )

    def write_manifest(self, folder: str, content: bytes) -> None:
        """Make the folder landed."""
        place = self._root / folder
        temporary = place / f".{MANIFEST_NAME}.{uuid4().hex[:12]}{TEMPORARY_SUFFIX}"
        try:
            place.mkdir(parents=True, exist_ok=True)
            with temporary.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            sync_folder(place)  # what the manifest names is there before it
            try:
                # A hard link, unlike a rename, fails where the name is taken: two writers cannot
                # both win.
                os.link(temporary, place / MANIFEST_NAME)
            except FileExistsError as error:
                if (place / MANIFEST_NAME).read_bytes() != content:
                    raise landed_already(folder) from error
            finally:
                temporary.unlink(missing_ok=True)
            sync_folder(place)
            sync_folder(place.parent)
        except OSError as error:
            raise unavailable("the manifest cannot be written", error) from error

    def local_paths(self, folder: str, files: Sequence[LandedFile]) -> list[str]:
        """Paths of the files, verified."""
        paths = [self._root / folder / file.name for file in files]
        for path, file in zip(paths, files, strict=True):
            self._verifier.verify(path, file)
        return [str(path) for path in paths]

    def scratch(self) -> BinaryIO:
        """A file without a name, on the disk of the landing folder."""
        return scratch_file(self._root)

    def list_folders(self, prefix: str, *, after: str = "") -> list[str]:
        """Folders below ``prefix`` that have landed, behind ``after``."""
        place = str(self._root / prefix)
        found = []
        # Links are followed: a part of landing may lie on another disk.
        for path, below, names in os.walk(place, onerror=_not_listed, followlinks=True):
            folder = os.path.relpath(path, self._root)
            if path == place:
                # What comes behind a folder lies in a child that does, or in the one in which that
                # folder is.
                near = ((f"{prefix}/{one}", one) for one in below)
                below[:] = [one for name, one in near if name >= after[: len(name)]]
            if MANIFEST_NAME in names and folder > after:
                found.append(folder)
        return sorted(found)

    def remove(self, folder: str) -> None:
        """Remove a folder; its manifest goes first, so that what is left of it has not landed."""
        place = self._root / folder
        try:
            (place / MANIFEST_NAME).unlink(missing_ok=True)
            self.remove_unlanded(folder)
            with suppress(FileNotFoundError):
                place.rmdir()
        except OSError as error:
            raise unavailable(
                "a folder that is no longer needed cannot be removed", error
            ) from error

    def remove_unlanded(self, folder: str) -> None:
        """Remove what a crashed attempt left."""
        place = self._root / folder
        if self.exists(folder, MANIFEST_NAME):
            return
        try:
            for path in place.iterdir():
                path.unlink(missing_ok=True)
        except FileNotFoundError:
            return
        except OSError as error:
            raise unavailable("an unfinished folder cannot be emptied", error) from error

    def _refuse_landed(self, folder: str) -> None:
        if self.exists(folder, MANIFEST_NAME):
            raise landed_already(folder)


def _not_listed(error: OSError) -> None:
    """A folder that is gone has nothing; of any other failure nothing follows."""
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise unavailable("a landing folder cannot be read", error) from error

"""How do landing files live in S3, Azure Blob Storage or Google Cloud Storage?

A file is written to the local cache, then uploaded: an object appears whole or not at all. The
manifest is put only if there is none, so of two writers one wins.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

import pyarrow as pa

from cdc_core.errors import ConfigError, LandingDamagedError
from cdc_core.landing.damage import landed_already, missing_file, unavailable
from cdc_core.landing.manifest import MANIFEST_NAME, LandedFile
from cdc_core.landing.store import LandingWriter
from cdc_core.landing.store_parquet import (
    TEMPORARY_SUFFIX,
    FileVerifier,
    ParquetLandingWriter,
    scratch_file,
)
from cdc_core.objects.store import ObjectStore


class ObjectLandingStore:
    """A :class:`~cdc_core.landing.store.LandingStore` of objects, with a local cache for reading
    and writing.

    Args:
        objects: Where they are.
        root: Their path there.
        cache: A local folder, which is made.
        cache_hours: Files that nobody wanted for so long are removed from the cache now; None keeps
            them.
    """

    def __init__(
        self, objects: ObjectStore, root: str, cache: str, cache_hours: int | None
    ) -> None:
        self._objects = objects
        self._root = root.strip("/")
        self._cache = Path(cache).absolute()
        self._verifier = FileVerifier()
        try:
            self._cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(
                "the cache folder of the landing store cannot be created",
                hint="Name a folder under landing.cache that this user may write to.",
                path=cache,
                reason=error.strerror,
            ) from error
        if cache_hours is not None:
            _clean(self._cache, time.time() - cache_hours * 3600)

    def exists(self, folder: str, name: str) -> bool:
        """Is there a complete file of that name?"""
        return self._objects.exists(self._path(folder, name))

    def read(self, folder: str, name: str) -> bytes:
        """The whole content of a small file."""
        path = self._path(folder, name)
        content = self._objects.read(path)
        if content is None:
            raise missing_file(path)
        return content

    def writer(
        self, folder: str, name: str, schema: pa.Schema, *, dictionary: Sequence[str] | None = None
    ) -> LandingWriter:
        """Begin a Parquet file."""
        self._refuse_landed(folder)

        def publish(temporary: Path, landed: LandedFile) -> None:
            self._refuse_landed(folder)
            self._objects.upload(temporary, self._path(folder, landed.name))
            place = self._cache / folder / landed.name
            temporary.replace(place)
            self._verifier.know(place, landed)

        return ParquetLandingWriter(
            self._cache / folder, name, schema, dictionary=dictionary, publish=publish
        )

    def write_manifest(self, folder: str, content: bytes) -> None:
        """Make the folder landed."""
        try:
            self._objects.put_new(self._path(folder, MANIFEST_NAME), content)
        except FileExistsError as error:
            raise landed_already(folder) from error

    def local_paths(self, folder: str, files: Sequence[LandedFile]) -> list[str]:
        """Paths of the files in the cache, downloaded where needed, verified."""
        paths = [self._cache / folder / file.name for file in files]
        for path, file in zip(paths, files, strict=True):
            try:
                self._verifier.verify(path, file)
            except (
                LandingDamagedError
            ):  # not there, cut, or from before the window was captured again
                self._download(folder, file.name, path)
                self._verifier.verify(path, file)
            _note_use(path)
        return [str(path) for path in paths]

    def scratch(self) -> BinaryIO:
        """A file without a name, on the disk of the cache."""
        return scratch_file(self._cache)

    def list_folders(self, prefix: str, *, after: str = "") -> list[str]:
        """Folders below ``prefix`` that have landed, behind ``after``."""
        behind = self._path("", after) if after else ""
        paths = self._objects.paths_below(self._path("", prefix), after=behind)
        ending, root = f"/{MANIFEST_NAME}", self._path("", "")
        found = (
            path.removeprefix(root).removesuffix(ending) for path in paths if path.endswith(ending)
        )
        return sorted(folder for folder in found if folder > after)

    def remove(self, folder: str) -> None:
        """Remove a folder, from the store and from the cache; its manifest goes first, so that what
        is left of it has not landed."""
        self._objects.delete([self._path(folder, MANIFEST_NAME)])
        self.remove_unlanded(folder)

    def remove_unlanded(self, folder: str) -> None:
        """Remove what a crashed attempt left, from the store and from the cache."""
        if self.exists(folder, MANIFEST_NAME):
            return
        self._objects.delete(self._objects.paths_below(self._path("", folder)))
        shutil.rmtree(self._cache / folder, ignore_errors=True)

    def _download(self, folder: str, name: str, path: Path) -> None:
        temporary = path.with_name(f".{name}.{uuid4().hex[:12]}{TEMPORARY_SUFFIX}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            there = self._path(folder, name)
            if not self._objects.download(there, temporary):
                raise missing_file(there)
            temporary.replace(path)
        except OSError as error:
            raise unavailable("the cache of the landing store cannot be written", error) from error
        finally:
            temporary.unlink(missing_ok=True)

    def _refuse_landed(self, folder: str) -> None:
        if self.exists(folder, MANIFEST_NAME):
            raise landed_already(folder)

    def _path(self, folder: str, name: str) -> str:
        parts = (self._root, folder.strip("/"))
        return "/".join([*(part for part in parts if part), name])


def _note_use(path: Path) -> None:
    """Keep the time of use in the file, which a mount may not do by itself; the time of the last
    change stays."""
    with suppress(OSError):  # cleaned up by another process: its reader asks again
        os.utime(path, ns=(time.time_ns(), path.stat().st_mtime_ns))


def _clean(cache: Path, since: float) -> None:
    """Remove files that nobody has used since a time, and folders that are empty by then."""
    for folder, _, names in os.walk(cache, topdown=False):
        place = Path(folder)
        with suppress(OSError):  # another process cleans up too, or the folder is not empty
            was_used = place == cache or place.stat().st_mtime >= since
            for name in names:
                if (place / name).stat().st_atime < since:
                    (place / name).unlink()
            if not was_used:
                place.rmdir()

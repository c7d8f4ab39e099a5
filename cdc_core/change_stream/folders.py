"""Which files does a folder have, on this machine or in an object store?

An object is never added to: one that grows is put again, longer, and is known by how it begins as
any other file is. While it is read it is one version of it.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from io import BufferedReader
from pathlib import Path
from stat import S_ISREG
from typing import BinaryIO, Protocol

from cdc_core.errors import OvertakenError, StoreUnavailableError
from cdc_core.objects.open import objects_at
from cdc_core.objects.store import ObjectStore, ObjectVersion, replaced


class RecordFile(Protocol):
    """A file of records."""

    @property
    def name(self) -> str:
        """Its name in the folder."""

    @property
    def size(self) -> int:
        """Its bytes."""

    def open(self) -> BufferedReader:
        """The file, to read and to seek in."""


@dataclass(frozen=True)
class LocalFile:
    """A :class:`RecordFile` on this machine, as it is now."""

    path: Path

    @property
    def name(self) -> str:
        """See :attr:`RecordFile.name`."""
        return self.path.name

    @property
    def size(self) -> int:
        """See :attr:`RecordFile.size`."""
        return self.path.stat().st_size

    def open(self) -> BufferedReader:
        """See :meth:`RecordFile.open`."""
        return self.path.open("rb")


@dataclass(frozen=True)
class ObjectFile:
    """A :class:`RecordFile` in an object store, as it was when it was first asked about."""

    objects: ObjectStore
    path: str

    @property
    def name(self) -> str:
        """See :attr:`RecordFile.name`."""
        return self.path.rpartition("/")[2]

    @property
    def size(self) -> int:
        """See :attr:`RecordFile.size`."""
        return self._version.size

    def open(self) -> BufferedReader:
        """See :meth:`RecordFile.open`."""
        return self.objects.open_version(self._version)

    @cached_property
    def _version(self) -> ObjectVersion:
        found = self.objects.version(self.path)
        if found is None:
            raise replaced(self.objects.service, self.path)
        return found


def files_in(folder: str, names: str) -> list[RecordFile] | None:
    """The files of a folder whose names match a pattern, in any order; None if the folder is not
    there. An object store has every folder.

    Args:
        folder: On this machine, or a URL as :func:`objects_at` takes it.
        names: The pattern.

    Raises:
        PreflightError: The object store's client is not installed, or has no account.
        StoreUnavailableError: The disk fails, or the object store cannot be reached or refuses.
    """
    if "://" not in folder:
        return _local_files(Path(folder), names)
    objects, path = objects_at(folder)
    found = objects.names_behind(path, "")
    return [ObjectFile(objects, f"{path}/{one}") for one in found if fnmatchcase(one, names)]


def _local_files(here: Path, names: str) -> list[RecordFile] | None:
    """A file that cannot be looked at is not left out: what others prove would be taken for
    whole."""
    try:
        names_there = os.listdir(here)  # noqa: PTH208 - it makes no objects
        found = [here / one for one in names_there if fnmatchcase(one, names)]
        return [LocalFile(one) for one in found if _is_file(one)]
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise StoreUnavailableError(
            "the folder of capture.folder cannot be read",
            hint="Check that its disk or share is there, and that this user may read it.",
            folder=here,
            reason=error.strerror,
        ) from error


def _is_file(path: Path) -> bool:
    try:
        return S_ISREG(path.stat().st_mode)
    except FileNotFoundError:  # removed meanwhile, or a link that leads nowhere
        return False


def make_folder(folder: str) -> None:
    """Make a folder, unless it is there; an object store has every folder."""
    if "://" not in folder:
        Path(folder).mkdir(parents=True, exist_ok=True)


@contextmanager
def new_file(folder: str, name: str, first: bytes) -> Iterator[BinaryIO]:
    """A file of a folder, to write behind its first line, which no other file has. Of two who begin
    one of that name, one does: in an object store a conditional put of that line decides, and the
    whole object takes its place when the block has ended. Until then the rest is in a temporary
    file on this machine.

    Raises:
        OvertakenError: There is one of that name.
        PreflightError: The object store overwrites objects.
        StoreUnavailableError: The object store cannot be reached, or refuses.
    """
    with ExitStack() as stack:
        objects, path, made = None, "", Path(folder, name)
        try:
            if "://" in folder:
                objects, root = objects_at(folder)
                objects.put_new(path := f"{root}/{name}", first)
                here = tempfile.TemporaryDirectory(prefix="redolake-recording-")
                made = Path(stack.enter_context(here), name)
            file = stack.enter_context(made.open("xb"))
        except FileExistsError as error:
            raise OvertakenError(
                "another process has begun a file of that name",
                hint="Run the command again: it begins the next file.",
                folder=folder,
                file=name,
            ) from error
        file.write(first)
        yield file
        if objects is not None:
            file.flush()
            objects.upload(made, path)

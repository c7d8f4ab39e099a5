"""How are objects put, found and read in Azure Blob Storage and Google Cloud Storage? By obstore,
which is the same Rust client that delta-rs has: both read one set of environment variables.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

from cdc_core.errors import PreflightError
from cdc_core.objects.store import ObjectStore, ObjectVersion, refused, replaced

SERVICES = {
    "abfss": ("Azure Blob Storage", "azure"),
    "abfs": ("Azure Blob Storage", "azure"),
    "gs": ("Google Cloud Storage", "gcs"),
}
"""By scheme of a URL: the service, and the extra of the package that brings its client."""

_RETRIES: Any = {"max_retries": 5, "retry_timeout": timedelta(minutes=1)}
_PART_BYTES = 8 * 1024**2
_PARTS_AT_ONCE = 4


class CloudObjects(ObjectStore):
    """Objects in one container or bucket; paths are names in it.

    Args:
        url: Container or bucket, such as ``abfss://lake@account.dfs.core.windows.net`` or
            ``gs://lake``.

    Raises:
        PreflightError: obstore is not installed, or the environment does not say what it needs.
    """

    def __init__(self, url: str) -> None:
        super().__init__()
        self.service, extra = SERVICES[url.partition("://")[0]]
        self._url = url
        try:
            import obstore
            from obstore.exceptions import BaseError
            from obstore.store import from_url
        except ImportError as error:
            raise PreflightError(
                f"the client of {self.service} is not installed",
                hint=f"Run: pip install 'redolake[{extra}]'.",
                url=url,
            ) from error
        self._client: Any = obstore
        try:
            self._store = from_url(url, retry_config=_RETRIES)
        except (BaseError, ValueError) as error:
            raise PreflightError(
                f"{self.service} cannot be set up",
                hint="Name the container with its account, and set the credentials in the environment.",
                url=url,
                reason=type(error).__name__,
            ) from error

    def read(self, path: str) -> bytes | None:
        """The content of a small object; None if there is none."""
        with self.translated("an object cannot be read from", path):
            try:
                return bytes(self._client.get(self._store, path).bytes())
            except FileNotFoundError:
                return None

    def _head(self, path: str) -> tuple[str | None, Hashable, int] | None:
        with self.translated("an object cannot be looked for in", path):
            try:
                found = self._client.head(self._store, path)
            except FileNotFoundError:
                return None
        return found["e_tag"], found["last_modified"], found["size"]

    def read_range(self, version: ObjectVersion, start: int, end: int) -> bytes:
        """The bytes from ``start`` to before ``end``."""
        from obstore.exceptions import PreconditionError

        options = {"range": (start, end), "if_match": version.etag}
        with self.translated("an object cannot be read from", version.path):
            try:
                found = self._client.get(self._store, version.path, options=options)
                return bytes(found.bytes())
            except (FileNotFoundError, PreconditionError) as error:
                raise replaced(self.service, f"{self._url}/{version.path}") from error

    def names_behind(self, folder: str, name: str) -> list[str]:
        """The names of a folder's objects after a name, in order. Folders below it are listed too,
        and left out."""
        below = f"{folder}/"
        paths = self.paths_below(folder, after=below + name)
        names = (path.removeprefix(below) for path in paths)
        return [one for one in names if "/" not in one]

    def paths_below(self, folder: str, *, after: str = "") -> list[str]:
        """The paths of all objects below a folder, in order."""
        with self.translated("objects cannot be listed in", folder):
            listed = self._client.list(self._store, folder, offset=after or None)
            return sorted(one["path"] for part in listed for one in part)

    def delete(self, paths: Iterable[str]) -> None:
        """Remove objects, in this order."""
        for path in paths:
            with (
                self.translated("an object cannot be removed from", path),
                suppress(FileNotFoundError),
            ):
                self._client.delete(self._store, path)

    def upload(self, file: Path, path: str) -> None:
        """Put a file's content."""
        with self.translated("an object cannot be put into", path):
            self._client.put(
                self._store, path, file, chunk_size=_PART_BYTES, max_concurrency=_PARTS_AT_ONCE
            )

    def download(self, path: str, file: Path) -> bool:
        """Write an object's content to a file; False if there is none."""
        with self.translated("an object cannot be read from", path):
            try:
                found = self._client.get(self._store, path)
            except FileNotFoundError:
                return False
            with file.open("wb") as out:
                for part in found.stream(min_chunk_size=_PART_BYTES):
                    out.write(part)
        return True

    def open_reader(self, path: str) -> CloudFile:
        """An object to read ranges of.

        Raises:
            FileNotFoundError: There is none.
        """
        with self.translated("an object cannot be read from", path):
            return CloudFile(self, path, self._client.open_reader(self._store, path))

    def open_writer(self, path: str) -> CloudFile:
        """An object to write, which is there once it is closed."""
        with self.translated("an object cannot be put into", path):
            file = self._client.open_writer(
                self._store, path, buffer_size=_PART_BYTES, max_concurrency=_PARTS_AT_ONCE
            )
        return CloudFile(self, path, file)

    def _create(self, path: str, content: bytes) -> bool:
        from obstore.exceptions import AlreadyExistsError, GenericError

        with self.translated("an object cannot be put into", path):
            try:
                self._client.put(self._store, path, content, mode="create")
            except AlreadyExistsError:
                return False
            except GenericError:  # its answer may be lost, and the object be there
                if self.read(path) is None:
                    raise
                return False
        return True

    def _bucket(self, path: str) -> str:
        del path
        return self._url

    @contextmanager
    def translated(self, message: str, path: str) -> Iterator[None]:
        """Give errors of the client as ours; ``message`` ends before the service's name."""
        from obstore.exceptions import BaseError

        try:
            yield
        except BaseError as error:
            reason = type(error).__name__.removesuffix("Error")
            said = f"{message} {self.service}"
            raise refused(self.service, said, reason, path=f"{self._url}/{path}") from error


class CloudFile:
    """An object as a file of Python, to read or to write, with errors of ours."""

    def __init__(self, objects: CloudObjects, path: str, file: Any) -> None:
        self._objects, self._path, self._file = objects, path, file
        self.closed = False

    def read(self, size: int = -1) -> bytes:
        """So many bytes, or all that follow."""
        with self._objects.translated("an object cannot be read from", self._path):
            return bytes(self._file.read(None if size < 0 else size))

    def seek(self, offset: int, whence: int = 0) -> int:
        """Move to a place."""
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        """The place."""
        return int(self._file.tell())

    def write(self, content: Any) -> int:
        """Add bytes."""
        with self._objects.translated("an object cannot be put into", self._path):
            return int(self._file.write(bytes(content)))

    def flush(self) -> None:
        """Parts go when they are full, the last one with :meth:`close`."""

    def close(self) -> None:
        """Put the rest, where it was written."""
        if not self.closed:
            self.closed = True
            with self._objects.translated("an object cannot be put into", self._path):
                self._file.close()


@lru_cache
def cloud_objects(url: str) -> CloudObjects:
    """The objects of a container or bucket; of one URL the same, since its client keeps connections
    and tokens."""
    return CloudObjects(url)


def parts_of(url: str) -> tuple[str, str]:
    """URL of the container or bucket, and the path in it."""
    scheme, _, rest = url.partition("://")
    container, _, path = rest.partition("/")
    return f"{scheme}://{container}", path.strip("/")

"""How does Arrow see the files in Azure Blob Storage and Google Cloud Storage?

Folders are listed by delta-rs, which opens Delta tables there with the same client and the same
environment as :mod:`cdc_core.objects.clouds`. Contents go through obstore, which lets other threads
of Python run meanwhile.
"""

from __future__ import annotations

from functools import lru_cache

import pyarrow as pa
import pyarrow.fs as pafs
from deltalake.fs import DeltaStorageHandler

from cdc_core.objects.clouds import CloudObjects, cloud_objects


class CloudHandler(DeltaStorageHandler):  # type: ignore[misc]
    """Files of one container or bucket; paths are names in it."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.url = url

    @property
    def objects(self) -> CloudObjects:
        """The same files, object by object."""
        return cloud_objects(self.url)

    def open_input_file(self, path: str) -> pa.PythonFile:
        """Open a file to read ranges of it."""
        return pa.PythonFile(self.objects.open_reader(path), mode="r")

    open_input_stream = open_input_file

    def open_output_stream(
        self, path: str, metadata: dict[str, str] | None = None
    ) -> pa.PythonFile:
        """Open a file that is there as a whole once it is closed."""
        del metadata
        return pa.PythonFile(self.objects.open_writer(path), mode="w")


@lru_cache
def cloud_filesystem(url: str) -> pafs.FileSystem:
    """The file system of a container or bucket; of one URL the same."""
    return pafs.PyFileSystem(CloudHandler(url))

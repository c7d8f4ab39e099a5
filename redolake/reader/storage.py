"""Where are the files of a lake, and how are its Delta tables opened?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs

from cdc_core.delta.errors import at_work
from cdc_core.delta.history import DeltaCommit, commits_in
from cdc_core.delta.storage import storing

READER_HINT = "Choose a newer SCN, or ask who runs Redolake: `redolake status` shows the table."


@dataclass(frozen=True)
class Storage:
    """A lake's folder: a path, or a URI that delta-rs knows; ``options`` are those of delta-rs, and
    never printed, since keys are among them."""

    root: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def path(self, *parts: str) -> str:
        """A path below the lake."""
        return "/".join([self.root.rstrip("/"), *parts])

    @cached_property
    def _filesystem(self) -> pafs.FileSystem:
        if "://" not in self.root:
            return pafs.SubTreeFileSystem(str(Path(self.root).absolute()), pafs.LocalFileSystem())
        from deltalake.fs import DeltaStorageHandler

        return pafs.PyFileSystem(DeltaStorageHandler(self.root, dict(self.options)))

    def folders(self, below: str) -> list[str]:
        """The names of the folders in a folder of the lake; none if it is not there."""
        with storing("listing the lake", path=self.path(below)):
            selector = pafs.FileSelector(below, allow_not_found=True)
            found = self._filesystem.get_file_info(selector)
        return sorted(one.base_name for one in found if one.type == pafs.FileType.Directory)

    def text(self, name: str) -> str | None:
        """The content of a small file; None if it is not there."""
        try:
            with (
                storing("reading a file of the lake", path=self.path(name)),
                self._filesystem.open_input_stream(name) as stream,
            ):
                return bytes(stream.read()).decode()
        except FileNotFoundError:
            return None

    def commits(self, folder: str) -> tuple[DeltaCommit, ...]:
        """The commits that the log of a Delta table still has, oldest first."""
        return commits_in(self._filesystem, folder)

    def delta_table(self, folder: str, version: int | None = None) -> Any:
        """A Delta table of delta-rs.

        Raises:
            LakeError: There is no table, or delta-rs cannot read it.
            StoreUnavailableError: The storage does not answer.
        """
        from deltalake import DeltaTable

        path = self.path(folder)
        with at_work("opening a Delta table", {"path": path}, hint=READER_HINT):
            return DeltaTable(path, version=version, storage_options=dict(self.options) or None)

"""Which files that a Delta table's newest version names are not there any more?

One listing of the folder, and the names that the log has.
"""

from __future__ import annotations

from urllib.parse import unquote

import pyarrow.fs as pafs

from cdc_core.delta.added_files import read_added
from cdc_core.delta.history import filesystem_of, read_log
from cdc_core.delta.log_files import is_in_folder, log_names
from cdc_core.delta.storage import storing


def missing_files(path: str) -> list[str] | None:
    """Names of the data files and of the files with deletion vectors that are gone, sorted; None
    where there is no table.

    Raises:
        LakeError: The log cannot be read.
        StoreUnavailableError: The disk or the bucket fails.
    """
    log = read_log(path)
    if log is None:
        return None
    filesystem, root = filesystem_of(path)
    with storing("looking for the files of a Delta table", path=path):
        added = read_added(filesystem, root, log_names(filesystem, root), log.version)
        found = filesystem.get_file_info(pafs.FileSelector(root, recursive=True))
    there = {one.path.removeprefix(root).lstrip("/") for one in found if one.is_file}
    named = {unquote(name) for name in added if is_in_folder(name)}
    named |= {
        one.vector.file for one in added.values() if one.vector is not None and one.vector.file
    }
    return sorted(named - there)

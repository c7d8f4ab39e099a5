"""Where do tests keep their folders? In memory, where there is room.

The state, the landing files and the embedded Oracle of a test are synced to disk again and again, as they must be. A file system in memory
takes the same calls, and a story needs a sixth less CPU time, and no time for the disk.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import MutableMapping

FOLDER = "/dev/shm"
FREE_BYTES_MIN = 4 * 1024**3
"""A run of all tests leaves about a tenth of that. In containers the folder often has 64 MB."""


def use_memory(environment: MutableMapping[str, str], folder: str = FOLDER) -> bool:
    """Let temporary folders of this process and of those that it starts be in memory, unless somebody has chosen a place; says whether they
    are."""
    if "TMPDIR" in environment or not _is_fit(folder):
        return False
    environment["TMPDIR"] = folder
    tempfile.tempdir = None
    return True


def _is_fit(folder: str) -> bool:
    """Has it room, and may programs be run from it? Some tests write one."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return False
    has_room = found.f_bavail * found.f_frsize >= FREE_BYTES_MIN
    return has_room and os.access(folder, os.W_OK) and not found.f_flag & os.ST_NOEXEC

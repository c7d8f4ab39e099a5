"""What can be chosen about the redo of the embedded Oracle?"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum


class Dictionary(Enum):
    """Whose names a mined row gets when its table was changed or dropped after the row was written."""

    ROW_VERSION = "row version"
    """The definition that was valid at the row: what only a dictionary in the redo could give on Oracle."""

    ONLINE_CATALOG = "online catalog"
    """As Oracle with DICT_FROM_ONLINE_CATALOG: ``COL n``, ``OBJ# n``, STATUS 2."""


@dataclass(frozen=True, slots=True)
class RedoSettings:
    """Settings of one database's redo.

    ``log_bytes`` is the size of an online log in estimated redo bytes. ``clock`` gives seconds since 1970 in UTC; the
    database host's time zone is UTC. ``idle_redo_seconds`` is how often an idle instance writes a redo record of its
    own, as background processes of a real one do; without it LAST_REDO_CHANGE# would rest on the last commit.
    """

    log_bytes: int = 4 * 1024 * 1024
    groups: int = 3
    archivelog: bool = True
    directory: str = "/opt/oracle/oradata"
    clock: Callable[[], float] = time.time
    idle_redo_seconds: float = 3.0
    dictionary: Dictionary = Dictionary.ROW_VERSION

    def __post_init__(self) -> None:
        if self.log_bytes < 4096:
            raise ValueError(f"log_bytes must be 4096 at least, not {self.log_bytes}")
        if self.groups < 2:
            raise ValueError(f"Oracle needs two log groups at least, not {self.groups}")

"""How much of a row does supplemental logging add to its redo?"""

from __future__ import annotations

from collections.abc import Collection
from enum import IntEnum

from oracle_embedded.api import TableVersion


class Level(IntEnum):
    """What is logged of an updated row besides what the statement changed."""

    NONE = 0
    MINIMAL = 1
    KEY = 2
    ALL = 3


def level_of(table: TableVersion, database: Collection[str]) -> Level:
    """The level of a table's next row.

    Table log groups count only with minimal logging at the database at least, which every
    database-wide kind implies. Unique and foreign key logging adds columns only when one of theirs
    changes; a table version does not know these keys, so they count as minimal.

    Args:
        table: The table's definition.
        database: What is on for the whole database: of ``MIN``, ``PK``, ``UI``, ``FK``, ``ALL``.

    Source:
        Oracle Database Utilities 19c, Supplemental Logging.
    """
    if not database:
        return Level.NONE
    if "ALL" in database or table.supplemental_all:
        return Level.ALL
    if "PK" in database or table.supplemental_primary_key:
        # Without a key of any kind key logging logs the whole row.
        return Level.KEY if table.key_columns else Level.ALL
    return Level.MINIMAL

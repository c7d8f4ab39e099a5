"""Which tables does no statement read or change as a table: those that store a part of another
table, and those outside of the database?

The rows of a nested table and the rest of long rows of an index-organized table are kept with their
row here; the tables in which Oracle keeps them are there for the dictionary, without rows.

Source: Oracle Database Reference 19c, ALL_TABLES, ALL_NESTED_TABLES, ALL_EXTERNAL_TABLES; Database
Error Messages 19c; names of the tables that an index-organized table comes with: Database
Administrator's Guide 19c, "Managing Index-Organized Tables".
"""

from __future__ import annotations

from dataclasses import dataclass

from oracle_embedded.api import OracleError

NESTED, OVERFLOW, MAPPING = "NESTED", "IOT_OVERFLOW", "IOT_MAPPING"

_REFUSED = {
    NESTED: (22812, "cannot reference nested table column's storage table"),
    OVERFLOW: (25191, "cannot reference overflow table of an index-organized table"),
    MAPPING: (28668, "cannot reference mapping table of an index-organized table"),
}


@dataclass(frozen=True, kw_only=True)
class External:
    """Where the rows of an external table are: which driver reads which files of which
    directory."""

    driver: str
    directory: str
    parameters: str | None
    locations: tuple[str, ...]
    reject_limit: str

    def unreadable(self, offset: int = 0) -> OracleError:
        """The files of external tables are on the server, which has none here."""
        name = self.locations[0] if self.locations else ""
        return OracleError(
            29913,
            "error in executing ODCIEXTTABLEOPEN callout\nORA-29400: data cartridge error\n"
            f"KUP-04040: file {name} in {self.directory} not found",
            offset,
        )


def not_of_its_own(kind: str, offset: int = 0) -> OracleError:
    """What a statement gets that names a table which stores a part of another one."""
    code, text = _REFUSED[kind]
    return OracleError(code, text, offset)


def is_external_only(offset: int = 0) -> OracleError:
    """What a statement gets that an external table does not take."""
    return OracleError(30657, "operation not supported on external organized table", offset)

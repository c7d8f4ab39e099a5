"""Of which database do a stream's records count?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cdc_core.errors import ConfigError


class OneDatabase:
    """Records count of one database: the configured one, or the only one that there is.

    Args:
        records: What they are called.
        wanted: The configured one; None where all must be of one.
        state: As the window before left it.
    """

    def __init__(self, records: str, wanted: str | None, state: Mapping[str, Any]) -> None:
        self._records, self._wanted = records, wanted
        self._known: str | None = wanted or state.get("database")

    def counts(self, database: str | None) -> bool:
        """Does a record count that names a database, or none?

        Raises:
            ConfigError: Records are of more than one.
        """
        if database is None or database == self._known:
            return True
        if self._wanted is not None:
            return False
        if self._known is not None:
            raise ConfigError(
                f"{self._records} are of more than one database",
                hint="Name the one to capture under capture.database.",
                databases=f"{self._known}, {database}",
            )
        self._known = database
        return True

    def state(self) -> dict[str, str]:
        """For the next window."""
        return {} if self._known is None else {"database": self._known}

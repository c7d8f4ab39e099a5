"""Which editions are there? Programs are the same in all of them."""

from __future__ import annotations

from oracle_embedded.api import OracleError
from oracle_embedded.engine.storage.catalog import Catalog

DEFAULT_EDITION = "ORA$BASE"
_SETTING = "editions"


def editions(catalog: Catalog) -> list[str]:
    """Names of all editions, each the parent of the next."""
    made = catalog.setting(_SETTING)
    return [DEFAULT_EDITION, *(made.split(",") if made else ())]


def keep_editions(catalog: Catalog, names: list[str]) -> None:
    """Keep the names of all editions but the first, within the caller's transaction."""
    catalog.set_setting(_SETTING, ",".join(names))


def checked_edition(catalog: Catalog, name: str) -> str:
    """An edition by name.

    Raises:
        OracleError: ORA-38802, there is none of that name.
    """
    if name not in editions(catalog):
        raise OracleError(38802, "edition does not exist")
    return name

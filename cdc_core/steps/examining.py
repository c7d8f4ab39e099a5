"""Before a source is begun: which tables does a database have, and can everything that the source needs be reached?

Each question connects by itself, so that one failure hides nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence

from cdc_core.config import OracleConfig, SourceConfig
from cdc_core.landing.open import open_landing
from cdc_core.model.findings import Finding
from cdc_core.model.reports import FoundTable
from cdc_core.oracle.preflight import check_source
from cdc_core.oracle.session import connect
from cdc_core.schema.catalog import find_tables
from cdc_core.state.store import Store


def tables_matching(oracle: OracleConfig, patterns: Sequence[str]) -> list[FoundTable]:
    """The tables whose ``OWNER.TABLE`` matches one of the patterns (``SHOP.*``), and whether they can be captured.

    Raises:
        CdcError: The database cannot be reached.
    """
    with connect(oracle) as session:
        return find_tables(session, patterns)


def oracle_findings(config: SourceConfig) -> list[Finding]:
    """What database and tables lack, and what an operator should know.

    Raises:
        CdcError: The database cannot be reached.
    """
    with connect(config.oracle) as session:
        return check_source(session, config)


def landed_folders(config: SourceConfig) -> int:
    """How many folders of the source landing has.

    Raises:
        CdcError: Landing cannot be reached.
    """
    return len(open_landing(config.landing).list_folders(config.name))


def recorded_tables(config: SourceConfig) -> int:
    """How many tables of the source the metadata store has; makes the store where there is none.

    Raises:
        CdcError: The store cannot be opened.
    """
    with Store.open(config.state.url_with_password) as store:
        return len(store.tables(config.name))

"""How is a database certified?"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from cdc_core.config import SourceConfig
from cdc_core.errors import ConfigError
from cdc_core.oracle.session import connect
from diagnosis.certify.look import LOOK_PROBES, look
from diagnosis.certify.mine import MINE_PROBES, mine
from diagnosis.certify.probes import Level, Probe
from diagnosis.certify.report import Found, Report
from diagnosis.certify.tried import TryProbe
from diagnosis.certify.try_ddl import DDL_PROBES
from diagnosis.certify.try_lobs import LOB_PROBES
from diagnosis.certify.try_redo import REDO_PROBES_TRIED
from diagnosis.certify.try_rows import ROW_PROBES
from diagnosis.certify.try_tables import TABLE_PROBES
from diagnosis.certify.try_transactions import TRANSACTION_PROBES
from diagnosis.certify.try_types import type_probes
from diagnosis.certify.trying import Scratch, try_out

TRY_PROBES: tuple[TryProbe, ...] = (
    *type_probes(),
    *REDO_PROBES_TRIED,
    *TRANSACTION_PROBES,
    *DDL_PROBES,
    *TABLE_PROBES,
    *LOB_PROBES,
    *ROW_PROBES,
)
PROBES: dict[Level, tuple[Probe, ...]] = {
    Level.LOOK: LOOK_PROBES,
    Level.MINE: MINE_PROBES,
    Level.TRY: TRY_PROBES,
}
"""All probes, by level."""


def certify(
    config: SourceConfig,
    levels: Sequence[Level] = (Level.LOOK,),
    *,
    scratch: Scratch | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Report:
    """Ask a source's database the probes of the levels.

    Args:
        scratch: The schema for level try.
        sleep: Waits between two looks at what changes.

    Raises:
        ConfigError: Level try has no schema, or one that tables are captured from.
        PreflightError: The scratch schema holds objects of others.
        CdcError: The database cannot be reached, or is lost on the way.
    """
    if Level.TRY in levels:
        _check(config, scratch)
    found: list[Found] = []
    with connect(config.oracle) as session:
        if Level.LOOK in levels:
            tables = [one.table for one in config.tables if not one.is_pattern]
            found += look(session, tables, sleep=sleep)
        if Level.MINE in levels:
            found += mine(config, session, MINE_PROBES)
        if scratch is not None and Level.TRY in levels:
            found += try_out(config, session, scratch, TRY_PROBES, sleep=sleep)
    return Report(tuple(levels), tuple(found))


def _check(config: SourceConfig, scratch: Scratch | None) -> None:
    if scratch is None:
        raise ConfigError(
            "level try needs a schema of its own",
            hint="Name one with --schema: an empty one, whose owner may create tables.",
        )
    if any(one.table.owner == scratch.schema for one in config.tables if not one.is_pattern):
        raise ConfigError(
            "tables are captured from this schema",
            hint="Name another one with --schema, which is empty.",
            schema=scratch.schema,
        )

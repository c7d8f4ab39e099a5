"""How is a database certified?"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from cdc_core.certify.look import LOOK_PROBES, look
from cdc_core.certify.probes import Level, Probe
from cdc_core.certify.report import Found, Report
from cdc_core.config import SourceConfig
from cdc_core.oracle.session import connect

PROBES: dict[Level, tuple[Probe, ...]] = {Level.LOOK: LOOK_PROBES}
"""All probes, by level."""


def certify(
    config: SourceConfig,
    levels: Sequence[Level] = (Level.LOOK,),
    *,
    sleep: Callable[[float], None] = time.sleep,
) -> Report:
    """Ask a source's database the probes of the levels.

    Args:
        sleep: Waits between two looks at what changes.

    Raises:
        CdcError: The database cannot be reached, or is lost on the way.
    """
    found: list[Found] = []
    with connect(config.oracle) as session:
        if Level.LOOK in levels:
            tables = [one.table for one in config.tables if not one.is_pattern]
            found += look(session, tables, sleep=sleep)
    return Report(tuple(levels), tuple(found))

"""Which redo files has a physical standby, and what does its control file say of itself?

It has a copy of each archived log that has come from the primary, in a folder of its own, and keeps
it whatever becomes of the primary's. Of the online logs its control file shows the groups alone:
nothing is written there. Source: Oracle Data Guard Concepts and Administration 19c, "Redo Transport
Services"; Oracle Database Reference 19c, V$ARCHIVED_LOG, V$THREAD and V$DATABASE.
"""

from __future__ import annotations

from collections.abc import Sequence

from oracle_embedded.api import StandbySite
from oracle_embedded.redo import store
from oracle_embedded.redo.logs import resetlogs_id
from oracle_embedded.redo.settings import RedoSettings


def received(logs: Sequence[store.Log], site: StandbySite) -> list[store.Log]:
    """The archived logs that have come from the primary, those among them that were deleted
    since."""
    return [log for log in logs if log.archived and _number(log) not in site.missing]


def file_name(log: store.Log, site: StandbySite, settings: RedoSettings) -> str | None:
    """The standby's own archived file of a log that has come; None where it was deleted."""
    if _number(log) in site.deleted:
        return None
    identity = f"{log.thread}_{log.sequence}_{resetlogs_id(log.resetlogs_time)}"
    return f"{settings.directory}/{site.name}/archive/{identity}.arc"


def has_file(log: store.Log, name: str, site: StandbySite, settings: RedoSettings) -> bool:
    """Does a file of the standby hold this log?"""
    return log in received([log], site) and file_name(log, site, settings) == name


def is_applied(log: store.Log, site: StandbySite) -> bool:
    """Is all redo of an archived log applied?"""
    assert log.next_change is not None
    return site.applied_scn is None or log.next_change <= site.applied_scn + 1


def incarnation(logs: Sequence[store.Log], site: StandbySite) -> tuple[int, int] | None:
    """RESETLOGS_CHANGE# and RESETLOGS_TIME up to which redo is applied; None where that is the
    primary's present one."""
    if site.applied_scn is None:
        return None
    known = {(log.resetlogs_change, log.resetlogs_time) for log in logs}
    return max(one for one in known if one[0] <= site.applied_scn)


def _number(log: store.Log) -> tuple[int, int]:
    return log.thread, log.sequence

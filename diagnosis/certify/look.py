"""Level *look*: what do queries of the dictionary and of V$ views say? Reads only."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from cdc_core.errors import CdcError, OracleUnavailableError
from cdc_core.model.identifiers import TableId
from cdc_core.oracle.database import current_scn
from cdc_core.oracle.session import OracleSession
from cdc_core.schema.dictionary_queries import tables_condition
from diagnosis.certify.database import DATABASE_PROBES
from diagnosis.certify.probes import Answer, LookProbe, RefusedQuery, Verdict
from diagnosis.certify.redo import REDO_PROBES
from diagnosis.certify.report import Found
from diagnosis.certify.values import VALUE_PROBES
from diagnosis.certify.views import view_probes

LOOK_PROBES: tuple[LookProbe, ...] = (
    *DATABASE_PROBES,
    *REDO_PROBES,
    *VALUE_PROBES,
    *view_probes(),
)
"""Every probe of the level."""


def look(
    session: OracleSession,
    tables: Sequence[TableId],
    *,
    probes: Iterable[LookProbe] = LOOK_PROBES,
    sleep: Callable[[float], None] = time.sleep,
) -> list[Found]:
    """Ask every probe.

    Raises:
        OracleUnavailableError: The session is lost. What one statement meets otherwise is its
            probe's answer.
    """
    return [Found(probe, _asked(session, probe, tables, sleep)) for probe in probes]


def _asked(
    session: OracleSession,
    probe: LookProbe,
    tables: Sequence[TableId],
    sleep: Callable[[float], None],
) -> Verdict:
    answers: dict[str, Answer] = {}
    for name, sql in probe.queries.items():
        if answers and probe.pause_seconds:
            sleep(probe.pause_seconds)
        answers[name] = _answer(session, sql, tables, is_described=probe.is_described)
    return probe.judged(answers)


def _answer(
    session: OracleSession, sql: str, tables: Sequence[TableId], *, is_described: bool
) -> Answer:
    binds: dict[str, object] = {}
    if "{tables}" in sql:
        condition, named = tables_condition(tables, "OWNER", "TABLE_NAME")
        sql, binds = sql.format(tables=condition), dict(named)
    try:
        if ":scn" in sql:
            binds["scn"] = current_scn(session)
        return session.describe(sql) if is_described else session.fetch_all(sql, binds)
    except OracleUnavailableError:
        raise
    except CdcError as error:
        return RefusedQuery(str(error.facts.get("ora", type(error).__name__)))

"""Level *mine*: what does the newest redo of the captured tables show? It lands nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from cdc_core.capture.logs.positions import upper_bound
from cdc_core.config import LogMinerConfig, SourceConfig
from cdc_core.errors import CdcError
from cdc_core.model.operations import Operation
from cdc_core.model.scn import Scn
from cdc_core.oracle.session import OracleSession
from cdc_core.schema.dictionary import read_each_schema
from cdc_core.schema.table import TableSchema
from diagnosis.certify.mined import Counting, MinedPass, listed
from diagnosis.certify.passes import logminer_of, redo_of
from diagnosis.certify.probes import Probe, Verdict, cannot_tell, decided, holds, otherwise
from diagnosis.certify.report import Found

LOGS = 2
"""So many of the newest logs of each thread are mined, the current one among them."""
_FIRST = """
SELECT MIN(F) FROM (
SELECT L.FIRST_CHANGE# F, RANK() OVER (PARTITION BY L.THREAD# ORDER BY L.SEQUENCE# DESC) R
  FROM V$LOG L WHERE L.STATUS IN ('CURRENT', 'ACTIVE', 'INACTIVE'))
 WHERE R <= :logs"""
_REFERENCE = "Oracle Database Reference 19c, V$LOGMNR_CONTENTS"
_MEASURED = "Measured on 23ai by others"
_SEEN_ELSEWHERE = "Seen on real databases by others"


@dataclass(frozen=True, slots=True, kw_only=True)
class MineProbe(Probe):
    """A probe that looks at the counts of one pass."""

    judge: Callable[[MinedPass], Verdict]
    needs_changes: bool = True

    def judged(self, mined: MinedPass) -> Verdict:
        """The verdict; without one where captured tables have no rows in the redo."""
        if self.needs_changes and not mined.changes:
            return cannot_tell("the newest logs have no change of a captured table")
        return self.judge(mined)


def mine(
    config: SourceConfig,
    session: OracleSession,
    probes: Sequence[MineProbe],
    *,
    clock: Callable[[], float] = time.monotonic,
) -> list[Found]:
    """Mine the newest logs once, and put every probe to what was counted.

    Raises:
        CdcError: LogMiner cannot read them.
    """
    tables = _tables(config, session)
    began = clock()
    mined = _pass(session, logminer_of(config), tables)
    mined.seconds = clock() - began
    return [Found(probe, probe.judged(mined)) for probe in probes]


def _tables(config: SourceConfig, session: OracleSession) -> list[TableSchema]:
    """The definitions of the captured tables that have one that can be captured."""
    configs = [one for one in config.tables if not one.is_pattern]
    found = read_each_schema(session, configs) if configs else {}
    return [one for one in found.values() if not isinstance(one, CdcError)]


def _pass(session: OracleSession, how: LogMinerConfig, tables: Sequence[TableSchema]) -> MinedPass:
    [(first,)] = session.fetch_all(_FIRST, {"logs": LOGS})
    high = upper_bound(session, "online")
    low = Scn(min(int(first), high) - 1)
    counting = Counting(tables)
    with redo_of(session, how, tables, low, high) as (logs, batches):
        for batch in batches:
            counting.take(batch)
    counting.finish()
    counting.mined.redo_bytes = sum(log.bytes for log in logs)
    return counting.mined


def _none(fact: str, what: str) -> Callable[[MinedPass], Verdict]:
    """A judge: is there no such row?"""

    def judge(mined: MinedPass) -> Verdict:
        count = mined.facts[fact]
        return decided(not count, f"{count} of {mined.facts['rows']} rows {what}")

    return judge


def _some(fact: str, what: str) -> Callable[[MinedPass], Verdict]:
    """A judge: is there such a row? That there is none in one pass says nothing."""

    def judge(mined: MinedPass) -> Verdict:
        count, rows = mined.facts[fact], mined.facts["rows"]
        seen = f"{count} of {rows} rows {what}"
        return holds(seen) if count else cannot_tell(seen)

    return judge


def _shown(mined: MinedPass) -> Verdict:
    names = ((Operation(code).name if code in set(Operation) else "unknown", count)
             for code, count in mined.operations.items())  # fmt: skip
    return decided(mined.changes > 0, listed(names), redo_rows=mined.facts["rows"])


def _decodable(mined: MinedPass) -> Verdict:
    wrong = sum(mined.undecodable.values())
    reasons = f": {listed(mined.undecodable.items())}" if wrong else ""
    return decided(not wrong, f"{mined.decoded} statements decoded, {wrong} not{reasons}",
                   statements_decoded=mined.decoded, statements_undecodable=wrong)  # fmt: skip


def _statuses(mined: MinedPass) -> Verdict:
    named = ((f"with STATUS {status}", count) for status, count in mined.statuses.items())
    return decided(not mined.statuses.keys() - {0}, listed(named))


def _unsupported(mined: MinedPass) -> Verdict:
    count = mined.operations[Operation.UNSUPPORTED]
    return decided(not count, f"{count} rows of code 255")


def _starts(mined: MinedPass) -> Verdict:
    starts, commits = mined.facts["starts"], mined.facts["commits"]
    if not starts + commits:
        return cannot_tell("no transaction begins or ends")
    return decided(starts > 0 and commits > 0, f"{starts} START rows, {commits} COMMIT rows")


def _empty(mined: MinedPass) -> Verdict:
    zero, threadless = mined.facts["zero-xid"], mined.facts["commit-of-no-thread"]
    seen = f"{zero} rows whose XID is zero, {threadless} COMMIT rows of thread 0"
    return holds(seen) if zero + threadless else cannot_tell(seen)


def _gathered(mined: MinedPass) -> Verdict:
    count = mined.facts["behind-its-commit"]
    seen = f"{count} of {mined.changes} changes stand behind their COMMIT"
    return holds(seen) if count else otherwise(seen)


def _speed(mined: MinedPass) -> Verdict:
    seconds = max(mined.seconds, 0.001)
    rate = mined.redo_bytes / seconds / 1024**2
    seen = f"{mined.redo_bytes / 1024**2:.1f} MiB of redo in {seconds:.1f} seconds, {rate:.1f} MiB a second"
    return decided(rate >= 1, seen, mining_mib_a_second=round(rate))


def _probe(name: str, belief: str, judge: Callable[[MinedPass], Verdict], **more: Any) -> MineProbe:
    return MineProbe(
        id=f"mine.{name}", belief=belief, judge=judge, **{"source": _REFERENCE, **more}
    )


_MISTAKEN = "Changes would be lost, or taken for others. Report what LogMiner shows."
_NOTHING = "Nothing: Redolake expects it, and need not."

MINE_PROBES: tuple[MineProbe, ...] = (
    _probe(
        "shown",
        "LogMiner shows the captured tables' changes under their names or numbers.",
        _shown,
        depends="rule 1",
        otherwise=_MISTAKEN,
    ),
    _probe(
        "decodable",
        "Every statement of a captured table is decoded.",
        _decodable,
        depends="rule 8, cdc_core/decode/dml.py",
        otherwise="Such rows go to quarantine or stop their tables. `redolake explain` shows which they are.",
    ),
    _probe(
        "status",
        "Changes of captured tables have STATUS 0.",
        _statuses,
        depends="cdc_core/capture/passes/unnamed_rows.py",
        otherwise="Such rows are from before a DDL: Redolake decodes them without names.",
        is_needed=False,
    ),
    _probe(
        "supported",
        "No change of a captured table has code 255.",
        _unsupported,
        depends="rule 1",
        otherwise="LogMiner does not translate the table's rows: leave the table out.",
        needs_changes=False,
    ),
    _probe(
        "operations",
        "Every row has an operation code that Redolake knows.",
        _none("unknown-operation", "have another code"),
        depends="cdc_core/model/operations.py",
        otherwise="Report the codes.",
        needs_changes=False,
    ),
    _probe(
        "whole",
        "The redo has no hole (MISSING_SCN).",
        _none("hole", "are holes"),
        depends="rule 5, cdc_core/steps/windows/gap.py",
        otherwise="Streams end at a hole: find out which log is damaged.",
        needs_changes=False,
    ),
    _probe(
        "ends",
        "Transactions begin with START rows and end with COMMIT rows.",
        _starts,
        depends="cdc_core/capture/transactions/ledger.py",
        otherwise=_MISTAKEN,
        needs_changes=False,
    ),
    _probe(
        "addresses",
        "Every change has a redo address that is not zero.",
        _none("zero-address-of-a-change", "are changes without an address"),
        depends="rule 17, cdc_core/capture/passes/reading_position.py",
        otherwise="Windows stop at such a row.",
        source="Seen only on ROLLBACK rows",
    ),
    _probe(
        "containers",
        "Every change names its container.",
        _none("no-container", "name no container"),
        depends="cdc_core/capture/passes/mining.py",
        otherwise="Set capture.logs to scn_range, in which LogMiner shows only one container.",
        source=_MEASURED,
    ),
    _probe(
        "row-ids",
        "Every change has a ROW_ID, or a placeholder.",
        _none("no-row-id", "have no ROW_ID"),
        depends="cdc_core/stage/rollback.py",
        otherwise="Redolake cannot see what a transaction takes back from index-organized tables.",
        source=_MEASURED,
        is_needed=False,
    ),
    _probe(
        "partial-xids",
        "Rows can have an XID whose sequence is ffffffff.",
        _some("partial-xid", "have one"),
        depends="cdc_core/capture/transactions/ledger.py",
        otherwise=_NOTHING,
        source=_SEEN_ELSEWHERE,
        is_needed=False,
        wart="PARTIAL_XIDS",
        needs_changes=False,
    ),
    _probe(
        "empty-transactions",
        "There are START rows whose XID is zero, and COMMIT rows of thread 0.",
        _empty,
        depends="cdc_core/capture/transactions/ledger.py",
        otherwise=_NOTHING,
        source=_SEEN_ELSEWHERE,
        is_needed=False,
        wart="EMPTY_TRANSACTIONS",
        needs_changes=False,
    ),
    _probe(
        "order-of-scns",
        "Within a thread SCNs can fall from one row to the next: redo came late.",
        _some("scn-falls", "have a lower SCN than one before"),
        depends="docs/design/late-redo.md",
        otherwise=_NOTHING,
        source=_MEASURED,
        is_needed=False,
        wart="LATE_REDO",
        needs_changes=False,
    ),
    _probe(
        "behind-commit",
        "A change can stand behind the COMMIT of its transaction.",
        _gathered,
        depends="rule 17, cdc_core/capture/passes/log_writes.py",
        otherwise=_NOTHING,
        source="Said by maintainers of a redo parser",
        is_needed=False,
        wart="GATHERED_WRITES",
    ),
    _probe(
        "placeholders",
        "Rows of tables with LOBs have a placeholder for the ROWID.",
        _some("placeholder", "have a placeholder"),
        depends="cdc_core/stage/undone_statements.py",
        otherwise=_NOTHING,
        source=_MEASURED,
        is_needed=False,
        wart="LOB_STATEMENTS",
    ),
    _probe(
        "speed",
        "LogMiner and decoding read one MiB of redo a second at least.",
        _speed,
        depends="how far capture falls behind",
        otherwise="Capture falls behind a busy database: see capture.sessions, and gather statistics of "
        "fixed objects.",
        source="Redolake's own figures",
        is_needed=False,
        needs_changes=False,
    ),
)
"""Of the newest redo."""

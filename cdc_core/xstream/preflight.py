"""What keeps Redolake from reading XStream's LCRs? All of it at once, each with its remedy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from cdc_core.change_stream.files import RecordFiles
from cdc_core.change_stream.preflight import check_files
from cdc_core.config import XStreamConfig
from cdc_core.errors import ConfigError, OracleError, PreflightError
from cdc_core.model.findings import Finding
from cdc_core.model.scn import Scn
from cdc_core.oracle.session import OracleSession
from cdc_core.xstream.client import UNPROVED
from cdc_core.xstream.lcrs import EXTRA_ATTRIBUTE, Lcr
from cdc_core.xstream.library import load_library

_VIEWS = ("DBA_XSTREAM_OUTBOUND", "DBA_XSTREAM_OUTBOUND_PROGRESS", "DBA_CAPTURE")
_SERVER = """
SELECT C.START_SCN, P.PROCESSED_LOW_SCN, C.REQUIRED_CHECKPOINT_SCN, C.STATUS, C.ERROR_NUMBER
  FROM DBA_XSTREAM_OUTBOUND O
  JOIN DBA_CAPTURE C ON C.CAPTURE_NAME = O.CAPTURE_NAME
  LEFT JOIN DBA_XSTREAM_OUTBOUND_PROGRESS P ON P.SERVER_NAME = O.SERVER_NAME
 WHERE O.SERVER_NAME = :name"""
_PINNED = """
SELECT COUNT(*), SUM(BLOCKS * BLOCK_SIZE)
  FROM V$ARCHIVED_LOG
 WHERE NEXT_CHANGE# > :scn AND DELETED = 'NO'"""


@dataclass(frozen=True, slots=True)
class OutboundFacts:
    """What Oracle's views say of an outbound server: from where on it has transactions whole
    (``begins``), up to which commits it was ``processed``, and the SCN whose redo it still
    ``needs``; None where they do not say."""

    begins: Scn | None
    processed: Scn | None
    needs: int | None
    status: str | None
    error: int | None


def outbound_server(session: OracleSession, name: str) -> OutboundFacts:
    """What Oracle's views say of an outbound server.

    Raises:
        ConfigError: There is none of that name.
        PreflightError: The user does not see the views.
    """
    try:
        rows = session.fetch_all(_SERVER, {"name": name})
    except (OracleError, PreflightError) as error:
        raise PreflightError(
            "the views of outbound servers cannot be read",
            hint=f"deploy/oracle/xstream.sql has the grants: {', '.join(_VIEWS)}.",
            server=name,
        ) from error
    if not rows:
        raise ConfigError(
            "the outbound server does not exist",
            hint="deploy/oracle/xstream.sql creates it. Name it under capture.server, in upper case.",
            server=name,
        )
    start, processed, needs, status, error_number = rows[0]
    return OutboundFacts(
        None if start is None else Scn(int(start)),
        None if processed is None else Scn(int(processed)),
        None if needs is None else int(needs),
        status,
        None if error_number is None else int(error_number),
    )


def check_server(session: OracleSession, how: XStreamConfig) -> list[Finding]:
    """What the client library, or the outbound server, lacks; how much redo it keeps."""
    assert how.server is not None
    findings = [Finding(UNPROVED, "", is_problem=False)]
    try:
        load_library(how.library)
        facts = outbound_server(session, how.server)
        [(logs, size)] = session.fetch_all(_PINNED, {"scn": facts.needs or 0})
    except (ConfigError, PreflightError) as error:
        return [*findings, Finding(error.what_happened, error.hint)]
    if facts.status != "ENABLED":
        told = f", ORA-{facts.error:05d}" if facts.error else ""
        findings.append(
            Finding(
                f"the capture process of the outbound server is {facts.status}{told}",
                f"Run `DBMS_XSTREAM_ADM.START_OUTBOUND('{how.server}')` as the XStream administrator.",
            )
        )
    findings.append(
        Finding(
            f"the outbound server {how.server} is processed up to SCN {facts.processed}; it needs redo from SCN {facts.needs} on: "
            f"{logs} archived logs, {int(size or 0) / 1024**2:,.0f} MB",
            "",
            is_problem=False,
        )
    )
    return findings


def check_recordings(open_files: Callable[[], RecordFiles], folder: str | None) -> list[Finding]:
    """What the folder or the LCRs in it lack."""
    empty = Finding(
        f"no LCR has been recorded into {folder} yet",
        "`redolake xstream record` writes recordings there.",
        is_problem=False,
    )
    return check_files(open_files, _lacking, empty)


def _lacking(lcrs: Sequence[Lcr]) -> Iterator[Finding]:
    for lcr in lcrs:
        lcr.check()
    if any(
        one.kind == "row" and (one.old or one.new) and "ROW_ID" not in one.attributes
        for one in lcrs
    ):
        yield Finding("XStream's LCRs lack ROW_ID", EXTRA_ATTRIBUTE)

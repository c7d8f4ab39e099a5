"""What keeps Redolake from reading XStream's LCRs? All of it at once, each with its remedy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from cdc_core.capture.preflight import logs_all_columns
from cdc_core.change_stream.files import RecordFiles
from cdc_core.config import TableConfig
from cdc_core.errors import DecodeError, PreflightError
from cdc_core.model.findings import Finding
from cdc_core.oracle.session import OracleSession
from cdc_core.preflight.checks import Looked, found_by
from cdc_core.preflight.redo import LOGGING, ROW_CHECKS
from cdc_core.xstream.lcrs import EXTRA_ATTRIBUTE, Lcr


def check_tables(session: OracleSession, tables: Sequence[TableConfig]) -> list[Finding]:
    """What the tables' redo lacks."""
    checks = ROW_CHECKS if logs_all_columns(session) else (LOGGING, *ROW_CHECKS)
    return found_by(checks, Looked(session, tables))


def check_recordings(open_files: Callable[[], RecordFiles], folder: str | None) -> list[Finding]:
    """What the folder or the LCRs in it lack."""
    try:
        lcrs = open_files().newest()
        lacking = dict.fromkeys(_lacking(lcrs))
    except (PreflightError, DecodeError) as error:
        return [Finding(error.what_happened, error.hint)]
    if not lcrs:
        return [
            Finding(
                f"no LCR has been recorded into {folder} yet",
                "docs/reference/lcr-files.md says what is recorded there.",
                is_problem=False,
            )
        ]
    return [Finding(f"XStream's LCRs lack {member}", EXTRA_ATTRIBUTE) for member in lacking]


def _lacking(lcrs: Sequence[Lcr]) -> Iterator[str]:
    for lcr in lcrs:
        lcr.check()
        if lcr.kind == "row" and (lcr.old or lcr.new) and "ROW_ID" not in lcr.attributes:
            yield "ROW_ID"

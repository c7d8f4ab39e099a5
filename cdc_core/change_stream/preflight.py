"""What do a stream's tables and files lack? All of it at once, each with its remedy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from cdc_core.capture.preflight import logs_all_columns
from cdc_core.change_stream.files import RecordFiles
from cdc_core.config import TableConfig
from cdc_core.errors import DecodeError, PreflightError, StoreUnavailableError
from cdc_core.model.findings import Finding
from cdc_core.oracle.session import OracleSession
from cdc_core.preflight.checks import CheckInput, found_by
from cdc_core.preflight.redo import LOGGING, ROW_CHECKS


def check_tables(session: OracleSession, tables: Sequence[TableConfig]) -> list[Finding]:
    """What the tables' redo lacks."""
    checks = ROW_CHECKS if logs_all_columns(session) else (LOGGING, *ROW_CHECKS)
    return found_by(checks, CheckInput(session, tables))


def check_files(
    open_files: Callable[[], RecordFiles],
    lacking: Callable[[Sequence[Any]], Iterable[Finding]],
    empty: Finding,
) -> list[Finding]:
    """What the folder, or its newest records, lack; ``empty`` says that it has none."""
    try:
        newest = open_files().newest()
        return [*lacking(newest)] if newest else [empty]
    except (PreflightError, DecodeError, StoreUnavailableError) as error:
        return [Finding(error.what_happened, error.hint)]

"""What preflight says of a source that LogMiner reads: of the redo, and of the tables."""

from __future__ import annotations

from typing import Any

from cdc_core.capture.preflight import check_redo
from cdc_core.config import SourceConfig
from cdc_core.model.findings import Finding
from cdc_core.preflight.tables import check_tables


def findings_of(session: Any, config: SourceConfig) -> list[Finding]:
    """All findings, each once, as `redolake doctor` has them."""
    found = [
        *check_redo(session, config.tables, config.logminer),
        *check_tables(session, config.tables),
    ]
    return list(dict.fromkeys(found))

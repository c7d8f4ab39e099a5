"""What is checked before a table is captured? Asked of the lists that `redolake doctor` runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cdc_core.capture.preflight import LOGMINER_CHECKS
from cdc_core.preflight.checks import Check
from cdc_core.preflight.redo import REDO_CHECKS
from cdc_core.preflight.tables import TABLE_CHECKS
from docs.tools.markdown import table


def of_database() -> str:
    """What is asked of the database and its redo."""
    return _listed(LOGMINER_CHECKS)


def of_tables() -> str:
    """What is asked of each table."""
    return _listed([*REDO_CHECKS, *TABLE_CHECKS])


def _listed(checks: Sequence[Check[Any]]) -> str:
    rows = [(one.subject, one.remedy, f"[{_name(one.page)}](../{one.page})") for one in checks]
    return table(("what is checked", "what to do", "more"), rows)


def _name(page: str) -> str:
    return page.rpartition("/")[2].removesuffix(".md").replace("-", " ")

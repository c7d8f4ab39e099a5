"""What is a check, and what do several of them find?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from cdc_core.config import Reading, TableConfig
from cdc_core.model.findings import Finding
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn
from cdc_core.oracle.session import OracleSession
from cdc_core.schema.table import TableSchema

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CheckInput:
    """What checks of tables look at: the configured tables, the definitions of those that have one
    that can be captured, an SCN of now (None where the user may not read it), and how rows are read
    of tables that do not say it themselves."""

    session: OracleSession
    configs: Sequence[TableConfig]
    schemas: Sequence[TableSchema] = ()
    scn: Scn | None = None
    reading: Reading = "flashback"

    @property
    def tables(self) -> list[TableId]:
        """The names of the configured tables."""
        return [config.table for config in self.configs]


@dataclass(frozen=True, slots=True)
class Check(Generic[T]):
    """One thing that is checked.

    Attributes:
        subject: What is looked at, as ``redolake doctor``'s page lists it.
        remedy: What to do, in general; each finding has its own.
        page: The page of the docs that says more, from the docs' root.
        find: What is found; it raises only where it cannot look.
    """

    subject: str
    remedy: str
    page: str
    find: Callable[[T], Iterable[Finding]]


def found_by(checks: Iterable[Check[T]], given: T) -> list[Finding]:
    """What all of them find, in their order."""
    return [finding for check in checks for finding in check.find(given)]

"""What does preflight say of one thing?"""

from __future__ import annotations

from dataclasses import dataclass

from cdc_core.model.identifiers import TableId


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that preflight found. ``remedy`` is SQL for the administrator, or words;
    ``is_problem`` is False for information that stops nothing."""

    problem: str
    remedy: str
    table: TableId | None = None
    is_problem: bool = True

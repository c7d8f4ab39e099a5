"""What does ``redolake init`` propose for a table, and how large is it?"""

from __future__ import annotations

from dataclasses import dataclass

from cdc_core.model.reports import FoundTable


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberForm:
    """In which form the lake could hold a NUMBER without precision, which is text by default.

    ``form`` is for ``columns_as``, empty where none holds the values that were seen; ``reason``
    says what was seen. ``is_safe``: it is a key, or refers to one, and has whole numbers alone.
    """

    column: str
    form: str
    reason: str
    is_safe: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TableProposal:
    """A table that was found, with its size and the forms of its numbers.

    ``rows`` are those of Oracle's statistics, without them those that were counted
    (``rows_are_more``: there are more); ``bytes`` are those of its blocks, None without statistics.
    """

    found: FoundTable
    rows: int | None = None
    rows_are_more: bool = False
    bytes: int | None = None
    numbers: tuple[NumberForm, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """All tables that were found, and the rows a second that one session read just now from the
    largest of them; None where it has no rows."""

    tables: tuple[TableProposal, ...]
    rows_per_second: float | None

    @property
    def captured(self) -> list[TableProposal]:
        """The tables that can be captured."""
        return [one for one in self.tables if not one.found.left_out]

"""What is a table's part of a window, and what is known of the mirror that is to take it?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cdc_core.config import DeletionVectors
from cdc_core.landing.manifest import WindowManifest
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import ScnWindow
from cdc_core.model.texts import NOTHING_REPLACED, TextReplacement
from cdc_core.schema.table import TableSchema
from cdc_core.stage.committed import LandedInput
from cdc_core.stage.skipped_operations import NOTHING_SKIPPED, SkipRules


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePart:
    """What a table takes of a window.

    Attributes:
        manifest: The window's manifest.
        schema: The table's version at the part's upper end; call ``TableLake.prepare_schema`` first
            where it changed.
        landed: The files that hold the part.
        earlier: The table's other versions, by which rows written before a DDL are decoded.
        is_inexact: Commits of the table that belong to this window, or to earlier ones, came to
            light with a later one, which is applied after it: an insert may meet a row whose delete
            that window has.
    """

    manifest: WindowManifest
    schema: TableSchema
    landed: LandedInput
    earlier: Sequence[TableSchema] = ()
    is_inexact: bool = False

    @property
    def table(self) -> TableId:
        """The table."""
        return self.schema.table

    @property
    def window(self) -> ScnWindow:
        """The part's commit SCNs: the whole window, or a stretch of it."""
        return self.landed.window


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorState:
    """How far a table's mirror is, as the caller knows it.

    Attributes:
        position: scn_high of the last window that the mirror took; None if the caller does not
            know.
        covered_scn: Lowest SCN of the chunks of the last complete snapshot of the whole table:
            older changes of keys that are not in the mirror do not bring them back.
        read_scn: Highest SCN as of which any chunk of the table was read; None if the caller does
            not know. What committed later must come into the mirror, and that is checked.
        in_quarantine: How many redo rows of the table are in its quarantine.
    """

    position: int | None = None
    covered_scn: int = 0
    read_scn: int | None = None
    in_quarantine: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyRules:
    """What the configuration says of how a table's changes are applied.

    Attributes:
        quarantine_max: So many rows that cannot be decoded may be in the table's quarantine; None
            where the first one stops the table.
        skipping: Which changes the change log marks as skipped.
        replacing: In which columns U+FFFD may stand for bytes that are no UTF-8.
        keeps_text: The quarantine keeps the redo text of its rows.
        vectors: May a window switch the mirror's deletion vectors on?
    """

    quarantine_max: int | None = None
    skipping: SkipRules = NOTHING_SKIPPED
    replacing: TextReplacement = NOTHING_REPLACED
    vectors: DeletionVectors = "auto"
    keeps_text: bool = True


PLAIN_RULES = ApplyRules()
"""The rules where the configuration says nothing."""

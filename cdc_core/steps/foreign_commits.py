"""Which commits of others to a table's Delta tables must Redolake not build on, or should be
seen?"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator

from cdc_core.errors import LakeError
from cdc_core.lake.foreign_words import LAYER_WORDS, replaced_hint, replaced_words
from cdc_core.lake.table_context import DeltaPosition
from cdc_core.model.identifiers import TableId
from cdc_core.model.records import TableRecord
from cdc_core.model.reports import DeltaLayer

_LOG = logging.getLogger(__name__)

BOTH: tuple[DeltaLayer, ...] = ("changelog", "mirror")


def heed_foreign(state: TableRecord, position: DeltaPosition) -> None:
    """Tell what somebody else changed since the last window with changes, and refuse to build on
    what :func:`refuse_foreign` says."""
    for problem, remedy in foreign_changes(state.table, position):
        _LOG.warning("%s: %s. %s.", state.table, problem, remedy)
    refuse_foreign(state, position)


def refuse_foreign(
    state: TableRecord, position: DeltaPosition, layers: Collection[DeltaLayer] = BOTH
) -> None:
    """Refuse to build on a Delta table that somebody restored, emptied or replaced, or that is to
    forget its positions.

    Raises:
        LakeError: It is one. The error names the command or property, and what mends it.
    """
    table = state.table.argument
    for layer in position.forgetful:
        raise LakeError(
            f"the property delta.setTransactionRetentionDuration of the {LAYER_WORDS[layer]} makes Delta forget which windows it has",
            hint=f"`redolake maintain --table {table}` removes the property. Then `redolake table resume {table}` continues; if it says then "
            f"that windows are lost, `redolake table rebuild --from-landing {table}` writes both Delta tables from landing.",
            table=state.table,
        )
    for layer in layers:
        foreign = position.foreign.get(layer)
        found = None if foreign is None else foreign.replacing
        if found is None or (found.scn >= 0 and (state.snapshot_scn or 0) > found.scn):
            continue
        raise LakeError(
            replaced_words(layer, found),
            hint=replaced_hint("changelog" if state.mirror_scn is None else layer, table),
            table=state.table,
            delta_version=found.version,
            position=state.mirror_scn,
        )


def foreign_changes(table: TableId, position: DeltaPosition) -> Iterator[tuple[str, str]]:
    """What somebody else changed since the last window with changes, and what to do; empty as a
    rule."""
    for layer, foreign in position.foreign.items():
        changes = [one for one in foreign.changes if not one.replaces]
        if changes:
            done = ", ".join(f"{one.operation} in version {one.version}" for one in changes)
            yield (
                f"somebody else changed rows of the {LAYER_WORDS[layer]} since its last window: {done}",
                f"`redolake reconcile --table {table.argument}` shows whether rows differ from Oracle's; "
                f"`redolake table rebuild {table.argument}` writes the mirror from its change log"
                if layer == "mirror"
                else "The change log is what replays, rebuilds and late commits count on; if rows went or changed, "
                f"`redolake table rebuild --from-landing {table.argument}` writes it again",
            )

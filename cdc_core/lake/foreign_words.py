"""What do people read where somebody else changed the change log or the mirror?"""

from __future__ import annotations

from cdc_core.delta.foreign_changes import ForeignChange
from cdc_core.errors import ANY_TABLE
from cdc_core.model.reports import DeltaLayer

LAYER_WORDS: dict[DeltaLayer, str] = {"changelog": "change log", "mirror": "mirror"}
"""What people call the two Delta tables of a captured table."""


def replaced_words(layer: DeltaLayer, found: ForeignChange) -> str:
    """What is said where somebody else put other rows in the place of all."""
    return (
        f"another writer replaced the rows of the {LAYER_WORDS[layer]} ({found.operation}) "
        "without changing its position"
    )


def replaced_hint(layer: DeltaLayer, table: str = ANY_TABLE) -> str:
    """What to do then. Landing, or Oracle, gives back what the change log lacks, and the change log
    what the mirror lacks."""
    if layer == "mirror":
        return f"`redolake table rebuild {table}` writes the mirror from its change log."
    return (
        f"`redolake table rebuild --from-landing {table}` writes both Delta tables from landing; where landing does not reach back so far, "
        f"`redolake table resnapshot --fresh {table}` reads the table again into new ones."
    )

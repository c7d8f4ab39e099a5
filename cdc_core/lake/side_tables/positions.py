"""As of which SCNs are the mirrors of a source images of their tables, for readers that have the
lake alone?

A Delta log does not tell a table in which nothing happens from one that was stopped. What the
metadata store knows of that stands in one small file beside the tables, written anew when positions
move. An older file says less and nothing wrong: what it says of a generation stays true.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from cdc_core.errors import LakeError
from cdc_core.model.json_form import as_json, from_json


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePosition:
    """One captured table: where its Delta tables are or would be below the lake's path, and the
    first and the last SCN of which its mirror is an image (None before its first snapshot is
    complete).

    ``state`` is that of ``redolake status``; ``reason`` why the table has no image, or goes on no
    further. It ``is_partial`` where no snapshot has read all of its rows.
    """

    state: str
    generation: int
    low: int | None
    high: int | None
    mirror: str
    changelog: str
    history: str
    reason: str | None = None
    is_partial: bool = False


@dataclass(frozen=True, slots=True)
class Positions:
    """The tables of a source, by their Oracle names."""

    source: str
    tables: Mapping[str, TablePosition]

    def as_text(self) -> str:
        """The file's content."""
        return json.dumps(as_json(self), indent=1, sort_keys=True)

    @classmethod
    def parse(cls, text: str) -> Positions:
        """Read what :meth:`as_text` gave.

        Raises:
            LakeError: The text is none of its.
        """
        try:
            return from_json(cls, json.loads(text))
        except (ValueError, TypeError, KeyError) as error:
            raise LakeError(
                "the file of positions in the lake is damaged",
                hint="Remove it: the next `redolake run` writes it.",
            ) from error


def positions_path(root: str, source: str) -> str:
    """The file, below the folder of the lake."""
    return f"{root.rstrip('/')}/{source}/positions.json"

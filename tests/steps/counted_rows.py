"""Rows that their values identify, in the lake in memory: a pile for each row of values, by code of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from cdc_core.errors import LakeError
from cdc_core.schema.table import TableSchema

Rows = dict[tuple[Any, ...], tuple[dict[str, Any], int, int]]
"""By the row's values in one text, and its place in the pile."""


class Digests:
    """What stands for which values: one for one."""

    def __init__(self) -> None:
        self.values: dict[bytes, str] = {}
        self.digests: dict[str, bytes] = {}

    def check(self, schema: TableSchema, image: dict[str, Any]) -> None:
        digest, own = image.get("_cdc_row_digest"), text_of(schema, image)
        if digest is not None:
            assert self.values.setdefault(digest, own) == own, "two rows have one digest"
            assert self.digests.setdefault(own, digest) == digest, "a row has two digests"


def text_of(schema: TableSchema, image: dict[str, Any]) -> str:
    """A row's values in one text."""
    return repr(tuple(image[name] for name in schema.as_in_rows().column_names))


def pile(rows: Rows, schema: TableSchema, change: dict[str, Any], *, has_gaps: bool) -> None:
    """What a change does to the piles."""
    before, after = change["before"], change["after"]
    old, new = (image and text_of(schema, image) for image in (before, after))
    if old == new:
        return
    if old is not None:
        height = _height(rows, old)
        if height:
            del rows[old, height]
        elif not has_gaps:
            raise LakeError("a row goes that is not there", table=schema.table)
    if new is not None:
        values = {name: after[name] for name in schema.as_in_rows().column_names}
        place = change["_cdc_commit_scn"], change["_cdc_ordinal"]
        rows[new, _height(rows, new) + 1] = (values, *place)


def _height(rows: Rows, own: str) -> int:
    height = 0
    while (own, height + 1) in rows:
        height += 1
    return height


def derive(
    rows: Rows, schema: TableSchema, history: Iterable[dict[str, Any]], truncated_scn: int
) -> None:
    """The piles by a whole change log."""
    known = [one for one in history if one["_cdc_op"] != "t" and one["_cdc_commit_scn"] >= truncated_scn]  # fmt: skip
    read = max((one["_cdc_commit_scn"] for one in known if one["_cdc_op"] == "r"), default=-1)
    rows.clear()
    for one in sorted(known, key=lambda one: (one["_cdc_commit_scn"], one["_cdc_ordinal"])):
        if one["_cdc_op"] == "r" or one["_cdc_commit_scn"] > read:
            pile(rows, schema, one, has_gaps=False)


def wrong_places(
    rows: Rows, derived: Rows, schema: TableSchema, changes: Sequence[dict[str, Any]]
) -> set[tuple[Any, ...]]:
    """The places of piles which changes touch that are not what was derived."""
    images = [image for one in changes for image in (one["before"], one["after"]) if image]
    touched = {text_of(schema, image) for image in images}
    return {
        place
        for place in rows.keys() | derived.keys()
        if place[0] in touched and rows.get(place) != derived.get(place)
    }

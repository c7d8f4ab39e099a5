"""Which row IDs do the rows of a new file get, in a Delta table that tracks rows?

Each file says the ID of its first row, and the table how far they are given out. Files that stay
keep theirs. Source: the Delta transaction log protocol, section "Row Tracking".
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

ROW_TRACKING_FEATURE = "rowTracking"

_DOMAIN = "delta.rowTracking"
_HIGH = "rowIdHighWaterMark"


def row_id_high(domain: Mapping[str, Any], known: int) -> int:
    """The highest row ID that is given out, after an action about a domain; ``known`` is the one
    before it, -1 where none is given out."""
    if domain.get("domain") != _DOMAIN:
        return known
    if domain.get("removed"):
        return -1
    return int(json.loads(domain.get("configuration") or "{}").get(_HIGH, -1))


def with_row_ids(
    added: Sequence[dict[str, Any]], rows: Sequence[int], high: int, version: int
) -> list[dict[str, Any]]:
    """The actions of a commit that adds files to a table which tracks rows.

    Args:
        added: Delta's ``add`` of each new file.
        rows: How many rows each has.
        high: The highest row ID that is given out.
        version: The commit's.
    """
    actions: list[dict[str, Any]] = []
    for add, count in zip(added, rows, strict=True):
        actions.append({"add": {**add, "baseRowId": high + 1, "defaultRowCommitVersion": version}})
        high += count
    said = json.dumps({_HIGH: high})
    domain = {"domain": _DOMAIN, "configuration": said, "removed": False}
    return [*actions, {"domainMetadata": domain}]

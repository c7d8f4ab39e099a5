"""What the tests of OpenLogReplicator's readers share."""

from __future__ import annotations

from typing import Any

from oracle_embedded.openlogreplicator import OpenLogReplicator


def olr_capture(olr: OpenLogReplicator, **more: Any) -> dict[str, Any]:
    """``capture`` of a source that reads its files."""
    return {"type": "openlogreplicator", "folder": str(olr.folder), **more}

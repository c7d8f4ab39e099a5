"""What the tests of XStream's reader share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from oracle_embedded.xstream import Recorder, XStreamOut
from tests.oracle.embedded import Oracle


def recorder_of(oracle: Oracle, folder: Path, **settings: Any) -> Recorder:
    """Records what the embedded Oracle's outbound server gives; it has begun."""
    recorder = Recorder(XStreamOut(oracle.database, **settings), folder)
    recorder.write()
    return recorder


def recorded(recorder: Recorder, **more: Any) -> dict[str, Any]:
    """``capture`` of a source that reads what is recorded."""
    return {"type": "xstream", "folder": str(recorder.folder), **more}

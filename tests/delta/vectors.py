"""Deletion vectors, switched on as Spark does it."""

from __future__ import annotations

import json
from pathlib import Path


def with_vectors(path: str, value: str = "true") -> None:
    """Switch deletion vectors on or off by the commit that Spark's ALTER TABLE makes; delta-rs would ask for more features."""
    log = Path(path) / "_delta_log"
    names = sorted(log.glob("*.json"))
    lines = [json.loads(line) for name in names for line in name.read_text().splitlines()]
    metadata = [line["metaData"] for line in lines if "metaData" in line][-1]
    metadata["configuration"] |= {"delta.enableDeletionVectors": value}
    said = [line["protocol"] for line in lines if "protocol" in line][-1]
    own = {"deletionVectors"}
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": sorted(own | set(said.get("readerFeatures", ()))),
        "writerFeatures": sorted(
            own | set(said.get("writerFeatures", ("appendOnly", "invariants")))
        ),
    }
    actions = [{"protocol": protocol}, {"metaData": metadata}]
    commit = log / f"{int(names[-1].stem) + 1:020d}.json"
    commit.write_text("\n".join(map(json.dumps, actions)))

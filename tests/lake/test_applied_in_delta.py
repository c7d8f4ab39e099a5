"""What a mirror has taken, as the logs of its Delta tables say it. Another implementation writes the tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from cdc_core.lake.applied_in_delta import read_applied
from cdc_core.lake.table_context import TableWork, no_fence
from cdc_core.model.identifiers import TableId


def commit(path: str, apps: list[str], **metadata: object) -> None:
    properties = CommitProperties(
        custom_metadata={"userMetadata": json.dumps(metadata)},
        app_transactions=[Transaction(one, 1) for one in apps],
    )
    write_deltalake(path, pa.table({"ID": [1]}), mode="append", commit_properties=properties)


def no_session() -> Any:
    raise AssertionError


@pytest.mark.parametrize("reaches_back", [True, False], ids=["whole", "cleaned-up"])
def test_a_chunk_behind_a_rebuild_is_not_taken(tmp_path: Path, reaches_back: bool) -> None:
    """The mirror was written from version 1 of the change log. Which chunks came later nobody knows where those commits are gone."""
    work = TableWork(str(tmp_path), "shop", TableId("SHOP", "T"), 1, no_fence, no_session)
    early, late = (work.chunk_app("s1", number) for number in (0, 1))
    commit(work.changelog, [])
    commit(work.changelog, [early])
    commit(work.mirror, [], kind="rebuild", changelog_version=1)
    commit(work.changelog, [late])
    commit(work.changelog, [])
    if not reaches_back:
        DeltaTable(work.changelog).create_checkpoint()
        for version in range(3):
            (Path(work.changelog) / "_delta_log" / f"{version:020d}.json").unlink()
    assert set(read_applied(work).chunks) == ({("s1", 0)} if reaches_back else set())

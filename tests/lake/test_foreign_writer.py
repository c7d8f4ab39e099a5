"""Somebody else commits to a mirror while our MERGE does: nothing of ours is lost or doubled, and no table stops."""

from __future__ import annotations

import delta.exceptions
import pytest

from cdc_core.errors import CommitConflictError, TransientError
from cdc_core.lake.spark import translated


@pytest.mark.parametrize("name", delta.exceptions.__all__)
def test_each_conflict_of_delta_s_may_pass(name: str) -> None:
    with pytest.raises(CommitConflictError, match="another writer committed") as caught, translated("merging", table="T"):  # fmt: skip
        raise getattr(delta.exceptions, name)("a row was added")
    assert isinstance(caught.value, TransientError), "no table stops for it"

"""In which way a mirror takes a change, and what the report says of it: the rows are the same in each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cdc_core.config import LakeConfig
from cdc_core.lake.delta_lake import DeltaLake
from cdc_core.model.reports import MirrorWrite
from cdc_core.model.templates import DEFAULT_PATHS
from tests.delta.vectors import with_vectors
from tests.lake.who_merges import BY_SPARK, SparkAskedError, plain_lake
from tests.stage.landed import Row, Source, Window, order

Mirror = Callable[..., list[Row]]


def _snapshot(source: Source, lake: Any) -> Any:
    """Orders 1 to 9 by a snapshot; the next window begins behind it."""
    tx = source.begin()
    source.ids = {i: tx.insert(order(i)) for i in range(1, 10)}
    tx.commit()
    done = source.chunk().apply(lake)
    source.low, source.pending, source.ended = source.scn, [], []
    return done


def _update(source: Source, name: str) -> Window:
    tx = source.begin()
    tx.update(source.ids[5], {"NAME": name})
    tx.commit()
    return source.cut()


def _insert(source: Source, key: int) -> Window:
    tx = source.begin()
    tx.insert(order(key))
    tx.commit()
    return source.cut()


def test_a_small_mirror_is_written_without_spark(
    tmp_path: Path, source: Source, mirror: Mirror
) -> None:
    """A chunk and keys that it cannot have are appended; rows of its files are exchanged, or marked where vectors are switched on.
    So are the rows of a snapshot that is read again, and all where the mirror is written from its change log."""
    lake = plain_lake(tmp_path)
    assert _snapshot(source, lake).write.way == "append"
    assert _insert(source, 50).apply(lake).write == MirrorWrite(
        "append", "the mirror has none of the keys"
    )
    done = _update(source, "rewritten").apply(lake)
    assert str(done.write) == "copy-on-write without Spark: mirror of 0.0 MB"
    again, table = source.chunk(snapshot="again"), lake.table(source.schema.table)
    done = again.apply(lake)
    assert (done.rows_inserted, done.rows_updated, done.rows_deleted) == (0, 10, 0)
    assert str(done.write) == "copy-on-write without Spark: mirror of 0.0 MB"
    assert table.delete_missing_keys("again", again.manifest.scn).rows_deleted == 0
    before = mirror(source.schema, hidden=True)
    assert table.rebuild_mirror(source.schema) == 10
    assert mirror(source.schema, hidden=True) == before
    with_vectors(DEFAULT_PATHS.path("mirror", str(tmp_path / "lake"), "shop", source.schema.table))
    window = _update(source, "marked")
    assert window.apply(lake).write.way == "deletion vectors"
    assert mirror(source.schema) == source.state(window.scn_high)
    assert window.apply(lake).write is None, "a second time changes nothing"


@pytest.mark.parametrize(
    ("options", "change"),
    [
        pytest.param({"merge": "spark"}, _update, id="an-update-that-a-small-mirror-takes"),
        pytest.param({"merge": "spark"}, _insert, id="keys-that-it-cannot-have"),
        pytest.param({"rewrite_mirrors_up_to_mb": 0}, _update, id="no-files-may-be-rewritten"),
    ],
)
def test_spark_merges_where_the_configuration_says_so(
    tmp_path: Path, source: Source, options: dict[str, Any], change: Callable[..., Window]
) -> None:
    _snapshot(source, plain_lake(tmp_path))
    with pytest.raises(SparkAskedError):
        change(source, 60).apply(plain_lake(tmp_path, **options))


JOBS_OF_A_MERGE = 8
"""Delta's own: what the version has, which files have the keys, the rows of these, the new files.
None is of Redolake."""


def _jobs() -> int:
    """How many jobs this process's Spark has run."""
    from pyspark import SparkContext

    context: Any = SparkContext._active_spark_context
    return int(context._jsc.sc().dagScheduler().numTotalJobs())


@pytest.mark.parametrize("open_lake", [BY_SPARK], indirect=True)
def test_a_merge_says_why(
    open_lake: Callable[..., DeltaLake], source: Source, mirror: Mirror, tmp_path: Path
) -> None:
    """Forced, Spark takes the first chunk too."""
    forced = open_lake()
    assert _snapshot(source, forced).write.way == "merge"
    done = _update(source, "merged").apply(forced)
    assert done.write == MirrorWrite("merge", "lake.merge is spark")
    never_rewritten = LakeConfig(path=str(tmp_path / "lake"), rewrite_mirrors_up_to_mb=0)
    lake = DeltaLake(never_rewritten, "shop")
    last, before = _update(source, "merged again"), _jobs()
    done = last.apply(lake)
    assert done.write == MirrorWrite("merge", "lake.rewrite_mirrors_up_to_mb is 0")
    of_window = _jobs() - before
    assert of_window <= JOBS_OF_A_MERGE
    again = source.chunk(snapshot="again").apply(lake)
    assert _jobs() - before - of_window <= JOBS_OF_A_MERGE + 1, "the rows come and go: no job more"
    assert again.write.way == "merge"
    assert (again.rows_inserted, again.rows_updated) == (0, 9)
    assert mirror(source.schema) == source.state(source.scn)

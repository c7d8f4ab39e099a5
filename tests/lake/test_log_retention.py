"""What leaves a Delta table's log, and what every version that stays still has. Another implementation writes and reads the tables."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable

from cdc_core.delta.history import newest_metadata, read_commits, read_log
from cdc_core.delta.log_retention import clean_up_log, expired_names
from cdc_core.errors import FencedError
from cdc_core.lake.maintenance.housekeeping import log_properties
from tests.delta.test_known_logs import APP, commit

UUID = "80a083e8-7026-4e79-81be-64bd76c43a11"
HOUR = 3600.0
LOG, FILES = "delta.logRetentionDuration", "delta.deletedFileRetentionDuration"
CLEANUP = "delta.enableExpiredLogCleanup"
NOW = 1_000_000 * HOUR


def log_of(commits: int, *checkpoints: int, others: tuple[str, ...] = ()) -> dict[str, int]:
    """Each commit with the time that is its version, and a checkpoint's a moment later."""
    names = {f"{at:020d}.json": at for at in range(commits)}
    names |= {f"{at:020d}.checkpoint.parquet": at for at in checkpoints}
    return names | dict.fromkeys(others, 0)


@pytest.mark.parametrize(
    ("written", "limit", "first", "checkpoints"),
    [
        pytest.param(log_of(30, 10, 20), 25, 20, [20], id="the-checkpoint-before-the-limit-stays"),
        pytest.param(log_of(30, 10, 20), 20, 20, [20], id="a-checkpoint-at-the-limit"),
        pytest.param(log_of(30, 10, 20), 19, 10, [10, 20], id="one-version-more"),
        pytest.param(log_of(30, 10, 20), 9, 0, [10, 20], id="everything-is-younger"),
        pytest.param(log_of(30, 10, 20), 99, 20, [20], id="everything-is-older"),
        pytest.param(log_of(30), 25, 0, [], id="no-checkpoint"),
        pytest.param(
            log_of(30, 10) | {f"{20:020d}.checkpoint.{UUID}.json": 20},
            25,
            20,
            [20],
            id="one-named-by-uuid",
        ),
        pytest.param(
            log_of(30, 10) | {f"{20:020d}.checkpoint.{UUID}.parquet": 20},
            15,
            10,
            [10, 20],
            id="one-named-by-uuid-is-younger",
        ),
        pytest.param(log_of(30, 29), 99, 29, [29], id="the-newest-commit-stays"),
        pytest.param({}, 99, None, [], id="no-table"),
    ],
)
def test_no_version_within_the_limit_loses_a_file_that_it_needs(
    written: dict[str, int], limit: int, first: int | None, checkpoints: list[int]
) -> None:
    left = set(written) - set(expired_names(written, limit))
    commits = sorted(int(name[:20]) for name in left if ".checkpoint." not in name)
    assert commits == ([] if first is None else list(range(first, 30)))
    assert sorted(int(name[:20]) for name in left if ".checkpoint." in name) == checkpoints


def test_half_a_checkpoint_keeps_nothing_up() -> None:
    half = f"{20:020d}.checkpoint.0000000001.0000000002.parquet"
    assert not expired_names(log_of(30, others=(half,)), 25)
    expired = expired_names(log_of(30, 10, others=(half,)), 25)
    assert [name for name in expired if name.endswith(".json")] == sorted(log_of(10))


def test_what_stands_beside_a_commit_goes_with_it_and_nothing_else() -> None:
    beside = ("{}.crc", ".{}.json.crc", ".{}.crc.crc", ".{}.checkpoint.parquet.crc")
    old, new = (tuple(name.format(f"{version:020d}") for name in beside) for version in (3, 12))
    others = (
        "_last_checkpoint",
        "._last_checkpoint.crc",
        f"{1:020d}.{3:020d}.compacted.json",
        "_commits",
    )
    expired = expired_names(log_of(30, 10, others=(*old, *new, *others)), 25)
    assert set(expired) == {*log_of(10), *old}
    assert expired == sorted(expired, key=lambda name: name.lstrip(".")[:20])


def aged(path: Path, *, young: int) -> Path:
    """The log's files, a version an hour, of which the last ``young`` came within as many hours."""
    log = path / "_delta_log"
    newest = max(int(name.stem) for name in log.glob("*.json"))
    for name in log.iterdir():
        if name.name[:20].isdigit():
            hours = newest - int(name.name[:20]) - young + 0.5
            os.utime(name, (NOW - hours * HOUR,) * 2)
    return path


def test_positions_survive_and_old_versions_that_are_promised_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "t"
    for scn in range(1, 31):
        commit(path, scn)
        if scn in {11, 21}:
            DeltaTable(str(path)).create_checkpoint()
    before = read_log(str(path))
    aged(path, young=5)
    asked: list[int] = []
    assert clean_up_log(str(path), NOW, lambda: asked.append(1)) == 20
    assert asked == [1]
    after = read_log(str(path))
    assert after is not None
    assert before is not None
    assert replace(after, foreign=before.foreign) == before
    assert before is not None
    assert before.transactions == {APP: 30}
    assert [one.version for one in read_commits(str(path))] == list(range(20, 30))
    for version in range(20, 30):
        assert DeltaTable(str(path), version=version).count() == version + 1
    assert clean_up_log(str(path), NOW, lambda: asked.append(2)) == 0
    assert asked == [1]
    commit(path, 31)
    assert DeltaTable(str(path)).transaction_version(APP) == 31
    assert newest_metadata(str(path), "said") == 31


def test_a_process_that_lost_its_lease_removes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "t"
    for scn in range(1, 4):
        commit(path, scn)
    DeltaTable(str(path)).create_checkpoint()
    aged(path, young=0)

    def fenced() -> None:
        raise FencedError("the lease is another's", hint="")

    with pytest.raises(FencedError):
        clean_up_log(str(path), NOW, fenced)
    assert len(read_commits(str(path))) == 3


@pytest.mark.parametrize(
    ("hours", "properties", "changed"),
    [
        pytest.param(720, {}, {}, id="deltas-own"),
        pytest.param(336, {}, {LOG: "interval 336 hours"}, id="shorter"),
        pytest.param(
            24, {}, {LOG: "interval 24 hours", FILES: "interval 24 hours"}, id="less-than-a-week"
        ),
        pytest.param(24, {LOG: "interval 24 hours", FILES: "interval 24 hours"}, {}, id="done"),
        pytest.param(
            720,
            {LOG: "interval 24 hours", FILES: "interval 24 hours"},
            {LOG: "interval 720 hours", FILES: "interval 168 hours"},
            id="long-again",
        ),
        pytest.param(None, {}, {CLEANUP: "false"}, id="kept"),
        pytest.param(720, {CLEANUP: "false"}, {CLEANUP: "true"}, id="no-longer-kept"),
    ],
)
def test_deltas_own_clean_up_follows_the_configuration(
    hours: int | None, properties: dict[str, str], changed: dict[str, str]
) -> None:
    assert log_properties(hours, properties) == changed

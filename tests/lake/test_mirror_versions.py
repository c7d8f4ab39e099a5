"""Which version of a mirror is Oracle as of an SCN, by the commits of its log."""

from __future__ import annotations

import pytest

from cdc_core.delta.history import DeltaCommit
from cdc_core.lake.mirror.versions import NoImage, image_at, version_at


@pytest.mark.parametrize(
    ("scn", "version"),
    [
        pytest.param(9, 0, id="without-rows"),
        pytest.param(10, 1, id="at-an-end"),
        pytest.param(29, 3, id="foreign-commits-stay-with-what-they-changed"),
        pytest.param(30, 6, id="a-chunk-from-before-does-not-turn-back"),
        pytest.param(99, 7, id="newest"),
    ],
)
def test_the_version_of_an_scn_is_the_last_before_the_mirror_went_past_it(
    scn: int, version: int | None
) -> None:
    said: list[dict[str, int]] = [{}, {"scn_high": 10}, {"scn_high": 20}, {}, {"scn_high": 30}]
    said += [{"scn_high": 15}, {}, {"scn_high": 40}]
    commits = [DeltaCommit(at, "WRITE", dict(metadata)) for at, metadata in enumerate(said)]
    assert version_at(commits, scn) == version


@pytest.mark.parametrize(
    ("scn", "version"),
    [
        pytest.param(24, 1, id="before-the-definition"),
        pytest.param(25, 2, id="from-the-definition-on"),
        pytest.param(35, 2, id="one-that-names-no-definition-waits"),
        pytest.param(40, 5, id="idle-since"),
    ],
)
def test_the_version_of_an_scn_has_the_columns_that_the_mirror_had_there(
    scn: int, version: int
) -> None:
    """Columns that become wider are written anew, and VACUUM removes the files from before: an idle mirror has no other commit."""
    schema: dict[str, object] = {"kind": "schema"}
    said: list[dict[str, object]] = [
        {},
        {"scn_high": 20, "kind": "window"},
        {**schema, "definition_scn": 25},
        schema,
    ]
    said += [{**schema, "definition_scn": 40}, {**schema, "definition_scn": 40}]
    commits = [DeltaCommit(at, "WRITE", dict(metadata)) for at, metadata in enumerate(said)]
    assert version_at(commits, scn) == version


def test_before_its_first_chunk_a_mirror_has_no_version() -> None:
    begun = DeltaCommit(0, "CREATE TABLE", {})
    commits = [begun, DeltaCommit(1, "WRITE", {"scn_high": 10, "kind": "chunk"})]
    assert version_at(commits, 9) is None
    assert version_at([begun], 9) == 0


def test_a_log_that_does_not_reach_back_has_no_version() -> None:
    """OPTIMIZE leaves the mirror where a commit that is gone had put it."""
    commits = [DeltaCommit(4, "OPTIMIZE", {}), DeltaCommit(5, "WRITE", {"scn_high": 30})]
    assert version_at(commits, 29) is None


def _window(low: int, high: int, **more: int) -> dict[str, object]:
    return {"kind": "window", "scn_low": low, "scn_high": high, **more}


CHUNK = {"kind": "chunk", "scn_high": 10, "chunk_scn": 10}
AHEAD = {"kind": "chunk", "scn_high": 45, "chunk_scn": 45}


@pytest.mark.parametrize(
    ("said", "known", "scn", "image"),
    [
        pytest.param([CHUNK], None, 10, "says nothing", id="a-snapshot-may-be-incomplete"),
        pytest.param([CHUNK], (10, 30), 20, 1, id="idle-as-is-known"),
        pytest.param([CHUNK], (10, 30), 31, "says nothing", id="behind-what-is-known"),
        pytest.param([CHUNK, _window(20, 30)], None, 10, 1, id="a-window-follows"),
        pytest.param([CHUNK, _window(20, 30)], None, 20, 1, id="idle-until-a-window"),
        pytest.param([CHUNK, _window(20, 30)], (10, 99), 21, "inside a window", id="inside"),
        pytest.param([CHUNK, _window(20, 30)], None, 30, 2, id="at-its-end"),
        pytest.param([CHUNK, _window(20, 30)], None, 9, "does not reach", id="before-all"),
        pytest.param([CHUNK, _window(20, 30), AHEAD], None, 30, 2, id="before-a-chunk-ahead"),
        pytest.param([CHUNK, _window(20, 30), AHEAD], None, 31, "newer SCN 45", id="a-gap-perhaps"),
        pytest.param([CHUNK, _window(20, 30), AHEAD], (10, 40), 31, 2, id="no-gap-as-is-known"),
        pytest.param([CHUNK, _window(20, 30), AHEAD], None, 45, "says nothing", id="of-two-moments"),
        pytest.param(
            [CHUNK, _window(20, 30), AHEAD, _window(40, 50)], None, 45, "inside", id="not-yet-one"
        ),
        pytest.param(
            [CHUNK, _window(20, 30), _window(40, 50, late_scn=25)], None, 30, "SCN 25 on came", id="late"
        ),
        pytest.param(
            [CHUNK, _window(20, 30), _window(40, 50, late_scn=25)], None, 10, 1, id="before-the-late"
        ),
        pytest.param([CHUNK, {"kind": "truncate", "scn_high": 40}], None, 39, 1, id="truncated-later"),
    ],
)  # fmt: skip
def test_an_image_is_proved_or_refused(
    said: list[dict[str, object]], known: tuple[int, int] | None, scn: int, image: int | str
) -> None:
    commits = [DeltaCommit(0, "CREATE TABLE", {})]
    commits += [DeltaCommit(at, "WRITE", dict(one)) for at, one in enumerate(said, start=1)]
    found = image_at(commits, scn, known=known)
    assert str(image) in found.reason if isinstance(found, NoImage) else found == image

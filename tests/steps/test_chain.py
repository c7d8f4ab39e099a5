"""A gap between windows is proved to be rightly there, or it is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_core.errors import LandingDamagedError
from cdc_core.landing.kept import RetiredWindows
from cdc_core.landing.manifest import PlannedWindow
from cdc_core.model.scn import Scn, ScnWindow
from cdc_core.steps.windows.chain import LandedWindow, proved
from tests.state.test_store import manifest_of

FROM_THE_BEGINNING = RetiredWindows(0, 100, {})


def window(ordinal: int, idle_from: int | None = None, before: int | None = None) -> LandedWindow:
    """Window n is (100 + 10n, 110 + 10n], and its manifest's digest is "n"."""
    bounds = ScnWindow(Scn(100 + 10 * ordinal), Scn(110 + 10 * ordinal))
    before = ordinal - 1 if before is None else before
    planned = PlannedWindow(
        key=bounds.key, created="", ended=None, idle_from=ordinal if idle_from is None else idle_from,
        before_sha256=str(before) if ordinal else None,
    )  # fmt: skip
    return LandedWindow(replace(manifest_of(bounds, ordinal), planned=planned), str(ordinal))


@pytest.mark.parametrize(
    ("landed", "retired"),
    [
        pytest.param([], FROM_THE_BEGINNING, id="nothing-yet"),
        pytest.param([window(0), window(1), window(2)], FROM_THE_BEGINNING, id="no-gap"),
        pytest.param([window(0), window(4, idle_from=1)], FROM_THE_BEGINNING, id="idle-between"),
        pytest.param([window(0), window(4, idle_from=0)], FROM_THE_BEGINNING, id="idle-before-that-too"),
        pytest.param([window(4, idle_from=0)], FROM_THE_BEGINNING, id="idle-from-the-beginning"),
        pytest.param([window(3), window(4)], RetiredWindows(3, 130, {}), id="retired-by-age"),
        pytest.param([window(1), window(3), window(4)], RetiredWindows(3, 130, {}), id="retired-and-there-still"),
        pytest.param([window(5, idle_from=3)], RetiredWindows(3, 130, {}), id="retired-by-age-then-idle"),
    ],
)  # fmt: skip
def test_what_was_forgotten_rightly_is_proved(
    landed: list[LandedWindow], retired: RetiredWindows
) -> None:
    found = proved("src", landed[::-1], retired)
    assert found == [one for one in landed if one.manifest.ordinal >= retired.ordinal]


@pytest.mark.parametrize(
    ("landed", "retired", "problem"),
    [
        pytest.param([window(0), window(2)], FROM_THE_BEGINNING, "windows 1 to 1 are missing", id="lost"),
        pytest.param([window(1)], FROM_THE_BEGINNING, "windows 0 to 0 are missing", id="the-first-is-lost"),
        pytest.param(
            [window(0), window(4, idle_from=2)], FROM_THE_BEGINNING, "windows 1 to 1 are missing", id="one-of-them-was-not-idle",
        ),
        pytest.param([window(4)], RetiredWindows(3, 130, {}), "windows 3 to 3 are missing", id="lost-behind-the-retired"),
        pytest.param([window(0), window(1), window(1)], FROM_THE_BEGINNING, "two windows have the number 1", id="a-number-twice"),
        pytest.param([window(0), window(1, before=7)], FROM_THE_BEGINNING, "another window", id="of-another-life"),
        pytest.param([window(0)], RetiredWindows(0, 101, {}), "begins below 101", id="of-another-beginning"),
        pytest.param([window(0)], RetiredWindows(0, 99, {}), "does not begin at 99", id="of-a-later-beginning"),
    ],
)  # fmt: skip
def test_what_cannot_be_proved_is_refused(
    landed: list[LandedWindow], retired: RetiredWindows, problem: str
) -> None:
    with pytest.raises(LandingDamagedError, match="does not hold all windows") as caught:
        proved("src", landed, retired)
    assert problem in str(caught.value)

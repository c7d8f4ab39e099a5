"""The whole table of what a start does: every mode over everything that may be there."""

from __future__ import annotations

from typing import Any

import pytest

from cdc_core.config import SnapshotConfig
from cdc_core.errors import ConfigError
from cdc_core.snapshot.modes import Answers, StartState, answers_of, decide

NEW = StartState(has_position=False)
UNFINISHED = StartState(has_position=True, is_unfinished=True)
WELL = StartState(has_position=True)
LOST = StartState(has_position=True, has_definitions=False)
GONE = StartState(has_position=True, has_redo=False)

REFUSED = "refused"
"""(what is done first, with rows?, captures changes?)"""

ROWS, NO_ROWS, ON, OFF = True, False, True, False
TABLE: dict[str, dict[str, Any]] = {
    "always": {
        "new": ("snapshot", ROWS, ON), "unfinished": ("continue", ROWS, ON),
        "well": ("again", ROWS, ON), "lost": REFUSED, "gone": REFUSED,
    },
    "initial": {
        "new": ("snapshot", ROWS, ON), "unfinished": ("continue", ROWS, ON),
        "well": ("stream", NO_ROWS, ON), "lost": REFUSED, "gone": REFUSED,
    },
    "initial_only": {
        "new": ("snapshot", ROWS, OFF), "unfinished": ("continue", ROWS, OFF),
        "well": ("nothing", NO_ROWS, OFF), "lost": REFUSED, "gone": ("nothing", NO_ROWS, OFF),
    },
    "no_data": {
        "new": ("snapshot", NO_ROWS, ON), "unfinished": ("continue", NO_ROWS, ON),
        "well": ("stream", NO_ROWS, ON), "lost": REFUSED, "gone": REFUSED,
    },
    "recovery": {
        "new": REFUSED, "unfinished": ("continue", NO_ROWS, ON),
        "well": ("definitions", NO_ROWS, ON), "lost": ("definitions", NO_ROWS, ON), "gone": REFUSED,
    },
    "when_needed": {
        "new": ("snapshot", ROWS, ON), "unfinished": ("continue", ROWS, ON),
        "well": ("stream", NO_ROWS, ON), "lost": REFUSED, "gone": ("again", ROWS, ON),
    },
}  # fmt: skip
FOUND = {"new": NEW, "unfinished": UNFINISHED, "well": WELL, "lost": LOST, "gone": GONE}
CELLS = [
    pytest.param(mode, what, expected, id=f"{mode}-{what}")
    for mode, row in TABLE.items()
    for what, expected in row.items()
]


def check(config: SnapshotConfig, found: StartState, expected: Any) -> None:
    made = decide(found, answers_of(config, found), config.mode)
    if expected == REFUSED:
        assert made.refusal
        assert made.hint
        assert str(made) == made.refusal
        return
    assert made.refusal is None
    assert (made.work, made.rows, made.streams) == expected
    assert made.reason
    assert ("capture no changes" in str(made)) is not made.streams


@pytest.mark.parametrize(("mode", "what", "expected"), CELLS)
def test_every_mode_decides(mode: Any, what: str, expected: Any) -> None:
    check(SnapshotConfig(mode=mode), FOUND[what], expected)


@pytest.mark.parametrize(
    ("switches", "what", "expected"),
    [
        pytest.param("data stream", "new", ("snapshot", ROWS, ON), id="all-of-a-new-source"),
        pytest.param("data", "new", ("snapshot", ROWS, OFF), id="rows-alone"),
        pytest.param("definitions stream", "new", ("snapshot", NO_ROWS, ON), id="no-rows"),
        pytest.param("", "new", ("nothing", NO_ROWS, OFF), id="nothing-at-all"),
        pytest.param("data on_lost_definitions", "new", REFUSED, id="nothing-to-recover"),
        pytest.param("stream", "unfinished", REFUSED, id="reads-nothing-unfinished"),
        pytest.param("data", "unfinished", ("continue", ROWS, OFF), id="unfinished"),
        pytest.param("data stream", "well", ("again", ROWS, ON), id="rows-at-each-start"),
        pytest.param("definitions stream", "well", ("stream", NO_ROWS, ON), id="streams"),
        pytest.param("stream", "lost", REFUSED, id="lost"),
        pytest.param(
            "stream on_lost_definitions", "lost", ("definitions", NO_ROWS, ON), id="recovers"
        ),
        pytest.param("stream", "gone", REFUSED, id="gone"),
        pytest.param("stream on_lost_redo", "gone", ("again", ROWS, ON), id="reads-again"),
        pytest.param("definitions", "gone", ("nothing", NO_ROWS, OFF), id="needs-no-redo"),
    ],
)
def test_switches_decide(switches: str, what: str, expected: Any) -> None:
    config = SnapshotConfig.model_validate(
        {
            "mode": "configuration_based",
            "configuration_based": dict.fromkeys(switches.split(), True),
        }
    )
    check(config, FOUND[what], expected)


class EveryOther:
    """A mode as a user would write it: rows at the first start alone, no changes."""

    def answer(self, found: StartState) -> Answers:
        return Answers(rows=not found.has_position, definitions=True, streams=False)


def test_a_class_of_the_user_s_own_decides() -> None:
    config = SnapshotConfig(mode="custom", custom="tests.snapshot.test_modes:EveryOther")
    check(config, NEW, ("snapshot", ROWS, OFF))
    check(config, WELL, ("nothing", NO_ROWS, OFF))


@pytest.mark.parametrize("path", ["tests.snapshot.nowhere:X", "tests.snapshot.test_modes:TABLE"])
def test_what_is_no_such_class_is_named(path: str) -> None:
    config = SnapshotConfig(mode="custom", custom=path)
    with pytest.raises(ConfigError, match=r"snapshot\.custom"):
        answers_of(config, NEW)


@pytest.mark.parametrize(
    ("older", "mode"), [("schema_only", "no_data"), ("schema_only_recovery", "recovery")]
)
def test_debezium_s_older_names_are_taken_with_a_warning(
    older: str, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert SnapshotConfig.model_validate({"mode": older}).mode == mode
    assert older in caplog.text


@pytest.mark.parametrize("given", [{"mode": "custom"}, {"custom": "a.b:C"}, {"include": ["T"]}])
def test_what_does_not_go_together_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"need each other|not a table name"):
        SnapshotConfig.model_validate(given)

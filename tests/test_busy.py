"""Running a command beside busy processes."""

from __future__ import annotations

import sys

from tests.busy import busy, main


def test_busy_processes_run_while_the_block_does() -> None:
    with busy(2) as burners:
        assert [one.poll() for one in burners] == [None, None]
    assert None not in [one.poll() for one in burners]


def test_the_exit_code_is_that_of_the_command() -> None:
    assert main(["--processes", "1", "--", sys.executable, "-c", "raise SystemExit(3)"]) == 3

"""The doctor: each check in health and in sickness, with a remedy for each sickness."""

from __future__ import annotations

import errno
import io
import os
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from cdc_core.errors import PreflightError
from pipelines import doctor
from pipelines.doctor import Check


def test_a_machine_that_was_set_up_is_healthy() -> None:
    checks = doctor.examine()
    assert [check.name for check in checks] == [
        "Python", "Packages", "Java", "Delta's jars", "Disk", "Memory", "State folder",
    ]  # fmt: skip
    assert [check for check in checks if not check.ok] == []


@pytest.mark.parametrize(
    ("version", "ok"), [((3, 11), True), ((3, 14), True), ((3, 10), False), ((3, 15), False)]
)
def test_python_must_be_one_the_lock_is_made_for(version: tuple[int, int], ok: bool) -> None:
    check = doctor.python(version)
    assert check.ok is ok
    assert bool(check.remedy) is not ok


def test_packages_that_differ_from_the_lock_are_named(tmp_path: Path) -> None:
    lock = tmp_path / "requirements.lock"
    lock.write_text("rich==0.0.1 \\\n    --hash=sha256:00\nno-such-package==1 \\\n")
    check = doctor.packages(lock)
    assert not check.ok
    assert "instead of 0.0.1" in check.found
    assert "no-such-package missing" in check.found
    assert "make setup" in check.remedy


def test_a_package_that_is_locked_for_another_platform_is_not_missing() -> None:
    lock = "a==1 \\\n    --hash=sha256:00\nb==2 ; sys_platform == 'win32' \\\nc==3 ; python_version >= '3.11' \\\n"
    assert doctor.locked(lock) == {"a": "1", "c": "3"}


def test_missing_jars_are_named_with_the_command(tmp_path: Path) -> None:
    check = doctor.jars(tmp_path)
    assert not check.ok
    assert "delta-spark" in check.found
    assert check.remedy == "redolake setup"
    assert "hadoop-aws" not in check.found
    on_s3 = doctor.jars(tmp_path, on_s3=True)
    assert "hadoop-aws" in on_s3.found
    assert on_s3.remedy == "redolake setup --s3"


def test_a_check_that_raises_becomes_a_finding(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def none_found(_folder: Path) -> None:
        raise PreflightError("no Java 17 or newer was found", hint="Install one.", looked_at="x")

    monkeypatch.setattr(doctor, "find_java", none_found)
    (check,) = [check for check in doctor.examine(runtime=tmp_path) if check.name == "Java"]
    assert check == Check(
        "Java", False, "no Java 17 or newer was found (looked_at=x)", "Install one."
    )


def test_little_memory_is_told(tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 9999999 kB\nMemAvailable:    1048576 kB\n")
    check = doctor.memory(meminfo)
    assert not check.ok
    assert check.found == "1.0 GiB available"
    assert doctor.memory(tmp_path / "none").ok


def test_a_folder_below_a_file_cannot_be_written(tmp_path: Path) -> None:
    assert doctor.writable("Lake", tmp_path / "deep" / "down").ok
    (tmp_path / "file").write_text("")
    check = doctor.writable("Lake", tmp_path / "file")
    assert not check.ok
    assert check.remedy


@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOTSUP])
def test_a_file_system_without_hard_links_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """A share by SMB takes files, and no manifest and no commit."""

    def link(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "link", link)
    check = doctor.writable("Landing", tmp_path)
    assert not check.ok
    assert "no hard links" in check.found
    assert "NFS" in check.remedy
    assert list(tmp_path.iterdir()) == []


def test_a_folder_in_which_nobody_may_look_hides_no_other_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = os.stat

    def stat(path: Any, *more: Any, **named: Any) -> os.stat_result:
        if str(path).startswith(f"{tmp_path}/private/"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return look(path, *more, **named)

    (tmp_path / "private").mkdir()
    monkeypatch.setattr(os, "stat", stat)
    assert doctor.writable("Lake", tmp_path / "private" / "lake").ok


def test_json_has_stable_keys() -> None:
    checks = [Check("Java", True, "17"), Check("Disk", False, "full", "Make room.")]
    assert doctor.as_json(checks) == {
        "ok": False,
        "checks": [
            {"name": "Java", "ok": True, "found": "17", "remedy": ""},
            {"name": "Disk", "ok": False, "found": "full", "remedy": "Make room."},
        ],
    }


def test_advice_stands_below_what_is_missing() -> None:
    checks = [
        Check("Logging", True, "is not forced [yet]", "FORCE it."),
        Check("Java", True, "17"),
        Check("Disk", False, "full", "Make room."),
    ]
    out = io.StringIO()
    doctor.show(checks, Console(file=out, width=80))
    lines = [line.split() for line in out.getvalue().splitlines()]
    assert [line[0] for line in lines[:3]] == ["!", "✓", "✗"]
    assert "[yet]" in out.getvalue(), "not taken for a style"
    assert [line[0] for line in lines[3:]] == ["Disk:", "Logging:"]


def test_people_see_the_remedy_below_the_table() -> None:
    out = io.StringIO()
    doctor.show([Check("Disk", False, "full", "Make room.")], Console(file=out, width=80))
    assert "✗" in out.getvalue()
    assert out.getvalue().rstrip().endswith("Disk: Make room.")

"""A report of a database makes the embedded Oracle behave as that one did: a report becomes a regression test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from diagnosis.certify import Report, Scratch, certify
from diagnosis.certify.certifying import TRY_PROBES
from diagnosis.certify.probes import Level
from oracle_embedded.database import ADMIN
from oracle_embedded.likeness import Likeness
from oracle_embedded.redo import LobRows, Wart
from tests.oracle.embedded import LIKE, Oracle, running_oracle

SCRATCH = Scratch("WORKBENCH", SecretStr("hammer"))
OLDER = {
    Wart.LOB_STATEMENTS: False,
    Wart.PARTIAL_XIDS: False,
    Wart.SPURIOUS_ROLLBACKS: False,
    Wart.UNSUPPORTED_ROWS: False,
}
NEWER = {Wart.LOB_OFFSETS_IN_UNITS: True, Wart.SPURIOUS_ROLLBACKS: False}
CLUSTER = {Wart.LATE_REDO: False, Wart.UNNAMED_COLUMNS: False}
DATABASES = [
    pytest.param(OLDER, {"lob_rows": LobRows.PIECES, "character_set": "WE8MSWIN1252"}, id="19c"),
    pytest.param(
        NEWER, {"release": "23ai", "extended_strings": True, "time_zone": "+02:00"}, id="23ai"
    ),
    pytest.param(CLUSTER, {"threads": 2, "national_character_set": "UTF8"}, id="cluster"),
]
SUITES = (
    "tests/capture/test_embedded.py",
    "tests/snapshot/test_types.py",
    "tests/steps/test_late_commits.py",
)
ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def those_with_a_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what a fact is learned from."""
    probes = [one for one in TRY_PROBES if one.wart is not None or one.id == "lob.blocks"]
    monkeypatch.setattr("diagnosis.certify.certifying.TRY_PROBES", probes)


@contextmanager
def database(warts: Mapping[Wart, bool] | None = None, **more: Any) -> Iterator[Oracle]:
    with running_oracle(**more) as oracle:
        oracle.run(
            'CREATE USER WORKBENCH IDENTIFIED BY "hammer"',
            "GRANT CREATE SESSION, CREATE TABLE, UNLIMITED TABLESPACE TO WORKBENCH",
            user=ADMIN,
        )
        for wart, shown in (warts or {}).items():
            oracle.database.redo.set_wart(wart, shown=shown)
        yield oracle


def report_on(oracle: Oracle, path: Path) -> Report:
    config = oracle.config(path, "T")
    return certify(config, [Level.LOOK, Level.TRY], scratch=SCRATCH, sleep=lambda _: None)


TAUGHT = (
    "release", "character_set", "national_character_set", "extended_strings", "time_zone", "lob_rows", "threads",
)  # fmt: skip


@pytest.mark.parametrize(("warts", "settings"), DATABASES)
def test_a_database_that_is_made_after_a_report_gets_the_same_report(
    warts: Mapping[Wart, bool], settings: Mapping[str, Any], tmp_path: Path
) -> None:
    with database(warts, **settings) as oracle:
        first = report_on(oracle, tmp_path).as_json()
    assert {Wart(name): shown for name, shown in first["warts"].items()}.items() >= warts.items()
    file = tmp_path / "report.json"
    file.write_text(json.dumps(first))
    like = Likeness.read(file)
    assert like.unlike == ()
    with database(like=like) as oracle:
        second = report_on(oracle, tmp_path).as_json()
    assert second["warts"] == first["warts"]
    told = [
        {name: one["facts"][name] for name in TAUGHT if name in one["facts"]}
        for one in (first, second)
    ]
    assert told[0] == told[1]
    outcomes = [
        {probe["id"]: probe["outcome"] for probe in one["probes"]} for one in (first, second)
    ]
    assert outcomes[0] == outcomes[1]


@pytest.mark.slow
@pytest.mark.parametrize(("warts", "settings"), DATABASES)
def test_suites_pass_on_a_database_that_is_made_after_a_report(
    warts: Mapping[Wart, bool], settings: Mapping[str, Any], tmp_path: Path
) -> None:
    """Of windows, of types and of late commits, as `certify.md` says that one runs them."""
    report = tmp_path / "report.json"
    with database(warts, **settings) as oracle:
        report.write_text(json.dumps(report_on(oracle, tmp_path).as_json()))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-m", "not oracle and not slow", *SUITES],
        cwd=ROOT,
        env={**os.environ, LIKE: str(report)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]


def test_what_the_embedded_oracle_cannot_have_is_named_and_the_rest_is_taken() -> None:
    like = Likeness.of(
        {
            "warts": {"LATE_REDO": False, "TWO_HEADS": True},
            "facts": {"character_set": "XX8NOWHERE", "release": "21c", "lob_rows": "both"},
        }
    )
    assert like.unlike == ("TWO_HEADS", "character_set")
    assert Wart.LATE_REDO not in like.warts
    assert Wart.PARTIAL_XIDS in like.warts, "what a report does not say stays"
    assert (like.character_set, like.release, like.lob_rows) == ("", "19c", LobRows.BLOCKS)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"warts": [], "facts": {}}'])
def test_what_is_no_report_is_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    file.write_text(text)
    with pytest.raises(ValueError, match="it "):
        Likeness.read(file)
    with pytest.raises(ValueError, match="cannot be read"):
        Likeness.read(tmp_path / "missing.json")

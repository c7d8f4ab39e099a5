"""Level *look*: the embedded Oracle passes it, each broken belief is seen, and the report tells nothing of the tables."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from cdc_core.errors import OracleUnavailableError
from diagnosis.certify import Found, Outcome, Report, certify
from diagnosis.certify.look import LOOK_PROBES
from diagnosis.certify.probes import Answer, Level, LookProbe, RefusedQuery
from oracle_embedded.database import ADMIN
from tests.oracle.backends import BACKENDS, Database, open_backend
from tests.oracle.embedded import running_oracle

TOLD = ("ZEBRA_LEDGER", "SALARY_OF_MARGARET", "PLATYPUS", "1029384756")
"""Names and values that a report may not have."""


def no_wait(_seconds: float) -> None:
    """Idle redo comes when the clock is asked; a test does not wait for it."""


@pytest.fixture(params=BACKENDS)
def oracle(request: pytest.FixtureRequest) -> Iterator[Database]:
    with open_backend(request.param) as oracle:
        yield oracle


def test_a_database_holds_what_redolake_rests_on(oracle: Database, tmp_path: Path) -> None:
    oracle.run("CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(10), D DATE)")
    for _ in range(3):
        oracle.run("ALTER SYSTEM SWITCH LOGFILE", user=ADMIN)
    report = certify(oracle.config(tmp_path, "T"), sleep=no_wait)
    refuted = {one.probe.id: one.verdict.seen for one in report.found if one.is_wrong}
    assert refuted == {}
    assert report.is_certified
    assert report.facts()["character_set"] == "AL32UTF8"


def test_the_embedded_oracle_shows_all_but_what_it_does_not_have(tmp_path: Path) -> None:
    with running_oracle() as oracle:
        oracle.run("CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(10))")
        oracle.run("CREATE INDEX I ON T (UPPER(V))")
        for _ in range(3):
            oracle.run("ALTER SYSTEM SWITCH LOGFILE", user=ADMIN)
        with oracle.owner() as writing:
            writing.cursor().execute("INSERT INTO T VALUES (1, 'a')")
            report = certify(oracle.config(tmp_path, "T"), sleep=no_wait)
    unseen = {one.probe.id for one in report.found if one.verdict.outcome is Outcome.CANNOT_TELL}
    assert unseen <= {"table.untranslated", "transaction.start-below-scn"}, "what no view shows"


def test_a_report_has_no_name_and_no_value_of_the_tables(tmp_path: Path) -> None:
    table, column, text, number = TOLD
    with running_oracle() as oracle:
        oracle.run(
            f"CREATE TABLE {table} ({column} NUMBER(10) PRIMARY KEY, {text} VARCHAR2(40) DEFAULT '{text}')",
            f"INSERT INTO {table} VALUES ({number}, '{text}')",
            f"CREATE TYPE {text}_T AS OBJECT (A NUMBER)",
            f"ALTER TABLE {table} ADD (O {text}_T)",
        )
        report = certify(oracle.config(tmp_path, table), sleep=no_wait)
    written = report.text()
    for told in (*TOLD, "DEMO", "REDOLAKE#", "127.0.0.1"):
        assert told not in written, told
    assert "1 of other types" in written, "a type of the user's own is counted, not named"
    assert json.loads(written)["counts"]["holds"] > 40


DAY = datetime(2026, 6, 1, 12)
LATER = datetime(2026, 6, 1, 13)
WITHOUT_SWITCH: dict[str, dict[str, Answer]] = {
    "database.platform": {"service": [("OLTP",)], "rds": [(1,)]},
    "value.number-bytes": {"bytes": [(b"\x80", b"\xc1\x02", b">d", b"\xc2", b"\x80")]},
    "value.number-digits": {"numbers": [(1, 2, 3, 4)]},
    "value.float-specials": {"floats": [(0.0, 1.0, 2.0)]},
    "value.empty-text": {"empty": []},
    "time.order": {"times": [(LATER, DAY, DAY)]},
}
"""What asks for an expression's value, which no view decides, with the answers of a database for which the belief is not true. All
others are turned in the database (``test_turned.py``)."""
NEVER_REFUTED = {"transaction.start-unassigned"}
"""That nothing was seen tells nothing."""


@pytest.mark.parametrize("name", WITHOUT_SWITCH)
def test_a_belief_that_is_not_true_is_seen(name: str) -> None:
    [probe] = [one for one in LOOK_PROBES if one.id == name]
    verdict = probe.judged(WITHOUT_SWITCH[name])
    assert verdict.outcome is Outcome.OTHERWISE
    assert Found(probe, verdict).is_wrong == probe.is_needed


@pytest.mark.parametrize("probe", [pytest.param(one, id=one.id) for one in LOOK_PROBES])
def test_what_oracle_refuses_to_say_is_no_verdict(probe: LookProbe) -> None:
    verdict = probe.judged({name: RefusedQuery("ORA-00942") for name in probe.queries})
    if probe.id in ("flashback.fixed-view", "time.of-old-scn"):
        return  # what they ask is refused, or answered wrongly
    assert verdict.outcome is Outcome.CANNOT_TELL
    assert "ORA-00942" in verdict.seen


def test_probes_have_ids_of_their_own_and_say_all_that_a_reader_needs() -> None:
    ids = [one.id for one in LOOK_PROBES]
    assert len(ids) == len(set(ids))
    for one in LOOK_PROBES:
        assert one.belief.endswith("."), one.id
        assert one.otherwise.endswith("."), one.id
        assert one.depends, one.id
        assert one.source, one.id


def test_a_wart_that_was_seen_is_in_the_report() -> None:
    [probe] = [one for one in LOOK_PROBES if one.id == "transaction.start-unassigned"]
    report = Report((Level.LOOK,), (Found(probe, probe.judged({"open": [(1, 0)]})),))
    assert report.as_json()["warts"] == {"UNASSIGNED_START_SCNS": True}
    unseen = Report((Level.LOOK,), (Found(probe, probe.judged({"open": [(0, 4)]})),))
    assert unseen.as_json()["warts"] == {}


def test_a_session_that_is_lost_ends_the_certification(tmp_path: Path) -> None:
    with running_oracle() as oracle:
        config = oracle.config(tmp_path, "T")

        def lose(_seconds: float) -> None:
            oracle.server.stop()

        with pytest.raises(OracleUnavailableError):
            certify(config, sleep=lose)

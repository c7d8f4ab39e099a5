"""Level *try*: both paths through the real driver, each broken belief seen, and nothing left behind."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from cdc_core.config import SourceConfig
from cdc_core.errors import ConfigError, PreflightError
from cdc_core.oracle.scratch import open_scratch
from cdc_core.oracle.session import connect
from diagnosis.certify import Outcome, Report, Scratch, certify
from diagnosis.certify.certifying import TRY_PROBES
from diagnosis.certify.probes import Level, Verdict
from diagnosis.certify.tried import Trial, TryProbe
from diagnosis.certify.trying import try_out
from oracle_embedded.database import ADMIN, OWNER
from oracle_embedded.redo import Wart
from tests.oracle.backends import BACKENDS, Database, open_backend
from tests.oracle.embedded import Oracle, running_oracle

SCRATCH = Scratch("WORKBENCH", SecretStr("hammer"))
UNTOLD = {"row.boolean", "row.json", "row.json-rowid", "type.varchar2-extended"}
"""What 19c does not have, or a database of standard strings."""
NOT_SHOWN = {"lob.savepoint-large", "lob.written-at"}
"""What the redo of 23ai does not show, and is not decoded."""


def with_scratch(oracle: Oracle) -> None:
    oracle.run(
        'CREATE USER WORKBENCH IDENTIFIED BY "hammer"',
        "GRANT CREATE SESSION, CREATE TABLE, UNLIMITED TABLESPACE TO WORKBENCH",
        user=ADMIN,
    )


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    with running_oracle() as running:
        with_scratch(running)
        running.run(
            "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(10))",
            "INSERT INTO T VALUES (1, 'a')",
        )
        yield running


@pytest.fixture(scope="module")
def config(oracle: Oracle, tmp_path_factory: pytest.TempPathFactory) -> SourceConfig:
    return oracle.config(tmp_path_factory.mktemp("certify"), "T")


@pytest.fixture(scope="module")
def tried(oracle: Oracle, config: SourceConfig) -> dict[str, Trial]:
    """What came of each probe's steps."""
    return run_all(config)


def run_all(config: SourceConfig) -> dict[str, Trial]:
    kept: dict[str, Trial] = {}

    def keeping(probe: TryProbe) -> TryProbe:
        def judge(found: Trial) -> Verdict:
            kept[probe.id] = found
            return probe.judge(found)

        return replace(probe, judge=judge, takes_stop=True, is_mined=False)

    with connect(config.oracle) as session:
        try_out(
            config, session, SCRATCH, [keeping(one) for one in TRY_PROBES], sleep=lambda _: None
        )
    return kept


BY_ID = {one.id: one for one in TRY_PROBES}


def test_the_embedded_oracle_passes_but_for_what_it_lacks(
    tried: Mapping[str, Trial], config: SourceConfig
) -> None:
    verdicts = {name: BY_ID[name].judged(found) for name, found in tried.items()}
    refuted = {
        name: one.seen
        for name, one in verdicts.items()
        if one.outcome is Outcome.OTHERWISE and BY_ID[name].is_needed
    }
    assert refuted == {}
    untold = {name for name, one in verdicts.items() if one.outcome is Outcome.CANNOT_TELL}
    assert untold <= UNTOLD | NOT_SHOWN
    assert len(verdicts) == len(TRY_PROBES) > 90


EQUAL = [one.id for one in TRY_PROBES if one.id.startswith("type.") and one.id not in UNTOLD]
"""Whose belief is that both paths are equal."""


@pytest.mark.parametrize("name", EQUAL)
def test_rows_that_cannot_be_decoded_refute_a_belief(name: str, tried: Mapping[str, Trial]) -> None:
    broken = replace(tried[name], undecodable={"a form that nobody knows": 1})
    assert BY_ID[name].judged(broken).outcome is Outcome.OTHERWISE


SWITCHED = {
    Wart.LATE_REDO: False,
    Wart.PARTIAL_XIDS: False,
    Wart.SPURIOUS_ROLLBACKS: False,
    Wart.UNNAMED_COLUMNS: False,
    Wart.LOB_STATEMENTS: False,
    Wart.UNSUPPORTED_ROWS: False,
    Wart.LOB_OFFSETS_IN_UNITS: True,
}


def test_a_database_with_other_warts_is_told(tmp_path: Path) -> None:
    with running_oracle() as oracle:
        with_scratch(oracle)
        for wart, shown in SWITCHED.items():
            oracle.database.redo.set_wart(wart, shown=shown)
        report = certify(
            oracle.config(tmp_path, "T"), [Level.TRY], scratch=SCRATCH, sleep=lambda _: None
        )
    refuted = {one.probe.id for one in report.found if one.is_wrong}
    assert refuted == {"lob.savepoint-large"}, (
        "without LOB_STATEMENTS such a rollback leaves no trace in the redo"
    )
    assert report.as_json()["warts"] == {str(wart): shown for wart, shown in SWITCHED.items()}
    written = report.text()
    for told in ("WORKBENCH", "hammer", "C##REDOLAKE", "127.0.0.1"):
        assert told not in written


def dictionary(oracle: Oracle) -> dict[str, Any]:
    """All objects of all users, with their numbers and times, and the rows of a table that is none of the probes'."""
    with oracle.owner() as connection:
        cursor = connection.cursor()
        objects = cursor.execute(
            "SELECT OWNER, OBJECT_NAME, OBJECT_TYPE, OBJECT_ID, DATA_OBJECT_ID, LAST_DDL_TIME FROM ALL_OBJECTS "
            "WHERE OWNER NOT IN ('SYS', 'PUBLIC') ORDER BY 1, 2, 3"
        ).fetchall()
        rows = cursor.execute("SELECT ID, V, ORA_ROWSCN FROM T ORDER BY ID").fetchall()
    return {"objects": objects, "rows": rows}


class KilledError(BaseException):
    """The process ends here: nothing is sent any more."""


def test_a_kill_at_any_statement_leaves_nothing_that_the_next_start_does_not_drop(
    oracle: Oracle, config: SourceConfig
) -> None:
    few = [
        BY_ID[name]
        for name in (
            "type.number-small", "transaction.savepoint", "lob.replaced", "ddl.flashback-drop", "ddl.redefinition",
        )
    ]  # fmt: skip
    sent: list[str] = []
    with connect(config.oracle) as session:
        try_out(config, session, SCRATCH, few, on_statement=sent.append, sleep=lambda _: None)
        before = dictionary(oracle)
        points = random.Random(41).sample(range(5, len(sent)), min(50, len(sent) - 5))
        left = 0
        for point in points:
            with pytest.raises(KilledError):
                try_out(
                    config,
                    session,
                    SCRATCH,
                    few,
                    on_statement=killed_at(point),
                    sleep=lambda _: None,
                )
            left += dictionary(oracle) != before
        try_out(config, session, SCRATCH, [], sleep=lambda _: None)
    assert left > 10, "the kills left tables behind"
    assert dictionary(oracle) == before


def killed_at(point: int) -> Callable[[str], None]:
    """A process that is killed before its statement of that number."""
    sent = 0

    def on_statement(_sql: str) -> None:
        nonlocal sent
        sent += 1
        if sent >= point:
            raise KilledError

    return on_statement


def test_a_schema_with_objects_of_others_is_refused_untouched(
    oracle: Oracle, config: SourceConfig
) -> None:
    theirs = Scratch("DEMO", SecretStr("owner"))
    elsewhere = config.model_copy(update={"tables": ()})
    before = dictionary(oracle)
    with pytest.raises(PreflightError, match="contains other objects"):
        certify(elsewhere, [Level.TRY], scratch=theirs)
    with pytest.raises(ConfigError, match="tables are captured from this schema"):
        certify(config, [Level.TRY], scratch=theirs)
    with pytest.raises(ConfigError, match="needs a schema of its own"):
        certify(config, [Level.TRY])
    assert dictionary(oracle) == before


@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE T",
        "DELETE FROM DEMO.T",
        "INSERT INTO T SELECT * FROM REDOLAKE_CERTIFY_1",
        "CREATE TABLE T (ID NUMBER)",
        "BEGIN EXECUTE IMMEDIATE 'DROP TABLE T'; END;",
        "ALTER SYSTEM SWITCH LOGFILE",
        "GRANT DBA TO PUBLIC",
    ],
)
def test_the_scratch_session_sends_nothing_about_other_tables(
    oracle: Oracle, config: SourceConfig, sql: str
) -> None:
    sent: list[str] = []
    with open_scratch(
        config.oracle, SCRATCH.schema, SCRATCH.password, on_statement=sent.append
    ) as scratch:
        before = len(sent)
        with pytest.raises(PreflightError, match="not about a scratch table"):
            scratch.run(sql)
        assert len(sent) == before


@pytest.fixture(params=BACKENDS)
def any_oracle(request: pytest.FixtureRequest) -> Iterator[Database]:
    with open_backend(request.param) as found:
        yield found


@pytest.mark.parametrize("subject", ["type", "redo", "transaction", "ddl", "lob", "row"])
def test_a_database_holds_what_redolake_rests_on(
    any_oracle: Database, tmp_path: Path, subject: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The suite's schema is empty, and so it can be the scratch schema."""
    of_subject = [one for one in TRY_PROBES if one.subject.startswith(subject)]
    monkeypatch.setattr("diagnosis.certify.certifying.TRY_PROBES", of_subject)
    elsewhere = any_oracle.config(tmp_path, "T").model_copy(update={"tables": ()})
    password = SecretStr(any_oracle.login(OWNER)["password"])
    report = certify(elsewhere, [Level.TRY], scratch=Scratch(OWNER, password))
    refuted = {one.probe.id: one.verdict.seen for one in report.found if one.is_wrong}
    assert refuted == {}


def test_both_levels_make_one_report(
    oracle: Oracle, config: SourceConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("diagnosis.certify.certifying.TRY_PROBES", TRY_PROBES[:2])
    report = certify(config, [Level.LOOK, Level.TRY], scratch=SCRATCH, sleep=lambda _: None)
    assert isinstance(report, Report)
    assert [one.probe.id for one in report.found][-2:] == [one.id for one in TRY_PROBES[:2]]
    assert report.as_json()["levels"] == ["look", "try"]

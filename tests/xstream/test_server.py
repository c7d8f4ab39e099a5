"""An outbound server through a stand-in for Oracle's client library: nothing is lost or doubled, whichever call fails."""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pydantic import SecretStr
from typer.testing import CliRunner

from cdc_core.change_stream.files import RecordFiles
from cdc_core.config import OracleConfig, XStreamConfig
from cdc_core.errors import (
    CdcError,
    ConfigError,
    DecodeError,
    LeaseHeldError,
    LogsNotReadyError,
    OracleError,
    OracleUnavailableError,
    OvertakenError,
    RedoUnavailableError,
    TransientError,
)
from cdc_core.model.scn import Scn
from cdc_core.objects.open import objects_at
from cdc_core.oracle.refused_logins import RefusedLogins
from cdc_core.steps.windows import plan
from cdc_core.xstream import client
from cdc_core.xstream import server as server_module
from cdc_core.xstream.client import OciSource
from cdc_core.xstream.library import load_library
from cdc_core.xstream.oci_values import Given, from_oci, number_of
from cdc_core.xstream.server import OutboundServer
from pipelines.cli import app
from tests.landing.clouds import make_bucket
from tests.landing.s3_process import S3Process
from tests.oracle.embedded import Oracle, running_oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, run_random_changes, source_of, table_id
from tests.xstream.lcrs import recorded, recorder_of
from tests.xstream.outbound import Outbound, built, needs_compiler

pytestmark = needs_compiler
oracle = oracle_with(
    "CREATE TABLE K (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(40))",
    "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, N NUMBER, D BINARY_DOUBLE, F BINARY_FLOAT, DAY DATE, AT TIMESTAMP(6), FINE TIMESTAMP(9),"
    " ZONED TIMESTAMP(3) WITH TIME ZONE, HERE TIMESTAMP WITH LOCAL TIME ZONE, SPAN INTERVAL DAY TO SECOND(6),"
    " MONTHS INTERVAL YEAR TO MONTH, R RAW(8), C CLOB, B BLOB)",
    "INSERT INTO K VALUES (1, 'a')",
)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("library"))


@pytest.fixture
def outbound(oracle: Oracle, library: Path, tmp_path: Path) -> Outbound:
    return Outbound.of(oracle, tmp_path / "outbound", library)


@pytest.fixture
def source(oracle: Oracle, outbound: Outbound, tmp_path: Path) -> Iterator[Source]:
    with source_of(oracle, tmp_path, "K", capture=outbound.capture) as opened:
        opened.run()
        yield opened


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_ATTACH_SECONDS", 0)


def settings(oracle: Oracle, outbound: Outbound) -> tuple[XStreamConfig, OracleConfig]:
    return XStreamConfig.model_validate(outbound.capture), oracle.config(outbound.path.parent, "K").oracle  # fmt: skip


def test_every_type_arrives_as_through_recordings(
    oracle: Oracle, outbound: Outbound, tmp_path: Path
) -> None:
    """Numbers, dates and floats as C has them, descriptors, chunks of LOBs: all become Oracle's stored bytes."""
    recorder = recorder_of(oracle, tmp_path / "lcrs", version=2)
    with (
        source_of(oracle, tmp_path / "a", "T", "K", capture=outbound.capture) as server,
        source_of(oracle, tmp_path / "b", "T", "K", capture=recorded(recorder)) as files,
    ):
        server.run()
        files.run()
        oracle.run(
            "INSERT INTO T VALUES (1, -12345678901234567890.5, 2.718281828459045, -1.5, DATE '1969-12-31', TIMESTAMP '2026-01-02 03:04:05.6',"
            " TIMESTAMP '2026-01-02 03:04:05.123456789', TIMESTAMP '2026-07-02 23:04:05.123 -02:30', TIMESTAMP '2026-01-02 03:04:05',"
            " INTERVAL '-3 04:05:06.5' DAY TO SECOND, INTERVAL '-2-11' YEAR TO MONTH, HEXTORAW('00FF'), 'text of a LOB', HEXTORAW('0102'))",
            "UPDATE T SET N = 0, D = -0.25 WHERE ID = 1",
            "INSERT INTO T (ID) VALUES (2)",
            "INSERT INTO K VALUES (2, 'ä夜')",
            "DELETE FROM T WHERE ID = 2",
        )
        outbound.write()
        recorder.write()
        server.windows()
        files.windows()
        for name in ("T", "K"):
            own, other = server.lake.tables[table_id(name)], files.lake.tables[table_id(name)]
            assert server.lake.image(table_id(name)) == files.lake.image(table_id(name))
            assert [one["after"] for one in own.changes] == [one["after"] for one in other.changes]
        assert server.ops("T") == "cucd"
        [row] = server.lake.image(table_id("T"))
        assert row[1:4] == ("0", -0.25, -1.5)
        assert row[6:9] == (
            "2026-01-02 03:04:05.123456789",
            "2026-07-02 23:04:05.123000000 -02:30",
            "2026-01-02 03:04:05.000000000 +00:00",
        )
        server.check_exact("K")


def test_the_watermark_moves_behind_the_commits_only(
    oracle: Oracle, outbound: Outbound, source: Source
) -> None:
    oracle.run("INSERT INTO K VALUES (2, 'b')")
    outbound.write()
    [window] = source.capture()
    before = outbound.mark
    assert before is None or before <= window.scn_low
    source.windows()
    assert source.ops("K") == "c"
    oracle.run("INSERT INTO K VALUES (3, 'b')")
    outbound.write()
    source.windows()
    assert outbound.mark == window.scn_high
    source.check_exact("K")


def test_a_table_joins_while_a_transaction_is_open_that_began_below_the_watermark(
    oracle: Oracle, outbound: Outbound, source: Source
) -> None:
    oracle.run("CREATE TABLE LATE (ID NUMBER(9) PRIMARY KEY)")
    with oracle.owner() as connection:
        connection.cursor().execute("INSERT INTO LATE VALUES (1)")
        for number in (2, 3, 4):
            oracle.run(f"INSERT INTO K VALUES ({number}, 'b')")
            outbound.write()
            source.windows()
        assert outbound.mark
        source.configure("K", "LATE")
        source.run()
        connection.commit()
    outbound.write()
    source.windows()
    source.check_exact("K", "LATE")
    assert source.ops("LATE") == "c"


def test_a_watermark_that_moves_before_the_commit_is_noticed(
    oracle: Oracle, outbound: Outbound, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken rule: a window is released when it is planned. Killed before it is captured, its LCRs are gone."""
    oracle.run("INSERT INTO K VALUES (9, 'first')")
    outbound.write()
    source.windows()
    monkeypatch.setattr(plan, "_applied", lambda *_: Scn(outbound.newest - 1))
    oracle.run("INSERT INTO K VALUES (2, 'b')")
    outbound.write()
    source.pipeline.plan_windows()
    source.close()
    with pytest.raises(RedoUnavailableError, match="has discarded LCRs"):
        source.windows()
    assert source.ops("K") == "c"


@pytest.mark.parametrize("seed", range(2))
def test_calls_fail_at_random(
    oracle: Oracle, outbound: Outbound, source: Source, seed: int
) -> None:
    """The connection is lost in any call: attaching, in the middle of a transaction, marking, detaching."""
    failures = 0

    def change(rng: Random, cursor: Any, key: int, *, is_new: bool) -> None:
        nonlocal failures
        if is_new:
            cursor.execute("INSERT INTO K VALUES (:1, 'new')", [key + 1000])
        else:
            cursor.execute("UPDATE K SET V = :2 WHERE ID = :1", [key + 1000, str(rng.random())])
        outbound.write()
        outbound.fail(3113, after=rng.randrange(12))
        try:
            source.windows()
        except TransientError:
            failures += 1
            source.close()
        outbound.fail(3113, after=10**6)

    run_random_changes(
        source, Random(seed), change, steps=40, created=15, last="UPDATE K SET V = 'last' WHERE ID = 1000"
    )  # fmt: skip
    outbound.write()
    source.windows()
    assert failures > 10
    source.check_exact("K")
    changes = source.lake.tables[table_id("K")].changes
    created = [one["after"]["ID"] for one in changes if one["_cdc_op"] == "c"]
    assert len(created) == len(set(created)) == 15


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (26653, LogsNotReadyError),
        (23656, OracleUnavailableError),
        (26928, OracleUnavailableError),
        (26812, LeaseHeldError),
        (26701, ConfigError),
        (26913, ConfigError),
        (3113, OracleUnavailableError),
        (28000, ConfigError),
        (21560, OracleError),
    ],
)
def test_each_code_says_whether_to_try_again(
    oracle: Oracle, outbound: Outbound, monkeypatch: pytest.MonkeyPatch, code: int, error: type[CdcError]
) -> None:  # fmt: skip
    """The first four are tried again in place: once is enough to be refused where they last."""
    if code in client._RETRIED:
        with OciSource(*settings(oracle, outbound)) as server:
            outbound.fail(code)
            server.attach(1)
            server.detach()
    monkeypatch.setattr(client, "_ATTACH_TRIES", 1)
    outbound.fail(code)
    with pytest.raises(error) as caught, OciSource(*settings(oracle, outbound)) as server:
        server.attach(1)
    assert caught.value.facts["ora"] == f"ORA-{code:05d}"


_ATTACHED = """
import sys
from cdc_core.config import OracleConfig, XStreamConfig
from cdc_core.xstream.client import OciSource
how, oracle = XStreamConfig.model_validate({how}), OracleConfig.model_validate({oracle})
with OciSource(how, oracle) as server:
    server.attach(0)
    print("attached", flush=True)
    sys.stdin.read()
"""


def test_a_second_process_is_told_who_has_the_server_and_goes_on_behind_it(
    oracle: Oracle, outbound: Outbound, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed in the middle, the other one lets go of the server; nothing is lost or doubled."""
    monkeypatch.setattr(client, "_ATTACH_TRIES", 2)
    oracle.run("INSERT INTO K VALUES (2, 'b')")
    outbound.write()
    code = _ATTACHED.format(how=outbound.capture, oracle=oracle.login("C##REDOLAKE"))
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "attached\n"
        with pytest.raises(LeaseHeldError, match="another client is attached") as caught:
            source.windows()
        assert caught.value.facts == {"server": "XOUT", "ora": "ORA-26812"}
        other.kill()
    source.windows()
    assert source.ops("K") == "c"
    source.check_exact("K")


def test_a_password_that_expires_soon_ends_no_capture(
    oracle: Oracle, outbound: Outbound, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OCI_SUCCESS_WITH_INFO: ORA-28002, for as many days as the profile says."""
    monkeypatch.setenv("STAND_IN_GRACE", "1")
    with OciSource(*settings(oracle, outbound)) as server:
        server.attach(0)
        server.detach()


def test_a_refused_password_is_not_sent_by_each_window(
    oracle: Oracle, outbound: Outbound, monkeypatch: pytest.MonkeyPatch
) -> None:
    how, login = settings(oracle, outbound)
    wrong = login.model_copy(update={"password": SecretStr("wrong")})
    known, sent, begin = RefusedLogins(), list[OciSource](), OciSource._connect

    def connect(one: OciSource) -> None:
        sent.append(one)
        begin(one)

    monkeypatch.setattr(OciSource, "_connect", connect)
    for _ in range(3):
        with pytest.raises(ConfigError, match="refused user name or password"), OciSource(how, wrong, known.attempt):  # fmt: skip
            pass
    assert len(sent) == 1
    with OciSource(how, login, known.attempt):
        pass


def test_a_call_runs_to_its_end_before_the_client_detaches(
    oracle: Oracle, outbound: Outbound
) -> None:
    oracle.run("INSERT INTO K VALUES (2, 'b')")
    outbound.write()
    with OciSource(*settings(oracle, outbound)) as server:
        server.attach(0)
        assert next(server.receive()).position
        server.detach()


def test_long_strings_and_documents_come_in_chunks(library: Path, tmp_path: Path) -> None:
    """Their columns in the row have no value; what an UPDATE leaves alone comes in none."""
    with running_oracle(extended_strings=True) as oracle:
        oracle.run(
            "CREATE TABLE W (ID NUMBER(9) PRIMARY KEY, S VARCHAR2(32767), R RAW(20000), X XMLTYPE, V VARCHAR2(9))"
        )
        outbound = Outbound.of(oracle, tmp_path / "outbound", library)
        with source_of(oracle, tmp_path, "W", capture=outbound.capture) as source:
            source.run()
            oracle.run(
                "INSERT INTO W VALUES (1, RPAD('ä', 9000, 'xy'), HEXTORAW('00ff01'), XMLTYPE('<a>夜</a>'), 'v')",
                "INSERT INTO W (ID) VALUES (2)",
                "UPDATE W SET V = 'w' WHERE ID = 1",
                "UPDATE W SET S = 'short', X = XMLTYPE('<b/>') WHERE ID = 2",
            )
            outbound.write()
            chunks = [
                row.split("\t") for row in outbound.path.read_text().splitlines() if row[0] == "C"
            ]
            flags = {int(row[3]) & 0x440 for row in chunks}
            source.windows()
            assert source.ops("W") == "ccuu"
            source.check_exact("W")
    assert flags == {0x400, 0x40}


def test_recordings_of_the_server_are_what_capture_reads(
    oracle: Oracle, outbound: Outbound, source: Source, tmp_path: Path
) -> None:
    """Each one begins where the one before ended, also where applied ones were removed, and nothing is released."""
    folder, mark = tmp_path / "lcrs", outbound.mark
    assert source.pipeline.record_redo(str(folder), low=1)
    with source_of(
        oracle, tmp_path / "f", "K", capture={"type": "xstream", "folder": str(folder)}
    ) as files:
        files.run()
        for number in (2, 3):
            oracle.run(f"INSERT INTO K VALUES ({number}, 'b')")
            outbound.write()
            source.pipeline.record_redo(str(folder))
            files.windows()
            min(folder.glob("*.jsonl")).unlink()
        assert files.ops("K") == "cc"
        files.check_exact("K")
        with pytest.raises(ConfigError, match="records nothing"):
            files.pipeline.record_redo(str(folder))
    assert [one.name for one in folder.glob("*.jsonl")] == ["lcrs_000002.jsonl"]
    assert outbound.mark == mark


def test_recordings_go_to_an_object_store(
    oracle: Oracle,
    outbound: Outbound,
    source: Source,
    tmp_path: Path,
    bucket_server: S3Process,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each is there whole, or as its first line alone; capture reads it there. Of two recorders one begins a file."""
    for variable, value in bucket_server.environment().items():
        monkeypatch.setenv(variable, value)
    make_bucket(bucket_server, bucket := f"b{uuid.uuid4().hex[:20]}")
    folder = f"s3://{bucket}/lcrs"
    assert source.pipeline.record_redo(folder, low=1)
    with source_of(
        oracle, tmp_path / "f", "K", capture={"type": "xstream", "folder": folder}
    ) as files:
        files.run()
        oracle.run("INSERT INTO K VALUES (2, 'b')")
        outbound.write()
        with monkeypatch.context() as broken:
            broken.setattr(server_module, "lines_of", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                source.pipeline.record_redo(folder)
        with monkeypatch.context() as late:
            late.setattr(RecordFiles, "newest_number", lambda _: 0)
            with pytest.raises(OvertakenError, match="another process"):
                source.pipeline.record_redo(folder)
        source.pipeline.record_redo(folder)
        files.windows()
        assert files.ops("K") == "c"
        files.check_exact("K")
    objects, root = objects_at(folder)
    assert objects.names_behind(root, "") == [f"lcrs_00000{number}.jsonl" for number in range(3)]


def test_it_says_that_it_was_never_run_against_oracles_library(
    oracle: Oracle, outbound: Outbound, caplog: pytest.LogCaptureFixture
) -> None:
    """Once a process."""
    client._say_once.cache_clear()
    for _ in range(2):
        with OciSource(*settings(oracle, outbound)):
            pass
    assert [one.message for one in caplog.records].count(client.UNPROVED) == 1


def test_the_command_records(oracle: Oracle, outbound: Outbound, tmp_path: Path) -> None:
    login = oracle.login("C##REDOLAKE")
    attributes = {
        "name": "src",
        "oracle": {"dsn": login["dsn"], "user": login["user"], "password_env": "PASSWORD"},
        "tables": [{"name": "DEMO.K"}],
        "capture": outbound.capture,
        "landing": {"type": "local", "path": str(tmp_path / "landing")},
        "lake": {"path": str(tmp_path / "lake")},
        "state": {"url": f"sqlite:///{tmp_path}/state.db"},
    }
    config = tmp_path / "defs.yaml"
    config.write_text(json.dumps({"type": "assets.components.OracleCdc", "attributes": attributes}))
    command = [
        "xstream",
        "record",
        str(tmp_path / "lcrs"),
        "--from-scn",
        "1",
        "--config",
        str(config),
    ]
    result = CliRunner(env={"PASSWORD": login["password"]}).invoke(app, command)
    assert result.exit_code == 0, result.output
    assert "recorded into" in result.output
    assert len(list((tmp_path / "lcrs").glob("*.jsonl"))) == 1


def test_the_library_is_looked_at_before_it_is_used(
    tmp_path: Path, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match="was not found") as caught:
        load_library(str(tmp_path / "libclntsh.so"))
    assert "Instant Client" in caught.value.hint
    assert "licence" in caught.value.hint
    with pytest.raises(ConfigError, match="lacks functions") as caught:
        load_library("libm.so.6")
    assert "OCIXStreamOutAttach" in str(caught.value.facts["functions"])
    monkeypatch.setenv("STAND_IN_VERSION", "11")
    with pytest.raises(ConfigError, match="too old"):
        load_library(str(library))


def test_doctor_looks_at_the_outbound_server(source: Source, outbound: Outbound) -> None:
    config = source.pipeline.config
    found = source.pipeline.change_reader.check(config.tables)
    assert any("never run its client" in one.problem for one in found)
    assert any("it needs redo from SCN" in one.problem for one in found)
    assert not [one for one in found if one.is_problem]
    other = XStreamConfig.model_validate({**outbound.capture, "server": "OTHER", "library": "/no"})
    with source.pipeline.database.session() as session:
        broken = OutboundServer(other, config.oracle, source.pipeline.database)
        problems = [one.problem for one in broken.check(session, config.tables) if one.is_problem]
    assert problems == ["Oracle's client library was not found (library=/no)"]


def test_values_of_descriptors(library: Path) -> None:
    """A time WITH LOCAL TIME ZONE becomes one in UTC, whatever the session's zone is."""
    oci = load_library(str(library))
    parts = (2026, 7, 2, 1, 4, 5, 123, 2, 0)
    packed = ctypes.create_string_buffer(
        parts[0].to_bytes(2, "little") + bytes(parts[1:6]) + (123).to_bytes(4, "little") + bytes((2, 0))
    )  # fmt: skip
    kind, stored = from_oci(oci, None, None, Given.LOCAL, ctypes.addressof(packed), 13)
    assert (kind, stored) == (181, bytes((120, 126, 7, 1, 24, 5, 6, 0, 0, 0, 123, 20, 60)))


@pytest.mark.parametrize("year", [-4712, 1])
def test_a_time_before_the_first_year_in_utc_is_undecodable(library: Path, year: int) -> None:
    oci = load_library(str(library))
    packed = ctypes.create_string_buffer(
        year.to_bytes(2, "little", signed=True) + bytes((1, 1, 0, 30, 0)) + bytes(4) + bytes((2, 0))
    )
    with pytest.raises(DecodeError, match="outside of the years"):
        from_oci(oci, None, None, Given.ZONED, ctypes.addressof(packed), 13)


@pytest.mark.parametrize("value", [0, 1, 99, 100, 12345, 10**12, 2**63])
def test_numbers_are_written_as_they_are_read(value: int) -> None:
    raw = number_of(value)
    assert client._integer(raw.ljust(22, b"\0")) == value

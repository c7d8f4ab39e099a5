"""What happens to OpenLogReplicator's files, and what its restarts do: nothing is lost, nothing counts twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from cdc_core.errors import (
    CdcError,
    ConfigError,
    DecodeError,
    LogsNotReadyError,
    PreflightError,
    RedoUnavailableError,
)
from oracle_embedded.openlogreplicator import OlrSettings, OpenLogReplicator
from tests.openlogreplicator.olr import olr_capture
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, source_of, table_id

oracle = oracle_with(
    "CREATE TABLE K (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(40))", "INSERT INTO K VALUES (1, 'a')"
)


@pytest.fixture
def olr(oracle: Oracle, tmp_path: Path) -> OpenLogReplicator:
    made = OpenLogReplicator(oracle.database, tmp_path / "olr")
    made.write()
    return made


@pytest.fixture
def source(oracle: Oracle, olr: OpenLogReplicator, tmp_path: Path) -> Iterator[Source]:
    with source_of(oracle, tmp_path, "K", capture=olr_capture(olr)) as opened:
        opened.run()
        yield opened


def newest(olr: OpenLogReplicator) -> Path:
    return max(olr.folder.glob("*.json"))


def test_a_line_that_has_not_ended_waits(
    oracle: Oracle, olr: OpenLogReplicator, source: Source
) -> None:
    """Whatever a file ends with, at every byte of a transaction: what is not whole yet comes with a later window, once."""
    before = newest(olr).read_bytes()
    oracle.run("INSERT INTO K VALUES (2, 'b')", "UPDATE K SET V = 'c' WHERE ID = 2")
    olr.write()
    whole = newest(olr).read_bytes()
    for end in range(len(before), len(whole), 97):
        newest(olr).write_bytes(whole[:end])
        source.windows()
    assert source.ops("K") in ("", "cu")
    newest(olr).write_bytes(whole)
    source.windows()
    assert source.ops("K") == "cu"
    source.check_exact("K")


def test_files_follow_each_other(oracle: Oracle, tmp_path: Path, source: Source) -> None:
    """By the numbers in their names, also from 9 to 10; read ones may go."""
    folder = tmp_path / "olr"
    olr = OpenLogReplicator(oracle.database, folder, OlrSettings(file_bytes_max=1))
    for path in folder.glob("*.json"):
        path.unlink()
    olr.restart(checkpoint=0, rewound=True)
    for number in range(2, 14):
        oracle.run(f"INSERT INTO K VALUES ({number}, 'x')")
    olr.write()
    source.configure("K")
    source.windows()
    assert source.ops("K") == "c" * 12
    oracle.run("DELETE FROM K WHERE ID = 2")
    for path in sorted(folder.glob("*.json"), key=lambda one: int(one.stem.split("_")[1]))[:-2]:
        path.unlink()
    olr.write()
    source.windows()
    assert source.ops("K") == "c" * 12 + "d"
    source.check_exact("K")


def test_a_renamed_file_goes_on(oracle: Oracle, olr: OpenLogReplicator, source: Source) -> None:
    oracle.run("INSERT INTO K VALUES (2, 'b')")
    olr.write()
    source.windows()
    newest(olr).rename(olr.folder / "a_0.json")
    oracle.run("INSERT INTO K VALUES (3, 'b')")
    olr.write()
    source.windows()
    assert source.ops("K") == "cc"


def test_a_file_that_was_written_over_stops_the_window(
    oracle: Oracle, olr: OpenLogReplicator, source: Source
) -> None:
    oracle.run("INSERT INTO K VALUES (2, 'b')")
    olr.write()
    source.windows()
    newest(olr).unlink()
    oracle.run("INSERT INTO K VALUES (3, 'b')")
    olr.write()
    with pytest.raises(
        RedoUnavailableError, match=r"gone, or was overwritten|begin above"
    ) as caught:
        source.windows()
    assert "redolake source skip-gap" in caught.value.hint


@pytest.mark.parametrize("comes", ["end", "file"])
def test_what_comes_in_front_of_what_was_read_stops_the_window(
    oracle: Oracle, olr: OpenLogReplicator, source: Source, comes: str
) -> None:
    """Somebody copies files in another order than that of their names: the end of one, or a whole one, behind the next."""
    first = newest(olr)
    written = [first.read_bytes()]
    for number in (2, 3, 4):
        oracle.run(f"INSERT INTO K VALUES ({number}, 'x')")
        olr.write()
        written.append(first.read_bytes())
    early, missed, late, last = (
        whole[len(before) :] for before, whole in zip([b"", *written], written, strict=False)
    )
    between, third = (first.with_name(f"{first.stem}{number}.json") for number in (1, 2))
    first.write_bytes(early)
    third.write_bytes(late)
    source.windows()
    assert source.ops("K") == "c"
    third.write_bytes(late + last)
    (first if comes == "end" else between).write_bytes(early + missed if comes == "end" else missed)
    with pytest.raises(
        RedoUnavailableError, match="appeared before those that were read"
    ) as caught:
        source.windows()
    assert "in the order of their names" in caught.value.hint


@pytest.mark.parametrize("torn", [False, True])
def test_a_restart_sends_again_what_counts_once(
    oracle: Oracle, olr: OpenLogReplicator, source: Source, torn: bool
) -> None:
    """Also where it was killed in the middle of a line, and where what it sends again lacks its beginning."""
    oracle.run("INSERT INTO K VALUES (2, 'b')")
    start = _begin_of_newest(olr)
    oracle.run("INSERT INTO K VALUES (3, 'b')")
    olr.write()
    source.windows()
    if torn:
        olr.tear()
    olr.restart(checkpoint=start)
    oracle.run("INSERT INTO K VALUES (4, 'b')")
    olr.write()
    source.windows()
    assert source.ops("K") == "ccc"
    source.check_exact("K")


def test_what_a_rewound_restart_brings_late_is_taken(
    oracle: Oracle, olr: OpenLogReplicator, source: Source
) -> None:
    """OpenLogReplicator loses a transaction that was open at its restart; the operator rewinds it, and the transaction comes late."""
    with oracle.owner() as connection:
        cursor = connection.cursor()
        cursor.execute("INSERT INTO K VALUES (100, 'long')")
        oracle.run("INSERT INTO K VALUES (2, 'b')")
        checkpoint = _begin_of_newest(olr)
        connection.commit()
    oracle.run("INSERT INTO K VALUES (3, 'b')")
    olr.restart(checkpoint=checkpoint)
    olr.write()
    source.windows()
    assert source.ops("K") == "cc"  # it never came
    olr.restart(checkpoint=0, rewound=True)
    oracle.run("INSERT INTO K VALUES (4, 'b')")
    olr.write()
    source.windows()
    changes = source.lake.tables[next(iter(source.lake.tables))].changes
    assert sorted(one["after"]["ID"] for one in changes) == [2, 3, 4, 100]
    source.check_exact("K")


def test_a_start_waits_for_transactions_that_openlogreplicator_has_in_part(
    oracle: Oracle, tmp_path: Path
) -> None:
    with oracle.owner() as connection:
        connection.cursor().execute("INSERT INTO K VALUES (2, 'b')")
        late = OpenLogReplicator(oracle.database, tmp_path / "late")
        oracle.run("INSERT INTO K VALUES (3, 'b')")
        late._after = 10**9
        late.write()
        with source_of(oracle, tmp_path, "K", capture=olr_capture(late)) as source:
            with pytest.raises(LogsNotReadyError, match="do not begin before every transaction"):
                source.run()
            connection.commit()
            source.run()
            oracle.run("INSERT INTO K VALUES (4, 'b')")
            late.restart(checkpoint=0, rewound=True)
            late.write()
            source.windows()
            source.check_exact("K")


def _begin_of_newest(olr: OpenLogReplicator) -> int:
    """Writes what has committed; SCN of the beginning of the last transaction."""
    found = [one for lines in olr.messages() for one in lines]
    olr._append(found)
    return max(int(one["b_scn"]) for one in found if "b_scn" in one)


@pytest.mark.parametrize(
    ("left_out", "error", "says"),
    [
        pytest.param("e_scn", PreflightError, '"type": "debezium"', id="no-commit-scn"),
        pytest.param("rid", PreflightError, '"type": "debezium"', id="no-rowid"),
        pytest.param("schema", PreflightError, '"type": "debezium"', id="no-schema"),
        pytest.param("xid", PreflightError, '"type": "debezium"', id="no-transaction"),
    ],
)
def test_messages_that_lack_something_are_refused_with_the_lines_to_set(
    oracle: Oracle, tmp_path: Path, left_out: str, error: type[CdcError], says: str, source: Source
) -> None:
    folder = tmp_path / "olr"
    olr = OpenLogReplicator(oracle.database, folder, OlrSettings(left_out=frozenset({left_out})))
    olr._after = 10**9
    newest(olr).unlink()
    olr.restart(checkpoint=0, rewound=True)
    oracle.run("INSERT INTO K VALUES (2, 'b')")
    olr.write()
    findings = source.pipeline.change_reader.check(source.pipeline.config.tables)
    assert [one for one in findings if left_out in one.problem and says in one.remedy]
    with pytest.raises(error) as caught:
        source.windows()
    assert says in caught.value.hint


def test_a_later_window_has_messages_of_the_same_database(
    oracle: Oracle, olr: OpenLogReplicator, source: Source
) -> None:
    """Each window may have those of one alone: the first one says which, until the configuration does."""
    oracle.run("INSERT INTO K VALUES (2, 'b')")
    olr.write()
    source.windows()
    path, name = newest(olr), oracle.database.engine.container_name.encode()
    before = path.read_bytes()
    oracle.run("INSERT INTO K VALUES (3, 'b')")
    olr.write()
    more = path.read_bytes()[len(before) :]
    path.write_bytes(before + more.replace(b'"db":"%s"' % name, b'"db":"OTHER"'))
    with pytest.raises(ConfigError, match="more than one database"):
        source.windows()
    assert source.ops("K") == "c"
    source.more = {"capture": olr_capture(olr, database="OTHER")}
    source.configure("K")
    source.windows()
    oracle.run("INSERT INTO K VALUES (4, 'b')")
    olr.write()
    source.windows()
    assert [row[0] for row in source.lake.image(table_id("K"))] == [1, 2, 3]


def test_what_is_no_json_is_refused(oracle: Oracle, olr: OpenLogReplicator, source: Source) -> None:
    with newest(olr).open("ab") as file:
        file.write(b"\x08\x05\x12\x03abc\n")
    with pytest.raises(DecodeError, match="not one JSON document per line") as caught:
        source.windows()
    assert "protobuf" in caught.value.hint


def test_a_value_that_is_not_understood_stops_its_table_alone(
    oracle: Oracle, olr: OpenLogReplicator, source: Source
) -> None:
    oracle.run("INSERT INTO K VALUES (2, 'b')")
    oracle.run("INSERT INTO K VALUES (3, 'c')")
    olr.write()
    path = newest(olr)
    path.write_bytes(path.read_bytes().replace(b'"ID":3', b'"ID":"?"'))
    source.windows()
    record = source.record("K")
    assert record.state == "failed"
    assert "not understood" in (record.reason or "")
    assert "'c'" not in (record.reason or "")
    assert source.ops("K") == "c"


def test_excluded_and_masked_values_never_land(
    oracle: Oracle, tmp_path: Path, olr: OpenLogReplicator
) -> None:
    oracle.run(
        "CREATE TABLE P (ID NUMBER(9) PRIMARY KEY, SECRET VARCHAR2(40), MASKED VARCHAR2(40))"
    )
    olr.write()
    with source_of(oracle, tmp_path / "p", "P", capture=olr_capture(olr)) as source:
        source.configure(
            {"name": "P", "columns_exclude": ["SECRET"], "columns_mask": {"MASKED": "stars(3)"}}
        )
        source.run()
        oracle.run(
            "INSERT INTO P VALUES (1, 'hidden', 'veiled')", "UPDATE P SET SECRET = 'hidden2'"
        )
        olr.write()
        source.windows()
        assert source.ops("P") == "cu"
        found = [
            str(pq.read_table(path).to_pylist()) for path in (tmp_path / "p").rglob("*.parquet")
        ]
        assert any("***" in one for one in found)
        assert not any("hidden" in one or "veiled" in one for one in found)


def test_another_reader_is_refused_in_the_middle_of_a_stream(
    oracle: Oracle, olr: OpenLogReplicator, source: Source
) -> None:
    oracle.run("INSERT INTO K VALUES (2, 'b')")
    olr.write()
    source.windows()
    source.more = {"capture": {"close_at": "online"}}
    source.configure("K")
    oracle.run("INSERT INTO K VALUES (3, 'b')")
    with pytest.raises(ConfigError, match="another reader captured the window before"):
        source.windows()

"""Converters of the user's own: one class for chunks, windows, replays and comparisons, and a wrong one is refused."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cdc_core.errors import ConverterError
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps import converters_of_users
from tests.steps.harness import Source, capturing, source_of, table_id

T = table_id("T")
HERE = converters_of_users.__name__
CONVERTED: dict[str, Any] = {
    "name": "T",
    "columns_as": {"*": f"{HERE}:YesNo"},
    "types_as": {"NUMBER": f"{HERE}:Cents", "DATE": f"{HERE}:Noon"},
}

oracle = oracle_with(
    "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, PAID_YN CHAR(1), KIND_YN VARCHAR2(9), NOTE VARCHAR2(9), AMOUNT NUMBER(9,2),"
    " N NUMBER(9), DAY DATE)",
    "INSERT INTO T VALUES (1, 'Y', 'N', 'Y', -0.07, 7, DATE '2001-02-03')",
    "INSERT INTO T (ID) VALUES (2)",
)
NOON = datetime(2001, 2, 3, 12, tzinfo=UTC)
FIRST = (1, True, False, "Y", -7, 7, NOON)
EMPTY = (2, *[None] * 6)


source = capturing(CONVERTED, policies={"on_undecodable": "quarantine"})


def test_a_class_converts_on_every_way(oracle: Oracle, source: Source) -> None:
    """It declines what it does not match: NOTE has its own type, N is no amount, and the key keeps its own."""
    assert source.lake.image(T) == [FIRST, EMPTY]
    oracle.run(
        "INSERT INTO T SELECT 3, PAID_YN, KIND_YN, NOTE, 9999999.99, N, DAY FROM T WHERE ID = 1",
        "UPDATE T SET PAID_YN = 'N', DAY = NULL WHERE ID = 1",
        "UPDATE T SET ID = 4, KIND_YN = 'Y' WHERE ID = 2",
    )
    windows = source.windows()
    expected = [
        (1, False, *FIRST[2:6], None),
        (3, *FIRST[1:4], 999_999_999, *FIRST[5:]),
        (4, None, True, *EMPTY[3:]),
    ]
    assert source.lake.image(T) == expected
    assert windows
    source.check_replayed("T", windows)
    assert source.compared_rows("T") == expected


def test_a_class_is_never_asked_about_no_value(oracle: Oracle, tmp_path: Path) -> None:
    """Chunks and windows without a row of the table: `pc.all` of nothing is neither true nor false."""
    oracle.run("DELETE FROM T")
    with source_of(oracle, tmp_path) as source:
        source.configure(CONVERTED)
        source.run()
        assert source.record("T").state == "ready"
        assert source.lake.image(T) == []


def test_a_new_column_is_converted(oracle: Oracle, source: Source) -> None:
    oracle.run("ALTER TABLE T ADD (NEW_YN CHAR(1) DEFAULT 'Y')", "INSERT INTO T (ID) VALUES (3)")
    source.run()
    assert [row[-1] for row in source.lake.image(T)] == [True, True, True]


def test_a_value_that_a_class_refuses_goes_to_quarantine(
    oracle: Oracle, source: Source, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    oracle.run(
        "INSERT INTO T (ID, KIND_YN) VALUES (3, 'secret')",
        "INSERT INTO T (ID, KIND_YN) VALUES (4, 'Y')",
    )
    source.run()
    assert [row[0] for row in source.lake.image(T)] == [1, 2, 4]
    [kept] = source.lake.tables[T].in_quarantine.to_pylist()
    assert "convert() raises an error" in kept["reason"]
    assert "secret" not in kept["reason"]
    assert "secret" not in caplog.text


def test_a_value_that_a_class_refuses_stops_a_snapshot(oracle: Oracle, tmp_path: Path) -> None:
    oracle.run("INSERT INTO T (ID, KIND_YN) VALUES (3, 'secret')")
    with source_of(oracle, tmp_path) as source:
        source.configure(CONVERTED)
        source.run()
        record = source.record("T")
        assert record.state == "failed"
        assert "convert() raises an error" in str(record.reason)
        assert "reason=ValueError" in str(record.reason)
        assert "secret" not in str(record.reason)


def test_a_class_that_makes_another_type_asks_for_new_delta_tables(
    oracle: Oracle, source: Source
) -> None:
    source.configure({**CONVERTED, "types_as": {"NUMBER": "text", "DATE": f"{HERE}:Noon"}})
    source.run()
    record = source.record("T")
    assert record.state == "failed"
    assert "types_as names other types than the Delta tables have: AMOUNT, N" in str(record.reason)
    source.pipeline.resnapshot_tables([T], fresh=True)
    source.run()
    assert source.lake.image(T)[0] == (*FIRST[:4], "-0.07", "7", NOON)


@pytest.mark.parametrize(
    ("form", "said"),
    [
        (f"{HERE}:Missing", "cannot be imported"),
        ("no.such.package:Class", "cannot be imported"),
        (f"{HERE}:Demanding", "no class without arguments"),
        (f"{HERE}:Nothing", "no matches"),
        (f"{HERE}:Untyped", "its type is None"),
        (f"{HERE}:OddlyTyped", r"its type is time64\[us\]"),
    ],
)
def test_a_class_that_is_no_converter_is_refused_before_anything_is_read(
    oracle: Oracle, tmp_path: Path, form: str, said: str
) -> None:
    with source_of(oracle, tmp_path) as source:
        source.configure({"name": "T", "columns_as": {"KIND_YN": form}})
        with pytest.raises(ConverterError, match=said):
            source.run()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Short", "another number of values"),
        ("OtherType", "gives string, not bool"),
        ("NoArray", "gives list, not bool"),
        ("Maybe", "neither True nor False"),
        ("Confused", "matches.. raises an error"),
    ],
)
@pytest.mark.parametrize("is_later", [False, True], ids=["snapshot", "window"])
def test_a_wrong_class_stops_its_table_with_one_error(
    oracle: Oracle,
    tmp_path: Path,
    name: str,
    said: str,
    is_later: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Later: the class of the running source has become wrong; the other table goes on."""
    oracle.run("CREATE TABLE U (ID NUMBER(9) PRIMARY KEY)")
    wrong, good = getattr(converters_of_users, name), converters_of_users.YesNo
    with source_of(oracle, tmp_path) as source:
        source.configure({"name": "T", "columns_as": {"KIND_YN": f"{HERE}:YesNo"}}, "U")
        if is_later:
            source.run()
        for method in ("matches", "convert"):
            monkeypatch.setattr(good, method, getattr(wrong, method))
        oracle.run("INSERT INTO T (ID, KIND_YN) VALUES (3, 'Y')", "INSERT INTO U VALUES (1)")
        if name in ("Maybe", "Confused") and not is_later:
            with pytest.raises(Exception, match=said):
                source.run()
            return
        source.run()
        record = source.record("T")
        assert record.state == "failed"
        assert "a converter of columns_as or types_as cannot be used" in str(record.reason)
        source.check_current("U")

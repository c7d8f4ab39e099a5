"""Debezium's events beside a change log: equal in whatever form, and each difference by its fields."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cdc_core.errors import ConfigError, NotYetError
from cdc_core.schema.table import Column
from cdc_core.steps.source_view import logged_tables, origin_of
from cdc_core.views.events import envelope_json, events_of
from diagnosis.events import compare_events, is_same, read_events
from pipelines.commands import compare_events as command
from tests.lake.test_envelope import written
from tests.oracle.embedded import OWNER, running_oracle
from tests.steps.harness import Source, source_of

AT = datetime(2026, 3, 4, 5, 6, 7, 891234)


def column(kind: str, scale: int | None = None) -> Column:
    return Column("A", kind, length=9, char_length=9, precision=9, scale=scale, nullable=True)


@pytest.mark.parametrize(
    ("kind", "scale", "ours", "theirs"),
    [
        pytest.param("NUMBER", 0, 7, 7, id="whole number"),
        pytest.param("NUMBER", 0, 7, "7", id="whole number as text"),
        pytest.param("NUMBER", 2, Decimal("-1.50"), "-1.5", id="decimal.handling.mode string"),
        pytest.param("NUMBER", 2, Decimal("-1.50"), "/2o=", id="decimal.handling.mode precise"),
        pytest.param("NUMBER", 2, Decimal("-1.50"), -1.5, id="decimal.handling.mode double"),
        pytest.param("NUMBER", None, "12.345", {"scale": 3, "value": "MDk="}, id="variable scale"),
        pytest.param("NUMBER", 0, 1, True, id="boolean"),
        pytest.param("DATE", None, AT.replace(microsecond=0), 1772600767000, id="milliseconds"),
        pytest.param("TIMESTAMP(6)", None, AT, 1772600767891234, id="microseconds"),
        pytest.param("TIMESTAMP(6)", None, AT, 1772600767891234000, id="nanoseconds"),
        pytest.param("TIMESTAMP(6)", None, AT, 1772600767891, id="time.precision.mode connect"),
        pytest.param("TIMESTAMP(6)", None, AT, "2026-03-04T05:06:07.891234Z", id="isostring"),
        pytest.param("TIMESTAMP(9)", None, "2026-03-04 05:06:07.891234567", 1772600767891234567, id="nine digits"),
        pytest.param("TIMESTAMP(6) WITH TIME ZONE", None, "2026-03-04 05:06:07.891234000 +02:00", "2026-03-04T03:06:07.891234Z", id="zone"),
        pytest.param("INTERVAL YEAR(2) TO MONTH", None, "-1-02", "P-1Y-2M0DT0H0M0S", id="months as ISO"),
        pytest.param("INTERVAL YEAR(2) TO MONTH", None, "1-02", 36817200000000, id="months as micros"),
        pytest.param("INTERVAL DAY(2) TO SECOND(6)", None, "5 04:03:02.100000000", 446582100000, id="days as micros"),
        pytest.param("INTERVAL DAY(2) TO SECOND(6)", None, "5 04:03:02.100000000", "P0Y0M5DT4H3M2.1S", id="days as ISO"),
        pytest.param("RAW", None, b"\x0a\xff", "Cv8=", id="base64"),
        pytest.param("RAW", None, b"\x0a\xff", "0aff", id="hex"),
        pytest.param("CLOB", None, "long", "__debezium_unavailable_value", id="not carried"),
        pytest.param("VARCHAR2", None, None, None, id="null"),
    ],
)  # fmt: skip
def test_forms_of_one_value_are_the_same(
    kind: str, scale: int | None, ours: Any, theirs: Any
) -> None:
    assert is_same(column(kind, scale), ours, theirs)


@pytest.mark.parametrize(
    ("kind", "ours", "theirs"),
    [
        pytest.param("NUMBER", 7, 8, id="number"),
        pytest.param("NUMBER", 7, None, id="null there"),
        pytest.param("NUMBER", None, 0, id="null here"),
        pytest.param("VARCHAR2", "a", "A", id="text"),
        pytest.param("CHAR", "a ", "a", id="blanks"),
        pytest.param("DATE", AT, 1772600767892, id="time"),
        pytest.param("TIMESTAMP(6) WITH TIME ZONE", "2026-03-04 05:06:07.0 +02:00", "2026-03-04T05:06:07Z", id="zone"),
        pytest.param("INTERVAL YEAR(2) TO MONTH", "1-02", "P1Y3M", id="interval"),
        pytest.param("RAW", b"\x0a", "0b", id="bytes"),
    ],
)  # fmt: skip
def test_values_that_differ_are_seen(kind: str, ours: Any, theirs: Any) -> None:
    assert not is_same(column(kind, 0), ours, theirs)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        pytest.param("{", "not JSON", id="half a line"),
        pytest.param('{"op": "c", "source": {"schema": "A"}}', "which change", id="another database's"),
    ],
)  # fmt: skip
def test_what_is_no_event_is_refused(line: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as refused:
        list(read_events(["", line]))
    assert refused.value.facts["line"] == 2


def test_wrappings_are_taken_off_and_other_messages_passed_over() -> None:
    source = {"schema": "A", "table": "T", "txId": "0A00", "commit_scn": "5"}
    event = {"op": "d", "before": {"ID": 1}, "after": None, "source": source}
    lines = [
        json.dumps(one)
        for one in (
            None, event, {"payload": event}, {"key": 1, "value": event}, {"value": json.dumps(event)},
            {"ddl": "CREATE TABLE"}, {**event, "op": "r"}, {"status": "BEGIN"},
        )
    ]  # fmt: skip
    found = list(read_events(lines))
    assert [one.line for one in found] == [2, 3, 4, 5]
    assert len({replace(one, line=0).xid for one in found}) == 1
    assert found[0].xid == "0a00"


def debeziums(source: Source) -> list[dict[str, Any]]:
    """What Debezium would send of the table's changes, with decimal.handling.mode string."""
    config, store = source.pipeline.config, source.pipeline.store
    [logged] = logged_tables(config)
    origin = origin_of(store, config, "UTC")
    from deltalake import DeltaTable

    files = DeltaTable(logged.path).file_uris()
    names = [Path(one).name for one in files]
    return [
        envelope_json(one, logged.schema, origin)
        for one in events_of(logged, names)
        if one.op != "r"
    ]


def test_each_difference_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        running_oracle() as oracle,
        source_of(oracle, tmp_path, "T", lake={"path": str(tmp_path / "lake")}) as source,
    ):
        oracle.run(
            "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(9), P NUMBER(9,2))",
            "INSERT INTO T VALUES (1, 'old', 1.5)",
        )
        source.run()
        oracle.run("INSERT INTO T VALUES (2, 'a', 2.5)", "UPDATE T SET V = 'b' WHERE ID = 1")
        oracle.run("UPDATE T SET ID = 3 WHERE ID = 2", "UPDATE T SET V = 'c' WHERE ID = 1")
        oracle.run("DELETE FROM T WHERE ID = 3")
        source.windows()
        written(source, "T")
        events = debeziums(source)
        assert [one["op"] for one in events] == ["c", "u", "d", "c", "u", "d"]
        everything = compare_events(source.pipeline, map(json.dumps, events))
        assert (everything.equal, everything.differences) == (6, ())
        events[1]["after"]["V"], events[4]["before"]["P"] = "x", "9"
        foreign = {**events[0], "source": {**events[0]["source"], "table": "OTHER"}}
        made_up = {**events[0], "after": {**events[0]["after"], "ID": 77}}
        lines = list(map(json.dumps, [*events[:3], *events[4:], foreign, made_up]))
        found = compare_events(source.pipeline, lines)
        assert (found.equal, found.of_other_tables) == (3, 1)
        told = {(one.what, one.op, one.fields, one.line) for one in found.differences}
        assert told == {
            ("differs", "u", ("after.V",), 2),
            ("differs", "u", ("before.P",), 4),
            ("only here", "c", (), None),
            ("only there", "c", (), 7),
        }
        file = tmp_path / "events.json"
        file.write_text("\n".join(lines))
        monkeypatch.setattr(command, "opened", lambda *_, **__: source_opened(source))
        shown = CliRunner().invoke(_app(), [str(file)])
        assert shown.exit_code == 1
        assert "3 changes equal, 2 different, 1 only here, 1 only in Debezium" in shown.output
        assert f"{OWNER}.T u" in shown.output
        assert "after.V" in shown.output
        with pytest.raises(NotYetError, match="upper SCN"):
            compare_events(source.pipeline, lines, scn_high=10**12)
        with pytest.raises(ConfigError, match="nothing to compare"):
            compare_events(source.pipeline, [])


def _app() -> Any:
    import typer

    app = typer.Typer()
    app.command()(command.compare_events)
    return app


def source_opened(source: Source) -> Any:
    from contextlib import nullcontext

    return nullcontext(source.pipeline)

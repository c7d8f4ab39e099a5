"""Definitions that signals give, in Debezium's form: where Oracle does not show them any more, and never a stop of the run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cdc_core.errors import CdcError
from cdc_core.landing.layout import window_folder
from cdc_core.model.signals import Signal
from cdc_core.oracle.database import current_scn
from oracle_embedded.database import ADMIN
from oracle_embedded.faults import Fault, FaultEvent, FaultKind
from tests.oracle.embedded import OWNER, Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, source_of, table_id

ID = {"name": "ID", "jdbcType": 2, "typeName": "NUMBER", "typeExpression": "NUMBER", "length": 9, "scale": 0, "position": 1, "optional": False}  # fmt: skip

oracle = oracle_with(
    "CREATE TABLE ONE (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(20))",
    "CREATE TABLE TWO (ID NUMBER(9) PRIMARY KEY)",
)


def text_column(name: str, length: int, position: int) -> dict[str, Any]:
    return {
        "name": name, "jdbcType": 12, "typeName": "VARCHAR2", "typeExpression": "VARCHAR2", "charsetName": None, "length": length,
        "scale": None, "position": position, "optional": True, "autoIncremented": False, "generated": False,
    }  # fmt: skip


def definition(*columns: dict[str, Any], table: str = "ONE", key: tuple[str, ...] = ("ID",)) -> dict[str, Any]:  # fmt: skip
    """A signal's data as Debezium documents it."""
    return {
        "database": "FREEPDB1",
        "schema": OWNER,
        "changes": [
            {
                "type": "ALTER",
                "id": f'"FREEPDB1"."{OWNER}"."{table}"',
                "table": {
                    "defaultCharsetName": None,
                    "primaryKeyColumnNames": list(key),
                    "columns": list(columns),
                },
            }
        ],
    }


def send(source: Source, data: dict[str, Any], name: str = "s1") -> None:
    source.pipeline.add_signal(Signal(id=name, source="src", type="schema-changes", data=data))


def present(source: Source) -> int:
    with source.pipeline.database.session() as session:
        return int(current_scn(session))


def outcome(source: Source, name: str = "s1") -> tuple[str, str]:
    [found] = [one for one in source.pipeline.store.signals.find() if one.id == name]
    return found.state, found.reason or ""


def versions(source: Source, name: str = "ONE") -> list[tuple[str, str | None]]:
    """The longest V of each version, and what made it."""
    found = source.pipeline.store.schemas.versions(table_id(name))
    return [(str(one.schema.column("V").char_length), one.ddl) for one in found]


def conceal(oracle: Oracle) -> None:
    """From here on Oracle shows no dictionary but the present one, which another DDL made."""
    oracle.run("ALTER TABLE ONE ADD A NUMBER(5)", "INSERT INTO ONE VALUES (99, 'last', 9)")
    oracle.clock.ahead += 4 * 24 * 3600
    forget(oracle)


def forget(oracle: Oracle) -> None:
    oracle.server.faults.arm(Fault(FaultKind.ORA_ERROR, FaultEvent.EXECUTE, "AS OF SCN", times=0))


def test_a_definition_stands_in_for_one_that_oracle_shows_no_more(
    oracle: Oracle, tmp_path: Path
) -> None:
    """Without the signal the table stops (tests/steps/test_long_pause.py): two DDLs, and no dictionary as of the first."""
    with source_of(oracle, tmp_path, "ONE", "TWO") as source:
        source.begin()
        oracle.run("INSERT INTO ONE VALUES (1, 'first')", "INSERT INTO TWO VALUES (1)")
        oracle.run("ALTER TABLE ONE MODIFY V VARCHAR2(30) UNIQUE")
        between = present(source)
        oracle.run(f"INSERT INTO ONE VALUES (2, '{'x' * 30}')")
        oracle.run("ALTER TABLE ONE ADD A NUMBER(5)")
        oracle.run("INSERT INTO ONE VALUES (3, 'third', 3)")
        oracle.clock.ahead += 4 * 24 * 3600
        forget(oracle)
        send(source, definition(ID, text_column("V", 30, 2)) | {"scn": between})
        source.run()
        oracle.server.faults.disarm_all()
        assert source.status("ONE").state == "ready", source.status("ONE").reason
        assert outcome(source) == ("done", "")
        lengths = [length for length, _ in versions(source)]
        assert lengths == ["20", "30", "30"]
        assert "/* definition of signal s1 */" in (versions(source)[1][1] or "")
        source.check_current("ONE", "TWO")


def test_a_definition_is_of_the_last_ddl_before_its_scn(oracle: Oracle, tmp_path: Path) -> None:
    with source_of(oracle, tmp_path, "ONE") as source:
        source.begin()
        oracle.run(
            "ALTER TABLE ONE MODIFY V VARCHAR2(30) UNIQUE", "INSERT INTO ONE VALUES (1, 'first')"
        )
        oracle.run("ALTER TABLE ONE MODIFY V VARCHAR2(40)")
        oracle.clock.ahead += 4 * 24 * 3600
        forget(oracle)
        send(source, definition(ID, text_column("V", 40, 2)))
        source.run()
        oracle.server.faults.disarm_all()
        assert source.status("ONE").state == "failed"
        state, reason = outcome(source)
        assert (state, "its stream ended" in reason) == ("rejected", True), reason


def test_a_window_that_is_read_again_has_its_definition_again(
    oracle: Oracle, tmp_path: Path
) -> None:
    with source_of(oracle, tmp_path, "ONE") as source:
        source.begin()
        send(source, definition(ID, text_column("V", 40, 2)))
        source.pipeline.take_signals()
        oracle.run("INSERT INTO ONE VALUES (1, 'first')")
        oracle.run("ALTER SYSTEM SWITCH LOGFILE", user=ADMIN)
        conceal(oracle)
        source.capture()
        before = versions(source)
        assert [length for length, _ in before] == ["20", "40", "20"]
        ctx = source.pipeline
        for one in source.pipeline.records.windows(states=("captured",)):
            ctx.landing.remove(window_folder("src", one.window))
        list(source.pipeline.recapture())
        for window in source.pipeline.pending_windows():
            source.pipeline.capture_window(window)
        windows = [one.window for one in source.pipeline.records.windows(states=("captured",))]
        landed = [
            one for window in windows for one in ctx.window_manifest(window)[0].schema_changes
        ]
        assert [one.ddl for one in landed][:1] == ["definition of signal s1"]
        source.run()
        oracle.server.faults.disarm_all()
        assert versions(source) == before
        assert source.status("ONE").state == "ready", source.status("ONE").reason
        source.check_current("ONE")


def test_it_holds_from_the_signals_row_on_and_the_next_ddl_supersedes_it(
    oracle: Oracle, tmp_path: Path
) -> None:
    oracle.run("CREATE TABLE SIGNALS (ID VARCHAR2(42) PRIMARY KEY, TYPE VARCHAR2(32), DATA CLOB)")
    signals = {"table": f"{OWNER}.SIGNALS"}
    with source_of(oracle, tmp_path, "ONE", signals=signals) as source:
        source.run()
        oracle.run("INSERT INTO ONE VALUES (1, 'first')")
        data = json.dumps(definition(ID, text_column("V", 40, 2)))
        oracle.run(f"INSERT INTO SIGNALS VALUES ('s1', 'schema-changes', '{data}')")
        sent = present(source)
        oracle.run("INSERT INTO ONE VALUES (2, 'second')")
        conceal(oracle)
        source.run()
        oracle.server.faults.disarm_all()
        assert outcome(source) == ("done", "")
        first, given, last = source.pipeline.store.schemas.versions(table_id("ONE"))
        assert [one.schema.column("V").char_length for one in (first, given, last)] == [20, 40, 20]
        assert given.ddl == "definition of signal s1"
        assert first.schema.scn_from < given.schema.scn_from <= sent < last.schema.scn_from
        assert given.schema.stored == ("ID", "V")
        source.run()
        assert len(source.pipeline.store.signals.find()) == 1
        source.check_current("ONE")


def test_a_definition_that_is_read_late_does_not_supersede_a_newer_one(
    oracle: Oracle, tmp_path: Path
) -> None:
    """As where windows are captured between two looks at the signal table."""
    oracle.run("CREATE TABLE SIGNALS (ID VARCHAR2(42) PRIMARY KEY, TYPE VARCHAR2(32), DATA CLOB)")
    asked = {"signals": {"table": f"{OWNER}.SIGNALS"}}
    with source_of(oracle, tmp_path, "ONE", **asked) as source:
        source.run()
        data = json.dumps(definition(ID, text_column("V", 40, 2)))
        oracle.run(f"INSERT INTO SIGNALS VALUES ('s1', 'schema-changes', '{data}')")
        oracle.run("ALTER TABLE ONE MODIFY V VARCHAR2(60)")
        oracle.run(f"INSERT INTO ONE VALUES (1, '{'x' * 60}')")
        source.windows()
        oracle.run("INSERT INTO ONE VALUES (2, 'second')")
        conceal(oracle)
        source.run()
        oracle.server.faults.disarm_all()
        state, reason = outcome(source)
        assert (state, "which is newer" in reason) == ("rejected", True), reason
        assert [length for length, _ in versions(source)] == ["20", "60", "60"]
        source.check_current("ONE")


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "unknown-table": (definition(ID, table="NOWHERE"), "not captured"),
    "unknown-type": (
        definition(ID, {**text_column("V", 30, 2), "typeName": "MOOD"}),
        "not captured",
    ),
    "two-types": (
        definition(ID, {**text_column("V", 30, 2), "typeName": 'DATE, "X" DATE'}),
        "type is not read",
    ),
    "does-not-fit-the-lake": (
        definition(ID, {"name": "V", "typeName": "DATE", "position": 2}),
        "columns changed their type: V",
    ),
    "key-missing": (definition(text_column("V", 30, 2)), "lacks columns of its own key"),
    "known-key-missing": (definition(text_column("V", 30, 2), key=()), "lacks columns of the key"),
    "other-key": (definition(ID, text_column("V", 20, 2), key=("V",)), "the key changed"),
    "column-without-a-value": (
        definition(
            ID,
            text_column("V", 20, 2),
            text_column("W", 20, 3) | {"defaultValueExpression": "USER"},
        ),
        "not a literal",
    ),
    "oracle-says-otherwise": (
        definition(ID, text_column("V", 40, 2)),
        "Oracle shows another definition",
    ),
    "too-late": (definition(ID, text_column("V", 20, 2)) | {"scn": 1}, "captured before"),
    "dropped": (
        {"changes": [{"type": "DROP", "id": f"{OWNER}.ONE"}]},
        "changes.0.type",
    ),
}


def test_a_definition_that_cannot_be_is_rejected_and_stops_nothing(
    oracle: Oracle, tmp_path: Path
) -> None:
    with source_of(oracle, tmp_path, "ONE") as source:
        source.begin()
        oracle.run("INSERT INTO ONE VALUES (1, 'first')")
        source.run()
        for name, (data, _) in REFUSED.items():
            # As a row of Oracle's signal table comes: `redolake signal` refuses some at once.
            wrong = Signal(id=name, source="src", type="schema-changes", data=data)
            source.pipeline.store.signals.add(wrong)
        oracle.run("INSERT INTO ONE VALUES (2, 'second')")
        source.run()
        for name, (_, reason) in REFUSED.items():
            state, said = outcome(source, name)
            assert (state, reason in said) == ("rejected", True), (name, said)
        assert len(versions(source)) == 1
        source.check_current("ONE")


@pytest.mark.parametrize("where", ["take", "record_captured"])
def test_a_definition_is_taken_once_whatever_dies(
    oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """Between the signal's being taken and its window, and between the window's manifest and the store."""
    with source_of(oracle, tmp_path, "ONE") as source:
        source.begin()
        send(source, definition(ID, text_column("V", 40, 2)))
        oracle.run("INSERT INTO ONE VALUES (1, 'first')")
        if where == "record_captured":
            source.pipeline.take_signals()
            conceal(oracle)
        with monkeypatch.context() as patched:
            store = source.pipeline.store
            part = type(store.signals if where == "take" else store.windows)
            original = getattr(part, where)

            def dies(*given: Any, **named: Any) -> None:
                if where == "take":
                    original(*given, **named)
                raise KeyboardInterrupt

            patched.setattr(part, where, dies)
            with pytest.raises(KeyboardInterrupt):
                source.run()
        source.close()
        if where == "take":
            conceal(oracle)
        source.run()
        oracle.server.faults.disarm_all()
        assert outcome(source) == ("done", "")
        source.run()
        assert [length for length, _ in versions(source)] == ["20", "40", "20"]
        source.check_current("ONE")


def test_a_command_refuses_at_once_what_it_can_judge(oracle: Oracle, tmp_path: Path) -> None:
    with source_of(oracle, tmp_path, "ONE") as source:
        with pytest.raises(CdcError, match="not captured"):
            send(source, definition(ID, table="NOWHERE"))
        with pytest.raises(CdcError, match="without a length"):
            send(source, definition(ID, {"name": "V", "typeName": "VARCHAR2"}))
        twice = definition(ID) | {"changes": definition(ID)["changes"] * 2}
        with pytest.raises(CdcError, match="defines a table twice"):
            send(source, twice)

"""Changes that are no events are marked: mirrors take them, the tables beside do not count them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from cdc_core.config import EventsConfig
from cdc_core.steps.source_checks import oracle_findings
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import Source, source_of, table_id

TABLE = "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, V VARCHAR2(9))"

oracle = oracle_with()


def run_as(oracle: Oracle, client: str, *statements: str) -> None:
    with oracle.owner() as connection, connection.cursor() as cursor:
        connection.client_identifier = client
        for statement in statements:
            cursor.execute(statement)
        connection.commit()


def told(source: Source) -> list[tuple[str, str | None]]:
    """Operation and mark of each change, in order."""
    changes = source.lake.tables[table_id("T")].changes
    return [(one["_cdc_op"], one["_cdc_skipped"]) for one in changes]


def test_mirrors_take_what_is_skipped(oracle: Oracle, tmp_path: Path) -> None:
    """A transaction over two windows is skipped whole; what is configured later holds from the next window on."""
    oracle.run(TABLE, "INSERT INTO T VALUES (1, 'a')")
    events = {"clients_exclude": ["batch"], "skip_unchanged": True}
    lake = {"path": "unused", "transactions": True}
    with source_of(oracle, tmp_path, "T", events=events, lake=lake) as source:
        source.run()
        with oracle.owner() as connection, connection.cursor() as cursor:
            connection.client_identifier = "batch"
            cursor.execute("INSERT INTO T VALUES (2, 'b')")
            run_as(oracle, "till", "UPDATE T SET V = 'a' WHERE ID = 1", "INSERT INTO T VALUES (3, 'c')")  # fmt: skip
            source.windows()
            cursor.execute("UPDATE T SET ID = 20 WHERE ID = 2")
            connection.commit()
        source.windows()
        assert told(source) == [
            ("u", "unchanged"), ("c", None), ("c", "client"), ("u", "client"),
        ]  # fmt: skip
        [counted] = source.lake.side_tables["transactions"].rows
        assert (counted["client_id"], counted["event_count"]) == ("till", 1)
        source.check_exact("T")

        source.more = {**source.more, "events": {"skipped_operations": ["c"]}}
        source.configure({"name": "T", "skipped_operations": ["d"]})
        run_as(oracle, "batch", "INSERT INTO T VALUES (4, 'd')", "DELETE FROM T WHERE ID = 3")
        source.windows()
        assert told(source)[4:] == [("c", None), ("d", "operation")]
        source.check_exact("T")


def test_users_are_skipped_by_name(oracle: Oracle, tmp_path: Path) -> None:
    oracle.run(TABLE)
    with source_of(oracle, tmp_path, "T", events={"users_include": ["SOMEBODY"]}) as source:
        source.run()
        run_as(oracle, "till", "INSERT INTO T VALUES (1, 'a')")
        source.windows()
        assert told(source) == [("c", "user")]
        source.check_exact("T")
        findings, _ = oracle_findings(source.written())
        [one] = [one for one in findings if "_cdc_skipped" in one.remedy]
        assert (one.table, one.is_problem) == (table_id("T"), False)


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"users_include": ["A"], "users_exclude": ["B"]}, id="users-both-ways"),
        pytest.param({"clients_include": ["A"], "clients_exclude": ["B"]}, id="clients-both-ways"),
        pytest.param({"skipped_operations": ["t"]}, id="truncate-has-a-policy"),
    ],
)
def test_what_makes_no_sense_is_refused(given: dict[str, list[str]]) -> None:
    with pytest.raises(ValidationError):
        EventsConfig.model_validate(given)

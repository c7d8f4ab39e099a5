"""How much of an updated row each kind of supplemental logging shows."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from oracle_embedded.api import OracleError, RowOp, TableVersion, Value
from tests.oracle_embedded.redo.conftest import World, num

OLD: dict[str, Value] = {"ID": num(1), "NAME": b"a", "AGE": None}
SET = 'update "APP"."T" set "NAME" = \'b\''


@pytest.mark.parametrize(
    ("database", "own", "where"),
    [
        pytest.param([""], {}, "\"NAME\" = 'a'", id="minimal"),
        pytest.param(
            ["", " (PRIMARY KEY) COLUMNS"], {}, "\"ID\" = '1' and \"NAME\" = 'a'", id="key"
        ),
        pytest.param([" (UNIQUE, FOREIGN KEY) COLUMNS"], {}, "\"NAME\" = 'a'", id="unique"),
        pytest.param(
            ["", " (ALL) COLUMNS"],
            {},
            '"ID" = \'1\' and "NAME" = \'a\' and "AGE" IS NULL',
            id="all",
        ),
        pytest.param(
            [""],
            {"supplemental_primary_key": True},
            "\"ID\" = '1' and \"NAME\" = 'a'",
            id="table-key",
        ),
        pytest.param(
            [""],
            {"supplemental_all": True},
            '"ID" = \'1\' and "NAME" = \'a\' and "AGE" IS NULL',
            id="table-all",
        ),
        pytest.param(
            ["", " (PRIMARY KEY) COLUMNS"],
            {"key_columns": ()},
            '"ID" = \'1\' and "NAME" = \'a\' and "AGE" IS NULL',
            id="no-key-logs-all",
        ),
    ],
)
def test_an_updates_where_shows_what_was_logged(
    world: World, people: TableVersion, database: list[str], own: dict[str, Any], where: str
) -> None:
    world.supplemental(*database)
    made = dataclasses.replace(people, **own)
    world.change(world.begin(), made, RowOp.UPDATE, OLD, {"NAME": b"b"})
    rows = world.mine("NO_ROWID_IN_STMT")
    (row,) = (row for row in rows if row["OPERATION"] == "UPDATE")
    assert row["SQL_REDO"] == f"{SET} where {where};"
    assert (row["STATUS"], row["INFO"]) == (0, None)


def test_without_any_supplemental_logging_rows_are_not_guaranteed(
    world: World, people: TableVersion
) -> None:
    world.change(world.begin(), people, RowOp.UPDATE, OLD, {"NAME": b"b"})
    (row,) = (row for row in world.mine() if row["OPERATION"] == "UPDATE")
    assert (row["STATUS"], row["INFO"]) == (3, "no supplemental log data found")


def test_logging_applies_from_the_moment_it_is_switched_on(
    world: World, people: TableVersion
) -> None:
    world.supplemental("")
    tx = world.begin()
    world.change(tx, people, RowOp.UPDATE, OLD, {"NAME": b"b"})
    world.supplemental(" (ALL) COLUMNS")
    world.change(tx, people, RowOp.UPDATE, OLD, {"NAME": b"b"})
    world.db.database["DROP SUPPLEMENTAL LOG DATA (ALL) COLUMNS"](world.session)
    world.change(tx, people, RowOp.UPDATE, OLD, {"NAME": b"b"})
    full = f'{SET} where "ID" = \'1\' and "NAME" = \'a\' and "AGE" IS NULL;'
    changed = f"{SET} where \"NAME\" = 'a';"
    assert world.redo_texts() == [changed, full, changed]


def test_v_database_shows_the_kinds(world: World) -> None:
    def shown() -> list[str]:
        (row,) = world.view("V$DATABASE")
        return [row[f"SUPPLEMENTAL_LOG_DATA_{kind}"] for kind in ("MIN", "PK", "UI", "FK", "ALL")]

    assert shown() == ["NO"] * 5
    world.supplemental(" (ALL) COLUMNS")
    assert shown() == ["IMPLICIT", "NO", "NO", "NO", "YES"]
    world.supplemental("", " (PRIMARY KEY, UNIQUE) COLUMNS")
    assert shown() == ["YES", "YES", "YES", "NO", "YES"]


def test_minimal_logging_cannot_be_dropped_below_others(world: World) -> None:
    world.supplemental("", " (ALL) COLUMNS")
    with pytest.raises(OracleError, match="ORA-32589"):
        world.db.database["DROP SUPPLEMENTAL LOG DATA"](world.session)
    world.db.database["DROP SUPPLEMENTAL LOG DATA (ALL) COLUMNS"](world.session)
    world.db.database["DROP SUPPLEMENTAL LOG DATA"](world.session)
    assert world.view("V$DATABASE")[0]["SUPPLEMENTAL_LOG_DATA_MIN"] == "NO"

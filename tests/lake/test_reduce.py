"""The short reduction is the long one where it may be used."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from cdc_core.config import LakeConfig
from cdc_core.lake.reduce import last_change_sql, reduced_sql, shared_keys_sql
from cdc_core.lake.spark import start_session
from cdc_core.lake.tables import change_ddl
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn
from cdc_core.schema.table import Column, TableSchema

pytestmark = pytest.mark.spark

SCHEMA = TableSchema(
    TableId("SHOP", "T"),
    Scn(1),
    (
        Column("ID", "NUMBER", 22, 0, 9, 0, nullable=False),
        Column("NAME", "VARCHAR2", 9, 9, None, None, nullable=True),
    ),
    ("ID",),
)


def changes(seed: int) -> list[dict[str, Any]]:
    """Legal changes of a few keys: many in one transaction, deletes with re-inserts, no key moved."""
    rng = random.Random(seed)
    rows: dict[int, tuple[str, str]] = {}
    found = []
    ordinal = 0
    for scn in range(1, 16):
        for _ in range(rng.randint(1, 8)):
            ordinal += 1
            key = rng.randrange(5)
            old = rows.get(key)
            op = "c" if old is None else rng.choice("ud")
            rid = f"R{ordinal}" if old is None else old[1]
            name = None if op == "d" else f"n{ordinal}"
            found.append(
                {
                    "_cdc_op": op,
                    "_cdc_commit_scn": scn,
                    "_cdc_ordinal": ordinal,
                    "_cdc_xid": f"x{scn}",
                    "_cdc_row_id": rid,
                    "_cdc_absent": [],
                    "before": None if old is None else {"ID": key, "NAME": old[0]},
                    "after": None if op == "d" else {"ID": key, "NAME": name},
                }
            )
            if name is None:
                del rows[key]
            else:
                rows[key] = (name, rid)
    gone = {"ID": 9, "NAME": "gone"}
    for op, before, after in (("c", None, gone), ("d", gone, None)):
        ordinal += 1
        found.append(
            {
                "_cdc_op": op,
                "_cdc_commit_scn": 16,
                "_cdc_ordinal": ordinal,
                "_cdc_xid": "x16",
                "_cdc_row_id": "R9",
                "_cdc_absent": [],
                "before": before,
                "after": after,
            }
        )
    return found


def _key(change: dict[str, Any]) -> int:
    key: int = (change["after"] or change["before"])["ID"]
    return key


def _change(op: str, ordinal: int, rid: str, name: str) -> dict[str, Any]:
    image = {"ID": 1, "NAME": name}
    return {
        "_cdc_op": op,
        "_cdc_commit_scn": 20,
        "_cdc_ordinal": ordinal,
        "_cdc_xid": "x20",
        "_cdc_row_id": rid,
        "_cdc_absent": [],
        "before": image if op == "d" else None,
        "after": None if op == "d" else image,
    }


@pytest.mark.parametrize(
    ("given", "shared"),
    [
        pytest.param(
            [{**change, "_cdc_row_id": f"R{_key(change)}"} for change in changes(1)],
            False,
            id="each-key-one-row",
        ),
        pytest.param(
            [_change("c", 1, "R2", "new"), _change("d", 2, "R1", "old")],
            True,
            id="the-new-row-before-the-old-one-goes",
        ),
        pytest.param(
            [_change("d", 1, "R1", "old"), _change("c", 2, "R2", "new")],
            True,
            id="the-old-row-goes-first",
        ),
        pytest.param(
            [_change("c", 1, "R1", "new"), _change("d", 2, "R1", "new")], False, id="one-row"
        ),
    ],
)
def test_a_key_with_two_rows_in_one_transaction_is_noticed(
    spark_process: None, tmp_path: Path, given: list[dict[str, Any]], shared: bool
) -> None:
    session = _given(tmp_path, given)
    assert session.sql(shared_keys_sql("given", SCHEMA)).isEmpty() is not shared


@pytest.mark.parametrize("seed", range(3))
def test_the_last_change_of_a_key_is_what_the_whole_reduction_gives(
    spark_process: None, tmp_path: Path, seed: int
) -> None:
    session = _given(tmp_path, changes(seed))
    found = []
    for sql in (
        reduced_sql("given", SCHEMA, absent=(), defaults={}),
        last_change_sql("given", SCHEMA),
    ):
        names = "ID, NAME, _cdc_kind, _cdc_commit_scn, _cdc_ordinal"
        found.append(sorted(map(str, session.sql(f"SELECT {names} FROM ({sql})").collect())))
    # A key that came and went in one transaction may be named as deleted: the mirror does not have it anyway.
    long, short = (set(rows) for rows in found)
    assert long <= short
    assert all("ID=9" in row and "'del'" in row for row in short - long)


def _given(tmp_path: Path, given: list[dict[str, Any]]) -> Any:
    """A session with the changes as the view ``given``."""
    session = start_session(LakeConfig(path=str(tmp_path), driver_memory="1g"))
    rows = session.createDataFrame([], change_ddl(SCHEMA))
    values = [tuple(row.get(field.name) for field in rows.schema.fields) for row in given]
    session.createDataFrame(values, rows.schema).createOrReplaceTempView("given")
    return session

"""The prover's own comparison sees what it is there for; nothing of the pipeline is involved."""

from __future__ import annotations

import ast
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import oracledb
import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

from tests.invariants.changelog import Stream, Walk, check_table, complete, present_names
from tests.invariants.compare import Verdict, compare, typed_value, version_at
from tests.invariants.load import Committed
from tests.invariants.shapes import PARTS
from tests.invariants.wild import TPCC, inconsistencies
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with

BIG = Decimal("12345678901234567890123456789012345678")
SCHEMA = pa.schema(
    [
        pa.field("ID", pa.int64()),
        pa.field("BIG", pa.decimal128(38, 0)),
        pa.field("ANY", pa.string()),
        pa.field("D", pa.float64()),
        pa.field("NAME", pa.string()),
        pa.field("R", pa.binary()),
    ]
)
ROWS: list[dict[str, Any]] = [
    {"ID": 1, "BIG": BIG, "ANY": "1E+40", "D": 0.1, "NAME": "it's", "R": b"\x00\xff"},
    {"ID": 2, "BIG": BIG.copy_negate(), "ANY": "-0.5", "D": 0.0, "NAME": None, "R": None},
    {"ID": 3, "BIG": None, "ANY": None, "D": None, "NAME": "ü🔥", "R": b"x"},
]

oracle = oracle_with(
    'CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, BIG NUMBER(38), "ANY" NUMBER, D BINARY_DOUBLE,'
    " NAME VARCHAR2(30), R RAW(9))",
    f"INSERT INTO T VALUES (1, {BIG}, 1E40, TO_BINARY_DOUBLE('0.1'), 'it''s', HEXTORAW('00FF'))",
    f"INSERT INTO T VALUES (2, -{BIG}, -.5, TO_BINARY_DOUBLE('0'), NULL, NULL)",
    "INSERT INTO T VALUES (3, NULL, NULL, NULL, 'ü🔥', HEXTORAW('78'))",
    scope="module",
)


PIPELINE = ("cdc_core", "diagnosis", "assets", "pipelines")


def test_the_judge_shares_no_code_with_the_pipeline() -> None:
    """Neither the judge's modules nor what they import from the tests import the pipeline."""
    seen: set[str] = set()
    todo = [f"tests.invariants.{name}" for name in ("compare", "changelog", "wild")]
    while todo:
        name = todo.pop()
        if name in seen or name.partition(".")[0] != "tests":
            continue
        seen.add(name)
        path = Path(__file__).parents[2] / (name.replace(".", "/") + ".py")
        imported = {
            one
            for node in ast.walk(ast.parse(path.read_text()))
            for one in (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
        }
        assert not [one for one in imported if one.partition(".")[0] in PIPELINE], name
        todo += imported


Judge = Callable[[list[dict[str, Any]]], Verdict]


@pytest.fixture
def judge(oracle: Oracle, tmp_path: Path) -> Iterator[Judge]:
    """Write a mirror with these rows and hold it against Oracle."""
    with oracle.owner() as connection:

        def judged(rows: list[dict[str, Any]]) -> Verdict:
            scn = current(oracle)
            write(tmp_path / "mirror", rows, scn)
            return compare(connection, "T", ("ID",), tmp_path / "mirror", scn)

        yield judged


def current(oracle: Oracle) -> int:
    with oracledb.connect(
        user="C##REDOLAKE", password="capture", dsn=oracle.server.dsn
    ) as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT CURRENT_SCN FROM V$DATABASE")
        [(scn,)] = cursor.fetchall()
        return int(scn)


def write(path: Path, rows: list[dict[str, Any]], scn: int | None) -> None:
    said = None if scn is None else {"userMetadata": json.dumps({"scn_high": scn})}
    write_deltalake(
        str(path),
        pa.Table.from_pylist(rows, SCHEMA),
        mode="append",
        commit_properties=CommitProperties(custom_metadata=said),
    )


def test_a_true_mirror_is_equal(judge: Judge) -> None:
    assert judge(ROWS) == Verdict(3, 3, 0, 0, 0, 0)


@pytest.mark.parametrize(
    ("damage", "verdict"),
    [
        pytest.param(lambda r: [*r, r[0]], Verdict(3, 4, 0, 1, 0, 1), id="a-doubled-row"),
        pytest.param(lambda r: r * 2, Verdict(3, 6, 0, 3, 0, 3), id="every-row-doubled"),
        pytest.param(lambda r: r[:2], Verdict(3, 2, 0, 0, 1, 0), id="a-lost-row"),
        pytest.param(
            lambda r: [{**r[0], "BIG": Decimal(int(BIG) + 1)}, *r[1:]],
            Verdict(3, 3, 0, 0, 1, 1),
            id="another-38th-digit",
        ),
        pytest.param(
            lambda r: [r[0], {**r[1], "NAME": ""}, r[2]],
            Verdict(3, 3, 0, 0, 1, 1),
            id="empty-text-for-null",
        ),
        pytest.param(
            lambda r: [{**r[0], "ID": 4}, *r[1:]], Verdict(3, 3, 0, 0, 1, 1), id="another-key"
        ),
    ],
)
def test_damage_is_seen(
    judge: Judge, damage: Callable[[list[dict[str, Any]]], Any], verdict: Verdict
) -> None:
    found = judge(damage(ROWS))
    assert found == verdict
    assert not found.is_equal


def test_a_foreign_commit_belongs_to_the_version_that_readers_get(tmp_path: Path) -> None:
    write(tmp_path / "t", ROWS, 100)
    write(tmp_path / "t", ROWS, None)
    assert version_at(tmp_path / "t", 100) == 1
    write(tmp_path / "t", ROWS, 200)
    assert version_at(tmp_path / "t", 150) == 1
    assert DeltaTable(str(tmp_path / "t")).version() == version_at(tmp_path / "t", 200) == 2


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        pytest.param("1.50", "1.5", True, id="trailing-zero"),
        pytest.param("1E+40", "1" + "0" * 40, True, id="exponent"),
        pytest.param("0", "-0.00", True, id="zero"),
        pytest.param(str(BIG), str(int(BIG) + 1), False, id="38th-digit"),
        pytest.param("0.1", "0.10000000000000000000000000000000000001", False, id="fraction"),
    ],
)
def test_numbers_are_compared_digit_by_digit(one: str, other: str, same: bool) -> None:
    assert (typed_value(one, "number") == typed_value(other, "number")) is same


RECORD = [
    Committed(10, 12, Counter({("EVENTS", "c"): 5})),
    Committed(20, 22, Counter({("EVENTS", "c"): 2, ("EVENTS", "d"): 1})),
    Committed(30, 32, Counter({("EVENTS", "u"): 1})),
]
CHANGES = [(21, "c"), (21, "c"), (21, "d"), (31, "u")]


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        pytest.param(CHANGES, 0, id="exactly-what-was-committed"),
        pytest.param(CHANGES[1:], 1, id="one-too-few"),
        pytest.param([*CHANGES, (21, "d")], 1, id="one-too-many"),
        pytest.param([*CHANGES, (31, "u")], 1, id="an-update-twice"),
        pytest.param([*CHANGES, (11, "c")], 1, id="one-from-before-the-snapshot"),
        pytest.param([*CHANGES, (25, "u")], 1, id="nobody-committed-it"),
        pytest.param(CHANGES[:3], 1, id="a-transaction-is-missing"),
    ],
)
def test_the_change_log_is_held_against_the_loads_record(
    changes: list[tuple[int, str]], wrong: int
) -> None:
    rows = [{"_cdc_commit_scn": scn, "_cdc_op": op} for scn, op in changes]
    assert len(complete("EVENTS", rows, RECORD, [Stream(15)], 40)) == wrong


def test_a_commit_beside_the_snapshot_is_there_whole_or_not_at_all() -> None:
    rows = [{"_cdc_commit_scn": scn, "_cdc_op": op} for scn, op in CHANGES]
    assert complete("EVENTS", rows, RECORD, [Stream(21)], 40) == []
    assert complete("EVENTS", rows[3:], RECORD, [Stream(21)], 40) == []
    assert len(complete("EVENTS", rows[1:], RECORD, [Stream(21)], 40)) == 1
    short = [replace(RECORD[1], before=14), *RECORD[2:]]
    assert complete("EVENTS", rows, short, [Stream(15)], 40) == []


def test_a_table_that_left_has_nothing_of_the_time_between() -> None:
    rows = [{"_cdc_commit_scn": scn, "_cdc_op": op} for scn, op in CHANGES]
    streams = [Stream(5, 15), Stream(25)]
    assert len(complete("EVENTS", rows, RECORD, streams, 40)) == 3
    there = [{"_cdc_commit_scn": 11, "_cdc_op": "c"}] * 5 + rows[3:]
    assert complete("EVENTS", there, RECORD, streams, 40) == []


def log_of(*steps: str) -> list[dict[str, Any]]:
    """A log of SHIFTED: ``+3`` inserts a key, ``-3`` deletes it, ``3>4`` moves it, ``r3`` reads it, ``|`` ends the transaction."""
    rows, scn = [], 1
    for at, step in enumerate(steps):
        if step == "|":
            scn += 1
            continue
        old, _, new = step.partition(">")
        before = {"ID": int(old.lstrip("+-r"))} if step[0] not in "+r" else None
        after = {"ID": int((new or old).lstrip("+-r"))} if step[0] != "-" else None
        op = {"+": "c", "-": "d", "r": "r"}.get(step[0], "u")
        rows.append(
            {"_cdc_commit_scn": scn, "_cdc_ordinal": at, "_cdc_op": op, "_cdc_absent": [], "before": before, "after": after,
             "_cdc_snapshot": "chunk" if op == "r" else None}
        )  # fmt: skip
    return rows


@pytest.mark.parametrize(
    ("steps", "wrong", "left"),
    [
        pytest.param(["r1", "r2", "|", "1>2", "2>3"], 0, {2, 3}, id="keys-that-shift"),
        pytest.param(["r1", "r2", "|", "1>2", "|", "+9"], 1, {2, 9}, id="two-rows-with-one-key"),
        pytest.param(["r1", "|", "-1", "|", "-1"], 1, set(), id="deleted-twice"),
        pytest.param(["r1", "|", "+1"], 1, {1}, id="inserted-twice"),
        pytest.param(["r1", "|", "-1", "+1"], 0, {1}, id="deleted-and-inserted-again"),
    ],
)
def test_a_change_log_walks_a_legal_path(steps: list[str], wrong: int, left: set[int]) -> None:
    walk = Walk("SHIFTED", [Stream(0)])
    for row in log_of(*steps):
        walk.step(row)
    walk.end_transaction()
    assert len(walk.found) == wrong, walk.found
    assert {key for (key,) in walk.image()} == left


@pytest.mark.parametrize(("found", "wrong"), [("kept", 0), ("other", 1)])
def test_a_renamed_column_keeps_its_values_on_the_walk(found: str, wrong: int) -> None:
    """All rows have its first name."""
    common: dict[str, Any] = {"_cdc_absent": [], "_cdc_snapshot": None}
    rows = [
        {"_cdc_commit_scn": 1, "_cdc_ordinal": 0, "_cdc_op": "c", "before": None, "after": {"ID": 1, "C1": "kept"}},
        {"_cdc_commit_scn": 2, "_cdc_ordinal": 1, "_cdc_op": "u", "before": {"ID": 1, "C1": found}, "after": {"ID": 1, "C1": "new"}},
    ]  # fmt: skip
    record = [Committed(0, 1, Counter({("GROWING", "c"): 1})), Committed(1, 2, Counter({("GROWING", "u"): 1}))]  # fmt: skip
    faults = check_table(
        "GROWING", [row | common for row in rows], [{"ID": 1, "R1": "new"}], record, [Stream(0)], 2, renamed=[("C1", "R1")]
    )  # fmt: skip
    assert len(faults) == wrong, faults


def test_fields_are_told_apart_whose_names_others_got() -> None:
    """C1 and C2 swap their names through R3, then what is C1 now goes, N4 is called so, goes, and
    another C1 comes."""
    events = [("C1", "R3"), ("C2", "C1"), ("R3", "C2"), ("N4", "C1"), (None, "C1")]
    assert present_names({"C1", "C2", "N4", "C1__2"}, events) == {
        "C1": "C2", "C2": "C2__dropped", "N4": "N4__dropped", "C1__2": "C1"
    }  # fmt: skip


@pytest.mark.parametrize(("dropped_at", "wrong"), [(1, 0), (2, 1)])
def test_a_column_whose_name_was_taken_says_nothing_from_its_end_on(
    dropped_at: int, wrong: int
) -> None:
    before, after = {"ID": 1, "C1__dropped": "kept"}, {"ID": 1, "C1__dropped": None}
    common: dict[str, Any] = {"_cdc_absent": [], "_cdc_snapshot": None}
    walk = Walk("GROWING", [Stream(0)], [(dropped_at, "C1")])
    walk.step(common | {"_cdc_commit_scn": 1, "_cdc_ordinal": 0, "_cdc_op": "c", "before": None, "after": before})  # fmt: skip
    walk.step(common | {"_cdc_commit_scn": 2, "_cdc_ordinal": 1, "_cdc_op": "u", "before": after, "after": after})  # fmt: skip
    assert len(walk.found) == wrong, walk.found


def test_ddl_that_takes_rows_is_one_row_of_the_redo() -> None:
    """Any other row of the redo is in the change log once."""
    gone = Committed(1, 3, Counter({(PARTS, "d"): 2}))
    common: dict[str, Any] = {"_cdc_op": "d", "_cdc_snapshot": None, "_cdc_absent": ["K"], "_cdc_before_absent": ["K"], "after": None}  # fmt: skip
    rows = [
        common | {"_cdc_commit_scn": 2, "_cdc_ordinal": 7, "before": {"ID": number, "K": None}}
        for number in (1, 2)
    ]
    assert check_table(PARTS, rows, [], [gone], [Stream(0)], 4, emptied=[gone]) == []
    assert len(check_table(PARTS, rows, [], [gone], [Stream(0)], 4)) == 1
    [short] = check_table(PARTS, rows[:1], [], [gone], [Stream(0)], 4, emptied=[gone])
    assert short.endswith("the load committed 2")


def tpcc_images(**changes: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    place = {"W_ID": 1, "D_ID": 1}
    images: dict[str, list[dict[str, Any]]] = {
        "WAREHOUSE": [{"W_ID": 1, "W_YTD": 7}],
        "DISTRICT": [{"D_W_ID": 1, "D_ID": 1, "D_YTD": 7, "D_NEXT_O_ID": 3}],
        "ORDERS": [_placed("O", place, O_ID=number, O_OL_CNT=1) for number in (1, 2)],
        "NEW_ORDER": [_placed("NO", place, NO_O_ID=number) for number in (1, 2)],
        "ORDER_LINE": [_placed("OL", place, OL_O_ID=number) for number in (1, 2)],
    }
    return images | changes


def _placed(prefix: str, place: dict[str, int], **more: int) -> dict[str, Any]:
    return {f"{prefix}_{name}": value for name, value in place.items()} | more


@pytest.mark.parametrize("table", TPCC[1:])
def test_tpccs_conditions_see_a_row_that_is_lost(table: str) -> None:
    images = tpcc_images()
    assert inconsistencies(images) == []
    lost = images[table][:-1] if table != "DISTRICT" else [{**images[table][0], "D_YTD": 6}]
    assert inconsistencies(images | {table: lost})

"""The states of rows, held against a walk in plain Python that keeps the whole table as of each commit."""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from cdc_core.schema.types import arrow_schema
from cdc_core.stage.changes import NONE_ADDED, HeldChanges, Rows
from cdc_core.stage.layout import CHUNK_ORDINAL, COMMIT_SCN, ORDINAL
from cdc_core.stage.states import ANY_CHANGE, StateRule, Truncated, states_behind, states_of
from tests.stage.landed import orders_schema

SCHEMA = orders_schema()
COLUMNS = arrow_schema(SCHEMA)
KEYS = pa.schema([COLUMNS.field(name) for name in SCHEMA.key])
LOB = next(one.name for one in SCHEMA.columns if one.is_lob)
Row = dict[str, Any]


def time_of(scn: int) -> datetime:
    return datetime(2026, 1, 1) + timedelta(seconds=scn)


class Dated(HeldChanges):
    """Changes in hand, which committed when their SCN says."""

    def __init__(self, rows: pa.Table) -> None:
        super().__init__(rows, SCHEMA, NONE_ADDED)
        self.scn = rows[COMMIT_SCN].to_numpy()

    def commit_times(self, rows: Rows) -> pa.Array:
        times = [None if at < 0 else time_of(int(self.scn[at])) for at in rows]
        return pa.array(times, pa.timestamp("us"))


class Walk:
    """A table that changes: what the change log has of it, and the table as of each commit."""

    def __init__(self, rng: Random) -> None:
        self.rng, self.scn, self.ordinal = rng, 10, 0
        self.rows: dict[int, tuple[str, Row]] = {}
        self.changes: list[Row] = []
        self.as_of: list[tuple[int, str, dict[int, Row]]] = []
        self.addresses = 0

    def log(self, op: str, before: Row | None, after: Row | None, address: str | None, absent: tuple[str, ...] = (), ordinal: int | None = None) -> None:  # fmt: skip
        self.ordinal += 1
        key = None if before is None else {name: before[name] for name in SCHEMA.key}
        self.changes.append(
            {
                "_cdc_op": op,
                COMMIT_SCN: self.scn,
                ORDINAL: self.ordinal if ordinal is None else ordinal,
                "_cdc_xid": None if op == "r" else f"{self.scn:x}",
                "_cdc_row_id": address,
                "_cdc_absent": list(absent),
                "_cdc_columns": len(COLUMNS),
                "is_old": before is not None,
                "is_new": after is not None,
                "before": key,
                "after": after and {n: None if n in absent else after[n] for n in COLUMNS.names},
            }
        )

    def value(self, key: int) -> Row:
        row: Row = dict.fromkeys(COLUMNS.names)
        row.update({"ID": key, "NAME": self.rng.choice(["a", "b", None])})
        return {**row, LOB: self.rng.choice(["long", "longer", None])}

    def transaction(self) -> None:
        """One to four changes of one or several rows."""
        self.scn += self.rng.randint(1, 3)
        for _ in range(self.rng.randint(1, 4)):
            key = self.rng.randint(1, 6)
            if key not in self.rows:
                self.addresses += 1
                address = f"AAA{self.addresses:015d}"
                self.rows[key] = (address, self.value(key))
                self.log("c", None, self.rows[key][1], address)
                continue
            address, old = self.rows[key]
            what = self.rng.choice(["update", "update", "lob", "same", "delete", "move"])
            if what == "delete":
                del self.rows[key]
                self.log("d", old, None, address)
            elif what == "move":
                free = [one for one in range(1, 40) if one not in self.rows]
                new = {**old, "ID": self.rng.choice(free)}
                del self.rows[key]
                self.rows[new["ID"]] = (address, new)
                self.log("u", old, new, address)
            elif what == "lob":
                new = {**old, LOB: self.value(key)[LOB]}
                self.rows[key] = (address, new)
                self.log("u", old, new, address)
            else:
                new = old if what == "same" else {**old, "NAME": self.value(key)["NAME"]}
                self.rows[key] = (address, new)
                self.log("u", old, new, address, (LOB,))
        self.keep("u")

    def read(self) -> None:
        """A snapshot of all rows."""
        self.scn += 1
        for _, row in self.rows.values():
            self.log("r", None, row, None, ordinal=CHUNK_ORDINAL)
        self.keep("r")

    def keep(self, op: str) -> None:
        self.as_of.append((self.scn, op, {key: row for key, (_, row) in self.rows.items()}))

    def expected(self, until: int | None) -> list[tuple[Any, ...]]:
        """Key, name, LOB, from, to and the times of each state."""
        found, live = [], dict[int, tuple[Row, int, str]]()
        read = {scn for scn, op, _ in self.as_of if op == "r"}

        def ended(key: int, scn: int | None) -> None:
            row, since, _ = live.pop(key)
            times = [None if at is None or at in read else time_of(at) for at in (since, scn)]
            found.append((key, row["NAME"], row[LOB], since, scn, *times, scn is None))

        for scn, op, rows in self.as_of:
            for key in [one for one in live if rows.get(one) != live[one][0]]:
                ended(key, scn)
            live.update({key: (row, scn, op) for key, row in rows.items() if key not in live})
        for key in list(live):
            ended(key, until)
        return sorted(found, key=repr)


def dated(changes: list[Row]) -> Dated:
    image = {"before": pa.struct(list(KEYS)), "after": pa.struct(list(COLUMNS))}
    kinds = {
        "_cdc_op": pa.string(), COMMIT_SCN: pa.int64(), ORDINAL: pa.int64(), "_cdc_xid": pa.string(),
        "_cdc_row_id": pa.string(), "_cdc_absent": pa.list_(pa.string()), "_cdc_columns": pa.int32(),
        "is_old": pa.bool_(), "is_new": pa.bool_(), **image,
    }  # fmt: skip
    return Dated(pa.Table.from_pylist(changes, pa.schema(list(kinds.items()))))


@pytest.mark.parametrize("seed", range(60))
def test_states_are_those_of_a_walk(seed: int) -> None:
    """Inserts, updates that lack the LOB or change nothing, deletions, insertions again, changes of key, several per
    transaction, and snapshots that find what is known."""
    walk = Walk(Random(seed))
    for _ in range(12):
        walk.transaction()
        if walk.rng.random() < 0.2:
            walk.read()
    until = walk.scn + 1 if seed % 3 == 0 else None
    walk.rng.shuffle(walk.changes)  # the order of files says nothing
    changes = dated(walk.changes)
    cut = None if until is None else Truncated(until, time_of(until))
    states = states_of(changes, changes.light(), SCHEMA, (LOB,), until=cut)
    names = ["ID", "NAME", LOB, "_cdc_valid_from_scn", "_cdc_valid_to_scn", "_cdc_valid_from", "_cdc_valid_to", "_cdc_is_current"]  # fmt: skip
    found = [tuple(row[name] for name in names) for row in states.to_pylist()]
    # A snapshot's rows have no time; a walk knows the commit's.
    read = {scn for scn, op, _ in walk.as_of if op == "r"}
    times = [
        (*row[:5], None if row[3] in read else row[5], None if row[4] in read else row[6], row[7])
        for row in found
    ]
    assert sorted(times, key=repr) == walk.expected(until)
    ended = {row["_cdc_op"] for row in states.to_pylist() if not row["_cdc_is_current"]}
    assert ended <= {"c", "u", "d", "t"}
    assert all((row["_cdc_op"] is None) == row["_cdc_is_current"] for row in states.to_pylist())


RULES = {
    "any": ANY_CHANGE,
    "each": StateRule(each_change=True),
    "tracked": StateRule(tracked=frozenset({"NAME"})),
    "both": StateRule(tracked=frozenset({LOB}), each_change=True),
}


def told(states: pa.Table) -> list[str]:
    return sorted(map(repr, states.to_pylist()))


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_newer_changes_and_current_states_leave_what_all_changes_do(rule: StateRule) -> None:
    """Wherever a life is cut. Where the current states do not say enough, nothing is said."""
    followed = 0
    for seed in range(40):
        walk = Walk(Random(seed))
        for _ in range(10):
            walk.transaction()
            if walk.rng.random() < 0.2:
                walk.read()
        changes = dated(walk.changes)
        whole = states_of(changes, changes.light(), SCHEMA, (LOB,), rule=rule)
        scns = sorted({one[COMMIT_SCN] for one in walk.changes})
        for cut in walk.rng.sample(scns, 3):
            old, new = (
                dated([one for one in walk.changes if (one[COMMIT_SCN] > cut) == is_new])
                for is_new in (False, True)
            )
            early = states_of(old, old.light(), SCHEMA, (LOB,), rule=rule)
            is_current = early["_cdc_is_current"]
            late = states_behind(
                early.filter(is_current), new, new.light(), SCHEMA, (LOB,), rule=rule
            )
            if new.light().kinds([LOB])[1]:
                continue  # a change of key lacks the LOB: whoever follows derives
            assert late is not None
            ended = early.filter(pc.invert(is_current))
            assert told(pa.concat_tables([ended, late])) == told(whole), (seed, cut)
            followed += 1
    assert followed > 40


def test_a_change_of_an_unknown_row_that_lacks_a_column_is_not_followed() -> None:
    walk = Walk(Random(0))
    row = dict.fromkeys(COLUMNS.names) | {"ID": 1, "NAME": "a"}
    none = states_of(dated([]), dated([]).light(), SCHEMA, (LOB,))
    walk.log("u", row, row, "A", (LOB,))
    partial = dated(walk.changes)
    assert states_behind(none, partial, partial.light(), SCHEMA, (LOB,)) is None
    assert states_of(partial, partial.light(), SCHEMA, (LOB,)).num_rows == 0


def test_each_change_of_a_transaction_makes_a_state_on_wish() -> None:
    """In the order of the changes; where a row leaves its key in the transaction, the last one counts."""
    walk = Walk(Random(0))
    one, two = ({**dict.fromkeys(COLUMNS.names), "ID": 1, "NAME": name} for name in "ab")
    other = {**one, "ID": 2}
    walk.log("c", None, one, "A")
    walk.log("u", one, two, "A")
    walk.log("u", two, one, "A")
    walk.log("c", None, other, "B")
    walk.log("d", other, None, "B")
    changes = dated(walk.changes)
    states = states_of(changes, changes.light(), SCHEMA, (), rule=RULES["each"]).to_pylist()
    found = [(row["ID"], row["NAME"], row["_cdc_valid_to_scn"], row[ORDINAL]) for row in states]
    assert found == [(1, "a", walk.scn, 1), (1, "b", walk.scn, 2), (1, "a", None, 3)]
    assert states_of(changes, changes.light(), SCHEMA, ()).num_rows == 1


def test_columns_that_make_no_state_change_in_their_state() -> None:
    walk, rows = Walk(Random(0)), []
    for name, lob in (("a", "x"), ("a", "y"), ("b", "y"), ("b", "z")):
        rows.append({**dict.fromkeys(COLUMNS.names), "ID": 1, "NAME": name, LOB: lob})
        walk.scn += 1
        walk.log("u" if rows[1:] else "c", rows[-2] if rows[1:] else None, rows[-1], "A")
    changes = dated(walk.changes)
    states = states_of(changes, changes.light(), SCHEMA, (), rule=RULES["tracked"]).to_pylist()
    found = [
        (row["NAME"], row[LOB], row["_cdc_valid_from_scn"], row["_cdc_valid_to_scn"])
        for row in states
    ]
    assert found == [("a", "y", 11, 13), ("b", "z", 13, None)]

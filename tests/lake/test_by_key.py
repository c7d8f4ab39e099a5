"""The rules of one row per key in Spark's tasks: the same rows as in this process, whatever a task is given at once."""

from __future__ import annotations

import itertools
import random
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from cdc_core.errors import DecodeError
from cdc_core.lake.rows import by_key
from cdc_core.lake.rows.by_key import KeyedChanges, Reduction, whole_keys
from cdc_core.lake.table_context import TableWork, no_fence
from cdc_core.stage.changes import LIGHT, AddedColumn
from cdc_core.stage.layout import COMMIT_SCN, ORDINAL, change_schema
from tests.jvm import small_session
from tests.stage import test_reducing as reducing


def keyed(
    folder: Path,
    session: Any,
    rows: list[dict[str, Any]],
    schema: Any,
    wanted: str | None = None,
    **added: Any,
) -> KeyedChanges:
    work = TableWork(f"{folder}/lake", "shop", schema.table, 1, no_fence, lambda: session)
    given = pa.Table.from_pylist(rows, change_schema(schema))
    session.createDataFrame(given).createOrReplaceTempView("given")
    return KeyedChanges(
        work=work, session=session, rows="given", schema=schema, added=added, wanted=wanted
    )


def told(rows: list[dict[str, Any]]) -> list[str]:
    """Rows as text, in an order of their own; of a key that is gone the key and its position."""
    gone = ("CASE", "ID", COMMIT_SCN, ORDINAL, "_cdc_kind")
    return sorted(
        repr({name: row[name] for name in gone} if row["_cdc_kind"] == "del" else row)
        for row in rows
    )


@pytest.mark.spark
def test_tasks_find_what_this_process_finds(spark_process: None, tmp_path: Path) -> None:
    """Keys that rows share for a moment, changes of key, columns that changes do not carry; refusals; some keys alone; what is
    right in a mirror already; a column that was added later."""
    changes = [change for case in range(200) for change in reducing.played(case)[1].changes]
    expected = reducing.source_of(tmp_path, changes)
    session = small_session(tmp_path)
    rule = Reduction(reducing.SCHEMA, has_gaps=False)
    every = keyed(tmp_path, session, changes, reducing.SCHEMA)
    assert told(every.derived(rule).toArrow().to_pylist()) == told(expected)
    kinds = every.kinds()
    assert (kinds.absent, kinds.moved_absent) == (("NOTE",), False)
    few = keyed(tmp_path, session, changes, reducing.SCHEMA, "(SELECT CAST(7 AS INT) AS CASE, ID FROM (SELECT EXPLODE(ARRAY('a', 'b')) AS ID))")  # fmt: skip
    own = [row for row in expected if row["CASE"] == 7 and row["ID"] in "ab"]
    assert told(few.derived(rule).toArrow().to_pylist()) == told(own) != []
    every.work.executor_python.lacks_redolake = True
    assert told(every.derived(rule).toArrow().to_pylist()) == told(expected)
    assert every.kinds() == kinds
    every.work.executor_python.lacks_redolake = False

    there = [row for row in expected if row["_cdc_kind"] == "row" and not row["_cdc_missing"]]
    names = [*reducing.SCHEMA.column_names, COMMIT_SCN, ORDINAL]
    wrong = {**there[0], "NAME": "damaged"}
    mirror = every.work.mirror
    kept = pa.Table.from_pylist(
        [wrong, *there[1:]], pa.schema([rule.compared.field(name) for name in names])
    )
    session.createDataFrame(kept).write.format("delta").mode("overwrite").save(mirror)
    different = every.derived(rule, is_compared=True).toArrow().to_pylist()
    lacking = [row for row in expected if row["_cdc_missing"]]
    assert told(different) == told([there[0], *lacking])

    older = {**reducing.change("c", 1, "R1", None, "a"), "_cdc_columns": 3, "_cdc_absent": ["NOTE"]}
    added = keyed(
        tmp_path, session, [older], reducing.SCHEMA, NOTE=AddedColumn(3, pa.scalar("given"))
    )
    assert added.derived(rule).toArrow()["NOTE"].to_pylist() == ["given"]
    twice = [reducing.change("c", 1, "R1", None, "a"), reducing.change("c", 2, "R2", None, "a")]
    with pytest.raises(DecodeError, match="two rows have one key"):
        keyed(tmp_path, session, twice, reducing.SCHEMA).derived(rule)


def test_parts_have_whole_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many keys in a batch, and of one in many batches."""
    dice = random.Random(5)
    hashes = sorted(dice.choice([1, 2, 3, *range(10, 60)]) for _ in range(900))
    rows = pa.table({"_cdc_hash": pa.array(hashes), "at": pa.array(range(900))})
    batches = rows.to_batches(max_chunksize=37)
    monkeypatch.setattr(by_key, "PART_BYTES", 1_000)
    parts = list(whole_keys(iter([*batches, batches[0].slice(0, 0)]), lambda rows: rows))
    assert pa.concat_tables(parts).equals(rows)
    own = [set(pc.unique(part["_cdc_hash"]).to_pylist()) for part in parts]
    assert len(own) > 5
    assert sum(map(len, own)) == len(set(hashes))
    monkeypatch.setattr(by_key, "PART_BYTES", 1)
    one = rows.set_column(0, "_cdc_hash", pa.repeat(7, 900))
    grown: list[int] = []

    def thinned(rows: pa.Table) -> pa.Table:
        grown.append(rows.num_rows)
        return rows

    found = whole_keys(iter(one.to_batches(max_chunksize=37)), thinned)
    assert [part.num_rows for part in found] == [900]
    assert all(rows >= 2 * before for before, rows in itertools.pairwise(grown))
    assert list(whole_keys(iter([]), thinned)) == []


def by_their_keys(changes: list[dict[str, Any]]) -> pa.Table:
    """Changes as Spark brings them to a task: once for each key, by its hash and the order of commits."""
    rows = []
    for one in changes:
        keys = {
            is_old: image and (image["CASE"], image["ID"])
            for is_old, image in ((True, one["before"]), (False, one["after"]))
        }
        for is_old, key in keys.items():
            if key is not None and (not is_old or keys[False] != key):
                digest = int.from_bytes(sha256(repr(key).encode()).digest()[:4])
                rows.append({**one, "_cdc_hash": digest, "is_old": is_old, "is_new": not is_old})
    rows.sort(key=lambda one: (one["_cdc_hash"], one[COMMIT_SCN], random.random()))
    logged = change_schema(reducing.SCHEMA)
    fields = [logged.field(name) for name in (*LIGHT, "before", "after")]
    own = [("_cdc_hash", pa.int64()), ("is_old", pa.bool_()), ("is_new", pa.bool_())]
    return pa.Table.from_pylist(rows, pa.schema([*fields, *own]))


@pytest.mark.parametrize("case", range(8))
def test_a_key_with_many_changes_keeps_what_can_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: int
) -> None:
    """Wherever its rows are cut: what each task finds is what this process finds of all changes."""
    changes = [one for at in range(case, 800, 8) for one in reducing.played(at)[1].changes]
    expected = reducing.source_of(tmp_path, changes)
    dropped: list[int] = []
    made = by_key._KeyTask.thinned

    def thinned(self: Any, rows: pa.Table) -> pa.Table:
        found = made(self, rows)
        dropped.append(found["after"].combine_chunks().field("NAME").null_count - rows["after"].combine_chunks().field("NAME").null_count)  # fmt: skip
        return found

    monkeypatch.setattr(by_key._KeyTask, "thinned", thinned)
    monkeypatch.setattr(by_key, "PART_BYTES", 1)
    task = by_key._KeyTask(Reduction(reducing.SCHEMA, has_gaps=False), reducing.SCHEMA, {})
    batches = by_their_keys(changes).to_batches(max_chunksize=1)
    found = [row for batch in task(iter(batches)) for row in batch.to_pylist()]
    assert told(found) == told(expected)
    assert sum(dropped) > 0

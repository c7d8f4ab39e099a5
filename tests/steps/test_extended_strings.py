"""VARCHAR2, NVARCHAR2 and RAW of more than 4,000 bytes through the driver, LogMiner, landing and the stage of LOBs."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from oracle_embedded.redo import DEFAULT_WARTS
from tests.oracle.embedded import Oracle
from tests.oracle.fixtures import oracle_with
from tests.steps.harness import run_random_changes, source_of, table_id
from tests.steps.test_excluded import landed

_SIZES = {"V": (0, 5, 3000, 9000, 30000), "N": (0, 5, 2500, 9000), "R": (0, 5, 4500, 30000)}

oracle = oracle_with(
    "CREATE TABLE T (ID NUMBER(9) PRIMARY KEY, A NUMBER(9), SECRET VARCHAR2(40), CODE VARCHAR2(40) DEFAULT 'in clear', V VARCHAR2(32767), N NVARCHAR2(16000), R RAW(32767))",
    warts=DEFAULT_WARTS,
    extended_strings=True,
)


def value(rng: random.Random, column: str, size: int) -> str | bytes | None:
    """Text with what redo must quote, of so many bytes about; or bytes."""
    if column == "R":
        return rng.randbytes(size) or None
    letters = "ab'|();\n\\" if column == "V" else "ab'|();é日🔥\\"
    return "".join(rng.choices(letters, k=size)) or None


def change(rng: random.Random, cursor: Any, key: int, *, is_new: bool) -> None:
    row = {name: value(rng, name, rng.choice(sizes)) for name, sizes in _SIZES.items()}
    if is_new:
        sql = "INSERT INTO T VALUES (:id, 1, 'hidden', NULL, :v, :n, :r)"
        cursor.execute(sql, {"id": key, **{name.lower(): one for name, one in row.items()}})
        return
    names = rng.sample(sorted(row), rng.randint(1, 3))
    sets = ", ".join(f"{name} = :{name.lower()}" for name in names)
    more = ", A = A + 1" if rng.random() < 0.3 else ""
    chosen = {name.lower(): row[name] for name in names}
    cursor.execute(f"UPDATE T SET {sets}{more} WHERE ID = :id", {"id": key, **chosen})


def test_extended_strings_of_any_size_are_the_same_in_the_mirror(
    oracle: Oracle, tmp_path: Path
) -> None:
    """Several in a row, unchanged ones beside others, in transactions that take rows back, and that lie in several windows."""
    rng = random.Random(3)
    with source_of(oracle, tmp_path, "T") as source:
        with oracle.owner() as connection:
            change(rng, connection.cursor(), 50, is_new=True)
            connection.commit()
        source.run()
        last = "UPDATE T SET A = 7 WHERE ID = 50; DELETE FROM T WHERE ID = 3"
        run_random_changes(source, rng, change, steps=28, created=10, last=last)
        source.check_current("T")
        assert source.record("T").state == "ready"
        changed = [one["after"] for one in source.lake.tables[table_id("T")].changes]
        lengths = {len(row["V"]) for row in changed if row and row["V"]}
        assert max(lengths) == 30000


def test_excluded_and_masked_values_beside_a_long_text_do_not_land(
    oracle: Oracle, tmp_path: Path
) -> None:
    """Nor does an excluded long text. The rows that write another one name their row by all of its columns."""
    with source_of(oracle, tmp_path) as source:
        source.configure(
            {"name": "T", "columns_exclude": ["SECRET", "N"], "columns_mask": {"CODE": "stars(3)"}}
        )
        source.begin()
        with oracle.owner() as connection:
            sql = "INSERT INTO T VALUES (1, 1, 'hidden', 'it''s in clear', :v, :n, NULL)"
            connection.cursor().execute(sql, v="seen " * 4000, n="concealed " * 900)
            connection.commit()
        source.windows()
        assert source.lake.image(table_id("T")) == [(1, 1, "***", "seen " * 4000, None)]
        assert "seen" in landed(source)
        assert "hidden" not in landed(source)
        assert "concealed" not in landed(source)
        assert "clear" not in landed(source)
        assert "***" in landed(source)

"""Is a Delta table equal to an Oracle table as of one SCN? Judged by a way of its own.

It shares no code with the pipeline: python-oracledb reads one side, delta-rs the other. Each side is a list of rows, each row a
tuple of typed values; both are counted, searched for double keys and sorted by themselves before one is held against the other.
Everything is in memory: it is a judge for tests, not a tool for large tables.
"""

from __future__ import annotations

import json
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import oracledb
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

Typed = tuple[str, str]
"""A value: the letter of its kind, and text that is the same iff the value is."""
Row = tuple[Typed, ...]

_NUMBERS = (oracledb.DB_TYPE_NUMBER,)
_FLOATS = (oracledb.DB_TYPE_BINARY_DOUBLE, oracledb.DB_TYPE_BINARY_FLOAT)
_BYTES = (oracledb.DB_TYPE_RAW, oracledb.DB_TYPE_LONG_RAW, oracledb.DB_TYPE_BLOB)
_MOMENTS = (oracledb.DB_TYPE_DATE, oracledb.DB_TYPE_TIMESTAMP)


@dataclass(frozen=True, slots=True)
class Side:
    """One side: its rows, sorted, and the keys that more than one of them has."""

    rows: tuple[Row, ...]
    double_keys: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """Both sides by themselves, and how many rows only one of them has (a row that differs counts on both)."""

    rows_oracle: int
    rows_delta: int
    double_oracle: int
    double_delta: int
    only_oracle: int
    only_delta: int

    @property
    def is_equal(self) -> bool:
        """The same rows, each as often on both sides, and no key twice."""
        return self.rows_oracle == self.rows_delta and not (
            self.double_oracle or self.double_delta or self.only_oracle or self.only_delta
        )


def compare(
    connection: oracledb.Connection, table: str, key: Sequence[str], mirror: Path, scn: int
) -> Verdict:
    """Hold an Oracle table ``AS OF SCN`` against the mirror's version of that SCN."""
    version = version_at(mirror, scn)
    return judge(connection, table, key, scn, lambda names: read_delta(mirror, names, version))


def judge(
    connection: oracledb.Connection,
    table: str,
    key: Sequence[str],
    scn: int,
    read: Callable[[Sequence[str]], Iterable[Sequence[Any]]],
    *,
    without: Sequence[str] = (),
) -> Verdict:
    """Hold an Oracle table ``AS OF SCN``, ``without`` some of its columns, against what ``read`` gives for the named columns."""
    names, kinds, values = read_oracle(connection, table, scn, without)
    oracle = side(values, kinds, [names.index(name) for name in key])
    delta = side(read(names), kinds, [names.index(name) for name in key])
    left, right = Counter(oracle.rows), Counter(delta.rows)
    return Verdict(
        len(oracle.rows),
        len(delta.rows),
        oracle.double_keys,
        delta.double_keys,
        sum((left - right).values()),
        sum((right - left).values()),
    )


def side(rows: Iterable[Sequence[Any]], kinds: Sequence[str], key: Sequence[int]) -> Side:
    """Type the values of one side, count its keys, and sort it. Of a table without a key, rows may be equal."""
    typed = [tuple(map(typed_value, row, kinds)) for row in rows]
    keys = Counter(tuple(row[at] for at in key) for row in typed) if key else Counter[Row]()
    return Side(tuple(sorted(typed)), sum(1 for times in keys.values() if times > 1))


def typed_value(value: Any, kind: str) -> Typed:
    """One value in the form in which it is compared; ``kind`` is that of Oracle's column.

    Numbers keep every digit (never through a context, which would round), floats every bit but the sign of zero.
    """
    if value is None:
        return ("", "")
    match kind:
        case "number":
            sign, digits, exponent = Decimal(value).as_tuple()
            assert isinstance(exponent, int)
            text = "".join(map(str, digits)).lstrip("0")
            short = text.rstrip("0")
            return (
                "n",
                f"{'-' if sign and short else ''}{short}e{exponent + len(text) - len(short) if short else 0}",
            )
        case "float":
            number = float(value)
            return ("f", "nan" if number != number else struct.pack(">d", number + 0.0).hex())
        case "moment":
            assert isinstance(value, datetime)
            assert value.tzinfo is None
            return ("t", value.isoformat(timespec="microseconds"))
        case "bytes":
            return ("b", bytes(value).hex())
        case _:
            assert isinstance(value, str)
            return ("s", value)


def read_oracle(
    connection: oracledb.Connection, table: str, scn: int, without: Sequence[str] = ()
) -> tuple[list[str], list[str], list[tuple[Any, ...]]]:
    """Names and kinds of the columns, and all rows as of the SCN; of a table of the session's own user, by its name as the dictionary has it."""
    with connection.cursor() as cursor:
        cursor.outputtypehandler = _exact
        cursor.execute(f'SELECT * FROM "{table}" AS OF SCN :scn', scn=scn)
        described = [(column[0], column[1]) for column in cursor.description]
        rows = cursor.fetchall()
    kept = [at for at, (name, _) in enumerate(described) if name not in without]
    names, kinds = [described[at][0] for at in kept], [_kind(described[at][1]) for at in kept]
    return names, kinds, [tuple(row[at] for at in kept) for row in rows]


def read_delta(path: Path, names: Sequence[str], version: int | None) -> list[tuple[Any, ...]]:
    """The named columns of a version of a Delta table, through delta-rs's own query engine; NULL for those it did not have yet."""
    delta = DeltaTable(str(path), version=version)
    builder = QueryBuilder().register("t", delta)
    known = {field.name for field in delta.schema().fields}
    listed = ", ".join(f'"{name}"' if name in known else f'NULL AS "{name}"' for name in names)
    table = pa.table(builder.execute(f"SELECT {listed} FROM t").read_all())
    columns = [table.column(at).to_pylist() for at in range(table.num_columns)]
    return list(zip(*columns, strict=True))


def version_at(path: Path, scn: int) -> int:
    """The newest version before the table went past the SCN, by the commits' user metadata.

    Commits that say nothing (somebody else's, changes of properties) leave the table where it was.
    """
    commits = sorted(DeltaTable(str(path)).history(), key=lambda commit: commit["version"])
    found, reached = None, None
    for commit in commits:
        said = _scn_high(commit)
        if said is not None:
            reached = max(said, reached or 0)
        if reached is not None and reached <= scn:
            found = int(commit["version"])
    assert found is not None, f"no version of {path.name} is as old as SCN {scn}"
    return found


def _scn_high(commit: dict[str, Any]) -> int | None:
    try:
        said = json.loads(commit.get("userMetadata") or "{}")
    except ValueError:
        return None
    return int(said["scn_high"]) if isinstance(said, dict) and "scn_high" in said else None


def _exact(cursor: oracledb.Cursor, column: oracledb.FetchInfo) -> Any:
    """NUMBER as text, which loses no digit, and LOBs as values."""
    if column.type_code in _NUMBERS:
        return cursor.var(str, 400, cursor.arraysize)
    if column.type_code in (oracledb.DB_TYPE_CLOB, oracledb.DB_TYPE_NCLOB):
        return cursor.var(oracledb.DB_TYPE_LONG, arraysize=cursor.arraysize)
    if column.type_code is oracledb.DB_TYPE_BLOB:
        return cursor.var(oracledb.DB_TYPE_LONG_RAW, arraysize=cursor.arraysize)
    return None


def _kind(code: Any) -> str:
    if code in _NUMBERS:
        return "number"
    if code in _FLOATS:
        return "float"
    if code in _MOMENTS:
        return "moment"
    return "bytes" if code in _BYTES else "text"

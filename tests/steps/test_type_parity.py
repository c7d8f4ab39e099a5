"""Every type of the type table has the same value on every path: read by a chunk, and from the redo of an INSERT, an UPDATE and a DELETE,
with every dictionary of LogMiner.

The cases stand under the type table's own rows (tests/snapshot/test_types.py); :func:`cases` counts them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from oracle_embedded.redo.settings import DEFAULT_WARTS
from tests.oracle.embedded import Oracle, running_oracle
from tests.snapshot.test_types import CASES
from tests.steps.harness import Source, source_of, table_id
from tests.steps.ways import WAYS, Step, play, sources_of

TEXTS = "CHAR, VARCHAR2, NCHAR, NVARCHAR2, CLOB, NCLOB"
MORE: dict[str, dict[str, list[str]]] = {
    TEXTS: {
        "VARCHAR2(4000)": ["'" + "日" * 1333 + "a'", "'" + "\U0001f525" * 1000 + "'"],
        "NVARCHAR2(2000)": ["N'" + "é" * 2000 + "'"],
    },
    "RAW, BLOB": {"RAW(2000)": ["HEXTORAW('" + "A5" * 1999 + "00')"]},
    "XMLTYPE": {"XMLTYPE": ["XMLTYPE('<a>1</a>')"]},
}
"""What takes several redo rows for a statement."""
TYPES = {label: {**group, **MORE.get(label, {})} for label, group in CASES.items()}
EURO = "\u20ac"
OTHER_SETS: dict[str, dict[str, dict[str, list[str]]]] = {
    "WE8MSWIN1252": {
        TEXTS: {
            **TYPES[TEXTS],
            "CHAR(3)": [f"'é{EURO}'", "'日'"],
            "VARCHAR2(10)": [f"'{EURO * 10}'", "'it''s ÿ\u0152'", "UNISTR('\\65E5')"],
            "NVARCHAR2(10)": [f"UNISTR('\\65E5') || '{EURO}'", "N'日本'"],
            "CLOB": [f"'{EURO}é'", f"TO_CLOB(RPAD('{EURO}', 3000, 'é')) || RPAD('{EURO}', 3000, 'é')"],
        },
        "XMLTYPE": {"XMLTYPE": [f"XMLTYPE('<a>{EURO}</a>')"]},
    },
    "JA16SJIS": {
        TEXTS: {
            **TYPES[TEXTS],
            "CHAR(5)": ["'日〜'", "'é'"],
            "VARCHAR2(10)": ["'日本\uff5e'", "'ソ\\'"],
            "CLOB": ["'日本〜'", "TO_CLOB(RPAD('日', 3000, '本'))"],
        },
        "XMLTYPE": {"XMLTYPE": ["XMLTYPE('<a>日〜</a>')"]},
    },
}  # fmt: skip
"""The text types in databases of other character sets; some literals have characters that the set lacks."""
LARGE = ("CLOB", "NCLOB", "BLOB", "XMLTYPE")
"""What the redo of a DELETE does not carry."""
ONE_WAY = ("redo_log_catalog",)
CHANGED = 100
"""A row under its literal's number is inserted with the value; this much above, it gets the value by an UPDATE."""
GONE = 200
"""This much above, it is inserted with the value and deleted."""


EARLY: dict[str, dict[str, list[str]]] = {
    "DATE, TIMESTAMP(0-6)": {
        "DATE": [
            "DATE '-4712-01-01'",
            "TO_DATE('0044-03-15 23:59:58 BC', 'YYYY-MM-DD HH24:MI:SS BC')",
            "DATE '1500-02-29'",
            "DATE '0001-01-01'",
        ],
        "TIMESTAMP(0)": ["TIMESTAMP '-0044-03-15 01:02:03'"],
        "TIMESTAMP(6)": ["TIMESTAMP '-0001-12-31 23:59:59.999999'", "TIMESTAMP '-4712-01-01 00:00:00'"],
    },
}  # fmt: skip
"""Days that no timestamp of Delta holds. Without ``text`` both paths refuse them, which tests/snapshot/test_parity.py shows."""
AS_TEXT = {"types_as": {"DATE": "text", "TIMESTAMP": "text"}}


Types = Mapping[str, Mapping[str, list[str]]]


def cases(ways: Mapping[str, Any], types: Types = TYPES) -> int:
    """How many values of the redo are held against a chunk's: per literal and way those of an INSERT and an UPDATE, and of a DELETE
    unless it carries none."""
    declared = [each for group in types.values() for each in group.items()]
    return len(ways) * sum(
        len(literals) * (2 if declaration in LARGE else 3) for declaration, literals in declared
    )


def name_of(at: int) -> str:
    return f"KIND_{at}"


def names_of(types: Types) -> list[str]:
    return [name_of(at) for at in range(len(types))]


@contextmanager
def oracle_of(types: Types, character_set: str) -> Iterator[Oracle]:
    """One table per row of the type table, with a column for each declaration."""
    with running_oracle(warts=DEFAULT_WARTS, character_set=character_set) as running:
        for name, group in zip(names_of(types), types.values(), strict=True):
            listed = ", ".join(f"C{at} {declaration}" for at, declaration in enumerate(group))
            running.run(f"CREATE TABLE {name} (ID NUMBER(5) PRIMARY KEY, {listed})")
        yield running


def columns_of(group: Mapping[str, list[str]]) -> list[str]:
    """Per literal of a table the column that has it."""
    return [f"C{at}" for at, literals in enumerate(group.values()) for _ in literals]


def story(types: Types) -> list[Step]:
    """Each literal of each declaration, alone in its row; one transaction per table."""
    steps: list[Step] = []
    for name, group in zip(names_of(types), types.values(), strict=True):
        number = 0
        for at, literals in enumerate(group.values()):
            for literal in literals:
                number += 1
                for more in (0, GONE):
                    steps.append(
                        (
                            name,
                            f"INSERT INTO {name} (ID, C{at}) VALUES ({number + more}, {literal})",
                        )
                    )
                steps.append((name, f"INSERT INTO {name} (ID) VALUES ({number + CHANGED})"))
                steps.append(
                    (name, f"UPDATE {name} SET C{at} = {literal} WHERE ID = {number + CHANGED}")
                )
        steps.append((name, f"DELETE FROM {name} WHERE ID > {GONE}"))
        steps.append((name, "COMMIT"))
    return steps  # fmt: skip


Row = dict[str, str]


def values(source: Source, name: str) -> dict[int, Row]:
    """The mirror's rows by key, without the key. As text, NaN is equal to itself."""
    rows = source.lake.tables[table_id(name)].rows
    return {key[0]: _texts(row) for key, (row, _, _) in rows.items()}


def deleted(source: Source, name: str) -> dict[int, Row]:
    """The rows that were deleted, as the change log has them."""
    changes = source.lake.tables[table_id(name)].changes
    gone = [change["before"] for change in changes if change["_cdc_op"] == "d"]
    return {row["ID"]: _texts(row) for row in gone}


def _texts(row: Mapping[str, Any]) -> Row:
    return {column: repr(value) for column, value in row.items() if column != "ID"}


@pytest.mark.parametrize(
    ("ways", "character_set"),
    [
        pytest.param(ONE_WAY, "", id="one-way"),
        pytest.param(("online_catalog",), "WE8MSWIN1252", id="western"),
        pytest.param(tuple(WAYS), "", id="every-way", marks=pytest.mark.slow),
        pytest.param(tuple(WAYS), "WE8MSWIN1252", id="western-every-way", marks=pytest.mark.slow),
        pytest.param(tuple(WAYS), "JA16SJIS", id="japanese-every-way", marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_every_type_has_the_same_value_on_every_path(
    tmp_path: Path, ways: tuple[str, ...], character_set: str
) -> None:
    types = OTHER_SETS.get(character_set, TYPES)
    with oracle_of(types, character_set) as oracle:
        _every_path_agrees(oracle, tmp_path, ways, types)


@pytest.mark.parametrize(
    "ways",
    [
        pytest.param(("online_catalog",), id="one-way"),
        pytest.param(tuple(WAYS), id="every-way", marks=pytest.mark.slow),
    ],
)
def test_times_before_christ_have_the_same_value_on_every_path_as_text(
    tmp_path: Path, ways: tuple[str, ...]
) -> None:
    with oracle_of(EARLY, "") as oracle:
        _every_path_agrees(oracle, tmp_path, ways, EARLY, entry=AS_TEXT)


def _every_path_agrees(
    oracle: Oracle,
    tmp_path: Path,
    ways: tuple[str, ...],
    types: Types,
    entry: Mapping[str, Any] | None = None,
) -> None:
    names = names_of(types)
    chosen = {name: WAYS[name] for name in ways}
    chunks = tmp_path / "chunks"
    chunks.mkdir()
    compared = 0
    with sources_of(oracle, tmp_path, *names, ways=chosen, entry=entry) as sources:
        play(oracle, sources, story(types))
        capture = {"close_at": "completed_logs"}
        with source_of(oracle, chunks, *names, capture=capture) as snapshot:
            snapshot.tables = [{**one, **(entry or {})} for one in snapshot.tables]
            list(snapshot.pipeline.run_snapshot())
            for name, group in zip(names, types.values(), strict=True):
                read = values(snapshot, name)
                large = {f"C{at}" for at, declaration in enumerate(group) if declaration in LARGE}
                for way, source in sources.items():
                    assert source.record(name).state == "ready", (way, source.record(name).reason)
                    assert values(source, name) == read, (way, name)
                    compared += len(read)
                    gone = deleted(source, name)
                    for number, column in enumerate(columns_of(group), 1):
                        assert read[number] == read[number + CHANGED], (name, column)
                        if column not in large:
                            assert gone[number + GONE][column] == read[number][column], (way, name)
                            compared += 1
    assert compared == cases(chosen, types)


def test_how_many_cases_there_are() -> None:
    """A type that joins the table, and a way of reading, raise the number."""
    assert len(WAYS) == 3
    assert cases(WAYS) == 975

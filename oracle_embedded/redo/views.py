"""How do the views of the redo side become virtual tables, each with its GV$ twin?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import cast

from oracle_embedded.api import EngineSession, Value, VirtualTable
from oracle_embedded.redo.contents import Contents
from oracle_embedded.redo.contents_row import COLUMNS, DATES, NUMBERS, column_meta
from oracle_embedded.redo.view_columns import LAYOUTS
from oracle_embedded.redo.view_facts import Fact, Facts, Row

Constraints = Sequence[tuple[str, str, Value]]


def fact_tables(facts: Facts) -> list[VirtualTable]:
    """All views that are made of facts by column name; a column without a fact is NULL."""
    return [
        table
        for name, source in facts.sources().items()
        for table in _with_twin(name, LAYOUTS[name], source, facts)
    ]


def contents_tables(contents: Contents, facts: Facts) -> list[VirtualTable]:
    """V$LOGMNR_CONTENTS and its GV$ twin."""

    def twin(
        session: EngineSession, constraints: Constraints, columns: frozenset[str] | None
    ) -> Iterator[Sequence[Value]]:
        number = NUMBERS[facts.instance_of(session)]
        return ((number, *row) for row in contents.rows(session, constraints, columns))

    return [
        VirtualTable("V$LOGMNR_CONTENTS", COLUMNS, contents.rows),
        VirtualTable("GV$LOGMNR_CONTENTS", (column_meta("INST_ID", "N"), *COLUMNS), twin),
    ]


def _with_twin(
    name: str, layout: str, source: Callable[[EngineSession], Iterable[Row]], facts: Facts
) -> Iterator[VirtualTable]:
    """A V$ view of the session's instance, and its GV$ twin, which repeats the control file's rows
    for every instance."""
    pairs = [cast(tuple[str, str], tuple(word.rsplit(":", 1))) for word in layout.split()]
    columns = tuple(column_meta(column, kind) for column, kind in pairs)
    known = {"INST_ID", *(column for column, _ in pairs)}

    def of_instance(
        session: EngineSession, instance: int, read: frozenset[str] | None
    ) -> Iterator[Sequence[Value]]:
        chosen = [
            (at, column, kind)
            for at, (column, kind) in enumerate(pairs)
            if read is None or column in read
        ]
        for row in source(session):
            assert row.keys() <= known, row.keys()
            if row.get("INST_ID", instance) == instance:
                cells: list[Value] = [None] * len(pairs)
                for at, column, kind in chosen:
                    cells[at] = _encode(kind, row.get(column))
                yield cells

    def rows(
        session: EngineSession, _constraints: Constraints, read: frozenset[str] | None
    ) -> Iterator[Sequence[Value]]:
        return of_instance(session, facts.instance_of(session), read)

    def twin(
        session: EngineSession, _constraints: Constraints, read: frozenset[str] | None
    ) -> Iterator[Sequence[Value]]:
        for instance in facts.instances():
            for row in of_instance(session, instance, read):
                yield (NUMBERS[instance], *row)

    yield VirtualTable(name, columns, rows)
    yield VirtualTable(f"G{name}", (column_meta("INST_ID", "N"), *columns), twin)


def _encode(kind: str, fact: Fact) -> Value:
    if fact is None or isinstance(fact, bytes):
        return fact
    if isinstance(fact, str):
        return fact.encode()
    return DATES[fact] if kind == "D" else NUMBERS[fact]

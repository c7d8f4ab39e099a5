"""The statements of ``tests/golden/ddl.txt``, and what our reader makes of each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "ddl.txt"


@dataclass(frozen=True, slots=True)
class Case:
    """A statement; ``table`` is None where it is about no table that it names."""

    statement: str
    owner: str | None
    table: str | None
    effects: frozenset[str]


def _read(said: str, statement: str) -> Case:
    named, _, effects = said.partition(":")
    if named == "no table":
        return Case(statement, None, None, frozenset())
    *owner, table = named.split(".")
    found = frozenset(one.strip() for one in effects.split(",") if one.strip())
    return Case(statement, owner[0] if owner else None, table, found)


def _cases() -> list[Case]:
    lines = [line for line in GOLDEN.read_text().splitlines() if line and not line.startswith("#")]
    return [_read(said, text) for said, text in zip(lines[1::2], lines[0::2], strict=True)]


CASES = _cases()

"""What does a source do when it starts, and why? What ``snapshot.mode`` decided, for steps and for
people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Work = Literal["snapshot", "continue", "again", "definitions", "stream", "nothing"]
"""What a start does first: read all tables; go on with their snapshots; read all of them again;
read definitions again; nothing but to stream; nothing at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What a start does, and why. ``refusal`` says why it does nothing at all, ``hint`` what
    helps."""

    work: Work
    rows: bool
    streams: bool
    reason: str
    refusal: str | None = None
    hint: str = ""

    def __str__(self) -> str:
        """For people."""
        if self.refusal is not None:
            return self.refusal
        then = "then capture changes" if self.streams else "capture no changes"
        return f"{_SAID[self.work, self.rows]}, {then}: {self.reason}"


@dataclass(frozen=True, slots=True)
class TablePlan:
    """What the next run would make of one table, in words."""

    table: str
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """What the next run would do, without doing it: what the start decides; what becomes of tables,
    in the order of their names, but for those that just go on; and how many windows wait."""

    decision: Decision
    tables: tuple[TablePlan, ...]
    windows_waiting: int


_SAID: dict[tuple[Work, bool], str] = {
    ("snapshot", True): "read all tables",
    ("snapshot", False): "take tables in without their rows",
    ("continue", True): "continue the first snapshot",
    ("continue", False): "continue to take tables in without their rows",
    ("again", True): "read all tables again",
    ("again", False): "let all tables join again without their rows",
    ("definitions", True): "read definitions again",
    ("definitions", False): "read definitions again",
    ("stream", True): "read nothing",
    ("stream", False): "read nothing",
    ("nothing", True): "read nothing",
    ("nothing", False): "read nothing",
}

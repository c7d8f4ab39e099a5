"""What does a probe of level *try* do with its scratch table, and what is it told of that?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cdc_core.model.operations import CONTROL, Operation
from diagnosis.certify.probes import (
    Answer,
    Probe,
    RefusedQuery,
    Rows,
    Verdict,
    cannot_tell,
    decided,
    share,
)

DML = (Operation.INSERT, Operation.UPDATE, Operation.DELETE)
Row = Mapping[str, Any]
"""A redo row, with the columns of ``capture.mining.MINED_SCHEMA``."""


@dataclass(frozen=True, slots=True)
class Fails:
    """A statement that Oracle shall refuse with a code."""

    sql: str
    code: str


@dataclass(frozen=True, slots=True)
class Ask:
    """A query of the capture user, whose answer is kept under a name. ``until_seconds`` repeats a
    refused one for so long; ``:scn`` is an SCN kept before (:class:`Keep`)."""

    name: str
    sql: str
    until_seconds: float = 0


@dataclass(frozen=True, slots=True)
class Keep:
    """The present SCN is kept under a name, for :class:`Ask`."""

    name: str


@dataclass(frozen=True, slots=True)
class Mine:
    """The redo up to now is mined, and the table's rows are kept under a name."""

    name: str


@dataclass(frozen=True, slots=True)
class WriteLob:
    """A text is written into the LOB of a row, from a character on (1 is the first)."""

    locator: str
    text: str
    offset: int


Step = str | Fails | Ask | Keep | Mine | WriteLob
"""``{t}`` in a statement is the scratch table, ``{owner}`` its owner. A probe's steps end with a
COMMIT of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What came of a probe's steps.

    Attributes:
        rows: The redo rows of its table, and those that begin and end their transactions, in
            LogMiner's order.
        asked: Answers of :class:`Ask` and rows of :class:`Mine`, by name; of an Ask that was
            repeated, ``NAME.seconds`` too.
        snapshot: The table's rows as a snapshot reads them, by ID; None where it could not.
        changed: The table's rows as its changes leave them, by ID.
        undecodable: Why redo rows could not be decoded: how many per reason.
        stopped: Oracle's code where a statement failed, and nothing after it was run.
        owner: The schema.
        table: The scratch table.
    """

    owner: str
    table: str
    rows: Sequence[Row] = ()
    asked: Mapping[str, Any] = field(default_factory=dict)
    snapshot: Mapping[int, Mapping[str, Any]] | None = None
    changed: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    undecodable: Mapping[str, int] = field(default_factory=dict)
    stopped: str | None = None

    def of(self, *operations: Operation, rollback: int | None = 0) -> list[Row]:
        """The table's rows with these codes; ``rollback`` None takes undo rows too."""
        return [
            row
            for row in self.rows
            if row["operation_code"] in operations
            and (rollback is None or row["rollback"] == rollback)
        ]

    def texts(self, *operations: Operation, rollback: int | None = 0) -> list[str]:
        """Their statements, of which a long one is joined (CSF)."""
        return [text for text, _ in self.statements(*operations, rollback=rollback)]

    def statements(
        self, *operations: Operation, rollback: int | None = 0
    ) -> Iterator[tuple[str, Row]]:
        """Their statements with their first rows."""
        pending: list[str] = []
        first: Row | None = None
        for row in self.of(*operations, rollback=rollback):
            first = row if first is None else first
            pending.append(_text(row["sql_redo"]))
            if not row["csf"]:
                yield "".join(pending), first
                pending, first = [], None

    @property
    def control(self) -> list[Row]:
        """The rows that begin and end its transactions."""
        return self.of(*CONTROL, rollback=None)

    def answer(self, name: str) -> Answer:
        """What a query of the probe gave; a refusal where it was not asked."""
        found: Answer = self.asked.get(name, RefusedQuery("not asked"))
        return found


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


Judge = Callable[[Trial], Verdict]


@dataclass(frozen=True, slots=True, kw_only=True)
class TryProbe(Probe):
    """A probe with a scratch table of its own.

    Attributes:
        table: What stands behind ``CREATE TABLE name``: columns with a key ID, and clauses.
        steps: What is run, in order.
        judge: Judges what came of it.
        is_mined: False where the redo says nothing about it.
        takes_stop: The judge looks at a statement that failed.
    """

    table: str
    steps: Sequence[Step]
    judge: Judge
    is_mined: bool = True
    takes_stop: bool = False

    def judged(self, tried: Trial) -> Verdict:
        """The verdict; without one where a statement failed or no redo came."""
        if tried.stopped and not self.takes_stop:
            return cannot_tell(f"a statement failed ({tried.stopped})")
        if self.is_mined and not tried.rows:
            return cannot_tell("LogMiner shows no row of the table")
        return self.judge(tried)


def try_probe(
    subject: str, name: str, belief: str, steps: Sequence[Step], judge: Judge, **more: Any
) -> TryProbe:
    """A probe whose steps end with a COMMIT; ``more`` as :class:`TryProbe` has it."""
    return TryProbe(
        id=f"{subject}.{name}", belief=belief, steps=[*steps, "COMMIT"], judge=judge, **more
    )


# -- judges, and what makes them ------------------------------------------------------------------


def each_row(
    is_so: Callable[[Row], object],
    what: str,
    *operations: Operation,
    rollback: int | None = 0,
) -> Judge:
    """Is it so of each of the table's rows with these codes, by default of all its changes?"""

    def judge(tried: Trial) -> Verdict:
        return share(tried.of(*(operations or DML), rollback=rollback), is_so, what)

    return judge


def equal(rows: int) -> Judge:
    """Do both paths have the same rows, so many?"""
    return lambda tried: equal_paths(tried, rows)


def equal_paths(tried: Trial, rows: int) -> Verdict:
    """Do both paths have the same rows, as many as are expected?"""
    if tried.snapshot is None:
        return cannot_tell("the table could not be read by a snapshot")
    wrong = list(_differing(tried))
    undecodable = sum(tried.undecodable.values())
    right = len(tried.snapshot) - sum(key in tried.snapshot for key in wrong)
    seen = f"{right} of {rows} rows are equal on both paths"
    if undecodable:
        seen += f"; {undecodable} rows of the redo cannot be decoded"
    return decided(not wrong and not undecodable and len(tried.snapshot) == rows, seen)


def _differing(tried: Trial) -> Iterator[int]:
    """The IDs whose rows differ between both paths."""
    snapshot = tried.snapshot or {}
    for key in sorted(snapshot.keys() | tried.changed.keys()):
        if _carried(snapshot.get(key)) != _carried(tried.changed.get(key)):
            yield key


def _carried(row: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """A row without its NULLs: a column that came later is absent from changes before it."""
    if row is None:
        return None
    return {name: value for name, value in row.items() if value is not None}


def of_answer(name: str) -> Callable[[Callable[[Trial, Rows], Verdict]], Judge]:
    """Makes a judge of one that is given the rows of a query of the probe; where Oracle refused
    them, there is no verdict."""

    def decorate(judge: Callable[[Trial, Rows], Verdict]) -> Judge:
        def judged(tried: Trial) -> Verdict:
            answer = tried.answer(name)
            if isinstance(answer, RefusedQuery):
                return cannot_tell(f"Oracle refuses the question ({answer.code})")
            return judge(tried, answer)

        return judged

    return decorate

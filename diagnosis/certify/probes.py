"""What is a probe, and what does it find?

A probe states one belief about Oracle that Redolake rests on, and how a database can confirm or
refute it. It is data: the statements that ask, a pure function that judges the answers, and what
follows from either outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Level(StrEnum):
    """How far a probe goes to find out."""

    LOOK = "look"
    """Queries of the dictionary and of V$ views: seconds, no load."""

    MINE = "mine"
    """LogMiner over the newest logs; reads only."""

    TRY = "try"
    """Creates, changes and drops tables of its own in a schema that the user names."""


class Outcome(StrEnum):
    """Is a belief true of this database?"""

    HOLDS = "holds"
    OTHERWISE = "otherwise"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a probe found.

    Attributes:
        seen: What the database showed, in one clause. Counts, codes and Oracle's own words only:
            never a value or a name of the user's.
        facts: The same for programs, by name. They teach the embedded Oracle
            (:mod:`diagnosis.certify.likeness`).
    """

    outcome: Outcome
    seen: str
    facts: Mapping[str, str | int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RefusedQuery:
    """Oracle's code in place of a statement's rows."""

    code: str


Rows = Sequence[tuple[Any, ...]]
Answer = Rows | RefusedQuery
Answers = Mapping[str, Answer]
"""What each statement of a probe gave, by the statement's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One belief, and how it is put to the test.

    Attributes:
        id: ``subject.what``; it stays as it is, since reports of different times are compared.
        belief: What is believed, in one sentence.
        depends: What in Redolake depends on it: a module, or a rule of ARCHITECTURE.md.
        otherwise: What happens, and what to do, where it is not so.
        source: Where the fact comes from.
        is_needed: False where Redolake lives with either answer, and only wants to know.
        wart: The wart of the embedded Oracle that it shows where it holds.
    """

    id: str
    belief: str
    depends: str
    otherwise: str
    source: str
    is_needed: bool = True
    wart: str | None = None

    @property
    def subject(self) -> str:
        """What the probe is about: the first part of its id."""
        return self.id.partition(".")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class LookProbe(Probe):
    """A probe that asks with queries.

    Attributes:
        queries: The statements, by a name for each answer. ``{tables}`` in one is a condition for
            the captured tables on OWNER and TABLE_NAME; ``:scn`` is the present SCN.
        judge: Judges the answers, none of which is a refusal unless ``takes_refusals``.
        is_described: The columns of each query are the answer, as (name, type of the driver), and
            no row is fetched.
        pause_seconds: Waited before each query but the first.
    """

    queries: Mapping[str, str]
    judge: Callable[[Answers], Verdict]
    is_described: bool = False
    takes_refusals: bool = False
    pause_seconds: float = 0

    def judged(self, answers: Answers) -> Verdict:
        """The verdict; a refusal that the probe does not expect leaves it without one."""
        if not self.takes_refusals:
            for answer in answers.values():
                if isinstance(answer, RefusedQuery):
                    return cannot_tell(f"Oracle refuses the question ({answer.code})")
        return self.judge(answers)


def holds(seen: str, **facts: str | int) -> Verdict:
    """The belief is true here."""
    return Verdict(Outcome.HOLDS, seen, facts)


def otherwise(seen: str, **facts: str | int) -> Verdict:
    """The belief is not true here."""
    return Verdict(Outcome.OTHERWISE, seen, facts)


def cannot_tell(seen: str, **facts: str | int) -> Verdict:
    """The database does not show it, or not now."""
    return Verdict(Outcome.CANNOT_TELL, seen, facts)


def decided(is_so: bool, seen: str, **facts: str | int) -> Verdict:
    """It holds, or it does not."""
    return Verdict(Outcome.HOLDS if is_so else Outcome.OTHERWISE, seen, facts)


def rows_of(answers: Answers, name: str) -> Rows:
    """The rows of a statement that was not refused."""
    answer = answers[name]
    assert not isinstance(answer, RefusedQuery)
    return answer


def first_of(answers: Answers, name: str) -> tuple[Any, ...]:
    """The one row of a statement that gives one."""
    return rows_of(answers, name)[0]


def known_words(words: set[str], known: set[str]) -> str:
    """Words of Oracle's vocabulary for people; others are counted, since nobody knows what they
    quote."""
    shown = sorted(words & known)
    more = len(words - known)
    return ", ".join([*shown, *([f"{more} unknown" if more else ""] if more else [])]) or "none"


def share(rows: Sequence[Any], is_so: Callable[[Any], object], what: str) -> Verdict:
    """Is it so of each of the rows? ``what`` is said of those of which it is."""
    good = sum(bool(is_so(row)) for row in rows)
    return decided(good == len(rows), f"{good} of {len(rows)} rows {what}")

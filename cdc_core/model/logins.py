"""Who logs in where, and how often was that refused?"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Login:
    """A password that is sent to a database. Never printed, never stored."""

    dsn: str
    user: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A login that Oracle has refused for its password: how often, and when for the last time, in
    seconds since 1970."""

    count: int
    newest: float

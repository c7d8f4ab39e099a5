"""Which changes of change logs are no events?"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import field_validator, model_validator

from cdc_core.config.base import ConfigModel, checked
from cdc_core.model.patterns import check_name


class EventsConfig(ConfigModel):
    """Which changes of change logs are no events: each has its reason in ``_cdc_skipped``, where
    all others have NULL. They stay in the change log, since mirrors are made of it: a mirror takes
    every change, whatever is skipped. ``redolake table events`` leaves them out, and the table of
    transactions does not count them. Rows of snapshots are never skipped."""

    skipped_operations: tuple[Literal["c", "u", "d"], ...] = ()
    """Operations: ``c`` inserts, ``u`` updates, changes of key among them, ``d`` deletes. For
    TRUNCATE there is ``policies.on_truncate``."""

    skip_unchanged: bool = False
    """Updates that leave every captured column as it was. What the redo does not tell counts as
    changed; values are compared as they are captured, masked ones after masking."""

    users_include: tuple[str, ...] = ()
    """The only users whose transactions are events, in Oracle's spelling; with ``*`` and ``?``, or
    ``re:`` in front of a regular expression, all whose names fit as a whole. A transaction whose
    user LogMiner does not know always is."""

    users_exclude: tuple[str, ...] = ()
    """Users whose transactions are no events, likewise. Not together with ``users_include``."""

    clients_include: tuple[str, ...] = ()
    """The same by the session's CLIENT_IDENTIFIER: the only ones whose transactions are events. One
    without an identifier always is."""

    clients_exclude: tuple[str, ...] = ()
    """Client identifiers whose transactions are no events. Not together with
    ``clients_include``."""

    @field_validator("users_include", "users_exclude", "clients_include", "clients_exclude")
    @classmethod
    def _are_names(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(checked(name, check_name) for name in names)

    @model_validator(mode="after")
    def _lists_one_side(self) -> Self:
        for who in ("users", "clients"):
            if getattr(self, f"{who}_include") and getattr(self, f"{who}_exclude"):
                raise ValueError(f"{who}_include and {who}_exclude: leave one of them out")
        return self

"""Which changes of change logs are no events?"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import field_validator, model_validator

from cdc_core.config.base import ConfigModel, checked
from cdc_core.model.patterns import check_name


class EventsConfig(ConfigModel):
    """Which changes in the change logs are skipped: ``_cdc_skipped`` has the reason, and is NULL
    for all others. Skipped changes stay in the change log and in the mirror, which is derived from
    it. ``redolake table events`` omits them, and the table of transactions does not count them.
    Rows of snapshots are never skipped."""

    skipped_operations: tuple[Literal["c", "u", "d"], ...] = ()
    """Operations to skip: ``c`` inserts, ``u`` updates (including changes of key), ``d`` deletes.
    For TRUNCATE, use ``policies.on_truncate``."""

    skip_unchanged: bool = False
    """Skip updates that leave every captured column unchanged. A value that the redo does not carry
    counts as changed. Redolake compares captured values, masked ones after masking."""

    users_include: tuple[str, ...] = ()
    """The only users whose transactions are not skipped, in Oracle's spelling; with ``*`` and
    ``?``, or ``re:`` before a regular expression that must match the whole name. A transaction
    whose user LogMiner does not know is not skipped."""

    users_exclude: tuple[str, ...] = ()
    """Users whose transactions are skipped, likewise. Not together with ``users_include``."""

    clients_include: tuple[str, ...] = ()
    """The only values of the session's CLIENT_IDENTIFIER whose transactions are not skipped. A
    transaction without an identifier is not skipped."""

    clients_exclude: tuple[str, ...] = ()
    """Client identifiers whose transactions are skipped. Not together with ``clients_include``."""

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

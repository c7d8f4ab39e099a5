"""What can a user configure of signals?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from cdc_core.config.base import ConfigModel

SignalChannel = Literal["store", "dagster", "oracle", "file", "landing"]
ImportPath = Annotated[str, Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$", max_length=300)]
"""``package.module:name`` of something that Python can import."""
ActionName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,39}$")]
_BUILT_IN = frozenset(
    {
        "execute-snapshot",
        "stop-snapshot",
        "pause-snapshot",
        "resume-snapshot",
        "log",
        "schema-changes",
        "drop-transaction",
    }
)


class SignalConfig(ConfigModel):
    """Where signals come from, and what they can ask for."""

    channels: tuple[SignalChannel, ...] = ()
    """Where Redolake takes signals from: ``store`` (``redolake signal``), ``dagster`` (the job
    ``<source>_send_signal``), ``oracle`` (the signal table), ``file``, and ``landing`` (objects in
    the landing store, on S3 for example). Empty, the default: ``store`` and ``dagster``,
    ``oracle`` where ``table`` is set, and ``file`` where ``file`` is set."""

    table: str | None = None
    """A signal table in Oracle (``id VARCHAR2``, ``type VARCHAR2``, ``data VARCHAR2`` or
    ``CLOB``), read only. By default there is none."""

    file: Path | None = None
    """The absolute path of a file to which senders append one JSON object a line: ``{"id": "…",
    "type": "execute-snapshot", "data": {…}}``. Redolake renames the file, reads it and removes
    it."""

    actions: dict[ActionName, ImportPath] = Field(default_factory=dict)
    """Types of signals of your own, each with the function that acts on it, as
    ``package.module:function``. Redolake calls it with the signal's id, its data, and the source's
    position."""

    @property
    def enabled(self) -> tuple[SignalChannel, ...]:
        """The channels that signals are taken from."""
        if self.channels:
            return self.channels
        chosen: list[SignalChannel] = ["store", "dagster"]
        if self.table is not None:
            chosen.append("oracle")
        if self.file is not None:
            chosen.append("file")
        return tuple(chosen)

    @field_validator("file")
    @classmethod
    def _is_absolute(cls, path: Path | None) -> Path | None:
        if path is not None and not path.is_absolute():
            raise ValueError("write an absolute path: Redolake runs in more than one folder")
        return path

    @field_validator("actions")
    @classmethod
    def _are_not_built_in(cls, actions: dict[str, str]) -> dict[str, str]:
        if taken := sorted(_BUILT_IN & actions.keys()):
            raise ValueError(f"these types are Redolake's own: {', '.join(taken)}")
        return actions

    @model_validator(mode="after")
    def _channels_have_places(self) -> Self:
        for channel, place in (("oracle", self.table), ("file", self.file)):
            if channel in self.channels and place is None:
                setting = "table" if channel == "oracle" else "file"
                raise ValueError(f"the channel {channel} needs signals.{setting}")
        return self

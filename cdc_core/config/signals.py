"""What can a user configure of signals?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, SecretStr, field_validator, model_validator

from cdc_core.config.base import ConfigModel

SignalChannel = Literal["store", "dagster", "oracle", "file", "landing", "kafka"]
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
    """Where signals come from, and which actions of your own they can request."""

    channels: tuple[SignalChannel, ...] = ()
    """Where Redolake reads signals: ``store`` (``redolake signal``), ``dagster`` (the job
    ``<source>_send_signal``), ``oracle`` (the signal table), ``file``, ``landing`` (objects in
    the landing store, for example on S3), and ``kafka``. Empty, the default: ``store`` and
    ``dagster``, plus ``oracle`` if ``table`` is set, ``file`` if ``file`` is set, and ``kafka`` if
    ``kafka_topic`` is set."""

    table: str | None = None
    """A signal table in Oracle (``id VARCHAR2``, ``type VARCHAR2``, ``data VARCHAR2`` or
    ``CLOB``). Redolake only reads it: with queries, or from its redo if you also name it under
    ``tables``. By default, there is none."""

    file: Path | None = None
    """The absolute path of a file to which senders append one JSON object per line: ``{"id": "…",
    "type": "execute-snapshot", "data": {…}}``. Redolake renames the file, reads it and removes
    it."""

    kafka_topic: Annotated[str, Field(min_length=1, max_length=249)] | None = None
    """A topic whose records are signals: the key is the name of the source, the value the JSON of a
    signal, as in ``file``. Needs ``pip install 'redolake[kafka]'`` and ``kafka_servers``."""

    kafka_servers: Annotated[str, Field(min_length=1)] | None = None
    """Brokers of the topic, as ``host:port``, separated by commas."""

    kafka_options: dict[str, str] = Field(default_factory=dict)
    """Options of the client (librdkafka), for example ``security.protocol`` and
    ``sasl.username``."""

    kafka_sasl_password: SecretStr | None = None
    """The client's ``sasl.password``. In a file, name an environment variable under
    ``kafka_sasl_password_env`` instead."""

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
        if self.kafka_topic is not None:
            chosen.append("kafka")
        return tuple(chosen)

    @field_validator("file")
    @classmethod
    def _is_absolute(cls, path: Path | None) -> Path | None:
        if path is not None and not path.is_absolute():
            raise ValueError("write an absolute path: Redolake runs in more than one folder")
        return path

    @field_validator("kafka_options")
    @classmethod
    def _hold_no_secret(cls, options: dict[str, str]) -> dict[str, str]:
        if secret := [name for name in options if "password" in name or "secret" in name]:
            raise ValueError(f"{', '.join(secret)}: name a variable under kafka_sasl_password_env")
        return options

    @field_validator("actions")
    @classmethod
    def _are_not_built_in(cls, actions: dict[str, str]) -> dict[str, str]:
        if taken := sorted(_BUILT_IN & actions.keys()):
            raise ValueError(f"these types are Redolake's own: {', '.join(taken)}")
        return actions

    @model_validator(mode="after")
    def _channels_have_places(self) -> Self:
        places = {"oracle": "table", "file": "file", "kafka": "kafka_topic"}
        for channel, setting in places.items():
            if channel in self.channels and getattr(self, setting) is None:
                raise ValueError(f"the channel {channel} needs signals.{setting}")
        if (self.kafka_topic is None) != (self.kafka_servers is None):
            raise ValueError("kafka_topic and kafka_servers need each other")
        return self

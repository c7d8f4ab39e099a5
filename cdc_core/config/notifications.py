"""What can a user configure of notifications?"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, SecretStr, field_validator, model_validator

from cdc_core.config.base import ConfigModel, split_url_password
from cdc_core.config.signals import ImportPath

NotificationChannelName = Literal["store", "log", "webhook", "dagster", "custom"]


class NotificationConfig(ConfigModel):
    """Where Redolake reports snapshots that begin, progress and end, tables that stop, and gaps."""

    channels: tuple[NotificationChannelName, ...] = ()
    """Where notifications go: ``store`` (the metadata store, for ``redolake notifications``),
    ``log``, ``webhook``, ``dagster`` (observations, which the snapshots sensor reports from the
    metadata store) and ``custom``. Empty, the default: nowhere."""

    webhook_url: str | None = None
    """The address to which the channel ``webhook`` sends each notification as JSON, with POST. It
    must not contain a password."""

    webhook_secret: SecretStr | None = None
    """A secret that is sent as ``Authorization: Bearer …``. In a file, name an environment variable
    under ``webhook_secret_env`` instead."""

    webhook_attempts: Annotated[int, Field(ge=1, le=10)] = 3
    """How often Redolake tries to send a notification to the webhook before it gives up with a
    warning."""

    custom: ImportPath | None = None
    """The class of the channel ``custom``, as ``package.module:Class``."""

    keep: Annotated[int, Field(ge=1)] = 10_000
    """How many notifications of the source the metadata store keeps."""

    @field_validator("webhook_url")
    @classmethod
    def _is_an_address(cls, url: str | None) -> str | None:
        if url is None:
            return None
        if not url.startswith(("http://", "https://")):
            raise ValueError("write an address that begins with https:// or http://")
        if split_url_password(url)[1] is not None:
            raise ValueError("it holds a password: name the secret under webhook_secret_env")
        return url

    @model_validator(mode="after")
    def _channels_have_places(self) -> Self:
        for channel, place in (("webhook", self.webhook_url), ("custom", self.custom)):
            if channel in self.channels and place is None:
                setting = "webhook_url" if channel == "webhook" else "custom"
                raise ValueError(f"the channel {channel} needs notifications.{setting}")
        return self

"""Where do notifications go?

A channel sends one notification at a time. What it cannot send is lost with a warning: a
notification never stops the work that it is about.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import Any, Protocol, cast
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential

from cdc_core.config.notifications import NotificationConfig
from cdc_core.model.import_path import made_by
from cdc_core.model.notifications import Notification

_LOG = logging.getLogger("cdc_core.notifications")
_TIMEOUT_SECONDS = 10
_TRIED_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})


class NotificationChannel(Protocol):
    """Sends notifications. A class of your own (``notifications.custom``) is made without
    arguments, once for each process."""

    def send(self, source: str, notification: dict[str, Any]) -> None:
        """Send one notification of a source.

        Args:
            source: The source's name.
            notification: ``id``, ``aggregate_type``, ``type``, ``additional_data`` and
                ``timestamp`` (milliseconds since 1970), as in Debezium.

        Raises:
            Exception: It was not sent; a warning says so, and nothing else happens.
        """


class LogChannel:
    """A line of JSON in the log, at INFO."""

    def send(self, source: str, notification: dict[str, Any]) -> None:
        """See :class:`NotificationChannel`."""
        _LOG.info("notification source=%s %s", source, json.dumps(notification, sort_keys=True))


class WebhookChannel:
    """An HTTP POST of the JSON, sent again after errors that may pass."""

    def __init__(self, url: str, secret: str | None, attempts: int) -> None:
        self._url = url
        self._secret = secret
        self._attempts = attempts

    def send(self, source: str, notification: dict[str, Any]) -> None:
        """See :class:`NotificationChannel`."""
        body = json.dumps({**notification, "source": source}).encode()
        headers = {"Content-Type": "application/json"}
        if self._secret is not None:
            headers["Authorization"] = f"Bearer {self._secret}"
        request = Request(self._url, data=body, headers=headers, method="POST")  # noqa: S310  # http
        for attempt in Retrying(
            retry=retry_if_exception(_may_pass),
            stop=stop_after_attempt(self._attempts),
            wait=wait_exponential(multiplier=0.2, max=5),
            reraise=True,
        ):
            with attempt, urlopen(request, timeout=_TIMEOUT_SECONDS):  # noqa: S310  # http alone
                pass


def open_channels(config: NotificationConfig) -> Sequence[NotificationChannel]:
    """The channels that are configured, but for the metadata store.

    Raises:
        ConfigError: ``notifications.custom`` cannot be used.
    """
    found: list[NotificationChannel] = []
    for name in config.channels:
        if name == "log":
            found.append(LogChannel())
        elif name == "webhook":
            secret = config.webhook_secret
            found.append(
                WebhookChannel(
                    str(config.webhook_url),
                    secret.get_secret_value() if secret else None,
                    config.webhook_attempts,
                )
            )
        elif name == "custom":
            found.append(_custom(str(config.custom)))
    return found


def send_to(
    channels: Sequence[NotificationChannel], source: str, notification: Notification
) -> None:
    """Send a notification to every channel; what one cannot send is a warning."""
    for channel in channels:
        try:
            channel.send(source, notification.as_json())
        except Exception as error:  # whatever the network or a user's class raises
            _LOG.warning(
                "a notification was not sent channel=%s type=%s error=%s",
                type(channel).__name__, notification.type, type(error).__name__,
            )  # fmt: skip


def _custom(path: str) -> NotificationChannel:
    does = "its method `send` gets each notification."
    return cast(NotificationChannel, made_by(path, option="notifications.custom", does=does))


def _may_pass(error: BaseException) -> bool:
    if isinstance(error, HTTPError):
        return error.code in _TRIED_AGAIN
    return isinstance(error, URLError | TimeoutError | ConnectionError)

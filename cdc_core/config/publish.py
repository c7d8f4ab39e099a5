"""What can a user configure of events that go to Kafka?"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field, SecretStr, field_validator

from cdc_core.config.base import ConfigModel, checked
from cdc_core.model.templates import check_fields


class PublishConfig(ConfigModel):
    """Events for Kafka: ``redolake publish`` sends the changes in the change logs, with Debezium's
    envelope, keys and tombstones, each event once. Needs ``pip install 'redolake[kafka]'``."""

    bootstrap_servers: str | None = None
    """Kafka's brokers, as ``host:port``, separated by commas. Empty, the default: Redolake
    publishes nothing."""

    topic_prefix: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,100}$")] | None = None
    """Topics are called ``<topic_prefix>.<OWNER>.<TABLE>``; characters other than letters, digits,
    ``.``, ``_`` and ``-`` become ``_``. By default the name of the source. The compacted topic
    ``<topic_prefix>.redolake-positions`` stores the positions: never remove it."""

    topic: str | None = None
    """The topics of tables, as a template, for example ``{prefix}.{owner_lower}.{table_lower}``:
    ``{prefix}`` is ``topic_prefix``, and you can use the fields of ``lake.mirror_path``. It
    replaces Debezium's ``topic.delimiter``, ``topic.naming.strategy`` and routing."""

    transaction_topic: str | None = None
    """Topic for BEGIN and END of each transaction; Debezium calls it ``{prefix}.transaction``.
    Events then have ``transaction`` and ``source.txSeq``, and wait until all tables have applied
    their window. Not sent by default (Debezium's ``provide.transaction.metadata``)."""

    schema_change_topic: str | None = None
    """Topic for changes of the tables' definitions; Debezium calls it ``{prefix}``. Not sent by
    default; needs ``lake.schema_changes``."""

    heartbeat_topic: str | None = None
    """Topic for a heartbeat each time Redolake publishes; Debezium calls it
    ``__debezium-heartbeat.{prefix}``. Not sent by default (``heartbeat.interval.ms``)."""

    schemas: bool = False
    """Whether each message includes its schema, ``{"schema": …, "payload": …}``, which Connect's
    JSON converter requires for sinks that need types (``schemas.enable``)."""

    decimals: Literal["text", "precise"] = "text"
    """Format of a NUMBER other than a whole number of up to 18 digits: text, or the bytes of
    Connect's Decimal (``decimal.handling.mode: precise``, Debezium's default)."""

    begin: Literal["beginning", "now"] = "beginning"
    """Where a table begins that was never published: ``beginning``, with its whole change log, rows
    of snapshots first; or ``now``, with later changes only."""

    tombstones: bool = True
    """Whether Redolake sends a message with the key and no value after a deletion, for topics that
    Kafka compacts (Debezium's ``tombstones.on.delete``)."""

    partitions: Annotated[int, Field(ge=1)] = 1
    """Partitions of topics that Redolake creates. Events of one key are always in one partition."""

    time_zone: str = "UTC"
    """Time zone of the database's host, and so of redo timestamps, for example
    ``Europe/Berlin``."""

    database: str | None = None
    """Value of ``source.db``. By default the database's name; Debezium uses the pluggable
    database's."""

    unavailable_value_placeholder: str | None = None
    """Value of columns that an event does not carry; NULL by default. Debezium writes
    ``__debezium_unavailable_value``."""

    options: dict[str, str] = Field(default_factory=dict)
    """Further properties of the client (librdkafka), for example ``security.protocol``. They must
    not contain a password."""

    sasl_password: SecretStr | None = None
    """The client's ``sasl.password``. In a file, name an environment variable under
    ``sasl_password_env`` instead."""

    @field_validator("topic")
    @classmethod
    def _name_tables(cls, topic: str | None) -> str | None:
        return topic and checked(topic, lambda text: check_fields(text, ["prefix"]))

    @field_validator("transaction_topic", "schema_change_topic", "heartbeat_topic")
    @classmethod
    def _name_no_table(cls, topic: str | None) -> str | None:
        try:
            named = "" if topic is None else topic.format(prefix="p", source="s")
        except (KeyError, IndexError, ValueError):
            raise ValueError("the fields of this topic are {prefix} and {source}") from None
        if topic is not None and not re.fullmatch(r"[A-Za-z0-9._-]{1,200}", named):
            raise ValueError("a topic has letters, digits, '.', '_' and '-'")
        return topic

    @field_validator("options")
    @classmethod
    def _hold_no_secret(cls, options: dict[str, str]) -> dict[str, str]:
        secret = [name for name in options if "password" in name or "secret" in name]
        if secret:
            raise ValueError(
                f"{', '.join(secret)}: name an environment variable under sasl_password_env, or a "
                "file of librdkafka's own"
            )
        fixed = [name for name in options if name in _FIXED]
        if fixed:
            raise ValueError(f"{', '.join(fixed)}: Redolake sets these itself")
        return options


_FIXED = frozenset({"bootstrap.servers", "transactional.id", "enable.idempotence", "acks"})

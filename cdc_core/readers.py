"""Which reader of redo does a source's configuration mean?"""

from __future__ import annotations

from importlib.util import find_spec

from cdc_core.capture.source import LogMinerSource
from cdc_core.config import OpenLogReplicatorConfig, SourceConfig
from cdc_core.errors import ConfigError
from cdc_core.oracle.database import OracleDatabase
from cdc_core.source import Source


def open_source(config: SourceConfig, database: OracleDatabase) -> Source:
    """The reader that ``capture.type`` names; it connects to nothing before the first question.

    Raises:
        ConfigError: A package that the reader needs is not installed.
    """
    if not isinstance(config.capture, OpenLogReplicatorConfig):
        return LogMinerSource(config, database)
    if find_spec("msgspec") is None:
        raise ConfigError(
            "capture.type openlogreplicator needs a package that is not installed",
            hint='`pip install "redolake[openlogreplicator]"` installs it.',
            package="msgspec",
        )
    # Most sources do without the package.
    from cdc_core.change_stream.source import StreamSource
    from cdc_core.openlogreplicator.stream import MessageStream

    return StreamSource(config, database, MessageStream(config.capture))

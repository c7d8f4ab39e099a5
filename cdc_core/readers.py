"""Which reader of redo does a source's configuration mean?"""

from __future__ import annotations

from importlib.util import find_spec

from cdc_core.capture.source import LogMinerReader
from cdc_core.change_reader import ChangeReader
from cdc_core.config import LogMinerConfig, SourceConfig, XStreamConfig
from cdc_core.errors import ConfigError
from cdc_core.oracle.database import OracleDatabase


def open_reader(config: SourceConfig, database: OracleDatabase) -> ChangeReader:
    """The reader that ``capture.type`` names; it connects to nothing before the first question.

    Raises:
        ConfigError: A package that the reader needs is not installed.
    """
    capture = config.capture
    if isinstance(capture, LogMinerConfig):
        return LogMinerReader(config, database)
    if find_spec("msgspec") is None:
        raise ConfigError(
            f"capture.type {capture.type} needs a package that is not installed",
            hint=f'`pip install "redolake[{capture.type}]"` installs it.',
            package="msgspec",
        )
    # Most sources do without the package.
    from cdc_core.change_stream.source import RecordedStreamReader, StreamReader

    if isinstance(capture, XStreamConfig):
        if capture.server is not None:
            from cdc_core.xstream.server import OutboundServer

            outbound = OutboundServer(capture, config.oracle, database)
            return RecordedStreamReader(config, database, outbound)
        from cdc_core.xstream.stream import Recordings

        return StreamReader(config, database, Recordings(capture))
    from cdc_core.openlogreplicator.stream import MessageStream

    return StreamReader(config, database, MessageStream(capture))

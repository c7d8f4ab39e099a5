"""What keeps Redolake from reading OpenLogReplicator's messages? All of it at once, each with its
remedy.

The messages are looked at, not the configuration they were written with: it ignores options that it
does not know, so that only what it wrote shows what it was told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from cdc_core.change_stream.files import RecordFiles
from cdc_core.change_stream.preflight import check_files
from cdc_core.config import OpenLogReplicatorConfig, TableConfig
from cdc_core.errors import LogsNotReadyError, PreflightError
from cdc_core.model.findings import Finding
from cdc_core.openlogreplicator.messages import (
    CONFIGURE,
    FLAGS_LINE,
    SHAPE_DECODER,
    Message,
    Payload,
)
from cdc_core.openlogreplicator.network import NetworkMessages
from cdc_core.openlogreplicator.protocol import Answer
from cdc_core.oracle.session import OracleSession
from cdc_core.schema.dictionary_queries import rows_about

_FLOATS = """
SELECT OWNER, TABLE_NAME, COLUMN_NAME
  FROM ALL_TAB_COLS
 WHERE DATA_TYPE IN ('BINARY_FLOAT', 'BINARY_DOUBLE') AND {tables}
 ORDER BY OWNER, TABLE_NAME, COLUMN_ID"""


def check_floats(
    session: OracleSession, tables: Sequence[TableConfig], how: OpenLogReplicatorConfig
) -> Iterator[Finding]:
    """Binary floats, which have six digits in the messages."""
    if how.binary_floats != "refuse":
        return
    entries = {one.table: one for one in tables}
    for table, column in rows_about(session, _FLOATS, entries):
        if not entries[table].excludes(column):
            yield Finding(
                f"{table}.{column} is a binary float, of which OpenLogReplicator writes six digits",
                "Name the column under columns_exclude of the table, or set `capture.binary_floats` to `reselect` or `take`.",
                table,
            )


def check_messages(open_files: Callable[[], RecordFiles], folder: str | None) -> list[Finding]:
    """What the folder or the messages in it lack."""
    empty = Finding(
        f"OpenLogReplicator has not written a message into {folder} yet",
        f"Start it; with {FLAGS_LINE} of its source it sends checkpoints when nothing else happens.",
        is_problem=False,
    )
    return check_files(open_files, _findings, empty)


def check_server(network: NetworkMessages) -> list[Finding]:
    """What the network writer says of itself."""
    try:
        reply = network.info()
    except (PreflightError, LogsNotReadyError) as error:
        return [Finding(error.what_happened, error.hint)]
    what = (
        "is ready: the first snapshot starts it"
        if reply.code is Answer.READY
        else f"replicates from SCN {reply.scn} on"
    )
    return [Finding(f"OpenLogReplicator {what}", "", is_problem=False)]


def _findings(messages: Sequence[Message]) -> Iterator[Finding]:
    for member in dict.fromkeys(_lacking(messages)):
        yield Finding(f"OpenLogReplicator's messages lack {member}", CONFIGURE)
    if not any(one.payload[0].op == "chkpt" for one in messages if one.payload):
        yield Finding(
            "OpenLogReplicator sends no checkpoint messages: a window waits for the next transaction",
            f"Set {FLAGS_LINE} of its source.",
            is_problem=False,
        )


def _lacking(messages: Sequence[Message]) -> Iterator[str]:
    """Members that some message should have, and has not."""
    for message in messages:
        for payload in message.payload:
            if payload.op == "chkpt":
                continue
            if message.xid is None and message.xidn is None:
                yield "xid"
            if payload.op != "ddl" and message.commit_scn is None:
                yield "e_scn"
            if payload.op in ("c", "u", "d"):
                yield from _lacking_of_row(payload)


def _lacking_of_row(payload: Payload) -> Iterator[str]:
    if payload.rid is None:
        yield "rid"
    if not bytes(payload.schema):
        yield "schema"
    elif SHAPE_DECODER.decode(payload.schema).columns is None:
        yield "schema.columns"

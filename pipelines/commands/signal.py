"""Commands that send signals: requests that a running pipeline takes from its metadata store."""

from __future__ import annotations

import json
import re
import sys
import uuid
from pathlib import Path
from typing import Annotated, Any

import typer

from cdc_core.errors import ConfigError
from cdc_core.model.identifiers import TableId
from cdc_core.model.signals import Signal
from pipelines.commands.data import ConditionOption
from pipelines.commands.shared import ConfigOption, opened, out
from pipelines.config_file import SourceFile

_NAME = re.compile(r'(\w[\w$#]*|"[^"]+")\.(\w[\w$#]*|"[^"]+")')
IdOption = Annotated[
    str | None, typer.Option("--id", help="The signal's id; Redolake acts on each id once.")
]
TablesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[OWNER.TABLE]...",
        help="Names, patterns (SHOP.ORDER*), or regular expressions over pdb.owner.table.",
        show_default=False,
    ),
]


def execute_snapshot(
    tables: TablesArgument = None,
    condition: ConditionOption = None,
    blocking: Annotated[
        bool,
        typer.Option(
            "--blocking",
            help="Apply no windows to these tables until their chunks are applied. "
            "--condition may then be a whole SELECT.",
        ),
    ] = False,
    surrogate_key: Annotated[
        str | None,
        typer.Option(
            "--surrogate-key",
            metavar="COLUMN",
            help="Cut the chunks by this column, or by ROWID, instead of the key.",
        ),
    ] = None,
    signal_id: IdOption = None,
    config: ConfigOption = None,
) -> None:
    """Request an ad hoc snapshot of tables, in full or of the rows that match a condition.

    The command stores the request in the metadata store. The snapshots sensor in Dagster, or
    `redolake run`, processes it once.
    """
    named = list(dict.fromkeys(map(_as_written, tables or [])))
    if not named:
        raise ConfigError(
            "no table was named", hint="Write `redolake signal execute-snapshot OWNER.TABLE`."
        )
    data: dict[str, Any] = {"data-collections": named}
    if blocking:
        data["type"] = "blocking"
    if surrogate_key is not None:
        data["surrogate-key"] = surrogate_key
    if condition is not None:
        data["additional-conditions"] = [
            {"data-collection": name, "filter": condition} for name in named
        ]
    _send("execute-snapshot", data, signal_id, config)


def stop_snapshot(
    tables: TablesArgument = None, signal_id: IdOption = None, config: ConfigOption = None
) -> None:
    """Stop snapshots of some tables, or of all: Redolake drops chunks that it has not read.

    Chunks that it has read remain valid, and change capture continues. A table whose first snapshot
    is stopped has only a part of its rows; `redolake snapshot --table` reads all of them.
    """
    _send("stop-snapshot", {"data-collections": tables} if tables else {}, signal_id, config)


def pause_snapshot(signal_id: IdOption = None, config: ConfigOption = None) -> None:
    """Read no further chunks of snapshots until `redolake signal resume-snapshot`. Windows
    continue."""
    _send("pause-snapshot", {}, signal_id, config)


def resume_snapshot(signal_id: IdOption = None, config: ConfigOption = None) -> None:
    """Continue snapshots that `redolake signal pause-snapshot` paused."""
    _send("resume-snapshot", {}, signal_id, config)


def send(
    kind: Annotated[
        str, typer.Argument(metavar="TYPE", help="For example log, or a type of signals.actions.")
    ],
    data: Annotated[
        str, typer.Option("--data", metavar="JSON", help="The signal's data, a JSON object.")
    ] = "{}",
    signal_id: IdOption = None,
    config: ConfigOption = None,
) -> None:
    """Send a signal of any type with its data in Debezium's JSON."""
    try:
        found = json.loads(data)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ConfigError(
            "the signal's data is not a JSON object", hint='Write --data \'{"message": "hello"}\'.'
        )
    _send(kind, found, signal_id, config)


def schema_changes(
    file: Annotated[
        Path,
        typer.Argument(
            help='JSON of the signal: {"changes": [{"type": "ALTER", "id": "OWNER.TABLE", "table": {…}}]}; - for standard input.',
            show_default=False,
            allow_dash=True,
        ),
    ],
    scn: Annotated[
        int | None,
        typer.Option(
            "--scn",
            help="The SCN as of which the file describes the tables. Default: the SCN at which "
            "Redolake processes the signal.",
        ),
    ] = None,
    signal_id: IdOption = None,
    config: ConfigOption = None,
) -> None:
    """Provide table definitions that Oracle no longer shows, in the format of Debezium's schema
    history.

    The request is stored in the metadata store and processed once: by the snapshots sensor in
    Dagster, or by `redolake run`. Windows that are already captured are not affected.
    """
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
        data = json.loads(text)
    except (OSError, ValueError) as error:
        raise ConfigError(
            "the signal's file cannot be read as JSON",
            hint="Name a file with one JSON object in UTF-8, or - for standard input.",
            file=str(file),
            reason=_why_unread(error),
        ) from error
    if not isinstance(data, dict):
        raise ConfigError(
            "the signal's file does not contain a JSON object",
            hint='Write {"changes": [{"type": "ALTER", "id": "OWNER.TABLE", "table": {…}}]}.',
            file=str(file),
        )
    _send("schema-changes", data if scn is None else {**data, "scn": scn}, signal_id, config)


def _as_written(entry: str) -> str:
    """A plain name as Oracle has it; a pattern or a regular expression as it is."""
    return str(TableId.parse(entry)) if _NAME.fullmatch(entry) else entry


def _send(
    kind: str, data: dict[str, Any], signal_id: str | None, config: SourceFile | None
) -> None:
    with opened(config, oracle=False) as pipeline:
        signal = Signal(
            id=signal_id or uuid.uuid4().hex, source=pipeline.config.name, type=kind, data=data
        )
        if pipeline.add_signal(signal):
            told = "waits for the snapshots sensor or for `redolake run`"
        else:
            told = "was sent before, and is taken once; `redolake signals` shows its state"
        out().print(f"signal {signal.id} {told}")


def _why_unread(error: OSError | ValueError) -> str:
    """Why a file is no JSON, without any of its text."""
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg}, line {error.lineno} column {error.colno}"
    return error.strerror or "?" if isinstance(error, OSError) else "not UTF-8"

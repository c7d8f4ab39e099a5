"""The command that records what an XStream outbound server gives."""

from __future__ import annotations

from typing import Annotated

import typer

from cdc_core.model.wording import counted
from pipelines.commands.shared import ConfigOption, opened, out


def record(
    folder: Annotated[
        str,
        typer.Argument(
            help="The folder with recordings, to which the command adds a file. It may be in an "
            "object store (s3://bucket/path)."
        ),
    ],
    from_scn: Annotated[
        int | None,
        typer.Option(
            "--from-scn",
            min=1,
            help="Record what committed above this SCN. Default: where the newest recording ends; "
            "the first one begins at the current SCN.",
        ),
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Record the LCRs of an XStream outbound server, up to the present, for a source that reads
    them from files: `type: xstream` and `folder` under capture.

    The server is the one that the configuration names under capture.server. The command does not
    advance its processed low watermark. Redolake has never run against Oracle's own client library;
    a recording helps to find differences.
    """
    with opened(config) as pipeline:
        count = pipeline.record_redo(folder, low=from_scn)
    out().print(f"{counted(count, 'LCR')} recorded into {folder}")

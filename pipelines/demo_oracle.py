"""How does a command on the demo's configuration find the demo's database?

A real source's database is simply there. The demo's is served only while something needs it: a
command uses it where it is served already (by ``redolake demo`` or ``redolake ui``), and else
serves it for as long as the command takes.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pipelines.config_file import is_demo
from pipelines.demo.server import Served, last_served, serving
from pipelines.demo.settings import PASSWORD_ENV, server_options, write_definitions

ANSWER_SECONDS = 2.0


@contextmanager
def database_of(
    path: Path, environ: Mapping[str, str], *, needed: bool = True
) -> Iterator[dict[str, str]]:
    """The environment in which a configuration file is read, with its database answering for the
    block.

    Args:
        path: The configuration file.
        environ: The process's environment.
        needed: False when the command does without the database; then nothing is started.

    Raises:
        OracleUnavailableError: The demo's database does not start.
    """
    if not is_demo(path):
        yield dict(environ)
        return
    before = last_served(path.parent)
    if before is not None and (not needed or _answers(before)):
        yield {**environ, PASSWORD_ENV: before.capture_password}
        return
    with serving(path.parent, options=server_options(path.parent)) as served:
        write_definitions(path.parent, served)
        yield {**environ, PASSWORD_ENV: served.capture_password}


def _answers(served: Served) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", served.port), timeout=ANSWER_SECONDS):
            return True
    except OSError:
        return False

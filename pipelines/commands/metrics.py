"""The command that gives numbers to Prometheus."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from pipelines.commands.pdbs import all_opened
from pipelines.commands.shared import ConfigOption, opened, out
from pipelines.config_file import SourceFile

if TYPE_CHECKING:
    from cdc_core.steps import Pipeline

OnceOption = Annotated[
    bool, typer.Option("--once", help="Print the numbers as text and end, without a server.")
]
PortOption = Annotated[
    int | None,
    typer.Option(
        "--port",
        min=1,
        max=65535,
        help="Port to serve on. Default: metrics.port, else 9464.",
    ),
]


def metrics(once: OnceOption = False, port: PortOption = None, config: ConfigOption = None) -> None:
    """Serve the metrics of a source for Prometheus at /metrics, until Ctrl-C.

    Use it for a source that Dagster runs: each scrape reads the metadata store and queries Oracle
    for its SCN. `redolake run --loop` also serves the metrics if metrics.port is set. --once prints
    them, for example for the text file collector of Prometheus's node exporter.
    """
    with opened(config) as pipeline:
        _give({pipeline.config.name: pipeline}, once=once, port=port)


def metrics_of_all(
    names: Sequence[str], *, once: bool, port: int | None, config: SourceFile
) -> None:
    """The same for all pluggable databases that the configuration lists, from one endpoint."""
    with all_opened(names, config) as pipelines:
        _give({one.config.name: one for one in pipelines.values()}, once=once, port=port)


@contextmanager
def serving(pipelines: Sequence[Pipeline]) -> Iterator[None]:
    """Serve the numbers of sources of one configuration for the block, if it says where, and send
    them to a collector of OpenTelemetry, if it names one."""
    for one in pipelines:
        one.send_metrics()
    how = pipelines[0].config.metrics
    if how.port is None:
        with nullcontext():
            yield
        return
    from pipelines.metrics_server import served

    sources = {one.config.name: _measure(one) for one in pipelines}
    with served(sources, address=how.address, port=how.port):
        yield


def _give(pipelines: Mapping[str, Pipeline], *, once: bool, port: int | None) -> None:
    from cdc_core.config.metrics import DEFAULT_PORT
    from pipelines.metrics_server import exposition, served

    how = next(iter(pipelines.values())).config.metrics
    sources = {name: _measure(one) for name, one in pipelines.items()}
    if once:
        typer.echo(exposition(sources), nl=False)
        return
    chosen = port or how.port or DEFAULT_PORT
    with served(sources, address=how.address, port=chosen):
        out().print(f"http://{how.address}:{chosen}/metrics, until Ctrl-C")
        threading.Event().wait()


def _measure(pipeline: Pipeline) -> partial:
    return partial(pipeline.measure, ask_oracle=pipeline.config.metrics.ask_oracle)

"""The command that sends events to Kafka."""

from __future__ import annotations

from cdc_core.model.wording import counted
from pipelines.commands.shared import ConfigOption, opened, out


def publish(config: ConfigOption = None) -> None:
    """Send the events of the change logs to Kafka, each once: Debezium's envelope, keys and
    tombstones.

    Needs publish.bootstrap_servers, and Kafka's client: pip install 'redolake[kafka]'. If
    publish.bootstrap_servers is set, `redolake run` does this after each round. The command
    continues after the last event in Kafka, whichever process sent it.
    """
    with opened(config, oracle=False) as pipeline:
        for one in pipeline.publish():
            what = one.table or one.topic
            out().print(f"{what}: {counted(one.events, 'event')} published")
            for generation in one.lost:
                out().print(
                    f"The older change log of {one.table}, with the suffix .g{generation}, is "
                    "gone: its last events may not have been published."
                )

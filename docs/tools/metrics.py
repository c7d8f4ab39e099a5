"""Which metrics are there, and which of Debezium's do they answer? From the one table of them."""

from __future__ import annotations

from cdc_core.model.metrics import METRICS, NO_METRIC
from docs.tools.markdown import code, table


def markdown() -> str:
    """The reference: each metric with its labels."""
    return table(
        ("metric", "type", "labels", "meaning", "Debezium"),
        (
            (
                code(one.name),
                one.kind,
                " ".join(map(code, ("source", *one.labels))),
                one.said,
                " ".join(map(code, one.debezium)) or "–",
            )
            for one in METRICS.values()
        ),
    )


def jmx_markdown() -> str:
    """Debezium's JMX attributes by name, and what answers each."""
    answered = {jmx: code(one.name) for one in METRICS.values() for jmx in one.debezium}
    reasons = {jmx: said for names, said in NO_METRIC.items() for jmx in names.split()}
    found = {**answered, **reasons}
    return table(("Debezium", "Redolake"), ((code(jmx), found[jmx]) for jmx in sorted(found)))

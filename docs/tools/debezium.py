"""What answers Debezium's properties, as a table per group? From the data that the import reads."""

from __future__ import annotations

from docs.tools.markdown import code, table
from pipelines.debezium.properties import PROPERTIES, Property, counterparts
from pipelines.debezium.words import NOTIFICATIONS, TOPICS

COUNTERPARTS = counterparts()
"""Option path as :mod:`docs.tools.options` writes it → Debezium's properties."""


def markdown() -> str:
    """The reference: one table per group of properties."""
    lines = []
    for group in dict.fromkeys(one.group for one in PROPERTIES):
        lines += [f"### {group}", "", _table([one for one in PROPERTIES if one.group == group]), ""]
    return "\n".join(lines)


def notifications_markdown() -> str:
    """Debezium's notifications and what Redolake sends for them."""
    return table(
        ("`aggregate_type`", "`type`", "Redolake"),
        ((code(about), code(kind), said) for (about, kind), said in NOTIFICATIONS.items()),
    )


def topics_markdown() -> str:
    """Debezium's topics, and what stands for them."""
    return table(
        ("topic", "Redolake"), ((f"{code(name)}: {what}", said) for name, what, said in TOPICS)
    )


def _table(chosen: list[Property]) -> str:
    return table(
        ("Debezium", "", "Redolake", "what to know"),
        (
            (
                " ".join(map(code, one.names)),
                str(one.verdict),
                " ".join(map(code, one.options)) or "–",
                one.said,
            )
            for one in chosen
        ),
    )

"""What answers Debezium's properties, as a table per group? From the data that the import reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from docs.tools.markdown import code, table
from pipelines.debezium.properties import PROPERTIES, Property, counterparts
from pipelines.debezium.words import (
    NOT_OFFERED,
    NOTIFICATIONS,
    SIGNALS,
    SNAPSHOT_MODES,
    TOPICS,
)

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


def modes_markdown() -> str:
    """Debezium's snapshot modes and what Redolake does for them."""
    return table(("`snapshot.mode`", "Redolake"), _coded(SNAPSHOT_MODES))


def signals_markdown() -> str:
    """Debezium's types of signals and what Redolake does with them."""
    return table(("`type`", "Redolake"), _coded(SIGNALS))


def not_offered_markdown() -> str:
    """What Redolake does not offer, why, and what to do instead."""
    return table(("Debezium", "why not", "instead"), NOT_OFFERED)


def _coded(words: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    return ((word if " " in word else code(word), said) for word, said in words.items())


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

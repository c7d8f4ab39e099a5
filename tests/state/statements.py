"""How tests count what is asked of a metadata store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import event

from cdc_core.state.store import Store


@contextmanager
def statements(store: Store) -> Iterator[list[str]]:
    """The statements that a store sends during the block, without BEGIN and COMMIT."""
    sent: list[str] = []

    def seen(*args: object) -> None:
        sent.append(str(args[2]))

    engine = store._database._engine
    event.listen(engine, "before_cursor_execute", seen)
    try:
        yield sent
    finally:
        event.remove(engine, "before_cursor_execute", seen)

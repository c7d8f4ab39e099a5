"""Which value does a sequence give next?"""

from __future__ import annotations

from oracle_embedded.api import OracleError
from oracle_embedded.engine.storage.catalog import SequenceDef
from oracle_embedded.engine.storage.store import Store


class Sequences:
    """States of all sequences. Values are reserved on disk in advance, as Oracle's cache does, so a
    killed process skips some."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._next: dict[int, int] = {}
        self._reserved: dict[int, int] = {}

    def next_value(self, identifier: int, current: dict[int, int]) -> int:
        """NEXTVAL; kept in ``current`` for CURRVAL."""
        with self._store.lock:
            definition = self._definition(identifier)
            value = self._next.get(identifier)
            if value is None:
                row = self._store.writer.sqlite.execute(
                    "SELECT next_value FROM sequences WHERE oid = ?", (identifier,)
                ).fetchone()
                value = int(row[0]) if row else definition.start
                self._reserved[identifier] = value
            if not definition.minimum <= value <= definition.maximum:
                if not definition.cycle:
                    which = "MAXVALUE" if definition.increment > 0 else "MINVALUE"
                    raise OracleError(
                        8004,
                        f"sequence {definition.name}.NEXTVAL exceeds {which} and cannot be instantiated",
                    )
                value = definition.minimum if definition.increment > 0 else definition.maximum
                self._reserved[identifier] = value
            following = value + definition.increment
            self._next[identifier] = following
            if self._reserved[identifier] == value:
                ahead = value + definition.increment * max(definition.cache, 1)
                self._save(identifier, ahead)
                self._reserved[identifier] = ahead
            current[identifier] = value
            return value

    def current_value(self, identifier: int, current: dict[int, int]) -> int:
        """CURRVAL of the session."""
        if identifier not in current:
            raise OracleError(
                8002,
                f"sequence {self._definition(identifier).name}.CURRVAL is not yet defined in this session",
            )
        return current[identifier]

    def _definition(self, identifier: int) -> SequenceDef:
        definition = self._store.catalog.by_id(identifier)
        if not isinstance(definition, SequenceDef):
            raise OracleError(2289, "sequence does not exist")
        return definition

    def _save(self, identifier: int, value: int) -> None:
        self._store.begin().execute(
            "INSERT OR REPLACE INTO sequences VALUES (?, ?)", (identifier, str(value))
        )

    def last_number(self, definition: SequenceDef) -> int:
        """ALL_SEQUENCES.LAST_NUMBER: the next value on disk."""
        with self._store.lock:
            row = self._store.writer.sqlite.execute(
                "SELECT next_value FROM sequences WHERE oid = ?", (definition.object_id,)
            ).fetchone()
        return int(row[0]) if row else definition.start

    def restart(self, identifier: int, value: int) -> None:
        """Go on with a value."""
        self._next[identifier] = value
        self._reserved[identifier] = value
        self._save(identifier, value)

    def forget(self, identifier: int) -> None:
        """The sequence is gone, or its cache must be read anew."""
        self._next.pop(identifier, None)
        self._reserved.pop(identifier, None)

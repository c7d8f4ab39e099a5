"""What do clients send in front of a request: closed cursors, schema, module, freed LOBs?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from oracle_embedded.wire.lobs import split_locators
from oracle_embedded.wire.ttc import ProtocolError, TtcReader

_CLOSE_CURSORS, _CANCEL_CURSORS, _FREE_LOBS, _END_TO_END = 105, 120, 96, 135
_SET_SCHEMA, _KEY_VALUES, _SESSION_STATE = 152, 154, 176


@dataclass(frozen=True, slots=True)
class PiggybackActions:
    """What a piggyback makes the session do."""

    close_cursor: Callable[[int], None]
    cancel_cursor: Callable[[int], None]
    free_lob: Callable[[bytes], None]
    set_attribute: Callable[[str, str | None], None]
    set_context: Callable[[str, Mapping[str, str]], None]


def read_piggyback(
    reader: TtcReader, actions: PiggybackActions, *, lengths_converted: bool
) -> None:
    """Read one piggyback and do what it says.

    Raises:
        ProtocolError: It is none that the agreed capabilities allow; its length is not known.
    """
    code = reader.u8()
    reader.u8()
    if code == _CLOSE_CURSORS:
        reader.u8()
        for _ in range(reader.ub()):
            actions.close_cursor(reader.ub())
    elif code == _CANCEL_CURSORS:
        reader.u8()
        for _ in range(reader.ub()):
            actions.cancel_cursor(reader.ub())
    elif code == _SET_SCHEMA:
        reader.u8()
        actions.set_attribute("CURRENT_SCHEMA", reader.text_twice())
    elif code == _END_TO_END:
        _read_end_to_end(reader, actions, lengths_converted=lengths_converted)
    elif code == _FREE_LOBS:
        _read_free_lobs(reader, actions)
    elif code == _KEY_VALUES:
        _read_context(reader, actions)
    elif code == _SESSION_STATE:
        reader.ub()
    else:
        raise ProtocolError(f"piggyback {code} was not offered")


def _read_end_to_end(
    reader: TtcReader, actions: PiggybackActions, *, lengths_converted: bool
) -> None:
    reader.raw(2)
    reader.ub()
    fields = [(name, *_pointer(reader)) for name in ("CLIENT_IDENTIFIER", "MODULE", "ACTION")]
    for _ in range(2):
        _pointer(reader)
    fields.append(("CLIENT_INFO", *_pointer(reader)))
    for _ in range(2):
        _pointer(reader)
    fields.append(("DBOP", *_pointer(reader)))
    changes: list[tuple[str, str | None]] = []
    for name, present, size in fields:
        if present:
            read = _sized_text if lengths_converted else _bare_text
            changes.append((name, read(reader, size) if size else None))
    for name, value in changes:
        actions.set_attribute(name, value)


def _sized_text(reader: TtcReader, size: int) -> str:
    """Read a text of known length. The driver sends a lone zero byte for each empty text before
    it."""
    while not (value := reader.text()):
        pass
    if len(value.encode()) != size:
        raise ProtocolError("client attribute has another length than announced")
    return value


def _bare_text(reader: TtcReader, size: int) -> str:
    return reader.announced_text(size, length_again=False)


def _pointer(reader: TtcReader) -> tuple[int, int]:
    return reader.u8(), reader.ub()


def _read_free_lobs(reader: TtcReader, actions: PiggybackActions) -> None:
    reader.u8()
    size = reader.ub()
    reader.u8()
    reader.skip_ub(3)
    reader.raw(3)
    reader.ub()
    reader.u8()
    reader.skip_ub(3)
    reader.raw(2)
    reader.ub()
    reader.u8()
    reader.ub()
    reader.u8()
    reader.ub()
    locators = reader.raw(size)
    for locator in split_locators(locators):
        actions.free_lob(locator)


def _read_context(reader: TtcReader, actions: PiggybackActions) -> None:
    """Attributes of an application context; none at all clears it."""
    reader.u8()
    reader.ub()
    reader.u8()
    count = reader.ub()
    reader.ub()
    reader.u8()
    namespace = reader.text()
    values = {}
    for _ in range(count):
        attribute = reader.text_twice()
        values[attribute] = reader.text_twice()
        reader.ub()
    actions.set_context(namespace, values)

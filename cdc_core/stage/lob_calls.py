"""What is a LOB after the calls that wrote it?

DBMS_LOB counts UTF-16 units, of which a character outside of the basic plane
has two; whether LogMiner's offsets and lengths do is not known (the probe ``lob.offset-units``
asks). Where the two readings give different values, what a statement wrote may say which it is: it
goes on where it stopped, and is cut where it ends. What calls of DBMS_LOB wrote need not. Where
nothing says it, the value is not known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cdc_core.decode.lob import (
    LobAppend,
    LobCall,
    LobEnd,
    LobErase,
    LobTrim,
    LobUnclear,
    LobWrite,
    TwoReadingsError,
)

Data = str | bytes


@dataclass(frozen=True, slots=True)
class Begin:
    """Where among the calls on a LOB a statement, or a call of DBMS_LOB, begins to write it."""

    at: int
    is_call: bool


def value_of_calls(
    base: Data | None, calls: Sequence[LobCall], empty: Data, begins: Sequence[Begin] = ()
) -> Data | None:
    """The LOB after the calls; None where that is not known. As :func:`written`, in the units that
    ``begins`` show.

    Raises:
        TwoReadingsError: Characters and UTF-16 units give different values, and nothing shows which
            is meant.
    """
    by_characters = written(base, calls, empty)
    texts = [base, *(call.data for call in calls if isinstance(call, LobWrite))]
    if not any(isinstance(text, str) and _is_beyond_basic(text) for text in texts):
        return by_characters
    split = [_split_call(call) for call in calls]
    by_units = _joined_pairs(written(_split_pairs(base), split, empty))
    if by_units == by_characters:
        return by_characters
    shown = {
        value
        for is_shown, value in (
            (_is_in_these_units(calls, begins), by_characters),
            (_is_in_these_units(split, begins), by_units),
        )
        if is_shown
    }
    if len(shown) != 1:
        raise TwoReadingsError("a LOB can be read in two ways", hint="See its table's reason.")
    return shown.pop()


def _is_beyond_basic(text: str) -> bool:
    return not text.isascii() and max(text) > "\uffff"


def _split_pairs(value: Data | None) -> Data | None:
    """Each character outside of the basic plane as its two UTF-16 units."""
    if not isinstance(value, str) or value.isascii():
        return value
    units = np.frombuffer(value.encode("utf-16-le", "surrogatepass"), dtype="<u2")
    return units.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")


def _joined_pairs(value: Data | None) -> Data | None:
    """The text of UTF-16 units; None where a half of a character is left."""
    if not isinstance(value, str):
        return value
    try:
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        return None


def _split_call(call: LobCall) -> LobCall:
    if isinstance(call, LobWrite):
        data = _split_pairs(call.data)
        assert data is not None
        return replace(call, data=data)
    return call


def _is_in_these_units(calls: Sequence[LobCall], begins: Sequence[Begin]) -> bool:
    """Did statements write all that they wrote from the LOB's first character on without a gap, and
    cut it where that ends? Only then these are the units that offsets and lengths have. False where
    no statement did."""
    ends = [*(one.at for one in begins[1:]), len(calls)]
    found = False
    for begin, end in zip(begins, ends, strict=False):
        if begin.is_call:
            continue
        length = 0
        for call in calls[begin.at : end]:
            match call:
                case LobWrite(offset, data) if offset == length + 1:
                    length += len(data)
                case LobTrim(cut) if cut in (0, length):
                    pass
                case _:
                    return False
        found = True
    return found


def written(base: Data | None, calls: Sequence[LobCall], empty: Data) -> Data | None:
    """The LOB after the calls; None where that is not known.

    Args:
        base: The LOB before them; None where it is not known.
        calls: In their order, at least one.
        empty: A value without length, of the column's type.
    """
    if any(isinstance(call, LobUnclear) for call in calls):
        return None
    if isinstance(calls[-1], LobAppend | LobEnd):
        return _joined(calls)
    if (whole := replaced(calls)) is not None:
        return whole
    cut = max((at for at, call in enumerate(calls) if call == LobTrim(0)), default=-1)
    if cut >= 0:
        base, calls = empty, calls[cut + 1 :]
    if not calls:
        return base
    if base is None:
        return None
    appended = _appended(base, calls)
    return _changed(base, calls) if appended is None else appended


def replaced(calls: Sequence[LobCall]) -> Data | None:
    """What an UPDATE gives a LOB: the last calls write it from its beginning on, and cut it inside
    of that, whatever was there before. None for other calls."""
    *writes, last = calls
    if not isinstance(last, LobTrim):
        return None
    begin = len(writes)
    while begin and isinstance(call := writes[begin - 1], LobWrite):
        begin -= 1
        if call.offset == 1:
            break
    whole = _appended(None, writes[begin:])
    return whole[: last.length] if whole is not None and last.length <= len(whole) else None


def _joined(calls: Sequence[LobCall]) -> Data | None:
    """A value that was written as a whole; None where its end is missing, or it has other calls."""
    parts: list[Any] = [call.data for call in calls if isinstance(call, LobAppend)]
    if not parts or len(parts) != len(calls) - 1 or not isinstance(calls[-1], LobEnd):
        return None
    full = [part for part in parts if part] or parts[:1]
    if len({type(part) for part in full}) > 1:
        return None
    joined: Data = type(full[0])().join(full)
    return joined


def _appended(base: Data | None, calls: Sequence[LobCall]) -> Data | None:
    """The LOB after writes that go on where it ends; None for other calls."""
    length = 0 if base is None else len(base)
    parts: list[Any] = [] if base is None else [base]
    for call in calls:
        if not isinstance(call, LobWrite) or call.offset != length + 1:
            return None
        parts.append(call.data)
        length += len(call.data)
    if not parts:
        return None
    joined: Data = type(parts[0])().join(parts)
    return joined


def _changed(base: Data, calls: Sequence[LobCall]) -> Data:
    """The LOB after any calls. What is written behind its end is reached by blanks, or zeros."""
    parts: Any = list(base) if isinstance(base, str) else bytearray(base)
    blank: Any = " " if isinstance(base, str) else 0
    for call in calls:
        match call:
            case LobWrite(offset, data):
                parts.extend([blank] * (offset - 1 - len(parts)))
                parts[offset - 1 : offset - 1 + len(data)] = data
            case LobErase(offset, amount):
                end = min(offset - 1 + amount, len(parts))
                parts[offset - 1 : end] = [blank] * (end - offset + 1)
            case LobTrim(length):
                del parts[length:]
    return "".join(parts) if isinstance(base, str) else bytes(parts)

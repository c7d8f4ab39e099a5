"""How do blocks write LOBs, by DBMS_LOB?

A variable holds the value of a LOB. One that came from a row is a
:class:`~oracle_embedded.engine.plsql.state.KeptLob`: what is written through it changes the row,
which has to be locked. Offsets and amounts count bytes of a BLOB and characters of a CLOB.

Source: PL/SQL Packages and Types Reference 19c, "DBMS_LOB".
"""

from __future__ import annotations

from collections.abc import Callable

from oracle_embedded.api import LobCall, OracleError
from oracle_embedded.engine.datatypes import numbers
from oracle_embedded.engine.datatypes.types import NUMBER, SqlType, raw, varchar
from oracle_embedded.engine.errors import ora
from oracle_embedded.engine.plsql.calls import wrong_arguments
from oracle_embedded.engine.plsql.state import Frame, KeptLob
from oracle_embedded.engine.plsql.values import assign, evaluate, integer, type_of_target
from oracle_embedded.engine.sql import ast

CONSTANTS = {
    ("DBMS_LOB", "LOB_READONLY"): 0, ("DBMS_LOB", "LOB_READWRITE"): 1, ("DBMS_LOB", "SESSION"): 10,
    ("DBMS_LOB", "CALL"): 12, ("DBMS_LOB", "LOBMAXSIZE"): 18446744073709551615,
}  # fmt: skip
_PIECE = 32767
Edit = tuple[bytes, LobCall]


class _Lob:
    """A LOB's content, counted in its own units."""

    def __init__(self, value: bytes, kind: SqlType) -> None:
        self.is_blob = kind.family == "blob"
        self._content: bytes | str = value if self.is_blob else value.decode()
        self.size = len(self._content)

    def piece(self, start: int, amount: int) -> bytes:
        """What stands from ``start`` (from 0) on, at most so much."""
        found = self._content[start : start + amount]
        return found if isinstance(found, bytes) else found.encode()

    def put(self, start: int, piece: bytes) -> Edit:
        """The content with a piece written over what stands there, or behind its end."""
        own: bytes | str = piece if self.is_blob else piece.decode()
        gap = max(start - self.size, 0)
        filler = (b"\0" if self.is_blob else b" ") * gap
        before = self.piece(0, start) + filler
        call = LobCall(start - gap, len(own) + gap)
        return before + piece + self.piece(start + len(own), self.size), call


def _bound(frame: Frame, node: ast.Call, names: str, required: int) -> list[ast.Expr | None]:
    """The arguments in the order of the parameters; None for one that is left out."""
    wanted = names.split()
    given = dict(zip(wanted, node.args, strict=False)) | dict(node.named)
    is_short = any(name not in given for name in wanted[:required])
    if is_short or len(node.args) > len(wanted) or set(given) - set(wanted):
        raise wrong_arguments(frame, node.pos, node.name[-1])
    return [given.get(name) for name in wanted]


def _number(frame: Frame, node: ast.Expr | None, place: int, least: int = 1) -> int:
    """A whole number, 1 where none is given."""
    value = 1 if node is None else integer(frame, node)
    if value < least:
        raise OracleError(21560, f"argument {place} is null, invalid, or out of range")
    return value


def _lob(frame: Frame, node: ast.Expr | None, call: ast.Call) -> tuple[bytes, SqlType]:
    assert node is not None
    value, kind = evaluate(frame, node)
    if not isinstance(kind, SqlType) or kind.family not in ("clob", "blob"):
        raise wrong_arguments(frame, call.pos, call.name[-1])
    if value is None:
        text = "PL/SQL: numeric or value error: invalid LOB locator specified: ORA-22275"
        raise OracleError(6502, text)
    assert isinstance(value, bytes)
    return value, kind


def _change(
    frame: Frame, target: ast.Expr | None, node: ast.Call, edit: Callable[[_Lob], Edit]
) -> None:
    """Write a LOB: that of a row through the handle of its locator, any other where it is."""
    assert target is not None
    value, kind = _lob(frame, target, node)
    if not isinstance(value, KeptLob):
        assign(frame, target, (edit(_Lob(value, kind))[0], kind))
        return
    if frame.in_query:
        raise OracleError(14551, "cannot perform a DML operation inside a query ")
    # Another locator of the same row may have written since this one was read.
    content, call = edit(_Lob(frame.session.read_lob(value.handle)[1], kind))
    frame.session.write_lob(value.handle, content, call)
    assign(frame, target, (KeptLob(content, value.handle), kind))


def _buffer(frame: Frame, node: ast.Expr | None, kind: SqlType, amount: int) -> bytes:
    assert node is not None
    is_blob = kind.family == "blob"
    value, _ = evaluate(frame, node, raw(_PIECE) if is_blob else varchar(_PIECE))
    assert value is None or isinstance(value, bytes)
    given: bytes | str = (value or b"") if is_blob else (value or b"").decode()
    if amount > len(given):
        raise OracleError(21560, "argument 2 is null, invalid, or out of range")
    taken = given[:amount]
    return taken if isinstance(taken, bytes) else taken.encode()


def _write(frame: Frame, node: ast.Call) -> None:
    target, size, start, text = _bound(frame, node, "LOB_LOC AMOUNT OFFSET BUFFER", 4)
    amount, offset = _number(frame, size, 2), _number(frame, start, 3)
    piece = _buffer(frame, text, _lob(frame, target, node)[1], amount)
    _change(frame, target, node, lambda lob: lob.put(offset - 1, piece))


def _write_append(frame: Frame, node: ast.Call) -> None:
    target, size, text = _bound(frame, node, "LOB_LOC AMOUNT BUFFER", 3)
    piece = _buffer(frame, text, _lob(frame, target, node)[1], _number(frame, size, 2))
    _change(frame, target, node, lambda lob: lob.put(lob.size, piece))


def _source(frame: Frame, node: ast.Expr | None, call: ast.Call, kind: SqlType) -> _Lob:
    value, other = _lob(frame, node, call)
    if other.family != kind.family:
        raise wrong_arguments(frame, call.pos, call.name[-1])
    return _Lob(value, other)


def _append(frame: Frame, node: ast.Call) -> None:
    target, source = _bound(frame, node, "DEST_LOB SRC_LOB", 2)
    other = _source(frame, source, node, _lob(frame, target, node)[1])
    _change(frame, target, node, lambda lob: lob.put(lob.size, other.piece(0, other.size)))


def _copy(frame: Frame, node: ast.Call) -> None:
    names = "DEST_LOB SRC_LOB AMOUNT DEST_OFFSET SRC_OFFSET"
    target, source, size, to, start = _bound(frame, node, names, 3)
    other = _source(frame, source, node, _lob(frame, target, node)[1])
    amount, offset, begin = (_number(frame, one, at) for at, one in enumerate((size, to, start), 3))
    piece = other.piece(begin - 1, amount)
    _change(frame, target, node, lambda lob: lob.put(offset - 1, piece))


def _trim(frame: Frame, node: ast.Call) -> None:
    target, size = _bound(frame, node, "LOB_LOC NEWLEN", 2)
    length = _number(frame, size, 2, 0)

    def edit(lob: _Lob) -> Edit:
        if length > lob.size:
            text = "specified trim length is greater than current LOB value's length"
            raise OracleError(22926, text)
        return lob.piece(0, length), LobCall(None, length)

    _change(frame, target, node, edit)


def _erase(frame: Frame, node: ast.Call) -> None:
    target, size, start = _bound(frame, node, "LOB_LOC AMOUNT OFFSET", 2)
    assert size is not None
    amount, offset = _number(frame, size, 2), _number(frame, start, 3)
    value, kind = _lob(frame, target, node)
    erased = max(min(amount, _Lob(value, kind).size - offset + 1), 0)
    filler = (b"\0" if kind.family == "blob" else b" ") * erased
    if erased:
        _change(frame, target, node, lambda lob: lob.put(offset - 1, filler))
    assign(frame, size, (numbers.encode(erased), NUMBER))


def _read(frame: Frame, node: ast.Call) -> None:
    source, size, start, target = _bound(frame, node, "LOB_LOC AMOUNT OFFSET BUFFER", 4)
    assert size is not None
    assert target is not None
    amount, offset = _number(frame, size, 2), _number(frame, start, 3)
    lob = _Lob(*_lob(frame, source, node))
    piece = lob.piece(offset - 1, amount)
    if not piece:
        raise ora(1403)
    read = min(amount, lob.size - offset + 1)
    assign(frame, target, (piece, raw(_PIECE) if lob.is_blob else varchar(_PIECE)))
    assign(frame, size, (numbers.encode(read), NUMBER))


def _create_temporary(frame: Frame, node: ast.Call) -> None:
    target, _, _ = _bound(frame, node, "LOB_LOC CACHE DUR", 2)
    assert target is not None
    kind = type_of_target(frame, target)
    if not isinstance(kind, SqlType) or kind.family not in ("clob", "blob"):
        raise wrong_arguments(frame, node.pos, node.name[-1])
    assign(frame, target, (b"", kind))


def _free_temporary(frame: Frame, node: ast.Call) -> None:
    (target,) = _bound(frame, node, "LOB_LOC", 1)
    value, kind = _lob(frame, target, node)
    if isinstance(value, KeptLob):
        raise OracleError(22275, "invalid LOB locator specified")
    assert target is not None
    assign(frame, target, (None, kind))


PROCEDURES: dict[ast.Name, Callable[[Frame, ast.Call], None]] = {
    ("DBMS_LOB", "APPEND"): _append,
    ("DBMS_LOB", "COPY"): _copy,
    ("DBMS_LOB", "CREATETEMPORARY"): _create_temporary,
    ("DBMS_LOB", "ERASE"): _erase,
    ("DBMS_LOB", "FREETEMPORARY"): _free_temporary,
    ("DBMS_LOB", "READ"): _read,
    ("DBMS_LOB", "TRIM"): _trim,
    ("DBMS_LOB", "WRITE"): _write,
    ("DBMS_LOB", "WRITEAPPEND"): _write_append,
}
"""Procedures by name, which see the frame of their caller."""

"""Which other functions are registered: RAW, ROWID, hashes, LOBs, session values?"""

from __future__ import annotations

import hashlib
import os
import zlib

from oracle_embedded.api import OracleError
from oracle_embedded.charsets import BY_NAME, CharacterSet
from oracle_embedded.engine.datatypes import numbers, rowids
from oracle_embedded.engine.datatypes.numbers import whole
from oracle_embedded.engine.datatypes.scns import SCN_MAX
from oracle_embedded.engine.functions.context import CallContext
from oracle_embedded.engine.functions.registry import Entries, register

_HASH_MAX = 4294967295
_DUMP_BASES = {8: "o", 10: "d", 16: "x"}
_DUMP_SETS = 1000
"""DUMP names the character set as well where its format is this much above a base."""


def _bytes(context: CallContext, value: str | bytes | None, form: int) -> bytes:
    """What the database stores of a value; ``form`` is that of the type's character set."""
    if isinstance(value, str):
        return context.character_sets.of(form).encode(value)
    return b"" if value is None else value


def _raw_substr(value: bytes, start: bytes, count: bytes | None = None) -> bytes | None:
    begin = whole(start)
    begin = len(value) + begin if begin < 0 else max(begin - 1, 0)
    end = len(value) if count is None else begin + whole(count)
    return value[begin:end] or None


def _lob_substr(value: str | bytes, amount: bytes, start: bytes) -> str | bytes | None:
    begin, size = whole(start) - 1, whole(amount)
    if begin < 0 or size < 1:
        return None
    return value[begin : begin + size] or None


def _rid_of(data_object: int, value: bytes) -> int:
    """Address of a ROWID inside a table; for another object's an address before or behind all."""
    other = int.from_bytes(value[:4], "big")
    if other != data_object:
        return -1 if other < data_object else 1 << 62
    return int.from_bytes(value[4:], "big")


def _rowid_create(kind: bytes, data_object: bytes, file: bytes, block: bytes, slot: bytes) -> bytes:
    if whole(kind) not in (0, 1):
        raise OracleError(6531, "invalid ROWID type")
    rid = rowids.address(whole(file) & 0x3FF, whole(block) & 0x3FFFFF, whole(slot) & 0xFFFF)
    return rowids.packed(whole(data_object) if whole(kind) else 0, rid)


def _logical_rowid(context: CallContext, *key: str | bytes | int | None) -> bytes:
    """By the values of a key, each behind the form of its character set."""
    pairs = zip(key[::2], key[1::2], strict=True)
    return rowids.logical(
        None if value is None else _bytes(context, value, form)  # type: ignore[arg-type]
        for form, value in pairs
    )


def _rid(value: bytes) -> int:
    return int.from_bytes(value[4:], "big")


def _hash(
    context: CallContext,
    value: str | bytes | None,
    form: int,
    most: bytes | None,
    seed: bytes | None,
) -> bytes:
    stored = _bytes(context, value, form)
    buckets = whole(most) if most is not None else _HASH_MAX
    digest = zlib.crc32(stored, whole(seed) if seed is not None else 0)
    mixed = int.from_bytes(hashlib.blake2s(digest.to_bytes(4, "big") + stored).digest()[:8], "big")
    return numbers.encode(mixed % (buckets + 1))


def _standard_hash(
    context: CallContext, value: str | bytes | None, form: int, method: str | None = None
) -> bytes:
    name = (method or "SHA1").upper()
    if name not in ("SHA1", "SHA256", "SHA384", "SHA512", "MD5"):
        raise OracleError(1760, "illegal argument for function")
    return hashlib.new(name.lower(), _bytes(context, value, form), usedforsecurity=False).digest()


def _dump(
    context: CallContext,
    value: str | bytes | None,
    code: int,
    form: int,
    base: bytes | None,
    start: bytes | None,
    count: bytes | None,
) -> str:
    if value is None:
        return "NULL"
    raw = _bytes(context, value, form)
    radix = whole(base) if base is not None else 10
    begin = whole(start) - 1 if start is not None else 0
    shown = raw[begin : begin + whole(count) if count is not None else None]
    spec = _DUMP_BASES.get(radix % 1000)
    if spec is None:
        raise OracleError(1760, "illegal argument for function")
    named = isinstance(value, str) and radix >= _DUMP_SETS
    own = f" CharacterSet={context.character_sets.of(form).name}" if named else ""
    return f"Typ={code} Len={len(raw)}{own}: {','.join(format(byte, spec) for byte in shown)}"


def _sys_context(context: CallContext, namespace: str, name: str, *_: bytes) -> str | None:
    if namespace.upper() != "USERENV":
        return context.contexts.get(namespace.upper(), {}).get(name.upper())
    return context.userenv(name.upper())


def _get_ddl(context: CallContext, kind: str, name: str, owner: str | None = None) -> str:
    if kind != "TABLE":
        raise OracleError(3001, "unimplemented feature")
    return context.table_ddl(name, owner)


def _charset_id(context: CallContext, name: str) -> bytes | None:
    """NLS_CHARSET_ID, of CHAR_CS and NCHAR_CS the database's own two."""
    sets = context.character_sets
    own = {"CHAR_CS": sets.database, "NCHAR_CS": sets.national}
    found = own.get(name.upper()) or BY_NAME.get(name.upper())
    return None if found is None else numbers.encode(found.number)


def _charset_name(number: bytes) -> str | None:
    return next((each.name for each in BY_NAME.values() if each.number == whole(number)), None)


def _cast_to_raw(context: CallContext, text: str) -> bytes:
    return context.character_sets.database.encode(text)


def _cast_to_varchar2(context: CallContext, value: bytes) -> str:
    return context.character_sets.database.decode(value)


def _set_named(context: CallContext, name: str) -> CharacterSet:
    found = BY_NAME.get(name.upper()) if name else context.character_sets.database
    if found is None:
        raise OracleError(1482, "unsupported character set")
    return found


def _string_to_raw(context: CallContext, text: str, name: str = "") -> bytes:
    """UTL_I18N.STRING_TO_RAW."""
    return _set_named(context, name).encode(text)


def _raw_to_char(context: CallContext, value: bytes, name: str = "") -> str:
    """UTL_I18N.RAW_TO_CHAR."""
    return _set_named(context, name).decode(value)


def _vsize(context: CallContext, value: str | bytes, form: int) -> bytes:
    return numbers.encode(len(_bytes(context, value, form)))


def _rowscn(context: CallContext, scn: int) -> bytes:
    return numbers.encode(scn if scn < SCN_MAX else context.current_scn())


def _bitand(left: bytes, right: bytes) -> bytes:
    return numbers.encode(whole(left) & whole(right))


_FIRST_ENTRIES: Entries = (
    ("o_raw_concat", lambda a, b: a + b, 2),
    ("o_raw_length", lambda value: numbers.encode(len(value)), 1),
    ("o_raw_substr", _raw_substr, 2),
    ("o_raw_substr", _raw_substr, 3),
    ("o_raw_reverse", lambda value: value[::-1], 1),
    ("o_lob_length", lambda value: numbers.encode(len(value)), 1),
    ("o_lob_substr", _lob_substr, 3),
    ("o_lob_compare", lambda a, b: numbers.encode((a > b) - (a < b)), 2),
    ("o_rowid", rowids.packed, 2),
    ("o_rowid_text", rowids.text_from_packed, 1),
    ("o_rid_of", _rid_of, 2),
    ("o_rowid_create", _rowid_create, 5),
    ("o_rowid_object", lambda value: numbers.encode(int.from_bytes(value[:4], "big")), 1),
    ("o_rowid_file", lambda value: numbers.encode(_rid(value) >> 38), 1),
    ("o_rowid_file", lambda value, _: numbers.encode(_rid(value) >> 38), 2),
    ("o_rowid_block", lambda value: numbers.encode(_rid(value) >> 16 & 0x3FFFFF), 1),
    ("o_rowid_block", lambda value, _: numbers.encode(_rid(value) >> 16 & 0x3FFFFF), 2),
    ("o_rowid_slot", lambda value: numbers.encode(_rid(value) & 0xFFFF), 1),
    ("o_bitand", _bitand, 2),
    ("o_charset_name", _charset_name, 1),
    ("o_fit_float", numbers.fit_float, 2),
)
for _name, _run, _arguments in _FIRST_ENTRIES:
    register(_name, _run, _arguments)
_SECOND_ENTRIES: Entries = (
    ("o_sys_context", _sys_context, 2),
    ("o_sys_context", _sys_context, 3),
    ("o_userenv", lambda context, name: context.userenv(name.upper()), 1),
    ("o_user", lambda context: context.user, 0),
    ("o_uid", lambda context: numbers.encode(int(context.userenv("SESSION_USERID") or 0)), 0),
    ("o_cast_to_raw", _cast_to_raw, 1),
    ("o_cast_to_varchar2", _cast_to_varchar2, 1),
    ("o_string_to_raw", _string_to_raw, 1),
    ("o_string_to_raw", _string_to_raw, 2),
    ("o_raw_to_char", _raw_to_char, 1),
    ("o_raw_to_char", _raw_to_char, 2),
    ("o_vsize", _vsize, 2),
    ("o_charset_id", _charset_id, 1),
    ("o_current_scn", lambda context: numbers.encode(context.current_scn()), 0),
    ("o_rowscn", _rowscn, 1),
    ("o_get_ddl", _get_ddl, 2),
    ("o_get_ddl", _get_ddl, 3),
)
for _name, _run, _arguments in _SECOND_ENTRIES:
    register(_name, _run, _arguments, with_context=True)


def _stored(context: CallContext, name: str, *given: str | bytes | None) -> bytes | str | None:
    """Call a stored function: names and values of its arguments follow each other."""
    values = [value.encode() if isinstance(value, str) else value for value in given[1::2]]
    return context.call_stored(name, dict(zip(given[::2], values, strict=True)))  # type: ignore[arg-type]


register("o_stored", _stored, -1, with_context=True, takes_nulls=True, deterministic=False)
for _name in ("o_nextval", "o_currval"):
    _method = "next_value" if _name == "o_nextval" else "current_value"
    register(
        _name,
        lambda context, identifier, method=_method: numbers.encode(
            getattr(context, method)(identifier)
        ),
        1,
        with_context=True,
        deterministic=False,
    )
register("o_rowid_logical", _logical_rowid, -1, with_context=True, takes_nulls=True)
register("o_guid", lambda: os.urandom(16), 0, deterministic=False)
register("o_hash", _hash, 4, with_context=True, takes_nulls=True)
register("o_dump", _dump, 6, with_context=True, takes_nulls=True)
register("o_standard_hash", _standard_hash, 2, with_context=True, takes_nulls=True)
register("o_standard_hash", _standard_hash, 3, with_context=True, takes_nulls=True)

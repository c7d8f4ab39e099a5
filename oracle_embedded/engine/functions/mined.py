"""Which functions look into redo records: DBMS_LOGMNR.MINE_VALUE and COLUMN_PRESENT,
VERSIONS_XID?"""

from __future__ import annotations

from oracle_embedded.engine.datatypes import numbers
from oracle_embedded.engine.datatypes.numbers import whole
from oracle_embedded.engine.datatypes.types import SqlType
from oracle_embedded.engine.functions.context import CallContext
from oracle_embedded.engine.functions.registry import REGISTRY, Entries, register


def _mine_value(context: CallContext, number: bytes, column: str) -> str | None:
    """A column's value as text, in the session's formats; NULL where the record says nothing of it,
    or says NULL."""
    found = context.mined(whole(number), column)
    if found is None:
        return None
    kind, value = found
    if value is None:
        return None
    family = SqlType(kind).family
    if family == "text":
        return value.decode()
    convert = REGISTRY[f"cv_{family}_text", 1]
    text = convert.run(context, value) if convert.with_context else convert.run(value)
    return None if text is None else str(text)


def _column_present(context: CallContext, number: bytes, column: str) -> bytes:
    return numbers.encode(0 if context.mined(whole(number), column) is None else 1)


_ENTRIES: Entries = (
    ("o_mine_value", _mine_value, 2),
    ("o_column_present", _column_present, 2),
    ("o_version_xid", lambda context, scn: context.xid_at(scn), 1),
)
for _name, _run, _arguments in _ENTRIES:
    register(_name, _run, _arguments, with_context=True)

"""Do Debezium's events and a change log say the same, change by change, field by field?

Events are matched by table, transaction, operation and key; within these in their order. Values are
compared by what they mean, whatever form the connector was told to give them: a number as a number,
text or Kafka's decimal, a time in any unit since 1970 or as ISO 8601, bytes in base64 or hex.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa

from cdc_core.delta.added_files import files_within
from cdc_core.delta.errors import at_work
from cdc_core.errors import CHANGELOG_HINT, ConfigError, NotYetError
from cdc_core.model.identifiers import TableId
from cdc_core.model.reports import EventDifference, EventsCompared
from cdc_core.schema.table import Column, TableSchema
from cdc_core.stage.layout import COMMIT_SCN
from cdc_core.steps.context import Context
from cdc_core.steps.source_view import logged_tables
from cdc_core.views.envelope import LoggedTable
from cdc_core.views.events import ChangeEvent, events_of

_EPOCH = datetime(1970, 1, 1)
_NUMBERS = frozenset({"NUMBER", "FLOAT", "BINARY_FLOAT", "BINARY_DOUBLE"})
_PLACEHOLDERS = ("__debezium_unavailable_value", "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==")
_CHANGES = frozenset("cud")
_ZONED = re.compile(
    r"(-?\d{4,})-(\d\d)-(\d\d)[ T](\d\d):(\d\d):?(\d\d)?(\.\d+)? ?(Z|[+-]\d\d:?\d\d)?"
)
_MONTHS = re.compile(r"([+-]?)(\d+)-(\d+)")
_SECONDS = re.compile(r"([+-]?)(\d+) (\d+):(\d+):(\d+)(\.\d+)?")
_ISO = re.compile(
    r"(-?)P(?:(-?\d+)Y)?(?:(-?\d+)M)?(?:(-?\d+)D)?"
    r"(?:T(?:(-?\d+)H)?(?:(-?\d+)M)?(?:(-?\d+(?:\.\d+)?)S)?)?"
)
_DAYS_PER_MONTH = Decimal("365.25") / 12

Key = tuple[str, str, str, tuple[str, ...]]
"""Table, transaction, operation, and the key's values in one form."""


@dataclass(frozen=True, slots=True)
class TheirEvent:
    """An event of Debezium, as far as it is compared."""

    table: TableId
    xid: str
    commit_scn: int
    op: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
    line: int


def read_events(lines: Iterable[str]) -> Iterator[TheirEvent]:
    """Debezium's changes (``c``, ``u``, ``d``), of JSON lines: a message's value, or an object with
    it under ``value`` or ``payload``. Tombstones, rows of snapshots, TRUNCATEs and other messages
    are passed over.

    Raises:
        ConfigError: A line is not JSON, or a change without the fields that say which it is.
    """
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            value = _payload(json.loads(line))
        except ValueError as error:
            raise ConfigError(
                "a line is not JSON",
                hint="Give one message a line, for example of kafka-console-consumer.",
                line=number,
            ) from error
        if not isinstance(value, dict) or value.get("op") not in _CHANGES:
            continue
        try:
            source = value["source"]
            yield TheirEvent(
                table=TableId(source["schema"], source["table"]),
                xid=str(source["txId"]).lower(),
                commit_scn=int(source["commit_scn"]),
                op=value["op"],
                before=value.get("before"),
                after=value.get("after"),
                line=number,
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ConfigError(
                "an event does not say which change it is",
                hint="Its block source must have schema, table, txId and commit_scn, as the "
                "connector for Oracle writes them.",
                line=number,
            ) from error


def _payload(value: Any) -> Any:
    while isinstance(value, dict) and "op" not in value:
        inner = value.get("payload", value.get("value"))
        if inner is None or inner is value:
            return None
        value = json.loads(inner) if isinstance(inner, str) else inner
    return value


def compare_events(
    ctx: Context,
    lines: Iterable[str],
    tables: list[TableId] | None = None,
    *,
    scn_low: int | None = None,
    scn_high: int | None = None,
) -> EventsCompared:
    """Compare Debezium's events, one JSON message a line, with the change logs of all tables or of
    some, between two commit SCNs: by default from the first to the last of the events.

    Raises:
        ConfigError: A line is no event, or nothing is there to compare.
        NotYetError: A table has not taken all changes up to the upper SCN.
    """
    theirs = list(read_events(lines))
    logs = [one for one in logged_tables(ctx.config) if tables is None or one.table in tables]
    scns = [one.commit_scn for one in theirs]
    low = min(scns, default=1) - 1 if scn_low is None else scn_low
    high = max(scns, default=0) if scn_high is None else scn_high
    if not logs or low >= high:
        raise ConfigError(
            "there is nothing to compare",
            hint="The files need changes of captured tables; or name SCNs with --from and --to.",
            tables=len(logs),
            events=len(theirs),
        )
    for log in logs:
        record = ctx.store.tables.get(log.table)
        if record is None or (record.mirror_scn or 0) < high:
            raise NotYetError(
                "the change log does not reach the upper SCN yet",
                hint="`redolake run` brings it there; or compare up to an earlier one with --to.",
                table=log.table,
                position=record.mirror_scn if record else None,
                scn=high,
            )
    return compare_with_logs(theirs, logs, scn_low=low, scn_high=high)


def compare_with_logs(
    theirs: Sequence[TheirEvent],
    logs: Sequence[LoggedTable],
    *,
    scn_low: int,
    scn_high: int,
) -> EventsCompared:
    """Compare their changes with ours whose commit SCN is in ``(scn_low, scn_high]``.

    Args:
        theirs: Of any tables and SCNs; those of other tables are counted apart.
        logs: The change logs to compare with.
    """
    schemas = {one.table: one.schema for one in logs}
    inside = [one for one in theirs if scn_low < one.commit_scn <= scn_high]
    known = [one for one in inside if one.table in schemas]
    waiting: dict[Key, list[TheirEvent]] = defaultdict(list)
    for one in known:
        waiting[_key_of_theirs(one, schemas[one.table])].append(one)
    for same in waiting.values():
        same.reverse()
    equal, differences = 0, list[EventDifference]()

    def taken(commits: pa.Table) -> np.ndarray[Any, Any]:
        scns = commits[COMMIT_SCN].to_numpy()
        found: np.ndarray[Any, Any] = (scns > scn_low) & (scns <= scn_high)
        return found

    for log in logs:
        with at_work("reading the change log", {"table": log.table}, hint=CHANGELOG_HINT):
            files = files_within(log.path, COMMIT_SCN, scn_low + 1, scn_high)
        for ours in events_of(log, files, takes=taken):
            if ours.op not in _CHANGES or ours.row["_cdc_snapshot"] is not None:
                continue
            left_of_key = waiting.get(_key_of_ours(ours, log.schema))
            if not left_of_key:
                differences.append(_difference("only here", ours))
                continue
            other = left_of_key.pop()
            fields = tuple(_different(ours, other, log.schema))
            equal += not fields
            if fields:
                differences.append(_difference("differs", ours, fields, other.line))
    for left in waiting.values():
        differences += [
            EventDifference(
                what="only there", table=str(one.table), op=one.op, xid=one.xid,
                commit_scn=one.commit_scn, line=one.line,
            )
            for one in reversed(left)
        ]  # fmt: skip
    differences.sort(key=lambda one: (one.commit_scn, one.table, one.xid))
    return EventsCompared(
        scn_low=scn_low,
        scn_high=scn_high,
        equal=equal,
        differences=tuple(differences),
        of_other_tables=len(inside) - len(known),
    )


def _difference(
    what: str, ours: ChangeEvent, fields: tuple[str, ...] = (), line: int | None = None
) -> EventDifference:
    return EventDifference(
        what=what, table=str(ours.table), op=ours.op, xid=ours.row["_cdc_xid"],
        commit_scn=ours.row[COMMIT_SCN], fields=fields, line=line,
    )  # fmt: skip


def _key_of_theirs(one: TheirEvent, schema: TableSchema) -> Key:
    image = one.before if one.after is None else one.after
    return str(one.table), one.xid, one.op, _key_values(image or {}, schema)


def _key_of_ours(one: ChangeEvent, schema: TableSchema) -> Key:
    return str(one.table), one.row["_cdc_xid"], one.op, _key_values(one.key or {}, schema)


def _key_values(image: Mapping[str, Any], schema: TableSchema) -> tuple[str, ...]:
    """One form for both sides; a key that Debezium does not show (a ROWID, all columns) has
    none."""
    names = [name for name in schema.key if name in image]
    return tuple(_form(schema.column(name), image[name]) for name in names)


def _form(column: Column, value: Any) -> str:
    if column.data_type in _NUMBERS and not isinstance(value, bool):
        numbers = _numbers(column, value)
        return format(numbers[0].normalize(), "f") if numbers else str(value)
    if isinstance(value, datetime):
        return str(_micros_of(value))
    if isinstance(value, int) and _is_time(column):
        return str(_nearest_micros(column, value))
    return value.hex() if isinstance(value, bytes) else str(value)


def _different(ours: ChangeEvent, theirs: TheirEvent, schema: TableSchema) -> Iterator[str]:
    """The fields that do not mean the same."""
    sides = (
        ("before", ours.before, theirs.before, ours.before_absent),
        ("after", ours.after, theirs.after, ours.absent),
    )
    for side, mine, other, absent in sides:
        if (mine is None) != (other is None):
            yield side
            continue
        if mine is None or other is None:
            continue
        for name, value in mine.items():
            if name in absent or name.startswith("_cdc_"):
                continue
            if name not in other or not is_same(schema.column(name), value, other[name]):
                yield f"{side}.{name}"
        yield from (f"{side}.{name}" for name in other if name not in mine)


def is_same(column: Column, ours: Any, theirs: Any) -> bool:
    """Do two values of a column mean the same? What Debezium does not have (its placeholder) is
    taken for the same."""
    if theirs in _PLACEHOLDERS:
        return True
    if ours is None or theirs is None:
        return ours is None and theirs is None
    if ours == theirs:
        return True
    if column.data_type in _NUMBERS:
        mine = _numbers(column, ours)
        return bool(mine) and mine[0] in _numbers(column, theirs)
    if isinstance(ours, date):
        moment = ours if isinstance(ours, datetime) else datetime(ours.year, ours.month, ours.day)
        return _is_same_time(_micros_of(moment), theirs)
    if isinstance(ours, bytes):
        return isinstance(theirs, str) and ours in _bytes(theirs)
    if column.data_type.startswith("TIMESTAMP"):
        return _is_same_text_time(ours, theirs)
    if column.data_type.startswith("INTERVAL"):
        return _is_same_interval(str(ours), theirs)
    return str(ours) == str(theirs)


def _numbers(column: Column, value: Any) -> list[Decimal]:
    """What a number may mean: one that is text may be base64, too."""
    match value:
        case bool():
            return [Decimal(int(value))]
        case int() | Decimal():
            return [Decimal(value)]
        case float():
            return [Decimal(repr(value))]
        case {"scale": int(scale), "value": str(digits)}:
            return [Decimal(one).scaleb(-scale) for one in _integers(digits)]
        case str():
            found = [Decimal(one).scaleb(-(column.scale or 0)) for one in _integers(value)]
            try:
                return [Decimal(value), *found]
            except InvalidOperation:
                return found
        case _:
            return []


def _integers(text: str) -> list[int]:
    """The number whose bytes stand in base64; none if they do not."""
    try:
        return [int.from_bytes(base64.b64decode(text, validate=True), signed=True)]
    except (binascii.Error, ValueError):
        return []


def _bytes(text: str) -> list[bytes]:
    found = []
    for decode in (bytes.fromhex, base64.b64decode, base64.urlsafe_b64decode):
        try:
            found.append(decode(text))
        except (binascii.Error, ValueError):
            continue
    return found


def _is_time(column: Column) -> bool:
    return column.data_type == "DATE" or column.data_type.startswith("TIMESTAMP")


def _micros_of(moment: datetime) -> int:
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _nearest_micros(column: Column, value: int) -> int:
    """A time of a key: a DATE comes in milliseconds unless it is far too large for these."""
    if abs(value) > 10**17:
        return value // 1000
    digits = re.fullmatch(r"TIMESTAMP\((\d)\)", column.data_type)
    is_in_millis = column.data_type == "DATE" or (digits is not None and int(digits[1]) <= 3)
    return value * 1000 if is_in_millis and abs(value) < 10**14 else value


def _is_same_time(micros: int, theirs: Any) -> bool:
    match theirs:
        case int():
            return theirs in (micros // 1000, micros, micros * 1000)
        case str():
            found = _instant(theirs)
            return found is not None and found[0] * 1_000_000 + found[1] // 1000 == micros
        case _:
            return False


def _is_same_text_time(ours: Any, theirs: Any) -> bool:
    mine = _instant(str(ours))
    if mine is None:
        return str(ours) == str(theirs)
    nanos = mine[0] * 1_000_000_000 + mine[1]
    if isinstance(theirs, int):
        return theirs in (nanos // 1_000_000, nanos // 1000, nanos)
    return mine == _instant(str(theirs))


def _instant(text: str) -> tuple[int, int] | None:
    """Seconds since 1970 in UTC and nanoseconds of a time as text; one without a zone counts as
    UTC."""
    found = _ZONED.fullmatch(text.strip())
    if found is None:
        return None
    *fields, fraction, zone = found.groups()
    try:
        year, month, day, hour, minute, second = (int(one or 0) for one in fields)
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    if zone not in (None, "Z"):
        sign = -1 if zone[0] == "-" else 1
        hours, minutes = int(zone[1:3]), int(zone[-2:])
        moment -= sign * timedelta(hours=hours, minutes=minutes)
    seconds = (moment.replace(tzinfo=None) - _EPOCH) // timedelta(seconds=1)
    return seconds, int((fraction or ".0")[1:].ljust(9, "0")[:9])


def _is_same_interval(ours: str, theirs: Any) -> bool:
    mine = _interval(ours)
    if mine is None:
        return ours == str(theirs)
    months, micros = mine
    if isinstance(theirs, int):  # Debezium counts a month as a twelfth of 365.25 days
        whole = months * _DAYS_PER_MONTH * 86_400_000_000 + micros
        return int(whole) == theirs
    return mine == _interval(str(theirs))


def _interval(text: str) -> tuple[int, Decimal] | None:
    """Months and microseconds."""
    if found := _MONTHS.fullmatch(text):
        months = int(found[2]) * 12 + int(found[3])
        return (-months if found[1] == "-" else months), Decimal(0)
    if found := _SECONDS.fullmatch(text):
        days, hours, minutes, seconds = (int(one) for one in found.groups()[1:5])
        whole = ((days * 24 + hours) * 60 + minutes) * 60 + seconds + Decimal(found[6] or 0)
        return 0, (-whole if found[1] == "-" else whole) * 1_000_000
    if found := _ISO.fullmatch(text):
        sign = -1 if found[1] else 1
        years, months, days, hours, minutes = (int(one or 0) for one in found.groups()[1:6])
        whole = ((days * 24 + hours) * 60 + minutes) * 60 + Decimal(found[7] or 0)
        return sign * (years * 12 + months), sign * whole * 1_000_000
    return None

"""What does the redo of the captured tables show, counted?

Nothing is kept of a row but that it was there: no statement, no value, no name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from cdc_core.decode.dml import decode_dml
from cdc_core.errors import CdcError
from cdc_core.model.operations import CONTROL, LOB_OPERATIONS, Operation
from cdc_core.model.redo_address import RedoAddress
from cdc_core.model.transactions import NO_XID, UNRESOLVED
from cdc_core.schema.table import TableSchema
from diagnosis.certify.tried import DML

_KNOWN = frozenset(int(one) for one in Operation)
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_DECODED_ROWS = 1_000
_PLACEHOLDER = "A" * 18


@dataclass(slots=True)
class MinedPass:
    """Counts of one pass.

    Attributes:
        seconds, redo_bytes: How long the pass took, and how much redo its logs have.
        operations: Rows of captured tables by operation code.
        statuses: Their statements' STATUS, without rows of LOBs.
        decoded: Statements that were decoded.
        undecodable: Reasons why others were not, and how many.
        facts: Further counts by name.
    """

    seconds: float = 0.0
    redo_bytes: int = 0
    operations: Counter[int] = field(default_factory=Counter)
    statuses: Counter[int] = field(default_factory=Counter)
    decoded: int = 0
    undecodable: Counter[str] = field(default_factory=Counter)
    facts: Counter[str] = field(default_factory=Counter)

    @property
    def changes(self) -> int:
        """Rows of INSERT, UPDATE and DELETE of captured tables."""
        return sum(self.operations[code] for code in DML)


class Counting:
    """Counts the rows of a pass, batch by batch."""

    def __init__(self, tables: Sequence[TableSchema]) -> None:
        self.mined = MinedPass()
        self._by_name = {(one.table.owner, one.table.name): one for one in tables}
        self._by_number = {
            number: one for one in tables for number in {one.object_id, *one.segments} if number
        }
        self._texts: dict[str, list[str]] = {}
        self._piece: dict[tuple[Any, ...], str] = {}
        self._ended: set[str] = set()
        self._scns: dict[int, int] = {}

    def take(self, batch: pa.RecordBatch) -> None:
        """Count a batch's rows, and decode the statements of captured tables."""
        for row in batch.to_pylist():
            self._take(row)
        for texts in list(self._texts.values()):
            if len(texts) >= _DECODED_ROWS:
                self.finish()
                break

    def finish(self) -> None:
        """Decode what is left."""
        for schema in self._by_name.values():
            texts = self._texts.pop(str(schema.table), [])
            for start in range(0, len(texts), _DECODED_ROWS):
                self._decode(texts[start : start + _DECODED_ROWS], schema)

    def _take(self, row: Mapping[str, Any]) -> None:
        facts, code, xid = self.mined.facts, row["operation_code"], (row["xid"] or "").lower()
        thread, scn = row["thread"], row["scn"]
        facts["rows"] += 1
        facts["unknown-operation"] += code not in _KNOWN
        facts["hole"] += code == Operation.MISSING_SCN
        facts["partial-xid"] += xid.endswith(UNRESOLVED)
        facts["zero-address"] += _is_zero(row["rs_id"])
        facts["scn-falls"] += scn < self._scns.get(thread, 0)
        self._scns[thread] = max(scn, self._scns.get(thread, 0))
        if code in CONTROL:
            self._take_control(row, code, xid)
            return
        schema = self._table_of(row)
        if schema is None:
            facts["nameless"] += row["table_name"] is None
            return
        self.mined.operations[code] += 1
        facts["zero-address-of-a-change"] += _is_zero(row["rs_id"])
        facts["no-container"] += row["container_id"] is None
        facts["behind-its-commit"] += xid in self._ended and not row["rollback"]
        if code in DML:
            self.mined.statuses[row["status"]] += 1
            facts["undo"] += row["rollback"] == 1
            facts["no-row-id"] += not row["row_id"]
            facts["placeholder"] += row["row_id"] == _PLACEHOLDER
            facts["continued"] += row["csf"]
            self._keep(row, schema)
        elif code in LOB_OPERATIONS:
            facts["lob"] += 1

    def _take_control(self, row: Mapping[str, Any], code: int, xid: str) -> None:
        facts = self.mined.facts
        facts["zero-xid"] += xid == NO_XID
        if code == Operation.COMMIT:
            facts["commits"] += 1
            facts["commit-of-no-thread"] += row["thread"] == 0
            self._ended.add(xid)
        elif code == Operation.START:
            facts["starts"] += 1
            self._ended.discard(xid)

    def _table_of(self, row: Mapping[str, Any]) -> TableSchema | None:
        named = self._by_name.get((row["seg_owner"], row["table_name"]))
        return named or self._by_number.get(row["data_obj"])

    def _keep(self, row: Mapping[str, Any], schema: TableSchema) -> None:
        """Keep a statement until it is decoded; a long one is joined."""
        address = (row["thread"], row["rs_id"], row["ssn"])
        text = self._piece.pop(address, "") + (row["sql_redo"] or "")
        if row["csf"]:
            self._piece[address] = text
        elif not row["rollback"] and row["status"] == 0:
            self._texts.setdefault(str(schema.table), []).append(text)

    def _decode(self, texts: list[str], schema: TableSchema) -> None:
        """Decode statements; where one cannot be, the others around it are."""
        try:
            decode_dml(pa.array(texts, pa.large_string()), schema)
        except CdcError as error:
            if len(texts) == 1:
                self.mined.undecodable[_QUOTED.sub("…", error.message)] += 1
                return
            half = len(texts) // 2
            self._decode(texts[:half], schema)
            self._decode(texts[half:], schema)
        else:
            self.mined.decoded += len(texts)


def _is_zero(rs_id: str | None) -> bool:
    """Does it name no redo record?"""
    try:
        return RedoAddress.parse(rs_id or "").is_zero
    except ValueError:
        return True


def listed(counts: Iterable[tuple[object, int]]) -> str:
    """Counts by what they count, the greatest first."""
    return ", ".join(f"{count} {name}" for name, count in sorted(counts, key=lambda one: -one[1]))

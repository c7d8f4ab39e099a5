"""What does the table of transactions say of those whose changes a window brought?

One row per transaction with changes in the change logs: how many they are, of which tables, who
made them and when. It is counted from the change logs themselves, so that a reader who has that
many has all.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.runtime.arrow import whole

_COLLECTION = pa.struct([("data_collection", pa.string()), ("event_count", pa.int64())])

TRANSACTIONS = pa.schema(
    [
        ("id", pa.string()),
        ("status", pa.string()),
        ("event_count", pa.int64()),
        ("data_collections", pa.list_(_COLLECTION)),
        ("start_scn", pa.int64()),
        ("commit_scn", pa.int64()),
        ("start_timestamp", pa.timestamp("us")),
        ("commit_timestamp", pa.timestamp("us")),
        ("username", pa.string()),
        ("client_id", pa.string()),
        ("scn_high", pa.int64()),
        ("commit_ordinal", pa.int64()),
        ("landed", pa.timestamp("us")),
    ]
)
"""One row per transaction, in the order of the commits; ``scn_high`` names the window, ``landed``
says when that was read."""

_OF_LEDGER = (
    "commit_ordinal", "start_scn", "start_timestamp", "commit_timestamp", "username", "client_id",
)  # fmt: skip


def transaction_rows(
    events: Mapping[str, pa.Table], ledger: pa.Table, scn_high: int, landed: datetime | None
) -> pa.Table:
    """The rows of one window.

    Args:
        events: Per table (``OWNER.NAME``) how many changes of which transactions its change log has
            of the window: columns ``xid, commit_scn, events``, one row per transaction.
        ledger: What the window's ledger says of all transactions that committed: ``xid, commit_scn,
            commit_timestamp, username, start_scn, start_timestamp, client_id, commit_ordinal``.
        scn_high: The window's upper end.
        landed: When it was read.
    """
    named = [
        one.append_column("name", pa.repeat(pa.scalar(table, pa.string()), one.num_rows))
        for table, one in events.items()
        if one.num_rows
    ]
    if not named:
        return TRANSACTIONS.empty_table()
    order = [("commit_scn", "ascending"), ("xid", "ascending"), ("name", "ascending")]
    counts = pa.concat_tables(named).combine_chunks().sort_by(order)
    places = _places(counts)
    starts = np.flatnonzero(_differs(places))
    offsets = pa.array(np.append(starts, counts.num_rows), pa.int32())
    collections = pa.StructArray.from_arrays(
        [whole(counts["name"]), whole(counts["events"])],
        fields=list(_COLLECTION),
    )
    number = pa.array(starts)
    at = pc.index_in(places.take(number), value_set=_places(ledger))
    known = ledger.select(_OF_LEDGER).take(at)
    rows = len(starts)
    columns = {
        "id": counts["xid"].take(number),
        "status": pa.repeat("END", rows),
        "event_count": pa.array(np.add.reduceat(counts["events"].to_numpy(), starts)),
        "data_collections": pa.ListArray.from_arrays(offsets, collections),
        "commit_scn": counts["commit_scn"].take(number),
        "scn_high": pa.repeat(pa.scalar(scn_high, pa.int64()), rows),
        "landed": pa.repeat(pa.scalar(landed, pa.timestamp("us")), rows),
        **{name: known[name] for name in _OF_LEDGER},
    }
    found = pa.table([columns[one.name].cast(one.type) for one in TRANSACTIONS], TRANSACTIONS)
    return found.sort_by([("commit_scn", "ascending"), ("commit_ordinal", "ascending")])


def _places(rows: pa.Table) -> pa.Array:
    """What names a transaction: an XID is used again after its end."""
    scns = rows["commit_scn"].cast(pa.string())
    return pc.binary_join_element_wise(rows["xid"], scns, ":").combine_chunks()


def _differs(places: pa.Array) -> np.ndarray:
    """Is a place another one than that before it?"""
    differs = np.ones(len(places), dtype=np.bool_)
    differs[1:] = pc.not_equal(places[1:], places[:-1]).to_numpy(zero_copy_only=False)
    return differs

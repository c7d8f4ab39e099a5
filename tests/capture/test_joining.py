"""What the ledger knows of a table when it joins."""

from __future__ import annotations

from cdc_core.capture.passes.joining import uncounted
from cdc_core.model.transactions import OpenTransaction


def test_rows_of_a_joining_table_are_counted_anew() -> None:
    """Those of an earlier life are never taken, and those from before the window are read once more; other tables go on."""
    opened = [
        OpenTransaction(
            xid="aa", start_scn=1, first_ordinal=0, tables=("A.X", "A.Y"), table_rows=(3, 4), rows=7
        ),
        OpenTransaction(
            xid="bb", start_scn=1, first_ordinal=1, tables=("A.X", "A.Y"), table_rows=(7, 0), rows=7
        ),
        OpenTransaction(xid="cc", start_scn=1, first_ordinal=2),
    ]
    assert [one.table_rows for one in uncounted(opened, {"A.X"})] == [(0, 4), (0, 0), ()]

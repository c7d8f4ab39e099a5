"""How is the first decode of an installation spared the compiling of its loops?"""

from __future__ import annotations

import pyarrow as pa

from cdc_core.decode.dml import decode_dml
from cdc_core.decode.kernels.records import XID, XID_LENGTH
from cdc_core.decode.records import keep_rows, read_messages, text_column
from cdc_core.decode.values import number_text
from cdc_core.model.identifiers import TableId
from cdc_core.model.scn import Scn
from cdc_core.schema.table import Column, TableSchema


def warm_up() -> None:
    """Compile all loops and keep the compiled code on disk: some 20 seconds the first time, a
    moment later on.

    Set-up calls it once; without it, the first process to decode compiles, and several at once each
    do.
    """
    columns = (Column("ID", "NUMBER", 22, 0, 10, 0, nullable=False),)
    schema = TableSchema(TableId("WARM", "UP"), Scn(0), columns, key=("ID",))
    decode_dml(pa.array(['update "WARM"."UP" set "ID" = \'2\' where "ID" = \'1\';']), schema)
    number_text(pa.array([b"\x80"], pa.large_binary()))
    words = keep_rows(read_messages(b"").words).words
    text_column(words, XID, XID_LENGTH)

"""Where do the rows of a pass wait until their window's turn? In a file without a name."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from cdc_core.capture.passes.batches import MinedBatch
from cdc_core.capture.passes.mining import MINED_SCHEMA

_SCHEMA = MINED_SCHEMA.append(pa.field("ordinal", pa.int64())).append(pa.field("table", pa.int32()))
_COMPRESSION = "lz4"


@dataclass(slots=True)
class StoredRows:
    """Batches in a file, written once, then read in the same pieces; closing it gives its room
    back."""

    file: BinaryIO
    _writer: pa.ipc.RecordBatchStreamWriter = field(init=False)

    def __post_init__(self) -> None:
        options = pa.ipc.IpcWriteOptions(compression=_COMPRESSION)
        self._writer = pa.ipc.new_stream(self.file, _SCHEMA, options=options)

    def write(self, batch: MinedBatch) -> None:
        """Append a batch."""
        columns = [*batch.rows.columns, pa.array(batch.ordinals), pa.array(batch.tables)]
        self._writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=_SCHEMA))

    def finish(self) -> None:
        """Nothing more is written."""
        self._writer.close()
        self.file.flush()

    def read(self) -> Generator[MinedBatch]:
        """The batches from the first one on. May be called again, when the last reading has
        ended."""
        self.file.seek(0)
        for batch in pa.ipc.open_stream(self.file):
            yield MinedBatch(
                batch.select(MINED_SCHEMA.names),
                batch.column("ordinal").to_numpy(),
                batch.column("operation_code").to_numpy(),
                _numbers(batch.column("table")),
            )

    def close(self) -> None:
        """Give the file back. May be called twice."""
        self.file.close()


def _numbers(column: pa.Array) -> np.typing.NDArray[np.int32]:
    found: np.typing.NDArray[np.int32] = column.to_numpy()
    return found

"""How do the compiled loops read an Arrow text column, and how are single rows of a result
replaced?"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cdc_core.decode.kernels.memory import PADDING

Words = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]


class TextSource:
    """The bytes of a large_string array, and a padded copy of its last rows, behind which nothing
    else could be read.

    Attributes:
        data: Address of the bytes.
        offsets: int64, one more than rows; where each row begins in ``data``.
        tail_row: The first row of the copy ``tail``.
    """

    def __init__(self, sql: pa.Array) -> None:
        _validity, offsets, data = sql.buffers()
        rows = len(sql)
        self.offsets: Words = np.zeros(1, np.int64)
        if rows:
            self.offsets = np.frombuffer(offsets, np.int64, rows + 1, sql.offset * 8)
        size = data.size if data is not None else 0
        self.data: int = data.address if size else 0
        self.bytes: Bytes = np.frombuffer(data, np.uint8) if size else np.zeros(1, np.uint8)
        ends = self.offsets[1:]
        self.tail_row = int(np.searchsorted(ends, size - PADDING, side="right"))
        start, end = int(self.offsets[min(self.tail_row, rows)]), int(self.offsets[-1])
        self.tail: Bytes = np.zeros(end - start + PADDING, np.uint8)
        self.tail[: end - start] = self.bytes[start:end]

    def first_bytes(self) -> Bytes:
        """The first byte of each row; any byte for an empty one."""
        return self.bytes[np.minimum(self.offsets[:-1], len(self.bytes) - 1)]


def one_text_array(text: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The same text as one large_string array."""
    if isinstance(text, pa.ChunkedArray):
        text = text.combine_chunks()
    return text.cast(pa.large_string())


def replace_rows(array: pa.Array, rows: list[int], values: list[object]) -> pa.Array:
    """The array with the values of some rows replaced."""
    indices = np.arange(len(array))
    indices[rows] = len(array) + np.arange(len(rows))
    return pa.concat_arrays([array, pa.array(values, array.type)]).take(pa.array(indices))

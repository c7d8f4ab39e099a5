"""Does a value of a column that is not captured lie anywhere that the pipeline has written?

Every such value of the load holds a text of its own. It must be in no file of landing, of the lake, of the metadata store, and in no log, be it as
text or as the hexadecimal digits of a redo row; also not in what a window keeps of transactions that were rolled back.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

MARK = "must-not-land"
HIDDEN = {"EVENTS": ("PIN",)}
"""Columns by table that the configuration excludes; each of their values has the mark."""
_FORMS = (MARK, MARK.encode().hex())


def files_with_marks(folder: Path, *, without: str) -> tuple[list[Path], int]:
    """The files below a folder that hold the mark, and how many were read; those below its subfolder ``without`` are the database's own."""
    paths = [one for one in sorted(folder.rglob("*")) if one.is_file()]
    read = [one for one in paths if without not in one.relative_to(folder).parts[:1]]
    return [one for one in read if _has_mark(one)], len(read)


def _has_mark(path: Path) -> bool:
    if path.suffix == ".parquet":
        return any(_is_in(column) for column in _columns(path))
    content = path.read_bytes().lower()
    return any(form.encode() in content for form in _FORMS)


def _columns(path: Path) -> Iterator[pa.ChunkedArray]:
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches():
            yield from (pa.chunked_array([column]) for column in batch.columns)


def _is_in(column: pa.ChunkedArray) -> bool:
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        found = (pc.match_substring(column, form, ignore_case=True) for form in _FORMS)
        return any(pc.any(one).as_py() for one in found)
    if pa.types.is_primitive(column.type) and not pa.types.is_binary(column.type):
        return False
    text = str(column.to_pylist()).lower()
    return any(form in text for form in _FORMS)

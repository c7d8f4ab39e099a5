"""How are the small files beside the Delta tables read and replaced?"""

from __future__ import annotations

import uuid
from pathlib import Path

import pyarrow.fs as pafs

from cdc_core.delta.history import filesystem_of
from cdc_core.delta.storage import storing


def read_text(path: str) -> str | None:
    """The content of a file; None where there is none.

    Raises:
        StoreUnavailableError: The storage does not answer.
    """
    filesystem, file = filesystem_of(path)
    try:
        with (
            storing("reading a file of the lake", path=path),
            filesystem.open_input_stream(file) as stream,
        ):
            return bytes(stream.read()).decode()
    except FileNotFoundError:
        return None


def replace_text(path: str, text: str) -> None:
    """Put a file in the place of the one that is there; a reader sees the one or the other.

    Raises:
        StoreUnavailableError: The storage refuses.
    """
    filesystem, file = filesystem_of(path)
    with storing("writing a file of the lake", path=path):
        if isinstance(filesystem, pafs.LocalFileSystem):
            own = Path(f"{file}.{uuid.uuid4().hex}")
            own.parent.mkdir(parents=True, exist_ok=True)
            own.write_text(text)
            own.replace(file)
        else:  # an object store shows an object when it is whole
            with filesystem.open_output_stream(file) as stream:
                stream.write(text.encode())

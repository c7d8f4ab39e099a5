"""How does a Delta table say that some rows of a file are deleted? By a deletion vector: the places
of these rows, as a compressed bitmap.

Those of a commit are kept in one file beside the table's. The protocol has small ones stand in the
log itself too; these are read and not written, since VACUUM of Delta 4.4 fails on them with a
MatchError (``test_rewriting`` has Spark's VACUUM after our vectors). Whoever knows no vectors must
not read the table, which its protocol says. Source: the Delta transaction log protocol, sections
"Deletion Vectors", "Deletion Vector Format" and "Deletion Vector File Storage Format".
"""

from __future__ import annotations

import base64
import string
import struct
import uuid
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.fs as pafs
from pyroaring import BitMap64

Places = npt.NDArray[np.int64]
"""Places of rows in their file, from 0 on, ascending."""

Deleted = BitMap64
"""Places of deleted rows."""

_MAGIC = struct.pack("<i", 1681511377)
_FILE_VERSION = b"\x01"
_INLINE, _BESIDE = "i", "u"

_B85 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_Z85 = (
    string.digits + string.ascii_lowercase + string.ascii_uppercase + ".-:+=^!/*?&<>()[]{}@%$#"
).encode()
_TO_Z85, _FROM_Z85 = bytes.maketrans(_B85, _Z85), bytes.maketrans(_Z85, _B85)
_UUID_LENGTH = 20


@dataclass(frozen=True, slots=True)
class Vector:
    """What the log says of a file's deletion vector: where it is kept, and how many rows it
    names."""

    storage: str
    place: str
    offset: int | None
    bytes: int
    cardinality: int

    @classmethod
    def of_action(cls, said: Mapping[str, Any]) -> Vector:
        """As an action has it under ``deletionVector``."""
        return cls(
            said["storageType"],
            said["pathOrInlineDv"],
            said.get("offset"),
            said["sizeInBytes"],
            said["cardinality"],
        )

    def as_action(self) -> dict[str, Any]:
        """For ``deletionVector`` of an action."""
        said = {
            "storageType": self.storage,
            "pathOrInlineDv": self.place,
            "offset": self.offset,
            "sizeInBytes": self.bytes,
            "cardinality": self.cardinality,
        }
        return {name: value for name, value in said.items() if value is not None}

    @property
    def file(self) -> str | None:
        """Its file in the table's folder; None where it stands in the log, or elsewhere."""
        return _file_of(self) if self.storage == _BESIDE else None

    @property
    def is_readable(self) -> bool:
        """Is it kept in the log or beside the table's files, and not elsewhere?"""
        return self.storage in (_INLINE, _BESIDE)


@dataclass(frozen=True, slots=True)
class VectorFile:
    """A file with vectors in a Delta table's folder that no commit names yet."""

    name: str
    bytes: int


def places_of(deleted: Deleted) -> Places:
    """As numbers."""
    return np.asarray(deleted.to_array(), dtype=np.uint64).astype(np.int64)


def with_places(deleted: Deleted, places: Places) -> Deleted:
    """These rows are deleted too."""
    return deleted | BitMap64(places.astype(np.uint64))


def read_vector(filesystem: pafs.FileSystem, root: str, vector: Vector) -> Deleted:
    """The rows that a vector names.

    Args:
        filesystem: Where the table is kept.
        root: Its folder there.
        vector: One that :attr:`Vector.is_readable`.

    Raises:
        OSError, pyarrow.ArrowInvalid: Its file is gone, or is not what the log says.
    """
    if vector.storage == _INLINE:
        found = _from_z85(vector.place)[: vector.bytes]
    else:
        with filesystem.open_input_file(f"{root}/{_file_of(vector)}") as file:
            size, found, proof = _block(file.read_at(vector.bytes + 8, vector.offset or 0))
        if size != vector.bytes or proof != zlib.crc32(found):
            raise pa.ArrowInvalid("a file of deletion vectors is damaged")
    return _deleted(found, vector.cardinality)


def write_vectors(
    filesystem: pafs.FileSystem, root: str, deleted: Mapping[str, Deleted]
) -> tuple[dict[str, Vector], VectorFile | None]:
    """Vectors that name these rows, by file; and the file that holds them, if there are any, which
    is not on the disk for good yet.

    Raises:
        OSError: The file cannot be written.
    """
    if not deleted:
        return {}, None
    vectors: dict[str, Vector] = {}
    name = uuid.uuid4()
    content = bytearray(_FILE_VERSION)
    for file, rows in deleted.items():
        written = _MAGIC + rows.serialize()
        place = _to_z85(name.bytes)
        vectors[file] = Vector(_BESIDE, place, len(content), len(written), len(rows))
        content += struct.pack(">i", len(written)) + written
        content += struct.pack(">I", zlib.crc32(written))
    new = VectorFile(_file_name(name), len(content))
    with filesystem.open_output_stream(f"{root}/{new.name}") as stream:
        stream.write(bytes(content))
    return vectors, new


def _block(read: bytes) -> tuple[int, bytes, int]:
    if len(read) < 8:
        raise pa.ArrowInvalid("a file of deletion vectors is cut off")
    return struct.unpack(">i", read[:4])[0], read[4:-4], struct.unpack(">I", read[-4:])[0]


def _file_of(vector: Vector) -> str:
    prefix, name = vector.place[:-_UUID_LENGTH], vector.place[-_UUID_LENGTH:]
    file = _file_name(uuid.UUID(bytes=_from_z85(name)))
    return f"{prefix}/{file}" if prefix else file


def _file_name(name: uuid.UUID) -> str:
    return f"deletion_vector_{name}.bin"


def _deleted(content: bytes, cardinality: int) -> Deleted:
    if content[:4] != _MAGIC:
        raise pa.ArrowInvalid("a deletion vector has a form that Delta's protocol does not name")
    try:
        bitmap = BitMap64.deserialize(content[4:])
    except ValueError as error:
        raise pa.ArrowInvalid("a deletion vector is damaged") from error
    if len(bitmap) != cardinality:
        raise pa.ArrowInvalid("a deletion vector names other rows than the log says")
    return bitmap


def _to_z85(content: bytes) -> str:
    whole = content + bytes(-len(content) % 4)
    return base64.b85encode(whole).translate(_TO_Z85).decode()


def _from_z85(text: str) -> bytes:
    return base64.b85decode(text.encode().translate(_FROM_Z85))

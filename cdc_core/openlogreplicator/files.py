"""Where do OpenLogReplicator's messages lie in the files of its file writer, and how far are they
complete?

A folder's files are read in the order of their names. One line is one message; a line that does not
end yet is read when it does, and one that was torn when the writer was killed is none. A file is
known by how it begins, so that one that was renamed goes on where it was left, and one that was
written over does not.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from cdc_core.config import OpenLogReplicatorConfig
from cdc_core.errors import LogsNotReadyError, PreflightError, RedoUnavailableError
from cdc_core.model.scn import Scn
from cdc_core.openlogreplicator.messages import DECODER, Message, lacking, not_a_message

BLOCK_BYTES = 4 * 1024**2
_HEAD_BYTES = 1024
_TAIL_BYTES = 64 * 1024
_DIGITS = re.compile(r"(\d+)")


@dataclass(frozen=True, slots=True)
class Place:
    """Before which line reading goes on: a file, by its name and the digest of its first
    ``head_bytes``, and the line's offset."""

    name: str
    offset: int
    head: str
    head_bytes: int

    def as_json(self) -> dict[str, Any]:
        """For a window's manifest; ``Place(**…)`` is the inverse."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Block:
    """Some messages of a file, and where they lie."""

    messages: Sequence[Message]
    path: Path
    offset: int
    data: bytes

    def place(self, at: int) -> Place:
        """Before the message with that number."""
        start = 0
        for number, line in enumerate(_lines(self.data)):
            if number == at:
                break
            start += len(line)
        return place_in(self.path, self.offset + start)


class MessageFiles:
    """The files of a folder, as they are when it is opened.

    Raises:
        PreflightError: There is no such folder.
    """

    def __init__(self, how: OpenLogReplicatorConfig) -> None:
        assert how.folder is not None
        self._folder = Path(how.folder)
        if not self._folder.is_dir():
            raise PreflightError(
                "the folder with OpenLogReplicator's files is not there",
                hint="Make the folder that capture.folder names available on this machine, or correct capture.folder.",
                folder=how.folder,
            )
        self._bytes_max = how.window_bytes_max
        self._paths = sorted(
            (one for one in self._folder.glob(how.files) if one.is_file()), key=_in_order
        )

    @cached_property
    def first(self) -> Message | None:
        """The oldest message; None where there is none yet."""
        for path in self._paths:
            for block in self._blocks_of(path, 0):
                return block.messages[0]
        return None

    def newest_messages(self) -> Sequence[Message]:
        """Some of the newest messages, in order.

        Raises:
            DecodeError: A line is no message.
        """
        for path in reversed(self._paths):
            size = path.stat().st_size
            if found := list(self._behind(path, max(0, size - _TAIL_BYTES), size)):
                return found
        return () if self.first is None else (self.first,)

    def begins_at(self) -> Scn | None:
        """The SCN from which on transactions that began are in the files; None where there is no
        message that tells."""
        if self.first is None:
            return None
        first = self.first
        scn = first.begin_scn if first.begin_scn is not None else first.c_scn
        return None if scn is None else Scn(scn)

    def newest_proof(self) -> Scn | None:
        """The highest SCN up to which the end of the files proves that all commits are there."""
        for path in reversed(self._paths):
            size, span = path.stat().st_size, _TAIL_BYTES
            while True:
                found = self._proofs(path, max(0, size - span), size)
                if found:
                    return Scn(max(found))
                if span >= size:
                    break
                span *= 8
        return None

    def cuts(self, low: Scn) -> list[Scn]:
        """Upper ends of windows above ``low``, about every ``window_bytes_max`` bytes, the last
        one where the files end. Where they begin above ``low``, whoever captures the first window
        finds the gap.

        Raises:
            LogsNotReadyError: There are no messages.
        """
        found: list[int] = []
        start, _ = self._beginning(low)
        for path in self._paths[self._paths.index(start) if start else 0 :]:
            size = path.stat().st_size
            for offset in range(self._bytes_max, size, self._bytes_max):
                found += self._proofs(path, offset, size, first_only=True)
        newest = self.newest_proof()
        rising = [low]
        for scn in [*found, *([newest] if newest is not None else [])]:
            if scn > rising[-1]:
                rising.append(Scn(scn))
        return rising[1:]

    def start(self, low: Scn) -> FilePosition:
        """Behind which every transaction that commits above ``low`` is found: the beginning of the
        last file that begins with an SCN at or below it.

        Raises:
            RedoUnavailableError: The files begin above ``low``.
            LogsNotReadyError: There are none.
        """
        path, lowest = self._beginning(low)
        if path is not None:
            return FilePosition(path, 0)
        raise RedoUnavailableError(
            "OpenLogReplicator's files begin above the SCN that is read next",
            hint="Copy the older files back into the folder. If they are gone, `redolake source skip-gap` "
            "reads the tables again.",
            scn=low,
            begins=lowest,
        )

    def _beginning(self, low: Scn) -> tuple[Path | None, int | None]:
        """The last file that begins at or below an SCN; where there is none, where the files
        begin."""
        lowest: int | None = None
        for path in reversed(self._paths):
            proofs = self._proofs(path, 0, path.stat().st_size, first_only=True)
            if proofs and proofs[0] <= low:
                return path, None
            lowest = proofs[0] if proofs else lowest
        if lowest is None:
            raise LogsNotReadyError(
                "OpenLogReplicator has not written a message yet",
                hint=f"Redolake reads {self._folder} again with the next run. OpenLogReplicator's log says what it does.",
                folder=self._folder,
            )
        return None, lowest

    def resume(self, place: Place) -> FilePosition:
        """A place of an earlier window in the files of now.

        Raises:
            RedoUnavailableError: Its file is gone, or was written over.
        """
        named = [path for path in self._paths if path.name == place.name]
        others = [path for path in self._paths if path.name != place.name and place.offset]
        for path in (*named, *others):
            if path.stat().st_size >= place.offset and place == _renamed(path, place):
                return FilePosition(path, place.offset)
        raise RedoUnavailableError(
            "the file of OpenLogReplicator that holds the next messages is gone, or was written over",
            hint="Copy the file back into the folder, and set `append: 1` in OpenLogReplicator's file writer. If it is "
            "gone, `redolake source skip-gap` reads the tables again.",
            file=place.name,
            offset=place.offset,
        )

    def blocks(self, start: FilePosition) -> Iterator[Block]:
        """All messages from a place on.

        Raises:
            DecodeError: A line is no message.
        """
        at = self._paths.index(start.path)
        yield from self._blocks_of(start.path, start.offset)
        for path in self._paths[at + 1 :]:
            yield from self._blocks_of(path, 0)

    def _blocks_of(self, path: Path, offset: int) -> Iterator[Block]:
        with path.open("rb") as file:
            file.seek(offset)
            while data := _whole_lines(file):
                messages = _decoded(data, path, offset)
                if messages:
                    yield Block(messages, path, offset, data)
                offset += len(data)

    def _proofs(self, path: Path, offset: int, end: int, *, first_only: bool = False) -> list[int]:
        """The SCNs that whole lines behind an offset prove; the first one alone if asked."""
        found: list[int] = []
        for message in self._behind(path, offset, end):
            if message.lacks_commit_scn:
                raise lacking("e_scn", file=path.name)
            if message.proves is not None:
                found.append(message.proves)
                if first_only:
                    break
        return found

    def _behind(self, path: Path, offset: int, end: int) -> Iterator[Message]:
        """The messages of whole lines that begin from an offset on."""
        with path.open("rb") as file:
            file.seek(max(0, offset - 1))
            if offset:
                file.readline()  # the rest of a line that began before
            while file.tell() < end and (line := file.readline()).endswith(b"\n"):
                yield from _decoded(line, path, offset)


@dataclass(frozen=True, slots=True)
class FilePosition:
    """Where reading begins."""

    path: Path
    offset: int


def place_in(path: Path, offset: int) -> Place:
    """A place in a file as it begins now."""
    length = min(offset, _HEAD_BYTES)
    return Place(path.name, offset, _digest(path, length), length)


def _renamed(path: Path, place: Place) -> Place:
    """The place, if it were in that file."""
    digest = _digest(path, place.head_bytes)
    return Place(place.name, place.offset, digest, place.head_bytes)


def _digest(path: Path, length: int) -> str:
    with path.open("rb") as file:
        return hashlib.sha256(file.read(length)).hexdigest()


def _in_order(path: Path) -> list[tuple[int, int, str]]:
    """Numbers in names by value."""
    parts = _DIGITS.split(path.name)
    return [(1, int(part), "") if part.isdigit() else (0, 0, part) for part in parts]


def _whole_lines(file: BinaryIO) -> bytes:
    """The next lines that have ended, about a block of them; nothing at the end of the file, or
    before a line that has not ended."""
    data = file.read(BLOCK_BYTES)
    end = data.rfind(b"\n") + 1
    if not end and data:
        rest = file.readline()
        if not rest.endswith(b"\n"):
            return b""
        return data + rest
    file.seek(end - len(data), 1)
    return data[:end]


def _lines(data: bytes) -> Iterator[bytes]:
    """Lines with their ends; empty ones go with the line behind them."""
    waiting = b""
    for line in data.splitlines(keepends=True):
        waiting += line
        if line.strip():
            yield waiting
            waiting = b""


def _decoded(data: bytes, path: Path, offset: int) -> list[Message]:
    try:
        return DECODER.decode_lines(data)
    except msgspec.MsgspecError:
        return [_decoded_line(line, path, offset) for line in _lines(data)]


def _decoded_line(line: bytes, path: Path, offset: int) -> Message:
    """The message of a line; of one that was torn off when the writer was killed, the message that
    the next writer put behind it.

    Raises:
        DecodeError: There is none.
    """
    try:
        return DECODER.decode(line)
    except msgspec.MsgspecError as error:
        at = line.find(b'{"', 1)
        while at > 0:
            try:
                return DECODER.decode(line[at:])
            except msgspec.MsgspecError:
                at = line.find(b'{"', at + 1)
        raise not_a_message(str(error), file=path.name, offset=offset) from error

"""Where do the records of a stream lie in its files, and how far are they complete?

A folder's files are read in the order of their names. One line is one record; a line that does not
end yet is read when it does, and one that was torn when the writer was killed is none. A file is
known by how it begins, so that one that was renamed goes on where it was left, and one that was
written over does not.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property, partial
from io import BufferedReader
from typing import Any

import msgspec

from cdc_core.change_stream.folders import RecordFile, files_in
from cdc_core.change_stream.form import DecodedLines, Record, StreamForm
from cdc_core.decode.kernels.memory import PADDING
from cdc_core.errors import LogsNotReadyError, PreflightError, RedoUnavailableError
from cdc_core.model.scn import Scn

BLOCK_BYTES = 4 * 1024**2
_HEAD_BYTES = 1024
_TAIL_BYTES = 64 * 1024
_DIGITS = re.compile(r"(\d+)")

Passed = tuple[str | None, int]
"""The name of a file that was read to its end, and its bytes; None and 0 without one."""


@dataclass(frozen=True, slots=True)
class Place:
    """Before which line reading goes on: a file, by its name and the digest of its first
    ``head_bytes``, and the line's offset; and the name of the file in front of it, with the bytes
    that it had when reading went on behind it (None, 0: there was none)."""

    name: str
    offset: int
    head: str
    head_bytes: int
    before: str | None
    before_bytes: int

    def as_json(self) -> dict[str, Any]:
        """For a window's manifest."""
        return asdict(self)

    @classmethod
    def of(cls, reader: Mapping[str, Any]) -> Place | None:
        """The inverse; None where the window before was not read from files."""
        known = {one.name: reader[one.name] for one in fields(cls) if one.name in reader}
        return cls(**known) if len(known) == len(fields(cls)) else None


@dataclass(frozen=True, slots=True)
class Block:
    """Some records of a file, and where they lie."""

    lines: DecodedLines
    file: RecordFile
    offset: int
    passed: Passed

    @property
    def records(self) -> Sequence[Record]:
        """The records, at least one."""
        return self.lines.records

    def place(self, at: int) -> Place:
        """Before the record with that number."""
        return place_in(self.file, self.offset + self.lines.offsets[at], self.passed)


class RecordFiles:
    """The files of a folder, as they are when it is opened.

    Args:
        form: Of their records.
        folder: The folder, as :func:`~cdc_core.change_stream.folders.files_in` takes it.
        names: Pattern of their names.
        window_bytes: A window has about so many bytes of them.

    Raises:
        PreflightError: There is no such folder.
        StoreUnavailableError: It is in an object store that cannot be reached, or refuses.
    """

    def __init__(self, form: StreamForm, folder: str, names: str, window_bytes: int) -> None:
        self._form, self._name = form, form.wording.name
        self._folder = folder
        files = files_in(folder, names)
        if files is None:
            raise PreflightError(
                f"the folder with {self._name}'s files is not there",
                hint="Make the folder that capture.folder names available on this machine, or correct capture.folder.",
                folder=folder,
            )
        self._bytes_max = window_bytes
        self._files = sorted(files, key=_in_order)

    @cached_property
    def first(self) -> Any:
        """The oldest record; None where there is none yet."""
        for file in self._files:
            for record in self._behind(file, 0, file.size):
                return record
        return None

    def newest_number(self) -> int:
        """The highest number in a file's name, -1 where none has one: files from the front may have
        been removed, and one with a higher number is read behind all that are left."""
        return max(
            (int(part) for one in self._files for part in _DIGITS.findall(one.name)), default=-1
        )

    def newest(self) -> Sequence[Any]:
        """Some of the newest records, in order.

        Raises:
            DecodeError: A line is no record.
        """
        for file in reversed(self._files):
            size = file.size
            if found := list(self._behind(file, max(0, size - _TAIL_BYTES), size)):
                return found
        return () if self.first is None else (self.first,)

    def begins_at(self) -> Scn | None:
        """The SCN from which on transactions that began are in the files; None where there is no
        record that tells."""
        scn = None if self.first is None else self.first.begins
        return None if scn is None else Scn(scn)

    def newest_proof(self) -> Scn | None:
        """The highest SCN up to which the end of the files proves that all commits are there."""
        for file in reversed(self._files):
            size, span = file.size, _TAIL_BYTES
            while True:
                found = self._proofs(file, max(0, size - span), size)
                if found:
                    return Scn(max(found))
                if span >= size:
                    break
                span *= 8
        return None

    def cuts(self, low: Scn) -> list[Scn]:
        """Upper ends of windows above ``low``, about every ``window_bytes`` bytes, the last
        one where the files end. Where they begin above ``low``, whoever captures the first window
        finds the gap.

        Raises:
            LogsNotReadyError: There are no records.
        """
        found: list[int] = []
        start, _ = self._beginning(low)
        for file in self._files[self._files.index(start) if start else 0 :]:
            size = file.size
            for offset in range(self._bytes_max, size, self._bytes_max):
                found += self._proofs(file, offset, size, first_only=True)
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
        file, lowest = self._beginning(low)
        if file is not None:
            return FilePosition(file, 0)
        raise RedoUnavailableError(
            f"{self._name}'s files begin above the SCN that is read next",
            hint="Copy the older files back into the folder. If they are gone, `redolake source skip-gap` "
            "reads the tables again.",
            scn=low,
            begins=lowest,
        )

    def _beginning(self, low: Scn) -> tuple[RecordFile | None, int | None]:
        """The last file that begins at or below an SCN; where there is none, where the files
        begin."""
        lowest: int | None = None
        for file in reversed(self._files):
            found = self._begins(file)
            if found is not None and found <= low:
                return file, None
            lowest = lowest if found is None else found
        if lowest is None:
            raise LogsNotReadyError(
                f"{self._name} has not written a record yet",
                hint=f"Redolake reads {self._folder} again with the next run. {self._form.wording.not_yet}",
                folder=self._folder,
            )
        return None, lowest

    def resume(self, reader: Mapping[str, Any], low: Scn) -> FilePosition:
        """Where the window before ended, in the files of now; where it was not read from files, as
        :meth:`start`.

        Raises:
            RedoUnavailableError: Its file is gone, or was written over; or more came in front of
                it, which no window has read.
        """
        place = Place.of(reader)
        if place is None:
            return self.start(low)
        named = [file for file in self._files if file.name == place.name]
        others = [file for file in self._files if file.name != place.name and place.offset]
        for file in (*named, *others):
            if file.size >= place.offset and place == _renamed(file, place):
                self._refuse_late(file, place)
                return FilePosition(file, place.offset)
        raise RedoUnavailableError(
            f"the file of {self._name} with the next records is gone, or was overwritten",
            hint=f"Copy the file back into the folder{self._form.wording.keeps_files}. If it is "
            "gone, `redolake source skip-gap` continues after the gap.",
            file=place.name,
            offset=place.offset,
        )

    def _refuse_late(self, file: RecordFile, place: Place) -> None:
        """Refuse to go on where the file in front has grown since it was passed, or another one has
        come behind that."""
        at = self._files.index(file)
        names = [one.name for one in self._files[:at]]
        if place.before not in names:
            return  # removed, renamed, or none
        came = names[names.index(place.before) + 1 :]
        if not came and self._files[at - 1].size <= place.before_bytes:
            return
        raise RedoUnavailableError(
            f"more of {self._name}'s records appeared before those that were read",
            hint="Copy files in the order of their names, each whole before the next one. "
            "`redolake source skip-gap` continues after the gap.",
            file=came[0] if came else place.before,
            read_from=place.name,
        )

    def _passed(self, at: int) -> Passed:
        """What is in front of a file."""
        return (self._files[at - 1].name, self._files[at - 1].size) if at else (None, 0)

    def blocks(self, start: FilePosition) -> Iterator[Block]:
        """All records from a place on.

        Raises:
            DecodeError: A line is no record.
        """
        at = self._files.index(start.file)
        yield from self._blocks_of(start.file, start.offset, self._passed(at))
        for number, file in enumerate(self._files[at + 1 :], at + 1):
            yield from self._blocks_of(file, 0, self._passed(number))

    def _blocks_of(self, file: RecordFile, offset: int, passed: Passed) -> Iterator[Block]:
        room = bytearray(BLOCK_BYTES + PADDING)
        with file.open() as opened:
            opened.seek(offset)
            while data := _whole_lines(opened, room):
                decode = partial(self._decoded_line, file=file, offset=offset)
                lines = self._form.decoded(data, decode)
                if lines.records:
                    yield Block(lines, file, offset, passed)
                offset += len(data)

    def _begins(self, file: RecordFile) -> int | None:
        """What follows in a file, or behind it, commits above this SCN."""
        for record in self._behind(file, 0, file.size):
            record.check()
            scn = record.begins if record.proves is None else record.proves
            if scn is not None:
                return scn
        return None

    def _proofs(
        self, file: RecordFile, offset: int, end: int, *, first_only: bool = False
    ) -> list[int]:
        """The SCNs that whole lines behind an offset prove; the first one alone if asked."""
        found: list[int] = []
        for record in self._behind(file, offset, end):
            record.check()
            if record.proves is not None:
                found.append(record.proves)
                if first_only:
                    break
        return found

    def _behind(self, file: RecordFile, offset: int, end: int) -> Iterator[Record]:
        """The records of whole lines that begin from an offset on."""
        with file.open() as opened:
            opened.seek(max(0, offset - 1))
            if offset:
                opened.readline()  # the rest of a line that began before
            while opened.tell() < end and (line := opened.readline()).endswith(b"\n"):
                if line.strip():
                    yield self._decoded_line(line, file, offset)

    def _decoded_line(self, line: bytes, file: RecordFile, offset: int) -> Any:
        """The record of a line; of one that was torn off when the writer was killed, the record
        that the next writer put behind it.

        Raises:
            DecodeError: There is none.
        """
        decode = self._form.decoder.decode
        try:
            return decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            at = line.find(b'{"', 1)
            while at > 0:
                try:
                    return decode(line[at:])
                except (msgspec.MsgspecError, UnicodeDecodeError):
                    at = line.find(b'{"', at + 1)
            reason = "text is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
            raise self._form.not_a_record(reason, file=file.name, offset=offset) from error


@dataclass(frozen=True, slots=True)
class FilePosition:
    """Where reading begins."""

    file: RecordFile
    offset: int


def place_in(file: RecordFile, offset: int, passed: Passed) -> Place:
    """A place in a file as it begins now, behind one that was passed."""
    length = min(offset, _HEAD_BYTES)
    return Place(file.name, offset, _digest(file, length), length, *passed)


def _renamed(file: RecordFile, place: Place) -> Place:
    """The place, if it were in that file."""
    return replace(place, head=_digest(file, place.head_bytes))


def _digest(file: RecordFile, length: int) -> str:
    with file.open() as opened:
        return hashlib.sha256(opened.read(length)).hexdigest()


def _in_order(file: RecordFile) -> list[tuple[int, int, str]]:
    """Numbers in names by value."""
    parts = _DIGITS.split(file.name)
    return [(1, int(part), "") if part.isdigit() else (0, 0, part) for part in parts]


def _whole_lines(file: BufferedReader, room: bytearray) -> bytes | memoryview:
    """The next lines that have ended, about a block of them, in ``room`` until it is filled again;
    nothing at the end of the file, or before a line that has not ended."""
    block = memoryview(room)
    size = file.readinto(block[:BLOCK_BYTES])
    end = room.rfind(b"\n", 0, size) + 1
    if not end and size:
        rest = file.readline()
        return bytes(block[:size]) + rest if rest.endswith(b"\n") else b""
    file.seek(end - size, 1)
    return block[:end]

"""An outbound server for tests: the embedded Oracle's LCRs behind a stand-in for Oracle's client library."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from oracle_embedded.xstream import XStreamOut
from tests.oracle.embedded import Oracle

NAME = "XOUT"
COMPILER = which("cc") or which("gcc")
needs_compiler = pytest.mark.skipif(
    COMPILER is None, reason="no C compiler: the stand-in for Oracle's client library is not built"
)


def built(folder: Path) -> Path:
    """The stand-in, compiled."""
    assert COMPILER is not None
    library = folder / "libstandin.so"
    source = Path(__file__).with_name("oci.c")
    subprocess.run([COMPILER, "-shared", "-fPIC", "-O1", "-w", "-o", library, source], check=True)
    return library


@dataclass
class Outbound:
    """One outbound server, whose LCRs the library reads from ``path``."""

    server: XStreamOut
    library: Path
    path: Path
    newest: int = 0

    @classmethod
    def of(cls, oracle: Oracle, folder: Path, library: Path) -> Outbound:
        """It has begun, and Oracle's views show it."""
        folder.mkdir(parents=True, exist_ok=True)
        made = cls(XStreamOut(oracle.database, version=2), library, folder / "lcrs.txt")
        made.server.show(NAME, lambda: made.mark)
        made.write()
        return made

    @property
    def capture(self) -> dict[str, Any]:
        """``capture`` of a source that reads it."""
        reached = {"server": NAME, "dsn": str(self.path), "library": str(self.library)}
        return {"type": "xstream", **reached, "idle_seconds": 1}

    @property
    def mark(self) -> int | None:
        """SCN of the processed low watermark."""
        file = self.path.with_name(f"{self.path.name}.mark")
        return int.from_bytes(bytes.fromhex(file.read_text())[:8], "big") if file.exists() else None

    def process(self, scn: int) -> None:
        """Move the processed low watermark, as another client does."""
        at = self.server.position(scn)
        self.path.with_name(f"{self.path.name}.mark").write_text(at.hex())

    def fail(self, code: int, *, after: int = 0) -> None:
        """Let the XStream call behind so many fail with ``ORA-code``, once."""
        self.path.with_name(f"{self.path.name}.fail").write_text(f"{after} {code}")

    def write(self) -> None:
        """Bring all that has committed to the server."""
        lines = [line for _, lines in self.server.lcrs(0) for line in lines]
        self.newest = lines[-1]["scn"]
        text = "".join(f"{row}\n" for line in lines for row in _rows(line))
        self.path.write_text(text)


def _rows(line: dict[str, Any]) -> Iterator[str]:
    if line["lcr"] == "low":
        yield f"W\t{line['position']}"
        return
    texts = [line.get("database"), line["command"], line.get("owner"), line.get("object"), None, line["transaction"]]  # fmt: skip
    when = datetime.fromisoformat(line["time"])
    date = struct.pack("=h5B", when.year, *when.timetuple()[1:6])
    kind = 4 if line["lcr"] == "ddl" else 3
    heads = ["H", str(kind), *map(_hex, texts), date.hex(), line["position"], str(line.get("flags", 0))]  # fmt: skip
    yield "\t".join(heads)
    if kind == 4:
        yield f"T\t{_hex(line['text'])}"
    for name, value in line["attributes"].items():
        kind = 104 if name == "ROW_ID" else 1
        end = "00" if kind == 104 else ""
        yield f"A\t{_hex(name)}\t{kind}\t0\t0\t{_hex(value)}{end}"
    for letter, part in (("O", "old"), ("N", "new"), ("C", "chunks")):
        for one in line.get(part, ()):
            kind, value = (one["type"], one.get("value", "-"))
            if value != "-" and letter != "C":
                kind, stored = given(kind, bytes.fromhex(value))
                value = stored.hex()
            yield f"{letter}\t{_hex(one['name'])}\t{kind}\t{one.get('flags', 0)}\t0\t{value}"
    yield "E"


def _hex(text: str | None) -> str:
    return text.encode().hex() if text else "-"


def given(kind: int, stored: bytes) -> tuple[int, bytes]:
    """The type and the bytes in which Oracle's client library hands a stored value out; descriptors as the stand-in has them."""
    match kind:
        case 2:
            return 6, (bytes([len(stored)]) + stored).ljust(22, b"\0")
        case 12:
            return 156, struct.pack("=h5Bx", *_moment(stored))
        case 100 | 101:
            flipped = bytes(b ^ 0xFF for b in stored) if stored[0] < 0x80 else bytes([stored[0] & 0x7F]) + stored[1:]  # fmt: skip
            form = "f" if kind == 100 else "d"
            return kind - 79, struct.pack(f"={form}", *struct.unpack(f">{form}", flipped))
        case 180:
            return 187, _descriptor(stored, 0, 0)
        case 181:
            return 188, _descriptor(stored, stored[11] - 20, stored[12] - 60)
        case 182:
            return 189, struct.pack("=2i", _centred(stored[:4]), stored[4] - 60)
        case 183:
            clock = [one - 60 for one in stored[4:7]]
            return 190, struct.pack("=5i", _centred(stored[:4]), *clock, _centred(stored[7:]))
    return kind, stored


def _moment(stored: bytes) -> list[int]:
    century, year, month, day, hour, minute, second = stored[:7]
    return [(century - 100) * 100 + year - 100, month, day, hour - 1, minute - 1, second - 1]


def _descriptor(stored: bytes, hours: int, minutes: int) -> bytes:
    wall = datetime(*_moment(stored)) + timedelta(hours=hours, minutes=minutes)  # type: ignore[arg-type]
    nanos = int.from_bytes(stored[7:11], "big")
    parts = wall.timetuple()[:6]
    return struct.pack("=h5BI2b", *parts, nanos, hours, minutes)


def _centred(stored: bytes) -> int:
    return int.from_bytes(stored, "big") - 2**31

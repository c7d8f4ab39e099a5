"""How is an Oracle table named, quoted, and written as a file, Delta table or Dagster asset
name?"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from cdc_core.errors import ConfigError

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_$#]*\Z")
_FOLDED = re.compile(r"[A-Z][A-Z0-9_$#]*\Z")
EXPRESSION = "re:"
"""Begins a pattern of tables that is a regular expression."""

_PART = re.compile(r'"([^"]+)"|([^".]+)')
_LOWERABLE = re.compile(r"[A-Z][A-Z0-9_]*\Z")
_UNSAFE = re.compile(r"[^A-Za-z0-9]")
_UNUSABLE = re.compile(r'["\x00\r\n\ud800-\udfff]')
IDENTIFIER_BYTES_MAX = 128
"""Oracle's longest identifier since 12.2."""

PATH_PART_MAX = 120
"""Characters of an owner or a name in a folder's name: file systems take 255 bytes for both, the
dot, and the suffix of a table that was moved aside."""


@dataclass(frozen=True, slots=True, order=True)
class TableId:
    """An Oracle table: owner and name as the dictionary holds them (exact case)."""

    owner: str
    name: str

    def __post_init__(self) -> None:
        for part in (self.owner, self.name):
            check_identifier(part)

    def __str__(self) -> str:
        """What :meth:`parse` reads: ``HR.EMP``, and ``HR."Dept"`` where Oracle needs quotes.
        Different for different tables."""
        return f"{_written(self.owner)}.{_written(self.name)}"

    @property
    def argument(self) -> str:
        """The text as one word of a command line: a shell would take the double quotes away."""
        return shlex.quote(str(self))

    @property
    def sql(self) -> str:
        """Quoted for SQL: ``"OWNER"."NAME"``."""
        return f"{quote(self.owner)}.{quote(self.name)}"

    @property
    def path(self) -> str:
        """``owner.name`` for folders, Delta paths and asset keys, different for different tables.

        An ordinary upper-case part is written in lower case; any other starts with ``_`` and has
        each character that is not a letter or digit as ``_xx`` in hex, one beyond U+00FF as ``_u``
        and six digits. So the name can be read back from it, but for one that is too long for a
        folder: its rest is a digest, and the Delta tables' property ``redolake.table`` names it.
        """
        return f"{path_part(self.owner)}.{path_part(self.name)}"

    @classmethod
    def parse(cls, text: str) -> TableId:
        """Read ``OWNER.TABLE``: unquoted parts fold to upper case, quoted parts are exact.

        Raises:
            ConfigError: The text is not a table name.
        """
        parts = parts_of(text)
        refuse_container(parts, text)
        if len(parts) != 2:
            raise ConfigError(
                "this is not a table name",
                hint="Write OWNER.TABLE, with double quotes around a part that is not upper case.",
                name=text[:200],
            )
        return cls(*(quoted or _folded(plain) for quoted, plain in parts))


def parts_of(text: str) -> list[tuple[str, str]]:
    """The parts between the dots of a name, each as (text in double quotes, text without
    them); none if it is no name."""
    parts = _PART.findall(text.strip())
    rebuilt = ".".join(f'"{quoted}"' if quoted else plain for quoted, plain in parts)
    return parts if rebuilt == text.strip() else []


def split_container(text: str) -> tuple[str | None, str]:
    """The pluggable database before a name of three parts, as Oracle keeps it, and the name without
    it. A regular expression names none."""
    parts = parts_of(text)
    if len(parts) != 3 or text.startswith(EXPRESSION):
        return None, text
    quoted, plain = parts[0]
    written = f'"{quoted}"' if quoted else plain
    return container_name(written), text.strip()[len(written) + 1 :]


def container_name(written: str) -> str:
    """The name of a pluggable database as Oracle keeps it: in upper case, and in double quotes as
    it is written."""
    return written[1:-1] if written.startswith('"') else written.upper()


def refuse_container(parts: Sequence[object], text: str) -> None:
    """A name of three parts is meant as ``PDB.OWNER.TABLE``. Names, object numbers and transaction
    numbers of two containers can be equal, so a source reads one.

    Raises:
        ConfigError: There are three parts.
    """
    if len(parts) == 3:
        raise ConfigError(
            "a table's name has no container: one source captures the tables of one pluggable database",
            hint="Write OWNER.TABLE. List the pluggable databases under oracle.pdbs, which makes each a separate source, and tables may then be "
            "configured as PDB.OWNER.TABLE; name its pluggable database with `redolake --pdb`.",
            name=text[:200],
        )


def check_identifier(name: str) -> str:
    """Return ``name`` if Oracle could hold it as a quoted identifier.

    Raises:
        ConfigError: It is empty, too long, or holds a double quote, NUL, a line break, or half a
            character.
    """
    if not name or _UNUSABLE.search(name) or len(name.encode()) > IDENTIFIER_BYTES_MAX:
        raise ConfigError(
            "this is not an Oracle identifier",
            hint=f"Use 1 to {IDENTIFIER_BYTES_MAX} bytes without double quotes and line breaks.",
            name=repr(name[:140]),
        )
    return name


def can_be_named(*names: str) -> bool:
    """Can :func:`check_identifier` take these names? A table with another one is nobody's to
    capture."""
    try:
        for name in names:
            check_identifier(name)
    except ConfigError:
        return False
    return True


def quote(name: str) -> str:
    """Quote one checked identifier for Oracle SQL."""
    return f'"{check_identifier(name)}"'


def _written(part: str) -> str:
    return part if _FOLDED.match(part) else quote(part)


def _folded(plain: str) -> str:
    if not _PLAIN.match(plain):
        raise ConfigError(
            "an unquoted identifier has characters that Oracle allows only in quotes",
            hint="Put double quotes around it.",
            name=plain[:200],
        )
    return plain.upper()


def path_part(part: str, *, is_lowered: bool = True) -> str:
    """An owner or a table's name in a folder's name (:attr:`TableId.path`); an ordinary one can
    stay in upper case."""
    if _LOWERABLE.match(part) and len(part) <= PATH_PART_MAX:
        return part.lower() if is_lowered else part
    written = "_" + _UNSAFE.sub(_escaped, part)
    if len(written) <= PATH_PART_MAX:
        return written
    digest = hashlib.sha256(part.encode()).hexdigest()[:32]
    return f"{written[: PATH_PART_MAX - len(digest) - 2]}_h{digest}"


def _escaped(found: re.Match[str]) -> str:
    character = ord(found.group())
    return f"_{character:02x}" if character <= 0xFF else f"_u{character:06x}"

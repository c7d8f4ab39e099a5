"""Which character sets does a database have, and what does each make of a text?

Inside this package text is UTF-8, whatever the sets are; where Oracle shows bytes, or counts them,
these are asked. What a set cannot hold becomes its replacement character on the way in, without an
error.

Oracle never checks the bytes of a text whose client says that it uses the database's own set: a
database in AL32UTF8 keeps, and gives back, bytes that are no UTF-8. Inside this package each such
byte is a character of its own, a stand-in (:func:`text_from_bytes`), so that text stays UTF-8; it
is the byte again wherever bytes leave (:func:`bytes_from_text`). Stand-ins compare above all other
characters. What is kept in another set (CLOB, NCHAR, NVARCHAR2, NCLOB: AL16UTF16) was converted,
and has U+FFFD in its place.

Source: Oracle Database Globalization Support Guide 19c, "Choosing a Character Set" and appendix A
(names, numbers); 0xBF replaces in the western sets, as measured by others. That the remaining sets
replace by a question mark is assumed.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

_QUESTION, _INVERTED = "?", "\u00bf"
_WAVE_DASH, _FULLWIDTH_TILDE = "\u301c", "\uff5e"
_CESU, _UTF8 = "cesu-8", "utf-8"
_UNIVERSAL = frozenset({_UTF8, _CESU, "utf-16-be"})
_IN_ORDER = frozenset({_UTF8, "latin-1", "ascii"})
_STAND_IN = 0x10FE00
"""A byte that is no UTF-8 is the character with this number and the byte's. They are for private
use; one that is a client's own is kept as the four bytes that it is, so that nothing is mistaken
for a stand-in."""
_STAND_INS = re.compile(b"\xf4\x8f[\xba\xbb].", re.DOTALL)
_STAND_IN_TEXT = re.compile(f"[{chr(_STAND_IN + 0x80)}-{chr(_STAND_IN + 0xFF)}]")
_KEEP = "oracle-embedded-keep"


def _kept(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    found = error.object[error.start : error.end]
    return "".join(chr(_STAND_IN + byte) for byte in found), error.end


codecs.register_error(_KEEP, _kept)


def has_stand_ins(text: bytes) -> bool:
    """Has a text a stand-in, or a piece of a message something that looks like one?"""
    # The search for two bytes is many times faster than the pattern.
    return b"\xf4\x8f" in text and _STAND_INS.search(text) is not None


def text_from_bytes(stored: bytes) -> str:
    """The text of bytes that a database in AL32UTF8 stores, with a stand-in for each that is no
    UTF-8."""
    if not has_stand_ins(stored):
        return stored.decode(_UTF8, _KEEP)
    parts, end = [], 0
    for own in _STAND_INS.finditer(stored):
        parts.append(stored[end : own.start()].decode(_UTF8, _KEEP))
        parts += [chr(_STAND_IN + byte) for byte in own[0]]
        end = own.end()
    return "".join([*parts, stored[end:].decode(_UTF8, _KEEP)])


def bytes_from_text(text: bytes) -> bytes:
    """The bytes that a database in AL32UTF8 stores of a text, given in UTF-8."""
    return _STAND_INS.sub(
        lambda found: bytes((int.from_bytes(found[0]) & 0x3F | _high(found[0]),)), text
    )


def _high(character: bytes) -> int:
    return 0x80 if character[2] == 0xBA else 0xC0


def utf8_from_client(value: bytes) -> bytes:
    """A client's text as it is kept here."""
    return value if value.isascii() else text_from_bytes(value).encode()


def replaced(text: str) -> str:
    """A text that is converted to another set: stand-ins become U+FFFD."""
    return _STAND_IN_TEXT.sub("\ufffd", text)


def replaced_utf8(text: bytes) -> bytes:
    """The same of a text in UTF-8."""
    return replaced(text.decode()).encode() if has_stand_ins(text) else text


@dataclass(frozen=True, slots=True)
class CharacterSet:
    """One character set: Oracle's name and number, Python's codec, the bytes of its widest
    character, and what replaces others.

    ``swapped`` are pairs of characters: the codec's own, and the one that Oracle has for its bytes.
    """

    name: str
    number: int
    codec: str
    width: int = 1
    replacement: str = _QUESTION
    swapped: tuple[tuple[str, str], ...] = ()

    @property
    def is_universal(self) -> bool:
        """Does it hold every character?"""
        return self.codec in _UNIVERSAL

    @property
    def is_utf8(self) -> bool:
        """Are its bytes those in which text is kept here?"""
        return self.codec == _UTF8

    @property
    def sorts_by_code_points(self) -> bool:
        """Are texts in the order of their bytes in that of their code points as well?"""
        return self.codec in _IN_ORDER

    def encode(self, text: str) -> bytes:
        """The bytes of a text, with what replaces the characters that the set does not have."""
        if self.codec == _CESU:
            units = text.encode("utf-16-be", "surrogatepass")
            pairs = (units[at : at + 2] for at in range(0, len(units), 2))
            return b"".join(
                chr(int.from_bytes(pair, "big")).encode("utf-8", "surrogatepass") for pair in pairs
            )
        for own, shown in self.swapped:
            text = text.replace(shown, own)
        if self.is_utf8:
            return bytes_from_text(text.encode())
        try:
            return text.encode(self.codec)
        except UnicodeEncodeError:
            return b"".join(map(self._character, text))

    def _character(self, character: str) -> bytes:
        try:
            return character.encode(self.codec)
        except UnicodeEncodeError:
            return self.replacement.encode(self.codec)

    def decode(self, stored: bytes) -> str:
        """The text of bytes; those that are none become stand-ins in UTF-8, else U+FFFD."""
        if self.is_utf8:
            return text_from_bytes(stored)
        if self.codec == _CESU:
            units = stored.decode("utf-8", "surrogatepass").encode("utf-16-be", "surrogatepass")
            return units.decode("utf-16-be", "replace")
        text = stored.decode(self.codec, "replace")
        for own, shown in self.swapped:
            text = text.replace(own, shown)
        return text

    def keep(self, text: str) -> str:
        """What is left of a text that went through the set."""
        if self.is_universal or text.isascii():
            return text
        return self.decode(self.encode(text))

    def keep_utf8(self, value: bytes) -> bytes:
        """The same of a text in UTF-8."""
        if self.is_universal or value.isascii():
            return value
        return self.keep(value.decode()).encode()


_ALL = (
    CharacterSet("US7ASCII", 1, "ascii"),
    CharacterSet("WE8ISO8859P1", 31, "latin-1", replacement=_INVERTED),
    CharacterSet("EE8ISO8859P2", 32, "iso8859-2"),
    CharacterSet("WE8ISO8859P15", 46, "iso8859-15", replacement=_INVERTED),
    CharacterSet("EE8MSWIN1250", 170, "cp1250"),
    CharacterSet("CL8MSWIN1251", 171, "cp1251"),
    CharacterSet("WE8MSWIN1252", 178, "cp1252", replacement=_INVERTED),
    CharacterSet("JA16SJIS", 832, "cp932", 2, swapped=((_FULLWIDTH_TILDE, _WAVE_DASH),)),
    CharacterSet("JA16SJISTILDE", 838, "cp932", 2),
    CharacterSet("UTF8", 871, _CESU, 3),
    CharacterSet("AL32UTF8", 873, _UTF8, 4),
    CharacterSet("AL16UTF16", 2000, "utf-16-be", 2),
)
BY_NAME = {each.name: each for each in _ALL}
"""Character sets by name. Oracle's JA16SJIS is Microsoft's code page but for the wave dash,
JA16SJISTILDE is that code page."""
NATIONAL_NAMES = ("AL16UTF16", "UTF8")
"""What a national character set may be."""
DATABASE_NAMES = tuple(name for name in BY_NAME if name not in NATIONAL_NAMES)
"""What a database's character set may be here."""


@dataclass(frozen=True, slots=True)
class CharacterSets:
    """The two sets of a database: that of CHAR, VARCHAR2, CLOB and SQL, and that of NCHAR,
    NVARCHAR2 and NCLOB."""

    database: CharacterSet = BY_NAME["AL32UTF8"]
    national: CharacterSet = BY_NAME["AL16UTF16"]

    def of(self, form: int) -> CharacterSet:
        """The set of a type by its character set form: 2 is national."""
        return self.national if form == 2 else self.database


def character_sets(database: str, national: str) -> CharacterSets:
    """The sets of these names.

    Raises:
        ValueError: A database cannot have such a set here.
    """
    if database not in DATABASE_NAMES:
        raise ValueError(f"the character set is not one of {', '.join(DATABASE_NAMES)}")
    if national not in NATIONAL_NAMES:
        raise ValueError(f"the national character set is not one of {', '.join(NATIONAL_NAMES)}")
    return CharacterSets(BY_NAME[database], BY_NAME[national])

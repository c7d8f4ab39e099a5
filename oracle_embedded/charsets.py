"""Which character sets does a database have, and what does each make of a text?

Inside this package text is UTF-8, whatever the sets are; where Oracle shows bytes, or counts them, these are asked. What a set cannot
hold becomes its replacement character on the way in, without an error.

Source: Oracle Database Globalization Support Guide 19c, "Choosing a Character Set" and appendix A (names, numbers); 0xBF replaces in the
western sets, as measured by others. That the remaining sets replace by a question mark is assumed.
"""

from __future__ import annotations

from dataclasses import dataclass

_QUESTION, _INVERTED = "?", "\u00bf"
_WAVE_DASH, _FULLWIDTH_TILDE = "\u301c", "\uff5e"
_CESU, _UTF8 = "cesu-8", "utf-8"
_UNIVERSAL = frozenset({_UTF8, _CESU, "utf-16-be"})
_IN_ORDER = frozenset({_UTF8, "latin-1", "ascii"})


@dataclass(frozen=True, slots=True)
class CharacterSet:
    """One character set: Oracle's name and number, Python's codec, the bytes of its widest character, and what replaces others.

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
        """The text of bytes; those that are none become U+FFFD."""
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
"""Character sets by name. Oracle's JA16SJIS is Microsoft's code page but for the wave dash, JA16SJISTILDE is that code page."""
NATIONAL_NAMES = ("AL16UTF16", "UTF8")
"""What a national character set may be."""
DATABASE_NAMES = tuple(name for name in BY_NAME if name not in NATIONAL_NAMES)
"""What a database's character set may be here."""


@dataclass(frozen=True, slots=True)
class CharacterSets:
    """The two sets of a database: that of CHAR, VARCHAR2, CLOB and SQL, and that of NCHAR, NVARCHAR2 and NCLOB."""

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

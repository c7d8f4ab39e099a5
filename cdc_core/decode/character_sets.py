"""Which text are bytes in one of Oracle's character sets?

LogMiner prints text as characters, which the driver brings as they are in any database. Bytes stand
in the redo of rows from before a DDL (``HEXTORAW``) and of binary XML only: these are in the
database's own sets, as NLS_DATABASE_PARAMETERS names them.

Source: Oracle Database Globalization Support Guide 19c, appendix A. Oracle's JA16SJIS is
Microsoft's code page 932 but for the wave dash, 0x8160, which is U+301C; in JA16SJISTILDE it is
U+FF5E, as in that code page.
"""

from __future__ import annotations

from cdc_core.decode.literals import LiteralRefusedError
from cdc_core.errors import RESNAPSHOT_HINT

_CESU = "UTF8"
_CODECS = {
    "AL32UTF8": "utf-8",
    "US7ASCII": "ascii",
    "AL16UTF16": "utf-16-be",
    "WE8MSWIN1252": "cp1252",
    "WE8ISO8859P1": "latin-1",
    "WE8ISO8859P9": "iso8859-9",
    "WE8ISO8859P15": "iso8859-15",
    "EE8MSWIN1250": "cp1250",
    "EE8ISO8859P2": "iso8859-2",
    "NEE8ISO8859P4": "iso8859-4",
    "CL8MSWIN1251": "cp1251",
    "CL8ISO8859P5": "iso8859-5",
    "CL8KOI8R": "koi8-r",
    "CL8KOI8U": "koi8-u",
    "EL8MSWIN1253": "cp1253",
    "EL8ISO8859P7": "iso8859-7",
    "TR8MSWIN1254": "cp1254",
    "IW8MSWIN1255": "cp1255",
    "IW8ISO8859P8": "iso8859-8",
    "AR8MSWIN1256": "cp1256",
    "AR8ISO8859P6": "iso8859-6",
    "BLT8MSWIN1257": "cp1257",
    "BLT8ISO8859P13": "iso8859-13",
    "VN8MSWIN1258": "cp1258",
    "WE8PC850": "cp850",
    "EE8PC852": "cp852",
    "US8PC437": "cp437",
    "RU8PC866": "cp866",
    "JA16SJIS": "cp932",
    "JA16SJISTILDE": "cp932",
    "JA16EUC": "euc_jp",
    "JA16EUCTILDE": "euc_jp",
    "ZHS16GBK": "gbk",
    "ZHS32GB18030": "gb18030",
    "ZHT16MSWIN950": "cp950",
    "KO16MSWIN949": "cp949",
    "KO16KSC5601": "euc_kr",
    "TH8TISASCII": "tis_620",
}
"""Python's codecs; UTF8 (CESU-8) is read by a rule of its own."""

KNOWN = frozenset(_CODECS) | {_CESU}
"""The sets whose bytes can be read."""

_UNSURE_SETS = frozenset(
    {"JA16EUC", "JA16EUCTILDE", "ZHS16GBK", "ZHT16MSWIN950", "KO16MSWIN949", "KO16KSC5601"}
)
_UNSURE = frozenset("\u2014\u2015\u301c\uff5e\u223c\u2016\u2225\u2212\uff0d\u00a2\uffe0\u00a3\uffe1\u00ac\uffe2\u00b7\u30fb\u2027\u203e\uffe3\u00a6\uffe4")  # fmt: skip
"""Dashes, tildes and signs whose bytes in these sets are different characters by different tables;
which Oracle's are is not known."""


def stored_text(stored: bytes, charset: str) -> str:
    """Text of bytes in one of Oracle's character sets.

    Raises:
        LiteralRefusedError: The bytes are none, or stand for a character that is not known for
            sure, or the set is not known.
    """
    if charset not in KNOWN:
        raise LiteralRefusedError(
            "text is encoded in a character set that Redolake does not know", RESNAPSHOT_HINT
        )
    try:
        text = _cesu_text(stored) if charset == _CESU else stored.decode(_CODECS[charset])
    except UnicodeDecodeError:
        raise LiteralRefusedError(
            "the bytes of a text are not in the database's character set",
            f"`on_undecodable: quarantine` of the table keeps the row beside it. {RESNAPSHOT_HINT}",
        ) from None
    if charset in _UNSURE_SETS and not _UNSURE.isdisjoint(text):
        raise LiteralRefusedError(
            "text has bytes that different tables of its character set map to different characters",
            RESNAPSHOT_HINT,
        )
    return text.replace("\uff5e", "\u301c") if charset == "JA16SJIS" else text


def _cesu_text(stored: bytes) -> str:
    """Surrogates are encoded one by one."""
    units = stored.decode("utf-8", "surrogatepass")
    return units.encode("utf-16-le", "surrogatepass").decode("utf-16-le")

"""Which of Oracle's character sets are known, and by which of Python's codecs?

Source: Oracle Database Globalization Support Guide 19c, appendix A.
"""

from __future__ import annotations

from collections.abc import Mapping

CESU = "UTF8"
"""Oracle's name of CESU-8, for which Python has no codec."""
CODECS: Mapping[str, str] = {
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

KNOWN = frozenset(CODECS) | {CESU}
"""The sets whose bytes can be read."""


def check_character_set(name: str) -> None:
    """Refuse a character set whose bytes cannot be read.

    Raises:
        ValueError: It is none of :data:`KNOWN`.
    """
    if name not in KNOWN:
        raise ValueError(
            f"{name} is none of the character sets that Redolake reads; write Oracle's name, for "
            "example WE8ISO8859P1 or AL32UTF8"
        )

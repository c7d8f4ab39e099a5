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
from cdc_core.model.character_sets import CESU, CODECS, KNOWN

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
        text = _cesu_text(stored) if charset == CESU else stored.decode(CODECS[charset])
    except UnicodeDecodeError:
        raise LiteralRefusedError(
            "the bytes of a text are not in the database's character set",
            f"`on_undecodable: quarantine` of the table stores the row separately. {RESNAPSHOT_HINT}",
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

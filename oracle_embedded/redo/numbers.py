"""NUMBER to digits and back at the speed that redo needs.

Base-100 digits become text through one ``bytes.translate`` (digit byte to BCD) and ``hex``. Forms
that are rare in data go to :mod:`oracle_embedded.values`, whose rules these functions share.
"""

from __future__ import annotations

from binascii import hexlify

from oracle_embedded import values
from oracle_embedded.api import OracleError

_PLAIN_DIGITS_MAX = 38
_ZERO = ord("0")
_BCD = [(n // 10) * 16 + n % 10 for n in range(100)]
_POSITIVE = bytes(_BCD[byte - 1] if 1 <= byte <= 100 else 0 for byte in range(256))
_NEGATIVE = bytes(_BCD[101 - byte] if 2 <= byte <= 101 else 0 for byte in range(256))
_FROM_BCD = bytes((byte >> 4) * 10 + (byte & 15) + 1 for byte in range(256 - 96)) + bytes(96)


def digits_from_number(number: bytes) -> bytes:
    """Print a NUMBER as ``TO_CHAR(n)`` does, in ASCII, but with all its digits where TO_CHAR would
    round.

    SQL_REDO is there to do the change again; a rounded literal would not.
    """
    first = number[0]
    if first & 0x80:
        sign, point = b"", 2 * (first - 192)
        digits = hexlify(number[1:].translate(_POSITIVE))
    else:
        sign, point = b"-", 2 * (63 - first)
        body = number[1:-1] if number[-1] == 0x66 else number[1:]
        digits = hexlify(body.translate(_NEGATIVE))
    if not 0 < point <= _PLAIN_DIGITS_MAX or not digits:
        return _rare(number, sign, digits, point)
    if digits[0] == _ZERO:
        digits = digits[1:]
        point -= 1
    missing = point - len(digits)
    if missing == 0:
        return sign + digits
    if missing > 0:
        return sign + digits + b"0" * missing
    fraction = digits[point:].rstrip(b"0")
    return b"%b%b.%b" % (sign, digits[:point], fraction) if fraction else sign + digits[:point]


def _rare(number: bytes, sign: bytes, digits: bytes, point: int) -> bytes:
    """Zero, infinity, fractions below 1, and integers beyond 38 digits."""
    text = values.text_from_number(number).encode()
    if not digits or number in (values.POSITIVE_INFINITY, values.NEGATIVE_INFINITY):
        return text
    if _denotes(text.decode(), number):
        return text
    significant = digits.lstrip(b"0")
    point -= len(digits) - len(significant)
    significant = significant.rstrip(b"0")
    return b"%b%b.%bE%+03d" % (sign, significant[:1], significant[1:] or b"0", point - 1)


def _denotes(text: str, number: bytes) -> bool:
    try:
        return values.number_from_text(text) == number
    except OracleError:
        return False  # rounded up to 1E+126, which no NUMBER is


def literal_from_number(number: bytes) -> bytes:
    """The quoted text, as SQL_REDO shows it."""
    return b"'%b'" % digits_from_number(number)


def number_from_int(value: int) -> bytes:
    """As :func:`oracle_embedded.values.number_from_decimal`."""
    if value <= 0:
        return values.number_from_decimal(value)
    text = str(value)
    if len(text) & 1:
        text = "0" + text
    digits = bytes.fromhex(text).translate(_FROM_BCD).rstrip(b"\x01")
    return bytes((192 + len(text) // 2,)) + digits

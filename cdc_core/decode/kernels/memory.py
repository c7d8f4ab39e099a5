"""How do the loops read and write memory? Bytes, words and sixteen bytes at a time, at plain
addresses.

All numbers are int64, so that Numba never mixes signed and unsigned ones (it would make them
floats). Nothing is checked: callers keep to ``limit``, and buffers have :data:`PADDING` readable
bytes behind every row.
"""

# ruff: noqa: ARG001 - Numba finds the parameters of an intrinsic by their number; its code generator gets the values.
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from cdc_core.decode.kernels.cache import inner

PADDING = 512
"""Bytes behind a row's end that may be read: the longest quoted name, twice over."""

_I1, _I8, _I16, _I32, _I64, _I128 = (ir.IntType(bits) for bits in (1, 8, 16, 32, 64, 128))
_BYTES16 = ir.VectorType(_I8, 16)
_BITS16 = ir.VectorType(_I1, 16)


def _intrinsic(build: Callable[..., Any]) -> Callable[..., int]:
    made: Callable[..., int] = intrinsic(build)
    return made


def _pair_intrinsic(build: Callable[..., Any]) -> Callable[..., tuple[int, int]]:
    made: Callable[..., tuple[int, int]] = intrinsic(build)
    return made


def _pointer(builder: Any, address: Any, pointee: Any) -> Any:
    return builder.inttoptr(address, pointee.as_pointer())


def _load(builder: Any, address: Any, kind: Any) -> Any:
    return builder.load(_pointer(builder, address, kind), align=1)


def _int64_function(arity: int, build: Callable[..., Any]) -> tuple[Any, Any]:
    signature = types.int64(*[types.int64] * arity)

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return build(builder, *arguments)

    return signature, generate


@_intrinsic
def load8(_context: Any, address: Any) -> Any:
    """The byte at an address, 0 to 255."""
    return _int64_function(1, lambda builder, at: builder.zext(_load(builder, at, _I8), _I64))


@_intrinsic
def load32(_context: Any, address: Any) -> Any:
    """Four bytes, little endian, not negative."""
    return _int64_function(1, lambda builder, at: builder.zext(_load(builder, at, _I32), _I64))


@_intrinsic
def load64(_context: Any, address: Any) -> Any:
    """Eight bytes, little endian, two's complement."""
    return _int64_function(1, lambda builder, at: _load(builder, at, _I64))


def _store(builder: Any, address: Any, value: Any, kind: Any) -> Any:
    narrow = builder.trunc(value, kind) if kind is not _I64 else value
    builder.store(narrow, _pointer(builder, address, kind), align=1)
    return value


@_intrinsic
def store8(_context: Any, address: Any, value: Any) -> Any:
    """Write the lowest byte."""
    return _int64_function(2, lambda builder, at, value: _store(builder, at, value, _I8))


@_intrinsic
def store32(_context: Any, address: Any, value: Any) -> Any:
    """Write the lowest four bytes."""
    return _int64_function(2, lambda builder, at, value: _store(builder, at, value, _I32))


@_intrinsic
def store64(_context: Any, address: Any, value: Any) -> Any:
    """Write eight bytes."""
    return _int64_function(2, lambda builder, at, value: _store(builder, at, value, _I64))


@_intrinsic
def copy16(_context: Any, target: Any, source: Any) -> Any:
    """Copy sixteen bytes."""

    def build(builder: Any, target: Any, source: Any) -> Any:
        loaded = _load(builder, source, _BYTES16)
        builder.store(loaded, _pointer(builder, target, _BYTES16), align=1)
        return target

    return _int64_function(2, build)


def _mask(builder: Any, left: Any, right: Any) -> Any:
    equal = builder.icmp_unsigned("==", left, right)
    return builder.zext(builder.bitcast(equal, _I16), _I64)


@_intrinsic
def quotes16(_context: Any, address: Any) -> Any:
    """Which of sixteen bytes are single quotes, as bits; the first byte is the lowest bit."""
    quotes = ir.Constant(_BYTES16, [39] * 16)
    return _int64_function(
        1, lambda builder, at: _mask(builder, _load(builder, at, _BYTES16), quotes)
    )


@_intrinsic
def json_marks16(_context: Any, address: Any) -> Any:
    """Which of sixteen bytes are double quotes, backslashes or control characters, as bits."""

    def build(builder: Any, at: Any) -> Any:
        loaded = _load(builder, at, _BYTES16)
        quotes, escapes, blanks = (ir.Constant(_BYTES16, [byte] * 16) for byte in (34, 92, 32))
        found = builder.or_(
            builder.icmp_unsigned("==", loaded, quotes),
            builder.icmp_unsigned("==", loaded, escapes),
        )
        marks = builder.or_(found, builder.icmp_unsigned("<", loaded, blanks))
        return builder.zext(builder.bitcast(marks, _I16), _I64)

    return _int64_function(1, build)


@_intrinsic
def equal16(_context: Any, left: Any, right: Any) -> Any:
    """Which of sixteen bytes are equal at two addresses, as bits."""
    return _int64_function(
        2,
        lambda builder, left, right: _mask(
            builder, _load(builder, left, _BYTES16), _load(builder, right, _BYTES16)
        ),
    )


@_intrinsic
def trailing_zeros(_context: Any, bits: Any) -> Any:
    """Number of zero bits below the lowest one; ``bits`` is not 0."""
    return _int64_function(1, lambda builder, bits: builder.cttz(bits, ir.Constant(_I1, 1)))


@_intrinsic
def leading_zeros(_context: Any, bits: Any) -> Any:
    """Number of zero bits above the highest one; ``bits`` is not 0."""
    return _int64_function(1, lambda builder, bits: builder.ctlz(bits, ir.Constant(_I1, 1)))


@_intrinsic
def shift_right(_context: Any, bits: Any, count: Any) -> Any:
    """Shift right and fill with zeros."""
    return _int64_function(2, lambda builder, bits, count: builder.lshr(bits, count))


@_intrinsic
def is_below(_context: Any, left: Any, right: Any) -> Any:
    """1 if ``left < right`` as unsigned numbers, else 0."""
    return _int64_function(
        2,
        lambda builder, left, right: builder.zext(builder.icmp_unsigned("<", left, right), _I64),
    )


def _pair(builder: Any, wide: Any, return_type: Any, context: Any) -> Any:
    high = builder.trunc(builder.lshr(wide, ir.Constant(_I128, 64)), _I64)
    return context.make_tuple(builder, return_type, (high, builder.trunc(wide, _I64)))


@_pair_intrinsic
def multiply_wide(_context: Any, left: Any, right: Any) -> Any:
    """``(high, low)`` of the 128-bit product of two unsigned numbers."""
    signature = types.UniTuple(types.int64, 2)(types.int64, types.int64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        left, right = (builder.zext(argument, _I128) for argument in arguments)
        return _pair(builder, builder.mul(left, right), signature.return_type, context)

    return signature, generate


@_pair_intrinsic
def multiply_add128(_context: Any, high: Any, low: Any, factor: Any, addend: Any) -> Any:
    """``(high, low)`` of ``(high, low) * factor + addend``, all unsigned, modulo 2**128."""
    signature = types.UniTuple(types.int64, 2)(*[types.int64] * 4)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        high, low, factor, addend = (builder.zext(argument, _I128) for argument in arguments)
        wide = builder.or_(builder.shl(high, ir.Constant(_I128, 64)), low)
        result = builder.add(builder.mul(wide, factor), addend)
        return _pair(builder, result, signature.return_type, context)

    return signature, generate


@inner
def is_same(left: int, right: int, length: int) -> bool:
    """Are ``length`` bytes equal? Reads up to 15 bytes more of both."""
    while length >= 16:
        if equal16(left, right) != 0xFFFF:
            return False
        left += 16
        right += 16
        length -= 16
    return length == 0 or (equal16(left, right) | (-1 << length)) == -1


@inner
def copy_bytes(target: int, source: int, length: int) -> None:
    """Copy ``length`` bytes; reads and writes up to 15 bytes more."""
    done = 0
    while done < length:
        copy16(target + done, source + done)
        done += 16


@inner
def copy_exactly(target: int, source: int, length: int) -> None:
    """Copy ``length`` bytes, and not one more."""
    whole = length & ~15
    copy_bytes(target, source, whole)
    for place in range(whole, length):
        store8(target + place, load8(source + place))

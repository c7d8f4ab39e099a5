"""Redo text to typed Arrow columns: pure functions, no I/O."""

from cdc_core.decode.dml import DecodedDml, decode_dml

__all__ = ["DecodedDml", "decode_dml"]

"""Redo text to typed Arrow columns: pure functions, no I/O but for the cache of compiled code."""

from cdc_core.decode.defaults import default_scalar
from cdc_core.decode.dml import DecodedDml, decode_dml
from cdc_core.decode.values import number_text
from cdc_core.decode.warm import warm_up

__all__ = ["DecodedDml", "decode_dml", "default_scalar", "number_text", "warm_up"]

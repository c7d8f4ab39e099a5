"""The redo of the embedded Oracle: redo log, V$ views and LogMiner."""

from cdc_core.oracle_embedded.redo.provider import Redo, open_redo
from cdc_core.oracle_embedded.redo.settings import Dictionary, RedoSettings

__all__ = ["Dictionary", "Redo", "RedoSettings", "open_redo"]

"""The redo of the embedded Oracle: redo log, V$ views and LogMiner.

Where it knowingly differs from Oracle:

* One redo thread; tables and functions have room for more.
* A row of a table that was changed or dropped since keeps the names of its time, as with a dictionary in the redo, unless
  :attr:`Dictionary.ONLINE_CATALOG` is set.
* Unique and foreign key supplemental logging add no columns that the statement did not change.
* Operating system user and machine of a session are always UNKNOWN, block addresses (UBA, file, block) 0.
* SQL_REDO never splits a character between rows with CSF = 1; whether Oracle does is not documented.
* A log holds whole SCNs: it grows past its size rather than to split one over two logs.
* An idle instance writes INTERNAL redo when V$THREAD is read, not on its own clock.
"""

from oracle_embedded.redo.provider import Redo, open_redo
from oracle_embedded.redo.settings import Dictionary, RedoSettings

__all__ = ["Dictionary", "Redo", "RedoSettings", "open_redo"]

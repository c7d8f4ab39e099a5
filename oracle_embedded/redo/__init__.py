"""The redo of the embedded Oracle: redo log, V$ views and LogMiner.

Where it knowingly differs from Oracle:

* Sessions are assigned to redo threads by hand; V$SESSION and V$INSTANCE know one instance only.
* The last log of a closed thread is ended and archived at once.
* Which oddities of a real LogMiner it shows is a setting: :class:`Wart`.
* Redo that waits in a strand outlives a killed process; on Oracle it is lost, and the transaction
  with it.
* Unique and foreign key supplemental logging add no columns that the statement did not change.
* Operating system user and machine of a session are always UNKNOWN, block addresses (UBA, file,
  block) 0.
* SQL_REDO never splits a character between rows with CSF = 1; whether Oracle does is not
  documented.
* A log holds whole SCNs: it grows past its size rather than to split one over two logs.
* An idle instance writes INTERNAL redo when V$THREAD is read, not on its own clock.
"""

from oracle_embedded.redo.provider import Redo, open_redo
from oracle_embedded.redo.settings import DEFAULT_WARTS, LobRows, RedoSettings, Wart, XmlRows

__all__ = ["DEFAULT_WARTS", "LobRows", "Redo", "RedoSettings", "Wart", "XmlRows", "open_redo"]

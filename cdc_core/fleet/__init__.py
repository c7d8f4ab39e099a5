"""Several pluggable databases of one container database: each is a source of its own, and what they
share is here.

SCNs and redo logs belong to the container database. So windows of all sources can end at one SCN,
as of which all of them can be read, and one LogMiner pass can read the redo for all. Nothing here
is needed for one source to be right, and nothing below knows of it: a source has its own fate, and
what cannot be done together is left to its own turn, which then says why.
"""

from cdc_core.fleet.rounds import (
    Round,
    begin_together,
    capture_together,
    common_scn,
    run_together,
    what_delays,
)
from cdc_core.fleet.windows import (
    SHARED_LEASE,
    capture_window,
    cut_windows,
    is_awaited,
    newest_end,
)

__all__ = [
    "SHARED_LEASE",
    "Round",
    "begin_together",
    "capture_together",
    "capture_window",
    "common_scn",
    "cut_windows",
    "is_awaited",
    "newest_end",
    "run_together",
    "what_delays",
]

"""With which client does the driver speak to the database: its own (thin mode), or Oracle's
libraries (thick mode)? A process has one, for all its sources."""

from __future__ import annotations

import threading

import oracledb

from cdc_core.config.oracle import ThickConfig
from cdc_core.errors import PreflightError

_INITIALISING = threading.Lock()

_INSTALL = (
    "Install Oracle Instant Client, Basic or Basic Light, of this machine's architecture, and libaio on Linux; put its folder into the library "
    "search path before Python starts (ldconfig, or LD_LIBRARY_PATH), or name it under oracle.thick.lib_dir."
)
_ONE_MODE = (
    "One process has one mode: give all sources of the process the same oracle.thick, or run them"
    " in processes of their own."
)


def choose_client(thick: ThickConfig | None) -> None:
    """Load Oracle's client libraries where a source asks for them; may be called any number of
    times.

    Raises:
        PreflightError: They are not there, or the process has the other mode already.
    """
    if thick is None:
        if not oracledb.is_thin_mode():
            raise PreflightError(
                "the Oracle driver runs in thick mode in this process, and the source has no oracle.thick",
                hint=_ONE_MODE,
            )
        return
    folders = {"lib_dir": thick.lib_dir, "config_dir": thick.config_dir}
    given = {name: folder for name, folder in folders.items() if folder is not None}
    with _INITIALISING:
        try:
            oracledb.init_oracle_client(**given)
        except oracledb.Error as error:
            raise _refused(str(error), given) from error


def _refused(text: str, given: dict[str, str]) -> PreflightError:
    if "DPI-1047" in text:
        return PreflightError(
            "Oracle's client libraries, which oracle.thick asks for, cannot be loaded",
            hint=_INSTALL,
            ora="DPI-1047",
            **given,
        )
    if "DPI-1050" in text or "DPI-1072" in text:
        return PreflightError(
            "Oracle's client libraries are too old for the driver",
            hint=_INSTALL,
            ora="DPI-1050",
            **given,
        )
    return PreflightError(
        "the Oracle driver cannot change to thick mode in this process",
        hint=_ONE_MODE,
        ora="DPY-2019",
        **given,
    )

"""Which oddities does the redo of one running database show now?"""

from __future__ import annotations

from collections.abc import Mapping

from oracle_embedded.api import (
    DatabaseView,
    EngineSession,
    OracleError,
    OraType,
    Parameter,
    Procedure,
)
from oracle_embedded.redo.settings import Wart
from oracle_embedded.redo.sink import Sink

PACKAGE = "DBMS_REDOLAKE_FAULTS"


def set_wart(database: DatabaseView, sink: Sink, wart: Wart, *, shown: bool) -> None:
    """Show an oddity from now on, or no longer; redo that waits in strands is bound when it is not to wait any more."""
    with database.writing():
        sink.set_warts(sink.warts | {wart} if shown else sink.warts - {wart})


def procedures(database: DatabaseView, sink: Sink) -> list[Procedure]:
    """``DBMS_REDOLAKE_FAULTS.SET_WART(wart, shown)``, where ``shown`` is 1 or 0."""

    def run(_session: EngineSession, arguments: Mapping[str, object]) -> None:
        try:
            wart = Wart(str(arguments["WART"]).upper())
        except ValueError as error:
            raise OracleError(20000, f"unknown wart; it is one of {', '.join(Wart)}") from error
        set_wart(database, sink, wart, shown=str(arguments["SHOWN"]) != "0")

    parameters = (
        Parameter("WART", OraType.VARCHAR),
        Parameter("SHOWN", OraType.NUMBER, required=False, default=1),
    )
    return [Procedure(PACKAGE, "SET_WART", parameters, run)]

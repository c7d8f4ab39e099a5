"""What may a test do to a running database's redo through SQL, that no client of a real one could?

All of it stands in the package ``DBMS_REDOLAKE_FAULTS``, beside the faults of the wire.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from oracle_embedded.api import (
    DatabaseView,
    EngineSession,
    OracleError,
    OraType,
    Parameter,
    Procedure,
)
from oracle_embedded.faults import PACKAGE
from oracle_embedded.redo.settings import Wart
from oracle_embedded.redo.sink import Sink

Arguments = Mapping[str, object]
_SEQUENCE = Parameter("SEQUENCE", OraType.NUMBER)
_SHOWN = Parameter("SHOWN", OraType.NUMBER, required=False, default=1)
_HELD = Parameter("HELD", OraType.NUMBER, required=False, default=1)


def set_wart(database: DatabaseView, sink: Sink, wart: Wart, *, shown: bool) -> None:
    """Show an oddity from now on, or no longer."""
    with database.writing():
        sink.set_warts(sink.warts | {wart} if shown else sink.warts - {wart})


def testing_procedures(database: DatabaseView, sink: Sink) -> list[Procedure]:
    """``SET_WART(wart, shown)``, ``DELETE_ARCHIVED_LOG(sequence)`` as RMAN does, ``REMOVE_ARCHIVED_LOG(sequence)`` as ``rm``
    does, ``HOLD_ARCHIVER(held)``; ``shown`` and ``held`` are 1 or 0."""

    def wart(arguments: Arguments) -> None:
        set_wart(database, sink, _wart(arguments["WART"]), shown=_is_yes(arguments["SHOWN"]))

    def procedure(name: str, run: Callable[[Arguments], None], *parameters: Parameter) -> Procedure:
        def call(_session: EngineSession, arguments: Arguments) -> None:
            with database.writing():
                run(arguments)

        return Procedure(PACKAGE, name, parameters, call)

    return [
        procedure("SET_WART", wart, Parameter("WART", OraType.VARCHAR), _SHOWN),
        procedure(
            "DELETE_ARCHIVED_LOG", lambda given: sink.delete_archived(_sequence(given)), _SEQUENCE
        ),
        procedure(
            "REMOVE_ARCHIVED_LOG", lambda given: sink.remove_archived(_sequence(given)), _SEQUENCE
        ),
        procedure(
            "HOLD_ARCHIVER", lambda given: sink.hold_archiver(held=_is_yes(given["HELD"])), _HELD
        ),
    ]


def _wart(name: object) -> Wart:
    try:
        return Wart(str(name).upper())
    except ValueError as error:
        raise OracleError(20000, f"unknown wart; it is one of {', '.join(Wart)}") from error


def _is_yes(value: object) -> bool:
    return str(value) != "0"


def _sequence(arguments: Arguments) -> int:
    return int(str(arguments["SEQUENCE"]))

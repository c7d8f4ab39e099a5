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
from oracle_embedded.redo.threads import FIRST

Arguments = Mapping[str, object]
Run = Callable[[EngineSession, Arguments], None]
_SEQUENCE = Parameter("SEQUENCE", OraType.NUMBER)
_THREAD = Parameter("THREAD", OraType.NUMBER)
_OF_THREAD = Parameter("THREAD", OraType.NUMBER, required=False, default=FIRST)
_SHOWN = Parameter("SHOWN", OraType.NUMBER, required=False, default=1)
_TEXT = Parameter("TEXT", OraType.VARCHAR, required=False, default=None)
_HELD = Parameter("HELD", OraType.NUMBER, required=False, default=1)


def set_wart(database: DatabaseView, sink: Sink, wart: Wart, *, shown: bool) -> None:
    """Show an oddity from now on, or no longer."""
    with database.writing():
        sink.set_warts(sink.warts | {wart} if shown else sink.warts - {wart})


def testing_procedures(database: DatabaseView, sink: Sink) -> list[Procedure]:
    """What the package offers:

    * ``SET_WART(wart, shown)``;
    * ``DELETE_ARCHIVED_LOG(sequence, thread)`` as RMAN does,
      ``REMOVE_ARCHIVED_LOG(sequence, thread)`` as ``rm`` does, ``HOLD_ARCHIVER(held)``;
    * ``OPEN_RESETLOGS``: a new incarnation begins, as after an incomplete recovery;
    * ``OPEN_THREAD(thread)`` and ``CLOSE_THREAD(thread)``: start and stop an instance;
    * ``USE_THREAD(thread)``: the session is one of that instance from its next transaction on;
    * ``LOSE_END(session)``: no ROLLBACK record is written when that session's transaction is next
      rolled back, as was seen of sessions that were killed;
    * ``CLOSE_CONTAINER(name)``: another pluggable database is there, and closed;
      ``OPEN_CONTAINERS``: none is;
    * ``SHOW_ROLE(role, open_mode)``: what V$DATABASE says of itself, such as ``PHYSICAL STANDBY``
      and ``READ ONLY WITH APPLY``;
    * ``LEAVE_UNTRANSLATED(text)``: rows whose SQL_REDO holds the text are shown with STATUS 2 from
      now on; none without a text.

    ``shown`` and ``held`` are 1 or 0.
    """
    writer = sink.writer

    def wart(_session: EngineSession, given: Arguments) -> None:
        set_wart(database, sink, _wart(given["WART"]), shown=_is_yes(given["SHOWN"]))

    def delete(_session: EngineSession, given: Arguments) -> None:
        writer.delete_archived(_number(given, "SEQUENCE"), _number(given, "THREAD"))

    def remove(_session: EngineSession, given: Arguments) -> None:
        writer.remove_archived(_number(given, "SEQUENCE"), _number(given, "THREAD"))

    def hold(_session: EngineSession, given: Arguments) -> None:
        writer.hold_archiver(held=_is_yes(given["HELD"]))

    def start(_session: EngineSession, given: Arguments) -> None:
        writer.open_thread(_number(given, "THREAD"))

    def stop(_session: EngineSession, given: Arguments) -> None:
        sink.close_thread(_number(given, "THREAD"))

    def reset(_session: EngineSession, _given: Arguments) -> None:
        sink.open_resetlogs()

    def use(session: EngineSession, given: Arguments) -> None:
        sink.connect_session(session.session_id, _number(given, "THREAD"))

    def lose_end(_session: EngineSession, given: Arguments) -> None:
        sink.lost_ends.add(_number(given, "SESSION_ID"))

    def close(_session: EngineSession, given: Arguments) -> None:
        database.closed_containers.add(str(given["NAME"]).upper())

    def open_all(_session: EngineSession, _given: Arguments) -> None:
        database.closed_containers.clear()

    def show_role(_session: EngineSession, given: Arguments) -> None:
        sink.role, sink.open_mode = str(given["ROLE"]), str(given["OPEN_MODE"])

    def leave(_session: EngineSession, given: Arguments) -> None:
        text = given["TEXT"]
        sink.untranslated = (
            frozenset() if text is None else sink.untranslated | {str(text).encode()}
        )

    def procedure(name: str, run: Run, *parameters: Parameter) -> Procedure:
        def call(session: EngineSession, arguments: Arguments) -> None:
            with database.writing():
                run(session, arguments)

        return Procedure(PACKAGE, name, parameters, call)

    return [
        procedure("SET_WART", wart, Parameter("WART", OraType.VARCHAR), _SHOWN),
        procedure("DELETE_ARCHIVED_LOG", delete, _SEQUENCE, _OF_THREAD),
        procedure("REMOVE_ARCHIVED_LOG", remove, _SEQUENCE, _OF_THREAD),
        procedure("HOLD_ARCHIVER", hold, _HELD),
        procedure("OPEN_RESETLOGS", reset),
        procedure("OPEN_THREAD", start, _THREAD),
        procedure("CLOSE_THREAD", stop, _THREAD),
        procedure("USE_THREAD", use, _THREAD),
        procedure("LOSE_END", lose_end, Parameter("SESSION_ID", OraType.NUMBER)),
        procedure("CLOSE_CONTAINER", close, Parameter("NAME", OraType.VARCHAR)),
        procedure("OPEN_CONTAINERS", open_all),
        procedure(
            "SHOW_ROLE",
            show_role,
            Parameter("ROLE", OraType.VARCHAR),
            Parameter("OPEN_MODE", OraType.VARCHAR),
        ),
        procedure("LEAVE_UNTRANSLATED", leave, _TEXT),
    ]


def _wart(name: object) -> Wart:
    try:
        return Wart(str(name).upper())
    except ValueError as error:
        raise OracleError(20000, f"unknown wart; it is one of {', '.join(Wart)}") from error


def _is_yes(value: object) -> bool:
    return str(value) != "0"


def _number(arguments: Arguments, name: str) -> int:
    return int(str(arguments[name]))

"""What does a function of ``signals.actions`` get, and what does it give back?"""

from __future__ import annotations

from typing import Any, Protocol, cast

from cdc_core.errors import ConfigError
from cdc_core.model.import_path import imported
from cdc_core.model.scn import Scn


class SignalAction(Protocol):
    """Acts on a signal of a type of your own.

    It is called once for each signal, and again with the same id if the process dies while it
    works: it must do no harm the second time. An error that it raises rejects the signal, and stops
    nothing else.
    """

    def __call__(
        self, signal_id: str, data: dict[str, Any], *, source: str, position: Scn | None
    ) -> str | None:
        """Act.

        Args:
            signal_id: The sender's id.
            data: The signal's data.
            source: The source that took the signal.
            position: The SCN up to which the source has captured; None before its first snapshot.

        Returns:
            What became of it in a few words, which ``redolake signals`` shows; None for nothing.
        """


def run_action(
    path: str, signal_id: str, data: dict[str, Any], *, source: str, position: Scn | None
) -> str | None:
    """Call the function that an import path names.

    Raises:
        ConfigError: It cannot be imported or called, or it raised; names the error's class alone,
            since its text may hold anything.
    """
    found = imported(path, option="signals.actions")
    if not callable(found):
        raise ConfigError(
            "signals.actions names something that cannot be called",
            hint="Name a function: package.module:function.",
            path=path,
        )
    try:
        outcome = cast(SignalAction, found)(signal_id, data, source=source, position=position)
    except Exception as error:  # whatever a user's function raises
        raise ConfigError(
            "the function for this type of signal failed",
            hint="Its own log says why; send the signal again under a new id.",
            path=path,
            reason=type(error).__name__,
        ) from error
    return None if outcome is None else str(outcome)

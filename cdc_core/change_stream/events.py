"""What happened in the records of a window, up to the one that proves it complete?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from cdc_core.change_stream.form import Batch, Event, Ordinals, RunEvent, StreamForm
from cdc_core.errors import LogsNotReadyError
from cdc_core.landing.layout import ORDINAL_SHIFT
from cdc_core.model.scn import ScnWindow


class WindowEvents:
    """The events of a window.

    Args:
        form: Of its records.
        window: Its bounds.
        ordinal: Its number.
        state: What the window before left for its reader.
    """

    def __init__(
        self, form: StreamForm, window: ScnWindow, ordinal: int, state: Mapping[str, Any]
    ) -> None:
        self._form, self._window, self._state = form, window, state
        self._base = ordinal << ORDINAL_SHIFT
        self.end: dict[str, Any] | None = None
        """Behind the events: where the next window's begin, for the manifest."""

    def read(self, batches: Callable[[], Iterable[Batch]]) -> Iterator[Event | RunEvent]:
        """The events from the beginning on, again at each call.

        Raises:
            PreflightError: A record lacks what every change needs.
            LogsNotReadyError: The records end before they prove the window complete.
        """
        ordinals = Ordinals(self._base + 1)
        reader = self._form.reader(self._window, self._state)
        high = self._window.scn_high
        for batch in batches():
            for at, record in enumerate(batch.records):
                proved = record.proves
                if proved is not None and proved >= high:
                    self.end = {**batch.place(at).as_json(), **reader.state()}
                    return
                yield from reader.events(record, ordinals)
        raise LogsNotReadyError(
            f"{self._form.wording.name}'s records do not reach the end of the window yet",
            hint="The window is captured with the next run. If files were removed, copy them back.",
            window=self._window.key,
        )

"""What is known already of a Delta table's log, and is it still so?

One step asks for a table's newest state a dozen times, and behind thousands of commits listing and
reading the log takes longer than the work. So what was read stays in memory, and counts again where
the log itself proves it: the newest commit that was read is still the same file, and none follows
it. Commits that follow are read alone. Another writer's commit, a table that was moved aside and
begun anew with as many versions, and one that was restored are all seen by that. Where nothing
identifies a file, nothing is kept.

Nobody may commit on the strength of this: the version is checked where it is put.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from threading import Lock
from typing import Generic, Protocol, TypeVar

import pyarrow.fs as pafs

from cdc_core.delta.log_files import (
    READING,
    Action,
    actions_of,
    commit_name,
    commit_names,
    log_folder,
    newest_names,
    objects_of,
)
from cdc_core.delta.storage import storing
from cdc_core.errors import DELTA_LOG_HINT, LakeError, StoreUnavailableError

WEIGHT_MAX = 200_000
"""So many names (transactions, columns, files) are kept of all tables together: some 40 MB. The
tables that were asked for last stay."""

COMMITS_MAX = 200
"""Behind more commits than these the log is read anew, from its newest checkpoint on."""

_READINGS_MAX = 5
"""So often a log is listed and read whose files are cleaned up in between."""


class LogState(Protocol):
    """What a log says up to a version."""

    @property
    def version(self) -> int:
        """The newest commit that is in it."""


S = TypeVar("S", bound=LogState)


@dataclass(frozen=True, slots=True)
class _Known(Generic[S]):
    state: S
    mark: Hashable
    weight: int


class KnownLogs(Generic[S]):
    """One kind of state, of the tables that were asked for last. Threads may share it.

    Args:
        read: The state that a log has, by file system, the table's folder, and the names of the
            log's files, at least from the newest checkpoint on; None without a table.
        follow: The state after one more commit, of this version and with these actions; None where
            only the whole log tells it. It leaves the state that it was given as it was.
        weigh: How many names a state holds.
    """

    def __init__(
        self,
        read: Callable[[pafs.FileSystem, str, list[str]], S | None],
        follow: Callable[[S, int, list[Action]], S | None],
        weigh: Callable[[S], int],
    ) -> None:
        self._read = read
        self._follow = follow
        self._weigh = weigh
        self._known: OrderedDict[str, _Known[S]] = OrderedDict()
        self._weight = 0
        self._lock = Lock()

    def newest(self, path: str, filesystem: pafs.FileSystem, root: str) -> S | None:
        """The newest state of the Delta table at ``path``, which is ``root`` in its file system;
        None if there is no table.

        Raises:
            LakeError: The log cannot be read.
            StoreUnavailableError: The disk or the bucket fails.
        """
        with self._lock:
            known = self._known.get(path)
        log = _Log(filesystem, root)
        try:
            now = None if known is None else self._followed(log, known)
            if now is None:
                now = self._anew(log)
        except (KeyError, TypeError, ValueError) as error:
            raise LakeError(
                "an action of a Delta table's log lacks what it must have",
                hint=f"Restore the log. {DELTA_LOG_HINT}",
                path=root,
            ) from error
        self._keep(path, now)
        return None if now is None else now.state

    def _followed(self, log: _Log, known: _Known[S]) -> _Known[S] | None:
        """The known state with the commits that came since; None if it is not the log's any more,
        or far behind."""
        if log.mark(known.state.version) != known.mark:
            return None
        state, mark = known.state, known.mark
        for version in range(known.state.version + 1, known.state.version + 1 + COMMITS_MAX):
            following = log.mark(version)
            if following is None:
                break
            actions = log.actions(version)
            advanced = None if actions is None else self._follow(state, version, actions)
            if advanced is None:
                return None
            state, mark = advanced, following
        else:
            return None
        if state is known.state:
            return known
        # Those commits are of the same table only if it was there all the time.
        is_same = log.mark(known.state.version) == known.mark
        return _Known(state, mark, self._weigh(state)) if is_same else None

    def _anew(self, log: _Log) -> _Known[S] | None:
        """What the whole log says; with a mark only if the newest commit was the same file before
        and after."""
        for _ in range(_READINGS_MAX):
            names = newest_names(log.filesystem, log.root)
            newest = max(commit_names(names), default=None)
            before = None if newest is None else log.mark(newest)
            try:
                state = self._read(log.filesystem, log.root, names)
            except FileNotFoundError:  # cleaned up meanwhile: a newer checkpoint is there
                continue
            if state is None:
                return None
            is_same = before is not None and before == log.mark(state.version)
            return _Known(state, before if is_same else None, self._weigh(state))
        raise StoreUnavailableError(
            "the files of a Delta table's log disappear while they are read",
            hint="Try again, and find out what removes files from the table's folder.",
            path=log.root,
        )

    def _keep(self, path: str, now: _Known[S] | None) -> None:
        with self._lock:
            old = self._known.pop(path, None)
            self._weight -= old.weight if old else 0
            if now is None or now.mark is None or now.weight > WEIGHT_MAX:
                return
            self._known[path] = now
            self._weight += now.weight
            while self._weight > WEIGHT_MAX:
                _, oldest = self._known.popitem(last=False)
                self._weight -= oldest.weight


@dataclass(frozen=True, slots=True)
class _Log:
    """A table's log where it is kept."""

    filesystem: pafs.FileSystem
    root: str

    def mark(self, version: int) -> Hashable | None:
        """What tells a commit's file from every other that ever had its name; None if it is not
        there, or nothing tells."""
        path = f"{log_folder(self.root)}/{commit_name(version)}"
        try:
            with storing(READING, path=path):
                if isinstance(self.filesystem, pafs.LocalFileSystem):
                    found = os.stat(path)  # noqa: PTH116 - it is asked many times
                    return (
                        found.st_dev,
                        found.st_ino,
                        found.st_size,
                        found.st_mtime_ns,
                        found.st_ctime_ns,
                    )
                objects = objects_of(self.filesystem)
                return None if objects is None else objects.mark(path)
        except FileNotFoundError:
            return None

    def actions(self, version: int) -> list[Action] | None:
        """A commit's actions; None if it is gone meanwhile."""
        try:
            return actions_of(self.filesystem, f"{log_folder(self.root)}/{commit_name(version)}")
        except FileNotFoundError:
            return None

"""What does a source do when it starts, by ``snapshot.mode`` and by what is there?

Each mode answers five questions (:class:`Answers`), and :func:`decide` makes one decision of the
answers and of what was found. Nothing here asks Oracle or the metadata store.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, cast

from cdc_core.config import SnapshotConfig
from cdc_core.model.import_path import made_by
from cdc_core.model.starts import Decision, Work


@dataclass(frozen=True, slots=True, kw_only=True)
class StartState:
    """What is there when a source starts.

    ``has_position``: it has begun, so windows have a place to go on from. ``is_unfinished``: a
    table's first snapshot is not complete. ``has_definitions``: every captured table's definition
    is known. ``has_redo``: Oracle has the redo behind the position.
    """

    has_position: bool
    is_unfinished: bool = False
    has_definitions: bool = True
    has_redo: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What a mode wants: rows and definitions to be read, redo to be captured; and definitions to
    be read again where they are lost, all tables to be read again where redo is gone."""

    rows: bool
    definitions: bool
    streams: bool
    on_lost_definitions: bool = False
    on_lost_redo: bool = False


class Snapshotter(Protocol):
    """A mode of your own: a class without arguments, named by ``snapshot.custom``."""

    def answer(self, found: StartState) -> Answers:
        """What the source wants, by what is there. It is asked often, and must say the same of the
        same."""


def answers_of(config: SnapshotConfig, found: StartState) -> Answers:
    """The answers of the configured mode.

    Raises:
        ConfigError: ``snapshot.custom`` cannot be used.
    """
    first = not found.has_position or found.is_unfinished
    match config.mode:
        case "initial":
            return Answers(rows=first, definitions=first, streams=True)
        case "always":
            return Answers(rows=True, definitions=True, streams=True)
        case "initial_only":
            return Answers(rows=first, definitions=first, streams=False)
        case "no_data":
            return Answers(rows=False, definitions=first, streams=True)
        case "recovery":
            return Answers(rows=False, definitions=True, streams=True, on_lost_definitions=True)
        case "when_needed":
            return Answers(rows=first, definitions=first, streams=True, on_lost_redo=True)
        case "configuration_based":
            chosen = config.configuration_based
            return Answers(
                rows=chosen.data,
                definitions=chosen.definitions,
                streams=chosen.stream,
                on_lost_definitions=chosen.on_lost_definitions,
                on_lost_redo=chosen.on_lost_redo,
            )
        case "custom":
            return _custom(str(config.custom)).answer(found)


def decide(found: StartState, answers: Answers, mode: str) -> Decision:
    """What a start does.

    Args:
        found: What is there.
        answers: What the mode wants.
        mode: The mode's name, for people.
    """

    def does(work: Work, reason: str) -> Decision:
        return Decision(work=work, rows=answers.rows, streams=answers.streams, reason=reason)

    def refuses(what: str, hint: str) -> Decision:
        return Decision(
            work="nothing", rows=False, streams=False, reason=what, refusal=what, hint=hint
        )

    reads = answers.rows or answers.definitions
    if not found.has_position:
        if answers.on_lost_definitions:
            return refuses(
                f"snapshot.mode {mode} recovers a source that has begun, and this one has not",
                "Set snapshot.mode to initial for the first start.",
            )
        if not reads:
            return does("nothing", f"mode {mode} reads neither rows nor definitions")
        return does("snapshot", f"mode {mode}, and the source has not begun")
    if found.is_unfinished:
        if not reads:
            return refuses(
                f"snapshot.mode {mode} reads nothing, and the first snapshot is not complete",
                "Set snapshot.mode to initial until it is.",
            )
        return does("continue", f"mode {mode}, and the first snapshot is not complete")
    if not found.has_definitions:
        if answers.on_lost_definitions:
            return does("definitions", f"mode {mode}, and definitions of tables are lost")
        return refuses(
            "definitions of captured tables are lost",
            "`redolake state rebuild` makes the metadata store again from landing; snapshot.mode:"
            " recovery reads the definitions from Oracle.",
        )
    if answers.streams and not found.has_redo:
        if answers.on_lost_redo:
            return Decision(
                work="again", rows=True, streams=True, reason=f"mode {mode}, and redo is gone"
            )
        return refuses(
            "redo behind the position is gone",
            "Restore the archived logs; or run `redolake source skip-gap`, or set snapshot.mode to"
            " when_needed, and tables are read again behind the gap.",
        )
    if answers.rows:
        return does("again", f"mode {mode} reads rows at each start")
    if mode == "recovery" and answers.definitions:
        return does("definitions", "mode recovery reads definitions at each start")
    if answers.streams:
        return does("stream", "the source continues where it was")
    return does("nothing", f"mode {mode} captures no changes, and the snapshot is complete")


def _custom(path: str) -> Snapshotter:
    does = "its method `answer` gives the mode's answers."
    return cast(Snapshotter, made_by(path, option="snapshot.custom", does=does))

"""Which rows of a change log has a consumer not seen yet?

A change log is append-only, and each of its commits is a window, a TRUNCATE or a chunk of a
snapshot, by its metadata. A consumer's position is a version of the log. So a window's rows come
with the window that brought them, also those of commits that belong to earlier SCNs and came to
light late; a replay appends nothing; and files may be compacted and vacuumed meanwhile, since rows
are found by the columns ``_cdc_window`` and ``_cdc_snapshot`` and not by their files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cdc_core.delta.history import DeltaCommit
from cdc_core.errors import ConfigError, LakeError
from cdc_core.lake.mirror.versions import IN_ORDER
from redolake.reader.rows import Rows, literal

_CHUNKS = frozenset({"chunk", "gone"})
_BEGIN = -1


@dataclass(frozen=True, slots=True)
class ChangePosition:
    """How far a consumer has read the change log of one table.

    ``scn`` is the upper end of the newest window before it, ``version`` the Delta version up to
    which all rows were read, ``generation`` which of the table's change logs it is: a table that is
    begun anew has another.
    """

    table: str
    scn: int
    version: int
    generation: int

    def __str__(self) -> str:
        """A text to keep, which :meth:`parse` reads."""
        return json.dumps([self.table, self.scn, self.version, self.generation])

    @classmethod
    def parse(cls, text: str) -> ChangePosition:
        """Read what ``str`` gave.

        Raises:
            ConfigError: The text is no position.
        """
        try:
            table, scn, version, generation = json.loads(text)
            return cls(str(table), int(scn), int(version), int(generation))
        except (ValueError, TypeError) as error:
            raise ConfigError(
                "this is not a position in a change log",
                hint="Keep what `str(changes.position)` gives.",
                given=text[:100],
            ) from error


@dataclass(frozen=True, kw_only=True)
class Changes(Rows):
    """Rows of a change log, one per change, with the columns of the change log: ``_cdc_op``,
    ``_cdc_commit_scn``, ``_cdc_ordinal`` and the others, and the structs ``before`` and ``after``.

    They come in no order; the changes of one row of the table are in commit order by
    ``(_cdc_commit_scn, _cdc_ordinal)``.
    """

    position: ChangePosition
    """Where the next call continues, once these rows are dealt with."""


def changes_between(
    rows: Rows,
    commits: Sequence[DeltaCommit],
    generation: int,
    since: ChangePosition | int | None,
    until: int | None,
) -> Changes:
    """What the commits behind ``since`` up to ``until`` appended.

    Args:
        rows: All rows of the change log's newest version.
        commits: Those that its log still has, oldest first.
        generation: The change log's.
        since: A position, an SCN, or None for all rows.
        until: An SCN, or None for the newest version.

    Raises:
        ConfigError: The position is of another table or generation.
        LakeError: The log no longer reaches back so far.
    """
    if isinstance(since, ChangePosition):
        _check(since, rows.name, generation)
        begin = since.version
    else:
        begin = _BEGIN if since is None else _version_of(commits, since)
    end = rows.version if until is None else _version_of(commits, until)
    oldest = commits[0].version if commits else 0
    if (begin != _BEGIN and begin < oldest - 1) or (until is not None and end < oldest):
        raise LakeError(
            "the Delta log of the change log does not reach back so far any more",
            hint="Read all rows (`since=None`), and merge them by _cdc_commit_scn, _cdc_ordinal and _cdc_snapshot.",
            table=rows.name,
            version=max(begin, end if until is not None else 0),
        )
    end = max(begin, end)
    before = [_scn(one) for one in commits if one.version <= begin and _is_window(one)]
    low = max([*before, since.scn if isinstance(since, ChangePosition) else (since or _BEGIN)])
    own = [one for one in commits if begin < one.version <= end]
    high = max([low, *(_scn(one) for one in own if _is_window(one))])
    if begin != _BEGIN:
        chosen = rows.where(_of_commits(own, low, high))
    elif end < rows.version:
        chosen = rows.where(_without([one for one in commits if one.version > end], high))
    else:
        chosen = rows
    position = ChangePosition(rows.name, high, end, generation)
    return Changes(**{**_fields(chosen), "position": position})


def _of_commits(commits: Sequence[DeltaCommit], low: int, high: int) -> str:
    """Which rows these commits appended, in SQL; those of their windows are above ``low`` and up to
    ``high``."""
    chunks = _chunks(commits)
    windows = f"_cdc_snapshot IS NULL AND _cdc_window > {low} AND _cdc_window <= {high}"
    return f"{windows} OR _cdc_snapshot IN ({', '.join(chunks)})" if chunks else windows


def _without(commits: Sequence[DeltaCommit], high: int) -> str:
    """Which rows are older than these commits, which are the newest; those of windows end at
    ``high``."""
    chunks = _chunks(commits)
    windows = f"_cdc_snapshot IS NULL AND _cdc_window <= {high}"
    others = f" AND _cdc_snapshot NOT IN ({', '.join(chunks)})" if chunks else ""
    return f"{windows} OR _cdc_snapshot IS NOT NULL{others}"


def _chunks(commits: Sequence[DeltaCommit]) -> list[str]:
    """What the change log calls the chunks of these commits, as SQL."""
    return [
        literal(f"{one.metadata['snapshot']}/{one.metadata.get('number', 'gone')}")
        for one in commits
        if one.metadata.get("kind") in _CHUNKS
    ]


def _version_of(commits: Sequence[DeltaCommit], scn: int) -> int:
    """The version before the first commit that brings something newer than an SCN."""
    for one in commits:
        if (_is_window(one) and _scn(one) > scn) or one.metadata.get("chunk_scn", scn) > scn:
            return one.version - 1
    return commits[-1].version if commits else _BEGIN


def _is_window(commit: DeltaCommit) -> bool:
    return commit.metadata.get("kind") in IN_ORDER


def _scn(commit: DeltaCommit) -> int:
    return int(commit.metadata["scn_high"])


def _check(since: ChangePosition, table: str, generation: int) -> None:
    if since.table != table:
        raise ConfigError(
            "this position is of another table's change log",
            hint="Keep one position for each table.",
            table=table,
            given=since.table[:100],
        )
    if since.generation != generation:
        raise ConfigError(
            "the table was begun anew since: its change log is another one",
            hint="Read all rows (`since=None`), as a new consumer does.",
            table=table,
            generation=generation,
            given=since.generation,
        )


def key_condition(properties: Mapping[str, str], key: object) -> str:
    """Which rows of a change log are about the row of a key, in SQL.

    Args:
        properties: Those of the change log's Delta table.
        key: The value of the key's column, or a mapping from each column of the key to its value.

    Raises:
        ConfigError: The key has other columns, or the table has none.
    """
    schema = json.loads(properties.get("redolake.schema", "{}"))
    names = list(schema.get("key", ()))
    values = dict(key) if isinstance(key, Mapping) else dict.fromkeys(names[:1], key)
    if not names or set(values) != set(names):
        raise ConfigError(
            "this is not the table's key",
            hint=f"Name a value for each column: {', '.join(names) or 'the table has no key'}.",
            given=", ".join(map(str, values)),
        )
    stored = {one["name"]: one.get("stored_as") or one["name"] for one in schema["columns"]}
    images = (
        " AND ".join(
            f"{image}[{literal(stored[name])}] = {literal(value)}" for name, value in values.items()
        )
        for image in ("before", "after")
    )
    return " OR ".join(f"({one})" for one in images)


def _fields(rows: Rows) -> dict[str, Any]:
    return {name: getattr(rows, name) for name in Rows.__dataclass_fields__}

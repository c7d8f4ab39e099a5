"""How many rows with equal values are there after some changes? One row per digest and number,
found by columns.

Where all values of a row identify it (``identity: all_columns``), equal rows cannot be told apart,
and need not be: the table is a number of copies for each digest.

**Events.** An insert or a chunk's row adds a copy of its digest, a delete takes one away; an update
takes one of the old values and adds one of the new. An update that leaves the values as they were
does nothing. The order is (commit SCN, ordinal); rows of a chunk stand behind all changes of their
SCN. What committed at or below the SCN of the snapshot is in its rows, and does not count again.

**Numbers.** The copies of a digest are a pile: what is added comes on top with the next number,
what is taken away is the top. So numbers go from 1 on without holes, and which copy has which
position depends on the order of the changes alone: not on where windows were cut, and not on
whether the mirror was merged window by window or is derived from the whole change log.

**Too few.** A row can only go if it is there. A pile that a change takes more from than it has is a
wrong mirror or change log, and stops the table; nothing is rounded up to zero. One case is none: in
a window that lacks commits which come to light later (``has_gaps``), a delete may come before its
row. Nothing happens then, and the later window, which brings the row, derives the digest from the
whole change log.

Where the changes are too many for this process, the same functions run in Spark's tasks
(:mod:`cdc_core.lake.rows.by_key`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_core.errors import ANY_TABLE, LakeError
from cdc_core.runtime.arrow import whole
from cdc_core.schema.table import ROW_COPY, ROW_DIGEST, TableSchema
from cdc_core.schema.types import arrow_schema
from cdc_core.stage.changes import Flags, Images, LightChanges, Rows
from cdc_core.stage.layout import COMMIT_SCN, ORDINAL
from cdc_core.stage.reduction import source_schema

TOO_FEW = "a change deletes or updates a row that the mirror does not have"
TOO_FEW_HINT = (
    "`redolake reconcile` shows whether the mirror is right. If it is not, `redolake table rebuild OWNER.TABLE` writes it from its change log, and "
    f"`redolake table resnapshot --fresh {ANY_TABLE}` reads the table again."
)


@dataclass(frozen=True, slots=True)
class Copies:
    """What becomes of copies: one entry for each that comes, gets another position, or goes.

    Attributes:
        digests: Of the rows.
        numbers: Which of the equal rows it is, from 1 on.
        rows: Number of the change that added it; -1 if it goes.
        is_new: No row of the mirror has digest and number.
        commit_scn: Position of the change that added it; 0 if it goes …
        ordinal: … and its order among those of its commit SCN.
    """

    digests: pa.BinaryArray
    numbers: Rows
    rows: Rows
    is_new: Flags
    commit_scn: Rows
    ordinal: Rows

    @property
    def is_gone(self) -> Flags:
        """Does the copy go?"""
        gone: Flags = self.rows < 0
        return gone

    def picked(self, wanted: Flags) -> Copies:
        """Some of them."""
        return Copies(
            self.digests.filter(pa.array(wanted)),
            *(
                getattr(self, name)[wanted]
                for name in ("numbers", "rows", "is_new", "commit_scn", "ordinal")
            ),
        )


def touched_digests(changes: LightChanges) -> pa.BinaryArray:
    """The digests of the changes' own images, each once: also of an update that leaves the values
    as they were."""
    [before], [after] = changes.before, changes.after
    own = [before.filter(pa.array(changes.own_before)), after.filter(pa.array(changes.own_after))]
    return pc.unique(pa.concat_arrays(own))


def count_copies(
    changes: LightChanges,
    schema: TableSchema,
    present: pa.Table | None = None,
    *,
    read_scn: int = 0,
    has_gaps: bool = False,
) -> Copies:
    """Find what becomes of the copies.

    Args:
        changes: All changes that touch a digest of the part, by the change log's schema.
        schema: The table.
        present: The columns ``_cdc_row_digest`` and ``copies``: how many the mirror has of each
            digest; without it none of any.
        read_scn: The SCN of the snapshot: what committed up to it is in the rows of its chunks.
        has_gaps: Commits that belong before these changes come to light later.

    Raises:
        LakeError: More copies go than are there.
    """
    codes, digests, change, added, scn, ordinal = _codes(changes)
    counts = scn > read_scn
    counts |= pc.equal(changes.table["_cdc_op"], "r").to_numpy()[change]
    codes, change, added, scn, ordinal = (
        values[counts] for values in (codes, change, added, scn, ordinal)
    )
    if len(codes) == 0:
        return _nothing()
    order = np.lexsort((ordinal, scn, codes))
    codes, change, added, scn, ordinal = (
        values[order] for values in (codes, change, added, scn, ordinal)
    )
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    ends = np.append(starts[1:], len(codes)) - 1
    group = np.repeat(np.arange(len(starts)), ends - starts + 1)
    there = _counts(digests, present)[codes[starts]]
    height = _heights(added, starts, group, there)
    if has_gaps:
        height -= _shortfall(height, group)
    elif (height < 0).any():
        raise LakeError(TOO_FEW, hint=TOO_FEW_HINT, table=schema.table)
    last = height[ends]
    lowest = np.minimum(np.minimum.reduceat(height, starts), there)
    # The last change that brought a pile to a height that it still has, or passed, put the copy of
    # that number there.
    tops = np.flatnonzero((added > 0) & (height <= last[group]) & (height > lowest[group]))
    tops = tops[np.lexsort((tops, height[tops], group[tops]))]
    is_last = np.ones(len(tops), dtype=np.bool_)
    is_last[:-1] = (np.diff(group[tops]) != 0) | (np.diff(height[tops]) != 0)
    tops = tops[is_last]
    gone = np.maximum(there - last, 0)
    of_gone = np.repeat(np.arange(len(starts)), gone)
    within = np.arange(len(of_gone)) - np.repeat(np.cumsum(gone) - gone, gone)
    numbers = np.concatenate([height[tops], last[of_gone] + 1 + within])
    of = np.concatenate([group[tops], of_gone])
    nothing = np.zeros(len(of_gone), dtype=np.int64)
    return Copies(
        digests=digests.take(pa.array(codes[starts][of])),
        numbers=numbers,
        rows=np.concatenate([changes.table["row"].to_numpy()[change[tops]], nothing - 1]),
        is_new=numbers > there[of],
        commit_scn=np.concatenate([scn[tops], nothing]),
        ordinal=np.concatenate([ordinal[tops], nothing]),
    )


def different_copies(wanted: Copies, mirror: pa.Table) -> Copies | None:
    """What is to be merged so that the mirror has the copies; None if it has a digest and number
    twice.

    Args:
        wanted: All copies of some digests, as if the mirror had none.
        mirror: The mirror's rows of the same digests: ``_cdc_row_digest``, ``_cdc_copy``,
            ``_cdc_commit_scn`` and ``_cdc_ordinal``.
    """
    held = whole(mirror[ROW_DIGEST])
    both = pa.concat_arrays([held, wanted.digests]).dictionary_encode().indices.to_numpy()
    numbers = np.concatenate([mirror[ROW_COPY].to_numpy(), wanted.numbers])
    names = np.stack([both.astype(np.int64), numbers])
    codes = np.unique(names, axis=1, return_inverse=True)[1].reshape(-1)
    of_mirror, own = codes[: len(held)], codes[len(held) :]
    if len(np.unique(of_mirror)) < len(of_mirror):
        return None
    place = np.full(int(codes.max(initial=-1)) + 1, -1)
    place[of_mirror] = np.arange(len(of_mirror))
    at = place[own]
    scns, ordinals = mirror[COMMIT_SCN].to_numpy(), mirror[ORDINAL].to_numpy()
    same = at >= 0
    same[same] = (scns[at[same]] == wanted.commit_scn[same]) & (
        ordinals[at[same]] == wanted.ordinal[same]
    )
    differs = wanted.picked(~same)
    surplus = ~np.isin(of_mirror, own)
    nothing = np.zeros(int(surplus.sum()), dtype=np.int64)
    return Copies(
        pa.concat_arrays([differs.digests, held.filter(pa.array(surplus))]),
        np.concatenate([differs.numbers, numbers[: len(held)][surplus]]),
        np.concatenate([differs.rows, nothing - 1]),
        np.concatenate([at[~same] < 0, nothing > 0]),
        np.concatenate([differs.commit_scn, nothing]),
        np.concatenate([differs.ordinal, nothing]),
    )


def copies_source(changes: Images, copies: Copies, schema: TableSchema) -> pa.Table:
    """What is merged into the mirror, in the columns of ``stage.reduction.merge_source`` of its
    version; of a copy that goes only digest and number are there."""
    columns = [
        copies.digests
        if field.name == ROW_DIGEST
        else pa.array(copies.numbers)
        if field.name == ROW_COPY
        else changes.take("after", field.name, copies.rows)
        for field in arrow_schema(schema.with_copies())
    ]
    rows = len(copies.numbers)
    added = [
        pa.array(copies.commit_scn),
        pa.array(copies.ordinal),
        pc.if_else(pa.array(copies.is_gone), "del", "row"),
        pa.array([[]] * rows, pa.list_(pa.string())),
        pa.repeat(False, rows),
        pa.array(copies.is_new),
        pa.repeat(pa.scalar(0, pa.int64()), rows),
    ]
    columns = [*columns, *added]
    return pa.Table.from_arrays(columns, schema=source_schema(schema.with_copies()))


def _codes(changes: LightChanges) -> tuple[Rows, pa.BinaryArray, Rows, Rows, Rows, Rows]:
    """The events, as columns: a number per digest and the digests that it stands for, the place of
    the change, whether it adds (1) or takes away (-1), and the change's position."""
    [before], [after] = changes.before, changes.after
    same = pc.fill_null(pc.equal(before, after), False).to_numpy(zero_copy_only=False)
    old = np.flatnonzero(changes.own_before & ~same)
    new = np.flatnonzero(changes.own_after & ~same)
    encoded = pa.concat_arrays(
        [before.take(pa.array(old)), after.take(pa.array(new))]
    ).dictionary_encode()
    change = np.concatenate([old, new])
    added = np.concatenate([np.full(len(old), -1), np.ones(len(new), dtype=np.int64)])
    scn, ordinal = (changes.table[name].to_numpy()[change] for name in (COMMIT_SCN, ORDINAL))
    codes: Rows = encoded.indices.to_numpy().astype(np.int64)
    return codes, encoded.dictionary, change, added, scn, ordinal


def _counts(digests: pa.BinaryArray, present: pa.Table | None) -> Rows:
    """How many copies the mirror has of each digest."""
    if present is None:
        return np.zeros(len(digests), dtype=np.int64)
    at = pc.index_in(digests, whole(present[ROW_DIGEST]))
    found: Rows = pc.fill_null(whole(present["copies"]).take(at), 0).to_numpy()
    return found


def _heights(added: Rows, starts: Rows, group: Rows, there: Rows) -> Rows:
    """How high its pile is after each event."""
    sums = np.cumsum(added)
    before = sums[starts] - added[starts]
    heights: Rows = sums - before[group] + there[group]
    return heights


def _shortfall(height: Rows, group: Rows) -> Rows:
    """How many copies were missing up to each event: the lowest point below zero so far, per
    group."""
    below = np.minimum(height, 0)
    # One running minimum over all groups: each lies so much lower than the one before that it
    # begins anew.
    step = int(-below.min(initial=0)) + 1
    lowered = below - group * step
    found: Rows = np.minimum.accumulate(lowered) + group * step
    return found


def _nothing() -> Copies:
    none = np.empty(0, dtype=np.int64)
    return Copies(pa.array([], pa.binary()), none, none, np.empty(0, dtype=np.bool_), none, none)

"""How do failures of delta-rs, and of Arrow over a Delta table's files, become ours?

By their cause: a file that is gone, a feature that delta-rs does not know, another writer's commit,
the storage. Whatever reads or writes a Delta table without Spark stands in one of the blocks of
this module (``tests/lake/test_borders.py``); ``spark.translated`` is the one for Spark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pyarrow as pa

from cdc_core.delta.history import read_log
from cdc_core.delta.storage import storing
from cdc_core.errors import (
    DEBUG_HINT,
    FEATURE_HINT,
    ONE_WRITER_HINT,
    VECTOR_HINT,
    CommitConflictError,
    LakeError,
)

_FEATURES = re.compile(
    r"[Uu]nsupported (?:table|reader|writer) features?[a-z ]*: \[([A-Za-z0-9, ()\"-]+)\]|Feature '([A-Za-z0-9-]+)' is not supported"
)
_MISSING = re.compile(
    r"No such file|File not found|Object at location .* not found|does not exist|os error 2\b"
)
_FILE = re.compile(r"[\w.%=-]+\.(?:parquet|bin|json)\b")


@contextmanager
def at_work(doing: str, facts: Mapping[str, object], *, hint: str = DEBUG_HINT) -> Iterator[None]:
    """Read or write a Delta table without Spark in the block.

    Args:
        doing: What is under way.
        facts: Where.
        hint: What to do where a file is gone or damaged.

    Raises:
        StoreUnavailableError: The disk is full or fails, or the bucket cannot be reached.
        LakeError: A file is gone or damaged, the table has a feature that is not known, or delta-rs
            or Arrow refuses.
    """
    from deltalake.exceptions import DeltaError

    try:
        with storing(doing, **facts):
            yield
    except (DeltaError, OSError, pa.ArrowException) as error:
        if isinstance(error, MemoryError):
            raise
        raise _translated(doing, error, hint, facts) from error
    except BaseException as error:
        if not _is_of_rust(error):
            raise
        raise _translated(doing, error, hint, facts) from error


@contextmanager
def committing(path: str, doing: str, facts: Mapping[str, object]) -> Iterator[None]:
    """Commit to the Delta table at ``path`` by delta-rs in the block: not behind another writer's
    commit.

    Raises:
        CommitConflictError: Another writer committed meanwhile.
        StoreUnavailableError, LakeError: As for :func:`at_work`.
    """
    from deltalake.exceptions import CommitFailedError

    before = _version(path)
    with at_work(doing, facts):
        try:
            yield
        except CommitFailedError as error:
            # delta-rs has one class for whatever keeps a commit out.
            if _version(path) != before:
                raise conflict(doing, facts) from error
            raise


def conflict(doing: str, facts: Mapping[str, object]) -> CommitConflictError:
    """The error where another writer was first."""
    return CommitConflictError(
        f"{doing}: another writer committed to the same Delta table",
        hint=ONE_WRITER_HINT,
        **facts,
    )


def _version(path: str) -> int:
    log = read_log(path)
    return -1 if log is None else log.version


def _is_of_rust(error: BaseException) -> bool:
    """A query's batches give plain exceptions, and what gives up has a class that nobody can
    import."""
    return type(error) is Exception or type(error).__name__ == "PanicException"


def _translated(
    doing: str, error: BaseException, hint: str, facts: Mapping[str, object]
) -> LakeError:
    text = str(error)
    if found := _FEATURES.search(text):
        return LakeError(
            f"{doing}: the Delta table has a feature that Redolake cannot work with",
            hint=FEATURE_HINT,
            **facts,
            features=re.sub(r'Unknown\("([^"]*)"\)', r"\1", found[1] or found[2]),
        )
    if isinstance(error, FileNotFoundError) or _MISSING.search(text):
        name = _FILE.search(getattr(error, "filename", None) or text)
        is_vector = name is not None and name[0].startswith("deletion_vector_")
        return LakeError(
            f"{doing}: {('a deletion vector' if is_vector else 'a file')} of the Delta table is "
            "missing",
            hint=VECTOR_HINT if is_vector else hint,
            **facts,
            **({"file": name[0]} if name else {}),
        )
    is_arrow_s = isinstance(error, pa.ArrowException)
    what = "a file of the Delta table is damaged" if is_arrow_s else "delta-rs refused"
    return LakeError(f"{doing}: {what}", hint=hint, **facts, cause=type(error).__name__)

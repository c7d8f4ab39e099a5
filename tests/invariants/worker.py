"""A process that runs a pipeline and, if asked, kills itself with SIGKILL at a named point: the prover's victim.

    python -m tests.invariants.worker CONFIG.json run [--kill POINT --hit N] [--sabotage NAME]
    python -m tests.invariants.worker CONFIG.json replay --seed N
    python -m tests.invariants.worker CONFIG.json reconcile --scn N [N …]

Points are reached by wrapping the functions at which they lie, so production code knows nothing of them.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import threading
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cdc_core.config import SourceConfig
from cdc_core.model.chunks import ChunkKey
from cdc_core.steps import Pipeline
from tests.invariants.sabotage import SABOTAGES

MERGE_SECONDS = 0.3
"""How long after a MERGE was handed to Spark the process is killed in the middle of it."""


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Killer:
    """Dies at the ``hit``-th time that the point is reached."""

    def __init__(self, hit: int) -> None:
        self._left = hit
        self._lock = threading.Lock()

    def reached(self) -> None:
        """Count, and die when it is time."""
        with self._lock:
            self._left -= 1
            if self._left == 0:
                _die()


def _before(
    owner: Any, name: str, killer: Killer, when: Callable[..., bool] = lambda *_, **__: True
) -> None:
    original = getattr(owner, name)

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if when(*args, **kwargs):
            killer.reached()
        return original(*args, **kwargs)

    setattr(owner, name, wrapped)


def _on_rename(part: str) -> Callable[[Killer], None]:
    def install(killer: Killer) -> None:
        _before(
            Path,
            "replace",
            killer,
            lambda _self, target: part in str(target) and "parquet" in str(target),
        )

    return install


def _on_store(name: str) -> Callable[[Killer], None]:
    def install(killer: Killer) -> None:
        from cdc_core.state.store import Store

        _before(Store, name, killer)

    return install


def _on_manifest(part: str) -> Callable[[Killer], None]:
    def install(killer: Killer) -> None:
        _before(os, "link", killer, lambda _source, target, **_: part in str(target))

    return install


def _in_fetch(killer: Killer) -> None:
    from cdc_core.oracle.session import OracleSession

    original = OracleSession.fetch_batches

    def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
        for batch in original(self, *args, **kwargs):
            killer.reached()
            yield batch

    OracleSession.fetch_batches = wrapped  # type: ignore[method-assign]


def _between_deltas(killer: Killer) -> None:
    from cdc_core.lake import windows

    _before(windows, "window_view", killer)


def _in_merge(killer: Killer) -> None:
    from cdc_core.lake import windows

    original = windows.merge_sql

    def wrapped(*args: Any, **kwargs: Any) -> str:
        threading.Timer(MERGE_SECONDS, killer.reached).start()
        return original(*args, **kwargs)

    windows.merge_sql = wrapped


KILL_POINTS: dict[str, Callable[[Killer], None]] = {
    "chunk file written, not renamed": _on_rename("/chunks/"),
    "chunk files renamed, no manifest": _on_manifest("/chunks/"),
    "chunk landed, not recorded": _on_store("record_chunk_landed"),
    "chunk in the lake, not recorded": _on_store("record_chunk_applied"),
    "window file written, not renamed": _on_rename("/windows/"),
    "window files renamed, no manifest": _on_manifest("/windows/"),
    "window landed, not recorded": _on_store("record_captured"),
    "change log committed, mirror not": _between_deltas,
    "Spark in the middle of a MERGE": _in_merge,
    "Delta committed, store not": _on_store("advance_tables"),
    "window in the lake, not recorded": _on_store("record_applied"),
    "in the middle of a fetch": _in_fetch,
}


def main() -> None:
    """Run what the command line asks for and print JSON lines."""
    parser = argparse.ArgumentParser()
    parser.add_argument("config", type=Path)
    parser.add_argument("work", choices=["run", "replay", "reconcile"])
    parser.add_argument("--kill", choices=sorted(KILL_POINTS))
    parser.add_argument("--hit", type=int, default=1)
    parser.add_argument("--sabotage", choices=sorted(SABOTAGES))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scn", type=int, nargs="*", default=[])
    given = parser.parse_args()
    if given.sabotage:
        SABOTAGES[given.sabotage]()
    if given.kill:
        KILL_POINTS[given.kill](Killer(given.hit))
    config = SourceConfig.model_validate_json(given.config.read_text())
    with Pipeline(
        config, report=lambda report: print(f"# {report.kind} {report.key}", flush=True)
    ) as pipeline:
        match given.work:
            case "run":
                for _ in pipeline.run_once():
                    continue
            case "replay":
                _replay(pipeline, given.seed)
            case "reconcile":
                for scn in given.scn or [None]:
                    print(json.dumps(asdict(pipeline.reconcile(scn=scn))), flush=True)


def _replay(pipeline: Pipeline, seed: int) -> None:
    """Take every applied window and chunk once more, in shuffled order."""
    work: list[Callable[[], Any]] = []
    source = pipeline.config.name
    for record in pipeline._ctx.store.windows(source, states=("applied",)):
        work.append(lambda window=record.window: pipeline.replay_window(window))  # type: ignore[misc]
    for chunk in pipeline._ctx.store.chunks(source, states=("applied",)):
        key = ChunkKey(chunk.table, chunk.snapshot_id, chunk.number)
        work.append(lambda key=key: pipeline.apply_chunk(key))  # type: ignore[misc]
    random.Random(seed).shuffle(work)
    for task in work:
        task()
    print(json.dumps({"replayed": len(work)}), flush=True)


if __name__ == "__main__":
    main()

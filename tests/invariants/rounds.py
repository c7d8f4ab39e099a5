"""What one of several processes does that carry a source at once: rounds of everything that there is to do, until there is nothing."""

from __future__ import annotations

import time
import traceback
from collections import Counter
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random

from cdc_core.config import SourceConfig
from cdc_core.errors import CdcError
from cdc_core.steps import Pipeline
from tests.invariants.kept_lake import KeptLake


@dataclass(frozen=True, slots=True)
class Rounds:
    """What one process did: its steps by kind, and by what its rounds were ended."""

    steps: Counter[str]
    errors: Counter[tuple[str, str]]


def run_rounds(config: str, seed: int, pipe: Connection) -> None:
    """Round after round until the pipe says that the load is over, and then until one finds nobody in its way."""
    done = Rounds(Counter(), Counter())
    dice, is_over = Random(seed), False
    source = SourceConfig.model_validate_json(config)
    with Pipeline(source, open_lake=KeptLake(Path(source.lake.path)).open) as pipeline:
        while True:
            is_over = is_over or pipe.poll()
            try:
                for report in pipeline.run_once():
                    done.steps[report.kind] += 1
            except Exception as error:
                text = str(error) if isinstance(error, CdcError) else traceback.format_exc()
                done.errors[type(error).__name__, text] += 1
                if not isinstance(error, CdcError):
                    break
            else:
                if is_over:
                    break
            time.sleep(dice.random() / 5)
    pipe.send(done)

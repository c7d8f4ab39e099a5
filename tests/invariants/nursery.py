"""From where do the prover's processes come?

They are forked from a process that has imported everything and done nothing, so that a new one costs no more than its first
connection (and Spark, where it has that).
"""

from __future__ import annotations

import multiprocessing

NURSERY = multiprocessing.get_context("forkserver")
NURSERY.set_forkserver_preload(["tests.invariants.worker", "tests.invariants.server"])

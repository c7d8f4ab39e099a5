"""START HERE: the steps of a source, each of which can be run again at any time.

:class:`Pipeline` is the one door for Dagster assets and the command line.
"""

from cdc_core.steps.pipeline import Pipeline

__all__ = ["Pipeline"]

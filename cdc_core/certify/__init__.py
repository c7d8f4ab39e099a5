"""Is what Redolake believes of Oracle true of this database?

``probes`` says what a probe is; ``views``, ``redo``, ``values`` and ``database`` hold those that
only look, and ``look`` asks them. ``mine`` holds those of the newest redo, ``mined`` counts its
rows. ``tried`` says what a probe with a table of its own does, the modules ``try_…`` hold them, and
``trying`` runs them. ``report`` is what was found, ``html`` shows it.
"""

from cdc_core.certify.certifying import PROBES, certify
from cdc_core.certify.html import page
from cdc_core.certify.probes import Level, Outcome, Probe, Verdict
from cdc_core.certify.report import Found, Report
from cdc_core.certify.trying import Scratch

__all__ = [
    "PROBES",
    "Found",
    "Level",
    "Outcome",
    "Probe",
    "Report",
    "Scratch",
    "Verdict",
    "certify",
    "page",
]

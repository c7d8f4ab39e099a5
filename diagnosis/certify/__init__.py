"""Is what Redolake believes of Oracle true of this database?

``probes`` says what a probe is; ``views``, ``redo``, ``values`` and ``database`` hold those that
only look, and ``look`` asks them. ``mine`` holds those of the newest redo, ``mined`` counts its
rows. ``tried`` says what a probe with a table of its own does, the modules ``try_…`` hold them, and
``trying`` runs them. ``report`` is what was found, ``html`` shows it.
"""

from diagnosis.certify.certifying import PROBES, certify
from diagnosis.certify.html import page
from diagnosis.certify.probes import Level, Outcome, Probe, Verdict
from diagnosis.certify.report import Found, Report
from diagnosis.certify.trying import Scratch

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

"""How is a report shown as a page that a browser opens from a file?"""

from __future__ import annotations

from html import escape

from diagnosis.certify.probes import Outcome
from diagnosis.certify.report import Found, Report

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; color: #222; background: #fff }
table { border-collapse: collapse; width: 100%; margin: 1rem 0 }
th, td { text-align: left; vertical-align: top; padding: .35rem .6rem; border-bottom: 1px solid #ddd }
.holds { color: #18794e } .otherwise { color: #c2280d; font-weight: 600 } .cannot { color: #666 }
code { font-size: .9em } @media (prefers-color-scheme: dark) { body { color: #ddd; background: #161616 } th, td { border-color: #333 } }
"""
_CLASSES = {Outcome.HOLDS: "holds", Outcome.OTHERWISE: "otherwise", Outcome.CANNOT_TELL: "cannot"}
_ORDER = {Outcome.OTHERWISE: 0, Outcome.CANNOT_TELL: 1, Outcome.HOLDS: 2}


def page(report: Report) -> str:
    """The report as one HTML page without scripts and without anything from elsewhere."""
    counts = report.counts()
    verdict = (
        "All that Redolake rests on holds here."
        if report.is_certified
        else "Something that Redolake rests on does not hold here."
    )
    listed = ", ".join(f"{counts[outcome]} {outcome}" for outcome in Outcome)
    found = sorted(report.found, key=lambda one: (not one.is_wrong, _ORDER[one.verdict.outcome]))
    rows = "\n".join(map(_row, found))
    facts = "\n".join(
        f"<tr><td>{escape(name)}</td><td>{escape(str(fact))}</td></tr>"
        for name, fact in sorted(report.facts().items())
    )
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Redolake: certification</title><style>{_STYLE}</style></head>
<body>
<h1>Is what Redolake believes of Oracle true of this database?</h1>
<p><strong>{verdict}</strong> {len(report.found)} probes: {listed}.</p>
<table><tr><th>Outcome</th><th>Probe</th><th>Belief, and what was seen</th></tr>
{rows}
</table>
<h2>Facts</h2>
<table>
{facts}
</table>
</body></html>
"""


def _row(one: Found) -> str:
    probe, verdict = one.probe, one.verdict
    follows = ""
    if verdict.outcome is Outcome.OTHERWISE:
        follows = f"<br>Depends on it: {escape(probe.depends)}. {escape(probe.otherwise)}"
    return (
        f'<tr><td class="{_CLASSES[verdict.outcome]}">{verdict.outcome}</td><td><code>{escape(probe.id)}</code></td>'
        f"<td>{escape(probe.belief)}<br>Seen: {escape(verdict.seen)}.{follows}</td></tr>"
    )

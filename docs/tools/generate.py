"""Which parts of the documentation are generated, and are they current?

A page holds generated parts between ``<!-- generated: NAME -->`` and ``<!-- end: NAME -->``;
everything else is written by people. Run ``python -m docs.tools.generate`` after a change of the
code; a test compares.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from docs.tools import (
    benchmarks,
    checks,
    commands,
    debezium,
    errors,
    formats,
    metrics,
    options,
    probes,
    spark,
    type_table,
)

PAGES = Path(__file__).resolve().parents[1]
PARTS: Mapping[str, Callable[[], str]] = {
    "options": options.markdown,
    "commands": commands.markdown,
    "types": type_table.markdown,
    "type-forms": type_table.forms_markdown,
    "type-examples": type_table.examples_markdown,
    "redo-columns": formats.redo_columns,
    "transaction-columns": formats.transaction_columns,
    "window-manifest": formats.window_manifest,
    "chunk-manifest": formats.chunk_manifest,
    "change-columns": formats.change_columns,
    "transactions-columns": formats.transactions_columns,
    "schema-changes-columns": formats.schema_changes_columns,
    "debezium": debezium.markdown,
    "debezium-metrics": metrics.jmx_markdown,
    "debezium-notifications": debezium.notifications_markdown,
    "debezium-topics": debezium.topics_markdown,
    "debezium-modes": debezium.modes_markdown,
    "debezium-signals": debezium.signals_markdown,
    "debezium-not-offered": debezium.not_offered_markdown,
    "metrics": metrics.markdown,
    "oracle-codes": errors.oracle_codes,
    "benchmarks": benchmarks.markdown,
    "checks-of-database": checks.of_database,
    "checks-of-tables": checks.of_tables,
    "probes": probes.markdown,
    "spark-artefacts": spark.artefacts_markdown,
    "spark-session": spark.session_markdown,
}
_PART = re.compile(
    r"(?P<begin><!-- generated: (?P<name>[\w-]+) -->\n).*?(?P<end><!-- end: (?P=name) -->)",
    re.DOTALL,
)


def renewed(text: str) -> str:
    """A page with its generated parts as the code makes them now.

    Raises:
        KeyError: A part has a name that nothing generates.
    """
    return _PART.sub(
        lambda found: f"{found['begin']}\n{PARTS[found['name']]().strip()}\n\n{found['end']}", text
    )


def parts_of(text: str) -> list[str]:
    """Names of a page's generated parts."""
    return [found["name"] for found in _PART.finditer(text)]


def pages() -> list[Path]:
    """Every page of the documentation."""
    return sorted(PAGES.rglob("*.md"))


def main() -> int:
    """Renew every page, and name those that changed."""
    for page in pages():
        before = page.read_text()
        after = renewed(before)
        if after != before:
            page.write_text(after)
            print(f"renewed {page.relative_to(PAGES.parent)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

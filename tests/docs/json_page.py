"""What the page about --json says of a command."""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "json.md"


def keys_page(command: str) -> str:
    """The page's section for a command."""
    found = PAGE.read_text().partition(f"\n## `redolake {command}`\n")[2].partition("\n## ")[0]
    assert found, f"{command} has no section"
    return found

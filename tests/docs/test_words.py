"""Words of translated prose do not come back into documents, help texts, messages and hints."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.tools import mentions
from docs.tools.mentions import ROOT

WORDS = {
    "mend": r"\bmend(?:s|ed|ing)?\b",
    "told": r"\b(?:is|are|was|were) told\b",
    "for ever": r"\bfor ever\b",
    "anew": r"\banew\b",
    "goes on": r"\b(?:go|goes|went) on\b",
    "takes in again": r"\btakes (?:it|them|the tables?) in\b",
    "new snapshot without its command": r"\b[Tt]ake a new snapshot of the table\b",
    "chained exception": r"\bchained exception\b",
    "nobody measured": r"\b[Nn]obody has (?:measured|tried|tested)\b",
    "gone for good": r"\bgone for good\b",
    "which stay as they are": r"\bwhich stay as they are\b",
    "as all else is": r"\bas all else is\b",
}
DOCUMENTS = [path for path in mentions.documents() if path.name != "ARCHITECTURE.md"]


def _found(text: str) -> list[str]:
    plain = " ".join(re.sub(r"`[^`\n]*`", "", text).split())
    return [name for name, pattern in WORDS.items() if re.search(pattern, plain)]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_documents_have_none_of_the_words(document: Path) -> None:
    assert _found(document.read_text()) == []


def _texts(path: Path) -> Iterator[tuple[int, str]]:
    """What people may read of a module: strings, joined, and the docstrings of options and commands; not the other docstrings."""
    tree = ast.parse(path.read_text())
    is_read = path.parent.name == "commands" or path.name in ("config.py", "settings.py")
    hidden = set() if is_read else set(_docstrings(tree))
    inside: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            inside |= {id(part) for part in node.values}
            parts = [part.value if isinstance(part, ast.Constant) else "…" for part in node.values]
            yield node.lineno, "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and id(node) not in hidden | inside:
            yield node.lineno, str(node.value)


def _docstrings(tree: ast.AST) -> Iterator[int]:
    for node in ast.walk(tree):
        for one in (
            getattr(node, "body", []) if not isinstance(node, ast.Lambda | ast.IfExp) else []
        ):
            if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant):
                yield id(one.value)


@pytest.mark.parametrize("folder", mentions.CODE)
def test_messages_hints_and_help_texts_have_none_of_the_words(folder: str) -> None:
    found = [
        (f"{path.relative_to(ROOT)}:{line}", words)
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line, text in _texts(path)
        if (words := _found(text))
    ]
    assert found == []


def test_the_words_are_found() -> None:
    assert _found("The table goes\non, and `anew` is told for ever.") == [
        "told",
        "for ever",
        "goes on",
    ]

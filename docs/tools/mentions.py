"""Which commands, ``make`` targets, paths and links does a text mention?"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from docs.tools.commands import Words, option_names

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = (
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CHANGELOG.md",
    "deploy/**/*.md",
    "oracle_embedded/README.md",
    "docs/**/*.md",
)
CODE = ("cdc_core", "diagnosis", "assets", "pipelines")

_SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_FENCE = re.compile(r"^ *```[^\n]*\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
_GENERATED = re.compile(r"<!-- generated: .*?<!-- end: [\w-]+ -->", re.DOTALL)
_COMMAND = re.compile(r"(?:^|\s|/)redolake(?P<rest>(?: +[^\s`#|;&→]+)*)")
_SPOKEN = re.compile(r"\bredolake(?P<rest> [a-z][a-z-]*(?: [a-z][a-z-]*| --?[a-z][a-z0-9-]*)*)")
_MAKE = re.compile(r"^ *make ([a-z][a-z-]*)")
_PATH = re.compile(r"(?:cdc_core|diagnosis|assets|pipelines|oracle_embedded|tests|deploy|docs|benchmarks)/[\w./*-]*")  # fmt: skip
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.+?)(?: +\{ *#([\w-]+) *\})? *$", re.MULTILINE)


def documents() -> list[Path]:
    """Every document of the repository."""
    return sorted({path for pattern in DOCUMENTS for path in ROOT.glob(pattern)})


def without_generated(text: str) -> str:
    """A document without the parts that come from the code."""
    return _GENERATED.sub("", text)


def code_pieces(text: str) -> Iterator[str]:
    """Inline code, and each line of code blocks, without what is generated from the code."""
    text = without_generated(text)
    for block in _FENCE.findall(text):
        yield from block.splitlines()
    yield from _SPAN.findall(_FENCE.sub("", text))


def commands_in(text: str) -> list[str]:
    """Calls of ``redolake`` in a document's code: what stands behind the word, up to a comment."""
    found = []
    for piece in code_pieces(text):
        calls = _COMMAND.finditer(piece.split(" #")[0])
        found += [" ".join(call["rest"].split()) for call in calls if call["rest"]]
    return found


def commands_in_code() -> list[tuple[str, str]]:
    """Calls of ``redolake`` that texts for people name in the code: file with line, and what stands
    behind the word."""
    found = []
    for package in CODE:
        for path in sorted((ROOT / package).rglob("*.py")):
            for line, text in _strings(ast.parse(path.read_text())):
                where = f"{path.relative_to(ROOT)}:{line}"
                found += [(where, call["rest"].strip()) for call in _SPOKEN.finditer(text)]
    return found


def problem_with(call: str, known: Mapping[Words, Any]) -> str | None:
    """What does not exist in a call of ``redolake``; None if all of it does. Placeholders and
    values are passed over."""
    path: Words = ()
    names = set(option_names(known[()]))
    for word in shlex.split(call.replace("…", "").replace("'", ""), posix=False):
        name = word.strip("[]").split("=")[0]
        if name.startswith("-"):
            if name not in names:
                return f"redolake {' '.join(path)} has no option {name}"
        elif (*path, name) in known:
            path = (*path, name)
            names |= option_names(known[path])
        elif any(other[: len(path)] == path and len(other) > len(path) for other in known):
            return f"there is no command redolake {' '.join((*path, name))}"
    return None


def make_targets_in(text: str) -> list[str]:
    """Targets of ``make`` in a document's code."""
    return [target for piece in code_pieces(text) for target in _MAKE.findall(piece)]


def paths_in(text: str) -> list[str]:
    """Paths of the repository in a document's code."""
    return [
        found.rstrip(".")
        for piece in code_pieces(text)
        if "://" not in piece
        for found in _PATH.findall(piece)
        if piece.find(found) == 0 or not re.match(r"[\w/.$<>-]", piece[piece.find(found) - 1])
    ]


def links_in(text: str) -> list[str]:
    """Targets of links and images that are not addresses elsewhere."""
    bare = _FENCE.sub("", text)
    return [link for link in _LINK.findall(bare) if "://" not in link and link[:7] != "mailto:"]


def anchors_of(text: str) -> set[str]:
    """Anchors of a page's headings, as GitHub and MkDocs make them."""
    anchors = set()
    for title, given in _HEADING.findall(_FENCE.sub("", text)):
        plain = re.sub(r"[^\w\s-]", "", title.replace("`", "")).strip().lower()
        anchors.add(given or re.sub(r"[\s]+", "-", plain))
    return anchors


def _strings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """String constants with their lines, docstrings of modules and internal functions included;
    parts of f-strings joined."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "…" for part in node.values]
            yield node.lineno, "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value

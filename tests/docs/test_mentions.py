"""What the documents and the errors tell people to type, open or follow exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from docs.tools import mentions
from docs.tools.commands import commands
from docs.tools.mentions import ROOT

KNOWN = commands()
DOCUMENTS = mentions.documents()
BY_NAME = pytest.mark.parametrize(
    "document", DOCUMENTS, ids=[str(path.relative_to(ROOT)) for path in DOCUMENTS]
)


@BY_NAME
def test_commands_in_documents_exist(document: Path) -> None:
    calls = mentions.commands_in(document.read_text())
    assert [found for call in calls if (found := mentions.problem_with(call, KNOWN))] == []


def test_commands_in_hints_and_help_texts_exist() -> None:
    in_code = mentions.commands_in_code()
    assert len(in_code) > 30
    wrong = [(where, mentions.problem_with(call, KNOWN)) for where, call in in_code]
    assert [found for found in wrong if found[1]] == []


def test_hints_name_the_table_that_a_command_needs() -> None:
    """A command without its argument prints a usage message instead of helping."""
    needs_table = r"(?<!`)`redolake table (?:resume|resnapshot|rebuild|quarantine)(?: --[a-z-]+)*`"
    found = [
        f"{path.relative_to(ROOT)}: {one}"
        for package in ("cdc_core", "assets")
        for path in sorted((ROOT / package).rglob("*.py"))
        for one in re.findall(needs_table, path.read_text())
    ]
    assert found == []


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        pytest.param("run --loop --every 300", None, id="options with values"),
        pytest.param("--debug run", None, id="an option of the program itself"),
        pytest.param("signal execute-snapshot --blocking SHOP.ORDERS", None, id="a sub-command"),
        pytest.param("replay 1000-2000", None, id="an argument"),
        pytest.param("rebuilt --table X", "no command redolake rebuilt", id="an unknown command"),
        pytest.param("signal stop", "no command redolake signal stop", id="an unknown sub-command"),
        pytest.param("run --forever", "no option --forever", id="an unknown option"),
    ],
)
def test_what_does_not_exist_is_found(call: str, problem: str | None) -> None:
    found = mentions.problem_with(call, KNOWN)
    assert (found is None) if problem is None else problem in str(found)


def test_calls_are_found_in_code_blocks_and_inline_code_only() -> None:
    text = "redolake prose\n\n```\n.venv/bin/redolake run --loop   # why\n```\n\nand `redolake ui`."
    assert mentions.commands_in(text) == ["run --loop", "ui"]


@BY_NAME
def test_make_targets_in_documents_exist(document: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(mentions.make_targets_in(document.read_text())) <= targets


@BY_NAME
def test_paths_in_documents_exist(document: Path) -> None:
    paths = mentions.paths_in(document.read_text())
    assert [path for path in paths if not list(ROOT.glob(path.rstrip("/")))] == []


@BY_NAME
def test_links_lead_somewhere(document: Path) -> None:
    broken = []
    for link in mentions.links_in(document.read_text()):
        file, _, anchor = link.partition("#")
        target = (document.parent / file) if file else document
        if not target.exists() or (
            anchor and anchor not in mentions.anchors_of(target.read_text())
        ):
            broken.append(link)
    assert broken == []


OPTIONS = {
    re.sub(r"\[\]|\(\w+\)", "", one)
    for one in re.findall(
        r"^\| `([\w.\[\]()]+)` \|",
        (ROOT / "docs" / "reference" / "configuration.md").read_text(),
        re.MULTILINE,
    )
}


@BY_NAME
def test_options_of_the_configuration_in_documents_exist(document: Path) -> None:
    """``part.option`` in inline code, for the parts of the configuration, is an option, a group of options or a secret's variable."""
    parts = {one.partition(".")[0] for one in OPTIONS if "." in one}
    groups = {one.rpartition(".")[0] for one in OPTIONS}
    text = mentions.without_generated(document.read_text())
    named = {
        f"{part}.{rest}"
        for part, rest in re.findall(r"`([a-z_]+)\.([a-z_.]+)(?:: [^`]*)?`", text)
        if part in parts and not rest.endswith(("py", "yaml", "svg"))
    }
    known = OPTIONS | groups | {one.removesuffix("_env") for one in OPTIONS}
    assert {one for one in named if one.removesuffix("_env") not in known} == set()


@BY_NAME
def test_asset_checks_in_documents_exist(document: Path) -> None:
    checks = set()
    for path in (ROOT / "assets").glob("*.py"):
        checks |= set(
            re.findall(r'^(?:CHECK|PROOF)_NAME = "(\w+)"', path.read_text(), re.MULTILINE)
        )
    named = re.findall(r"\bcheck `(\w+)`", document.read_text())
    assert sorted(set(named) - checks) == []


def test_the_site_has_every_page_in_its_navigation() -> None:
    def files(entries: list[object]) -> list[str]:
        found: list[str] = []
        for entry in entries:
            [value] = entry.values() if isinstance(entry, dict) else [entry]
            found += files(value) if isinstance(value, list) else [str(value)]
        return found

    navigation = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    pages = [str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")]
    assert sorted(files(navigation)) == sorted(pages)

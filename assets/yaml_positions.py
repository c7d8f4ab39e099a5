"""At which line and column of a YAML file is each value?

PyYAML's nodes carry line and column; its plain values do not. :func:`read_yaml` gives both: the
values as ordinary Python objects, and the position of each by its path.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

Key = str | int
KeyPath = tuple[Key, ...]


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """Line and column, both from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: where, under which key, and what to write instead."""

    position: Position
    path: KeyPath
    text: str

    def line(self, file: Path) -> str:
        """``file:line:column key: what is wrong``, as compilers print it."""
        where = f"{file}:{self.position.line}:{self.position.column}"
        return f"{where} {path_text(self.path) or 'the file'}: {self.text}"


@dataclass(slots=True)
class YamlFile:
    """A file's values, with the position of the key (``keys``) and of the value (``values``) of
    each path."""

    data: Any = None
    keys: dict[KeyPath, Position] = field(default_factory=dict)
    values: dict[KeyPath, Position] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def position(self, path: KeyPath, *, of_key: bool = False) -> Position:
        """The position of a value (or its key); of the nearest value around it where that does not
        exist."""
        if of_key and path in self.keys:
            return self.keys[path]
        while path not in self.values and path:
            path = path[:-1]
        return self.values.get(path, Position(1, 1))


def path_text(path: KeyPath) -> str:
    """``attributes.tables[0].name``."""
    text = ""
    for key in path:
        text += f"[{key}]" if isinstance(key, int) else f".{key}" if text else str(key)
    return text


def read_yaml(text: str) -> list[YamlFile]:
    """Read a file's YAML documents, at least one. What is no YAML, or has a key twice, is under
    ``problems``."""
    documents: list[YamlFile] = []
    try:
        for root in yaml.compose_all(text, Loader=yaml.SafeLoader):
            file = YamlFile()
            documents.append(file)
            file.data = _value(file, root, ())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = Position(mark.line + 1, mark.column + 1) if mark else Position(1, 1)
        problem = Problem(where, (), f"this is not YAML: {error.problem}")
        return [YamlFile(problems=[problem])]
    except yaml.YAMLError as error:
        return [YamlFile(problems=[Problem(Position(1, 1), (), f"this is not YAML: {error}")])]
    return documents or [YamlFile()]


def _value(file: YamlFile, node: yaml.Node, path: KeyPath) -> Any:
    file.values[path] = _position(node)
    if isinstance(node, yaml.SequenceNode):
        return [_value(file, child, (*path, index)) for index, child in enumerate(node.value)]
    if isinstance(node, yaml.MappingNode):
        return _mapping(file, node, path)
    return _construct(node)


def _mapping(file: YamlFile, node: yaml.MappingNode, path: KeyPath) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = str(_construct(key_node)) if isinstance(key_node, yaml.ScalarNode) else "?"
        here = (*path, key)
        if key in data:
            first = file.keys[here]
            file.problems.append(
                Problem(
                    _position(key_node),
                    here,
                    f"this key is repeated (first in line {first.line}); keep one",
                )
            )
            continue
        file.keys[here] = _position(key_node)
        data[key] = _value(file, value_node, here)
    return data


def _construct(node: yaml.Node) -> Any:
    loader = yaml.SafeLoader("")
    try:
        return loader.construct_object(node, deep=True)
    finally:
        loader.dispose()


def _position(node: yaml.Node) -> Position:
    return Position(node.start_mark.line + 1, node.start_mark.column + 1)

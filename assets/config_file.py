"""How is a source's configuration file read, and what is said of a wrong one?

The file is a Dagster component file (``defs.yaml``): ``type: assets.components.OracleCdc`` and,
under ``attributes``, the fields of :class:`assets.settings.ComponentConfig`. Three things differ
from the model: in place of secrets stand *names* of environment variables
(:mod:`assets.secret_fields`), relative paths are relative to the file, and values may be Dagster's
templates (``{{ env.LAKE }}``), which whoever has Dagster's context renders.

Every problem is reported at once, each with file, line, column, key and what to write.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from assets.secret_fields import ENV_SUFFIX, SECRET_FIELDS, secret_field, take_secrets
from assets.settings import ComponentConfig
from assets.yaml_positions import KeyPath, Problem, YamlFile, read_yaml
from cdc_core.errors import CdcError, ConfigError

COMPONENT_TYPE = "assets.components.OracleCdc"
ATTRIBUTES = "attributes"
TOP_LEVEL_KEYS = (
    "type",
    ATTRIBUTES,
    "template_vars_module",
    "requirements",
    "post_processing",
)
FILE_NAMES = ("defs.yaml", "defs.yml", "component.yaml")
_SQLITE_RELATIVE = re.compile(r"sqlite:///(?!/)(?!:memory:)(.+)\Z")
_ENV_NAME = re.compile(r"\benv\.([A-Za-z_]\w*)")
_TEMPLATE = re.compile(r"\{\{|\{%")

M = TypeVar("M", bound=BaseModel)
Render = Callable[[str], Any]
"""Gives a template's value; raises any exception, whose first line is then told, if it cannot."""


def load_config(
    path: Path,
    *,
    environ: Mapping[str, str] | None,
    render: Render | None = None,
    document: int | None = None,
) -> ComponentConfig:
    """Read a configuration file.

    Args:
        path: The file, or a folder with a ``defs.yaml`` in it.
        environ: Where secrets are looked up; None leaves them empty, which is enough to build
            definitions.
        render: Renders templates; without it a template is refused.
        document: Which of several YAML documents; its type is not looked at, since Dagster has
            found it by that. By default the only one that is a source.

    Raises:
        ConfigError: It cannot be read or is wrong; names every problem.
    """
    path = existing_file(path)
    file = _document(path, document)
    if not file.problems:
        _check_top_level(file, any_type=document is not None)
    if file.problems:
        raise _refusal(path, file.problems)
    problems = _render(file, render)
    attributes = file.data[ATTRIBUTES]
    problems += take_secrets(file, (ATTRIBUTES,), attributes, environ)
    config: ComponentConfig | None = None
    try:
        config = ComponentConfig.model_validate(attributes)
    except ValidationError as error:
        reported = {problem.path for problem in problems}
        found = [
            _problem(file, detail)
            for detail in error.errors(include_url=False, include_input=False)
            if not _follows_from_items(file, detail)
        ]
        problems += [problem for problem in found if problem.path not in reported]
    if problems or config is None:
        raise _refusal(path, problems)
    return absolute_paths(config, path.parent)


def needs_dagster(path: Path) -> bool:
    """Has the file something that only Dagster can give a meaning: templates, or a component type
    of the user's own?

    False also for a file that cannot be read; :func:`load_config` says why.
    """
    try:
        documents = read_yaml(existing_file(path).read_text(encoding="utf-8"))
    except (ConfigError, OSError, UnicodeDecodeError):
        return False
    return any(
        isinstance(file.data, dict)
        and (_has_template(file.data.get(ATTRIBUTES)) or _is_foreign(file.data.get("type")))
        for file in documents
        if not file.problems
    )


def existing_file(path: Path) -> Path:
    """The configuration file that a path names: itself, or the one in a folder.

    Raises:
        ConfigError: There is none.
    """
    names = [path / name for name in FILE_NAMES] if path.is_dir() else [path]
    for file in names:
        if file.is_file():
            return file
    raise ConfigError(
        "there is no configuration file",
        hint="Name one with --config FILE or the environment variable REDOLAKE_CONFIG; "
        "`redolake demo` creates a sample.",
        file=names[0],
    )


def _document(path: Path, number: int | None) -> YamlFile:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            "the configuration file cannot be read",
            hint="Name a YAML file in UTF-8 that this user may read.",
            file=path,
            reason=getattr(error, "strerror", None) or "it is not UTF-8",
        ) from error
    documents = read_yaml(text)
    if number is not None and number < len(documents):
        return documents[number]
    sources = [
        file
        for file in documents
        if isinstance(file.data, dict) and file.data.get("type") == COMPONENT_TYPE
    ]
    if len(sources) > 1:
        raise ConfigError(
            "the configuration file has several sources",
            hint="Dagster reads them all; for the command line, give each a separate file.",
            file=path,
            sources=len(sources),
        )
    return sources[0] if sources else documents[0]


def _is_foreign(kind: Any) -> bool:
    """Is it a component type of the user's own, and not ours misspelt?"""
    if not isinstance(kind, str) or "." not in kind or kind == COMPONENT_TYPE:
        return False
    return not difflib.get_close_matches(kind, [COMPONENT_TYPE], cutoff=0.8)


def _has_template(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_template, value.values()))
    if isinstance(value, list):
        return any(map(_has_template, value))
    return isinstance(value, str) and bool(_TEMPLATE.search(value))


def _render(file: YamlFile, render: Render | None) -> list[Problem]:
    """Put the values of templates in their places."""
    problems: list[Problem] = []

    def rendered(value: Any, path: KeyPath) -> Any:
        if isinstance(value, dict):
            return {key: rendered(inner, (*path, key)) for key, inner in value.items()}
        if isinstance(value, list):
            return [rendered(inner, (*path, index)) for index, inner in enumerate(value)]
        if not _has_template(value):
            return value
        if render is None:
            problems.append(Problem(file.position(path), path, "a template has no value here"))
            return value
        unset = [name for name in _ENV_NAME.findall(value) if name not in os.environ]
        if unset:  # Dagster would write None
            text = f"the environment variable {unset[0]} is not set: export {unset[0]}=… first"
            problems.append(Problem(file.position(path), path, text))
            return value
        try:
            found = render(value)
        except Exception as error:  # whatever a template's code raises is the file's problem
            reason = str(error).strip().splitlines()[-1:] or [type(error).__name__]
            text = f"this template cannot be rendered: {reason[0][:200]}"
            problems.append(Problem(file.position(path), path, text))
            return value
        return found

    file.data[ATTRIBUTES] = rendered(file.data[ATTRIBUTES], (ATTRIBUTES,))
    return problems


def _follows_from_items(file: YamlFile, detail: Any) -> bool:
    """A list that is too short because its items were refused."""
    return detail["type"] == "too_short" and bool(_value_at(file, detail["loc"]))


def _value_at(file: YamlFile, loc: tuple[str | int, ...]) -> Any:
    value = file.data[ATTRIBUTES]
    for key in loc:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def absolute_paths(config: ComponentConfig, folder: Path) -> ComponentConfig:
    """The configuration with its relative paths taken from ``folder``."""

    def absolute(text: str) -> str:
        return text if "://" in text else str(folder.resolve() / Path(text).expanduser())

    def absolute_in(model: M, *names: str) -> M:
        values = {name: getattr(model, name, None) for name in names}
        return model.model_copy(
            update={name: absolute(value) for name, value in values.items() if value is not None}
        )

    oracle = absolute_in(config.oracle, "config_dir", "wallet_location")
    if oracle.thick is not None:
        thick = absolute_in(oracle.thick, "lib_dir", "config_dir")
        oracle = oracle.model_copy(update={"thick": thick})
    views = absolute_in(config.lake.current_views, "duckdb")
    lake = absolute_in(config.lake, "path").model_copy(update={"current_views": views})
    url = config.state.url
    if found := _SQLITE_RELATIVE.match(url):
        url = f"sqlite:///{absolute(found[1])}"
    return config.model_copy(
        update={
            "oracle": oracle,
            "capture": absolute_in(config.capture, "folder"),
            "landing": absolute_in(config.landing, "path", "cache"),
            "lake": lake,
            "state": config.state.model_copy(update={"url": url}),
        }
    )


def attributes_json_schema() -> dict[str, Any]:
    """JSON schema of ``attributes``, for editors and ``dg``: with the names of variables in place
    of secrets."""
    schema = ComponentConfig.model_json_schema()
    models = {
        "oracle": "OracleConfig",
        "masks": "MaskConfig",
        "notifications": "NotificationConfig",
        "publish": "PublishConfig",
        "signals": "SignalConfig",
        "state": "StateConfig",
        "unity": "UnityConfig",
    }
    for field in SECRET_FIELDS:
        model = schema["$defs"][models[field.section]]
        if field.allowed_in_file:
            model["required"].remove(field.name)
        else:
            del model["properties"][field.name]
            model["required"] = [
                field.env_name if name == field.name else name for name in model.get("required", [])
            ]
        model["properties"][field.env_name] = {
            **(_NAMED_VARIABLES if field.is_map else {"type": "string"}),
            "title": field.env_name.replace("_", " ").title(),
            "description": f"Name of the environment variable that holds `{field.name}`.",
        }
    return schema


_NAMED_VARIABLES = {"type": "object", "additionalProperties": {"type": "string"}}


def _refusal(path: Path, problems: list[Problem]) -> ConfigError:
    problems = sorted(problems, key=lambda problem: problem.position)
    what = "a problem" if len(problems) == 1 else f"{len(problems)} problems"
    error = ConfigError(
        f"the configuration file has {what}",
        hint="Correct the lines that are listed, then run the same command again.",
    )
    return error.listing([problem.line(path) for problem in problems])


def _check_top_level(file: YamlFile, *, any_type: bool) -> None:
    data = file.data
    if not isinstance(data, dict):
        file.problems.append(
            Problem(
                file.position(()),
                (),
                f"write `type: {COMPONENT_TYPE}` and below it `{ATTRIBUTES}:`",
            )
        )
        return
    for key in data:
        if key not in TOP_LEVEL_KEYS:
            text = _unknown(key, TOP_LEVEL_KEYS)
            file.problems.append(Problem(file.position((key,), of_key=True), (key,), text))
    if not any_type and data.get("type") != COMPONENT_TYPE:
        file.problems.append(
            Problem(file.position(("type",)), ("type",), f"write `type: {COMPONENT_TYPE}`")
        )
    if not isinstance(data.get(ATTRIBUTES), dict):
        file.problems.append(
            Problem(
                file.position((ATTRIBUTES,)),
                (ATTRIBUTES,),
                "missing: put name, oracle, tables, landing, lake and state under it",
            )
        )


def _problem(file: YamlFile, detail: Any) -> Problem:
    """A pydantic error at its place in the file."""
    path = _path_in_file(file, detail["loc"])
    kind = detail["type"]
    if kind == "extra_forbidden":
        before = detail["loc"][-2] if len(detail["loc"]) > 1 else None
        known = _known_keys(path[1:-1], str(before) if before in ("local", "s3") else None)
        return Problem(file.position(path, of_key=True), path, _unknown(str(path[-1]), known))
    if kind == "missing":
        secret = secret_field(str(path[-2]), str(path[-1]))
        if secret is not None and not secret.allowed_in_file:
            path = (*path[:-1], secret.env_name)
        text = f"missing: add `{path[-1]}:`{_described(path[1:])}"
        return Problem(file.position(path[:-1], of_key=True), path, text)
    whole = path == (ATTRIBUTES,)
    return Problem(file.position(path, of_key=whole), path, _what_to_write(detail, path))


def _path_in_file(file: YamlFile, loc: tuple[str | int, ...]) -> KeyPath:
    """pydantic puts the tag of a tagged union into its paths; the file does not have it."""
    path: KeyPath = (ATTRIBUTES,)
    for index, key in enumerate(loc):
        last = index == len(loc) - 1
        if (*path, key) in file.values or last or not _is_tag(path, key):
            path = (*path, key)
    return path


def _is_tag(path: KeyPath, key: str | int) -> bool:
    return path == (ATTRIBUTES, "landing") and key in ("local", "s3")


def _what_to_write(detail: Any, path: KeyPath) -> str:
    kind, context = detail["type"], detail.get("ctx", {})
    error = context.get("error")
    if isinstance(error, CdcError):
        return str(error)
    if kind == "value_error":
        return str(error)
    if kind == "string_pattern_mismatch" and path == (ATTRIBUTES, "name"):
        return (
            "write a name of lower-case letters, digits and _ that starts with a letter, "
            "at most 40 characters"
        )
    if kind == "string_pattern_mismatch":
        return f"none of the forms that this option takes{_described_option(path[1:])}"
    if kind == "union_tag_invalid":
        return f"unknown kind {context['tag']!r}; write one of {context['expected_tags']}"
    if kind == "union_tag_not_found":
        return "missing: add `type: local` (a folder) or `type: s3`"
    return f"{_lowered(detail['msg'])}{_described(path[1:])}"


def _lowered(text: str) -> str:
    text = text.removeprefix("Input ").replace("valid tuple", "list").replace("Tuple", "list")
    text = re.sub(r"valid dictionary( or instance of \w+)?", "mapping of keys to values", text)
    return text[:1].lower() + text[1:]


def _described_option(path: KeyPath) -> str:
    """The description of the option at a path, or of the one whose entry the path is."""
    found = (_described(path[:end]) for end in range(len(path), 0, -1))
    return next(filter(None, found), "")


def _described(path: KeyPath) -> str:
    model: Any = _model_at(path[:-1])
    found = model.model_fields.get(str(path[-1])) if model else None
    if path and str(path[-1]).endswith(ENV_SUFFIX):
        return " — the name of the environment variable that holds it"
    if found is None or not found.description:
        return ""
    return " — " + " ".join(found.description.split()).replace("``", "`")


def _known_keys(path: KeyPath, tag: str | None) -> tuple[str, ...]:
    model = _model_at(path, tag)
    names = tuple(model.model_fields) if model else ()
    known: list[str] = []
    for name in names:
        secret = secret_field(str(path[-1]), name) if path else None
        if secret is None or secret.allowed_in_file:
            known.append(name)
        if secret is not None:
            known.append(secret.env_name)
    return tuple(known)


def _model_at(path: KeyPath, tag: str | None = None) -> type[BaseModel] | None:
    """The model whose fields stand under a path of the configuration; ``tag`` chooses among tagged
    ones."""
    model: type[BaseModel] = ComponentConfig
    for key in path:
        if isinstance(key, int):
            continue
        found = model.model_fields.get(key)
        inner = _models_in(found.annotation) if found else []
        if not inner:
            return None
        model = next((one for one in inner if _tag_of(one) == tag), inner[0])
    return model


def _tag_of(model: type[BaseModel]) -> object:
    kind = model.model_fields.get("type")
    return None if kind is None else kind.default


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in getattr(annotation, "__args__", ()) for model in _models_in(part)]


def _unknown(key: str, known: tuple[str, ...]) -> str:
    words = set(key.split("_"))
    near = [name for name in known if set(name.split("_")) == words]
    near += difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    meant = f"; did you mean `{near[0]}`?" if near else "."
    return f"unknown key{meant} Known here: {', '.join(known)}"

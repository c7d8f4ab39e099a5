"""How is a source's configuration file read, and what is said of a wrong one?

The file is a Dagster component file (``defs.yaml``): ``type: assets.components.OracleCdc`` and, under ``attributes``, the
fields of :class:`cdc_core.config.SourceConfig`. Two things differ from the model: in place of ``oracle.password`` stands
``oracle.password_env``, the *name* of an environment variable, and relative paths are relative to the file.

Every problem is reported at once, each with file, line, column, key and what to write.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, SecretStr, ValidationError

from assets.yaml_positions import KeyPath, Problem, YamlFile, read_yaml
from cdc_core.config import LocalLandingConfig, S3LandingConfig, SourceConfig
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
SECRET_KEY = "password"  # noqa: S105 - the name of a field
SECRET_ENV_KEY = "password_env"  # noqa: S105 - the name of a field
_SQLITE_RELATIVE = re.compile(r"sqlite:///(?!/)(?!:memory:)(.+)\Z")


def load_config(path: Path, *, environ: Mapping[str, str] | None) -> SourceConfig:
    """Read a configuration file.

    Args:
        path: The file, or a folder with a ``defs.yaml`` in it.
        environ: Where ``password_env`` is looked up; None leaves the password empty, which is enough to build definitions.

    Raises:
        ConfigError: It cannot be read or is wrong; names every problem.
    """
    path = _existing(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            "the configuration file cannot be read", hint=str(error), file=path
        ) from error
    file = read_yaml(text)
    if not file.problems:
        _check_top_level(file)
    if file.problems:
        raise _refusal(path, file.problems)
    attributes = file.data[ATTRIBUTES]
    problems = _take_password(file, attributes, environ)
    config: SourceConfig | None = None
    try:
        config = SourceConfig.model_validate(attributes)
    except ValidationError as error:
        problems += [
            _problem(file, detail)
            for detail in error.errors(include_url=False)
            if not (detail["type"] == "too_short" and detail["input"])  # its items are reported
        ]
    if problems or config is None:
        raise _refusal(path, problems)
    return absolute_paths(config, path.parent)


def absolute_paths(config: SourceConfig, folder: Path) -> SourceConfig:
    """The configuration with its relative paths taken from ``folder``."""

    def absolute(text: str) -> str:
        return text if "://" in text else str(folder.resolve() / Path(text).expanduser())

    landing: LocalLandingConfig | S3LandingConfig = config.landing
    if isinstance(landing, LocalLandingConfig):
        landing = landing.model_copy(update={"path": absolute(landing.path)})
    else:
        landing = landing.model_copy(update={"cache": absolute(landing.cache)})
    url = config.state.url
    if found := _SQLITE_RELATIVE.match(url):
        url = f"sqlite:///{absolute(found[1])}"
    return config.model_copy(
        update={
            "landing": landing,
            "lake": config.lake.model_copy(update={"path": absolute(config.lake.path)}),
            "state": config.state.model_copy(update={"url": url}),
        }
    )


def attributes_json_schema() -> dict[str, Any]:
    """JSON schema of ``attributes``, for editors and ``dg``."""
    schema = SourceConfig.model_json_schema()
    oracle = schema["$defs"]["OracleConfig"]
    oracle["properties"].pop(SECRET_KEY)
    oracle["properties"][SECRET_ENV_KEY] = {
        "type": "string",
        "title": "Password Env",
        "description": "Name of the environment variable that holds the password.",
    }
    oracle["required"] = [
        SECRET_ENV_KEY if name == SECRET_KEY else name for name in oracle["required"]
    ]
    return schema


def _existing(path: Path) -> Path:
    file = path / "defs.yaml" if path.is_dir() else path
    if not file.is_file():
        raise ConfigError(
            "there is no configuration file",
            hint="Name one with --config FILE or the environment variable REDOLAKE_CONFIG; "
            "`redolake demo` makes one to look at.",
            file=file,
        )
    return file


def _refusal(path: Path, problems: list[Problem]) -> ConfigError:
    problems = sorted(problems, key=lambda problem: problem.position)
    lines = "\n".join(f"  {problem.line(path)}" for problem in problems)
    what = "a problem" if len(problems) == 1 else f"{len(problems)} problems"
    return ConfigError(f"the configuration file has {what}:\n{lines}")


def _check_top_level(file: YamlFile) -> None:
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
    if data.get("type") != COMPONENT_TYPE:
        file.problems.append(
            Problem(file.position(("type",)), ("type",), f"write `type: {COMPONENT_TYPE}`")
        )
    if not isinstance(data.get(ATTRIBUTES), dict):
        file.problems.append(
            Problem(
                file.position((ATTRIBUTES,)),
                (ATTRIBUTES,),
                "missing: name, oracle, tables, landing, lake and state stand under it",
            )
        )


def _take_password(
    file: YamlFile, attributes: dict[str, Any], environ: Mapping[str, str] | None
) -> list[Problem]:
    """Put the password in place of the name of its variable."""
    oracle = attributes.get("oracle")
    if not isinstance(oracle, dict):
        return []
    path: KeyPath = (ATTRIBUTES, "oracle")
    if SECRET_KEY in oracle:
        here = (*path, SECRET_KEY)
        oracle.pop(SECRET_ENV_KEY, None)
        oracle[SECRET_KEY] = SecretStr("")
        return [
            Problem(
                file.position(here, of_key=True),
                here,
                f"no passwords in files: write `{SECRET_ENV_KEY}: NAME`, the name of an environment variable",
            )
        ]
    if SECRET_ENV_KEY not in oracle:
        return []
    here = (*path, SECRET_ENV_KEY)
    name = oracle.pop(SECRET_ENV_KEY)
    oracle[SECRET_KEY] = SecretStr("")
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        return [
            Problem(
                file.position(here),
                here,
                "write the name of an environment variable, for example ORACLE_PASSWORD",
            )
        ]
    if environ is None:
        return []
    if name not in environ:
        return [
            Problem(
                file.position(here),
                here,
                f"the environment variable {name} is not set: export {name}=… first",
            )
        ]
    oracle[SECRET_KEY] = SecretStr(environ[name])
    return []


def _problem(file: YamlFile, detail: Any) -> Problem:
    """A pydantic error at its place in the file."""
    path = _path_in_file(file, detail["loc"])
    kind = detail["type"]
    if kind == "extra_forbidden":
        before = detail["loc"][-2] if len(detail["loc"]) > 1 else None
        known = _known_keys(path[1:-1], str(before) if before in ("local", "s3") else None)
        return Problem(file.position(path, of_key=True), path, _unknown(str(path[-1]), known))
    if kind == "missing":
        if path[-1] == SECRET_KEY:
            path = (*path[:-1], SECRET_ENV_KEY)
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
    if kind == "string_pattern_mismatch":
        return (
            "write a name of lower-case letters, digits and _ that starts with a letter, "
            "at most 40 characters"
        )
    if kind == "union_tag_invalid":
        return f"unknown kind {context['tag']!r}; write one of {context['expected_tags']}"
    if kind == "union_tag_not_found":
        return "missing: add `type: local` (a folder) or `type: s3`"
    return f"{_lowered(detail['msg'])}{_described(path[1:])}"


def _lowered(text: str) -> str:
    text = text.removeprefix("Input ").replace("valid tuple", "list").replace("Tuple", "list")
    text = re.sub(r"valid dictionary( or instance of \w+)?", "mapping of keys to values", text)
    return text[:1].lower() + text[1:]


def _described(path: KeyPath) -> str:
    model: Any = _model_at(path[:-1])
    found = model.model_fields.get(str(path[-1])) if model else None
    if path and path[-1] == SECRET_ENV_KEY:
        return " — the name of the environment variable that holds the password"
    if found is None or not found.description:
        return ""
    return " — " + " ".join(found.description.split()).replace("``", "`")


def _known_keys(path: KeyPath, tag: str | None) -> tuple[str, ...]:
    model = _model_at(path, tag)
    names = tuple(model.model_fields) if model else ()
    return tuple(SECRET_ENV_KEY if name == SECRET_KEY else name for name in names)


def _model_at(path: KeyPath, tag: str | None = None) -> type[BaseModel] | None:
    """The model whose fields stand under a path of the configuration; ``tag`` chooses among tagged ones."""
    model: type[BaseModel] = SourceConfig
    for key in path:
        if isinstance(key, int):
            continue
        found = model.model_fields.get(key)
        inner = _models_in(found.annotation) if found else []
        if not inner:
            return None
        model = inner[0] if tag is None else {"local": inner[0]}.get(tag, inner[-1])
    return model


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

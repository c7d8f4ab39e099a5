"""How do secrets get into a configuration whose file must not hold any?

In place of a secret the file has the *name* of an environment variable: ``oracle.password_env`` for
``oracle.password``, and so on. A secret that stands in the file all the same is refused without
being shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from assets.yaml_positions import KeyPath, Problem, YamlFile
from cdc_core.config import split_url_password

ENV_SUFFIX = "_env"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class SecretField:
    """A field of the model, whether a file may hold it too (a database URL without a password),
    whether it is a map of several secrets by name, and the sections ``above`` its own."""

    section: str
    name: str
    allowed_in_file: bool = False
    is_map: bool = False
    above: tuple[str, ...] = ()

    @property
    def env_name(self) -> str:
        """The key to write in a file: ``password_env``."""
        return self.name + ENV_SUFFIX


SECRET_FIELDS = (
    SecretField("oracle", "password"),
    SecretField("oracle", "wallet_password"),
    SecretField("unity", "token", above=("lake", "catalog")),
    SecretField("masks", "salt"),
    SecretField("masks", "salts", is_map=True),
    SecretField("notifications", "webhook_secret"),
    SecretField("publish", "sasl_password"),
    SecretField("signals", "kafka_sasl_password"),
    SecretField("state", "password"),
    SecretField("state", "url", allowed_in_file=True),
)


def secret_field(section: str, name: str) -> SecretField | None:
    """The secret that a field of the model, or its key in a file, is about."""
    for field in SECRET_FIELDS:
        if field.section == section and name in (field.name, field.env_name):
            return field
    return None


def take_secrets(
    file: YamlFile,
    root: KeyPath,
    attributes: dict[str, Any],
    environ: Mapping[str, str] | None,
) -> list[Problem]:
    """Put the values of environment variables in place of their names; without ``environ`` they
    stay empty."""
    problems: list[Problem] = []
    for field in SECRET_FIELDS:
        path, section = (*field.above, field.section), attributes
        for key in path:
            found = section.get(key)
            section = found if isinstance(found, dict) else {}
        problems += _take(file, (*root, *path), section, field, environ)
    return problems


def _take(
    file: YamlFile,
    path: KeyPath,
    section: dict[str, Any],
    field: SecretField,
    environ: Mapping[str, str] | None,
) -> Iterator[Problem]:
    here, env_here = (*path, field.name), (*path, field.env_name)
    if field.name in section and not field.allowed_in_file:
        section.pop(field.env_name, None)
        given = section[field.name]
        section[field.name] = (
            "" if not field.is_map or not isinstance(given, dict) else dict.fromkeys(given, "")
        )
        yield Problem(
            file.position(here, of_key=True),
            here,
            f"no passwords in files: write `{field.env_name}: {'{name: VARIABLE}' if field.is_map else 'NAME'}`, the name of an environment variable",
        )
        return
    if field.env_name not in section:
        return
    name = section.pop(field.env_name)
    if field.name in section:
        yield Problem(
            file.position(env_here, of_key=True),
            env_here,
            f"`{field.name}` says the same; keep one of them",
        )
        return
    if field.is_map and isinstance(name, dict):
        section[field.name] = dict.fromkeys(name, "")
        for one, variable in name.items():
            found, problem = _of_variable(file, (*env_here, one), variable, environ)
            if problem:
                yield problem
            elif found is not None:
                section[field.name][one] = found
        return
    section[field.name] = {} if field.is_map else _placeholder(field, name)
    found, problem = _of_variable(file, env_here, name, environ)
    if problem:
        yield problem
    elif found is not None:
        section.update(_found(field, found))


def _of_variable(
    file: YamlFile, here: KeyPath, name: object, environ: Mapping[str, str] | None
) -> tuple[str | None, Problem | None]:
    """The value of the environment variable that a file names, None without ``environ``; or what is
    wrong."""
    if not isinstance(name, str) or not _VARIABLE.fullmatch(name):
        text = "write the name of an environment variable, for example ORACLE_PASSWORD"
        return None, Problem(file.position(here), here, text)
    if environ is not None and name not in environ:
        text = f"the environment variable {name} is not set: export {name}=… first"
        return None, Problem(file.position(here), here, text)
    return (None if environ is None else environ[name]), None


def _placeholder(field: SecretField, name: object) -> str:
    return f"environment://{name}" if field.name == "url" else ""


def _found(field: SecretField, value: str) -> dict[str, str]:
    """A URL may hold its password; the model keeps the two apart, so that one can be shown."""
    if field.name != "url":
        return {field.name: value}
    url, password = split_url_password(value)
    return {"url": url} if password is None else {"url": url, "password": password}

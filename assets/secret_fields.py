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
    """A field of the model, and whether a file may hold it too (a database URL without a
    password)."""

    section: str
    name: str
    allowed_in_file: bool = False

    @property
    def env_name(self) -> str:
        """The key to write in a file: ``password_env``."""
        return self.name + ENV_SUFFIX


SECRET_FIELDS = (
    SecretField("oracle", "password"),
    SecretField("oracle", "wallet_password"),
    SecretField("masks", "salt"),
    SecretField("notifications", "webhook_secret"),
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
        section = attributes.get(field.section)
        if isinstance(section, dict):
            problems += _take(file, (*root, field.section), section, field, environ)
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
        section[field.name] = ""
        yield Problem(
            file.position(here, of_key=True),
            here,
            f"no passwords in files: write `{field.env_name}: NAME`, the name of an environment variable",
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
    section[field.name] = _placeholder(field, name)
    if not isinstance(name, str) or not _VARIABLE.fullmatch(name):
        text = "write the name of an environment variable, for example ORACLE_PASSWORD"
        yield Problem(file.position(env_here), env_here, text)
    elif environ is not None and name not in environ:
        text = f"the environment variable {name} is not set: export {name}=… first"
        yield Problem(file.position(env_here), env_here, text)
    elif environ is not None:
        section.update(_found(field, environ[name]))


def _placeholder(field: SecretField, name: object) -> str:
    return f"environment://{name}" if field.name == "url" else ""


def _found(field: SecretField, value: str) -> dict[str, str]:
    """A URL may hold its password; the model keeps the two apart, so that one can be shown."""
    if field.name != "url":
        return {field.name: value}
    url, password = split_url_password(value)
    return {"url": url} if password is None else {"url": url, "password": password}

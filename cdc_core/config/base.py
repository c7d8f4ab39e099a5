"""What do all models of the configuration share?"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated
from urllib.parse import unquote

from pydantic import BaseModel, ConfigDict, Field

from cdc_core.errors import ConfigError

NAME_LENGTH_MAX = 40
Name = Annotated[str, Field(pattern=rf"^[a-z][a-z0-9_]{{0,{NAME_LENGTH_MAX - 1}}}$")]
SECRET_PARAMETER = re.compile(r"(?i)\b\w*passw(or)?d\s*=|\bpwd\s*=")
"""A password among the parameters of a connect string or URL."""
_URL_PASSWORD = re.compile(r"(?s)([\w+]+://[^:/@]*):(.*)@(.*)")


class ConfigModel(BaseModel):
    """Frozen, no unknown keys, documentation from the strings under the fields; errors never show a
    given value."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, hide_input_in_errors=True
    )


def split_url_password(url: str) -> tuple[str, str | None]:
    """A database URL without its password, and the password as it was meant; None where it has
    none."""
    found = _URL_PASSWORD.fullmatch(url)
    return (f"{found[1]}@{found[3]}", unquote(found[2])) if found else (url, None)


def checked(text: str, parse: Callable[[str], object]) -> str:
    """The text as it is, if it can be read.

    Raises:
        ValueError: It cannot: what pydantic gathers with the other problems.
    """
    try:
        parse(text)
    except ConfigError as error:
        raise ValueError(str(error)) from error
    return text


def dsn_without_secret(dsn: str) -> str:
    """The connect string as it is.

    Raises:
        ValueError: It holds a user name or a password.
    """
    if "@" in re.split(r"[(?]", dsn, maxsplit=1)[0] or SECRET_PARAMETER.search(dsn):
        raise ValueError(
            "it holds a user name or a password: write the connect string alone, the name under `user`, "
            "and the password into an environment variable that `password_env` names"
        )
    return dsn

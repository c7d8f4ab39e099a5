"""Where does a source keep what it knows?"""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

from pydantic import Field, SecretStr, field_validator

from cdc_core.config.base import SECRET_PARAMETER, ConfigModel, split_url_password


class StateConfig(ConfigModel):
    """The metadata store."""

    url: str
    """SQLAlchemy URL without a password: ``sqlite:////absolute/path.db`` or
    ``postgresql+psycopg2://user@host/db``. In a file, ``url_env`` may name an environment variable
    that holds the whole URL instead."""

    password: SecretStr | None = None
    """Password of the URL's user. In a file, name an environment variable under ``password_env``
    instead."""

    lease_seconds: Annotated[float, Field(gt=1)] = 60
    """A process that has not renewed its leases for this many seconds loses them to others."""

    @field_validator("url")
    @classmethod
    def _has_no_secret(cls, url: str) -> str:
        if split_url_password(url)[1] is not None or SECRET_PARAMETER.search(url):
            raise ValueError(
                "it holds a password: put the password into an environment variable that `password_env` names, "
                "or the whole URL into one that `url_env` names"
            )
        return url

    @property
    def url_with_password(self) -> str:
        """The URL to connect with. Never print it."""
        if self.password is None:
            return self.url
        scheme, _, rest = self.url.partition("://")
        user, at, host = rest.rpartition("@")
        secret = quote(self.password.get_secret_value(), safe="")
        return f"{scheme}://{user}:{secret}@{host}" if at else f"{scheme}://:{secret}@{rest}"

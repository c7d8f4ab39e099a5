"""No secret stands in a value that may be shown: what the model refuses, and how secrets reach a connection."""

from __future__ import annotations

import pytest
from pydantic import ValidationError
from sqlalchemy.engine import make_url

from cdc_core.config import OracleConfig, S3LandingConfig, StateConfig, split_url_password


@pytest.mark.parametrize(
    "dsn",
    [
        "cdc/hunter2@db:1521/ORCL",
        "cdc@db:1521/ORCL",
        "cdc/hunter2@(DESCRIPTION=(ADDRESS=(HOST=db)))",
        "tcps://db:2484/ORCL?wallet_password=hunter2",
        "(DESCRIPTION=(SECURITY=(MY_WALLET_PASSWORD = hunter2)))",
    ],
)
def test_a_dsn_with_a_user_or_a_password_is_refused_without_showing_it(dsn: str) -> None:
    with pytest.raises(ValidationError) as caught:
        OracleConfig.model_validate({"dsn": dsn, "user": "cdc", "password": "x"})
    assert "hunter2" not in str(caught.value)
    assert "password_env" in str(caught.value)


@pytest.mark.parametrize(
    "dsn",
    [
        "db:1521/ORCL",
        "tcps://db:2484/ORCL?wallet_location=/a@b",
        "(DESCRIPTION=(SECURITY=(MY_WALLET_DIRECTORY=/a@b)))",
        "hr_production",
    ],
)
def test_a_dsn_without_them_is_accepted(dsn: str) -> None:
    OracleConfig.model_validate({"dsn": dsn, "user": "cdc", "password": "x"})


@pytest.mark.parametrize(
    "url",
    [
        "postgresql+psycopg2://redolake:hunter2@db/x",
        "postgresql+psycopg2://redolake:hunter2/with@strange?signs@db/x",
        "postgresql+psycopg2://redolake@db/x?password=hunter2",
        "postgresql+psycopg2://redolake@db/x?sslpassword=hunter2",
    ],
)
def test_a_store_url_with_a_password_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(ValidationError) as caught:
        StateConfig(url=url)
    assert "hunter2" not in str(caught.value)
    assert "url_env" in str(caught.value)


def test_an_endpoint_with_a_key_is_refused() -> None:
    with pytest.raises(ValidationError, match="AWS_SECRET_ACCESS_KEY"):
        S3LandingConfig(bucket="b", cache="c", endpoint_url="https://key:hunter2@s3.example")


@pytest.mark.parametrize("password", ["plain", "p@ss/w:rd?&%", "ünï", ""])
def test_url_and_password_meet_only_to_connect(password: str) -> None:
    state = StateConfig.model_validate(
        {"url": "postgresql+psycopg2://redolake@db:5432/x?sslmode=require", "password": password}
    )
    assert password not in repr(state) or not password
    url = make_url(state.url_with_password)
    assert (url.username, url.password, url.host) == ("redolake", password, "db")
    assert split_url_password(state.url_with_password) == (state.url, password)

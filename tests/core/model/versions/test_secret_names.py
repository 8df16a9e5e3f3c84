"""Which environment variables look like secrets."""

from __future__ import annotations

import pytest

from pilotlight_core.model.versions.secret_names import HIDDEN_VALUE, masked, secret_names
from tests.work_done import growth


@pytest.mark.parametrize(
    "name",
    ["OPENAI_API_KEY", "HF_TOKEN", "DB_PASSWORD", "PGPASSWORD", "AWS_SECRET_ACCESS_KEY", "apiKey", "SIGNING_KEY_2",
     "GOOGLE_CREDENTIALS", "DB_PWD", "BASIC_AUTH", "SSH_PASSPHRASE", "KEY"],
)  # fmt: skip
def test_a_name_tells_a_secret(name: str) -> None:
    """As they are called at other services."""
    assert secret_names({name: "abc"}) == [name]


@pytest.mark.parametrize(
    "name", ["MODE", "TOKENIZERS_PARALLELISM", "MAX_TOKENS", "PWD", "KEYBOARD", "AUTHOR", "HF_HOME"]
)
def test_other_names_do_not(name: str) -> None:
    """Also such as have a part of those words."""
    assert secret_names({name: "1"}) == []


def test_an_address_with_a_password_is_one() -> None:
    """Whatever the variable is called; an address without one is none."""
    env = {"DB": "postgres://ada:lovelace@db/x", "URL": "https://example.com:8080/a@b", "REDIS": "redis://:pw@host"}
    assert secret_names(env) == ["DB", "REDIS"]


@pytest.mark.parametrize("part", ["a", "://", "://a:", "x@"])
def test_a_long_value_is_read_at_once(part: str) -> None:
    """The gateway reads them on its loop: eight times the length takes about eight times as long, and not 64 times."""
    assert growth(lambda length: secret_names({"TEXT": part * (length // len(part))}), 4_000, 32_000) < 20


def test_only_the_value_is_hidden() -> None:
    """An empty one hides nothing."""
    env = {"MODE": "fast", "HF_TOKEN": "hf_abc", "OTHER_TOKEN": ""}
    assert masked(env) == {"MODE": "fast", "HF_TOKEN": HIDDEN_VALUE, "OTHER_TOKEN": ""}
    assert env["HF_TOKEN"] == "hf_abc"

"""Where functions find values."""

from __future__ import annotations

from typing import Any

import pytest

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.secrets.secret_uses import (
    MOST_PLACES,
    MOST_SECRETS,
    check_secrets,
    secrets_named,
    secrets_of,
    uses_files,
)
from tests.builders.specs import function_spec


@pytest.mark.parametrize(
    "secrets",
    [
        {"TOKEN": "hf-token"},
        {"_x1": "A", "/run/secrets/key.pem": "A"},
        {f"V{number}": f"s{number % MOST_SECRETS}" for number in range(MOST_PLACES)},
    ],
)
def test_variables_and_files_are_places(secrets: dict[str, str]) -> None:
    """The same secret may be at several."""
    spec = function_spec(secrets=secrets)
    check_secrets(spec)

    assert secrets_of(spec) == secrets
    assert secrets_named(spec) == tuple(sorted(set(secrets.values())))


def test_most_functions_use_none() -> None:
    """And have no such field."""
    spec = function_spec()
    check_secrets(spec)

    assert secrets_of(spec) == {}
    assert secrets_named(spec) == ()


def test_files_are_told_apart() -> None:
    """A node needs a folder for them."""
    assert uses_files(function_spec(secrets={"A": "a", "/run/secrets/a": "a"}))
    assert not uses_files(function_spec(secrets={"A": "a"}))


@pytest.mark.parametrize(
    ("secrets", "why"),
    [
        ({}, "expected one or more"),
        ({"/etc/passwd": "a"}, "no variable"),
        ({"/run/secrets/../x": "a"}, "no variable"),
        ({"/run/secrets/": "a"}, "no variable"),
        ({"/run/secrets/a/b": "a"}, "no variable"),
        ({"with space": "a"}, "no variable"),
        ({"A\n": "a"}, "no variable"),
        ({"PL_FD": "a"}, "belong to the platform"),
        ({"PILOTLIGHT_API_KEY": "a"}, "belong to the platform"),
        ({"MODE": "a"}, "is in env too"),
        ({"A": "no.name"}, "no name of a secret"),
        ({"A": ""}, "no name of a secret"),
        ({f"V{number}": "a" for number in range(MOST_PLACES + 1)}, "at most 16 secrets at 32 places"),
        ({f"V{number}": f"s{number}" for number in range(MOST_SECRETS + 1)}, "at most 16 secrets at 32 places"),
    ],
)
def test_what_is_no_place_is_refused(secrets: dict[str, Any], why: str) -> None:
    """By the field's name."""
    with pytest.raises(BadInput, match=why) as caught:
        check_secrets(function_spec(secrets=secrets, env={"MODE": "x"}))
    assert caught.value.more["field"] == "secrets"

"""Environment variables that look like secrets, by name or by value: warned of at deploy, hidden in listings."""

from __future__ import annotations

import re
from collections.abc import Mapping

HIDDEN_VALUE = "***"
_NAME = re.compile(
    r"SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|(API|ACCESS|PRIVATE|SIGNING)_?KEY|(^|_)(KEY|TOKEN|PWD|AUTH)$"
)
_VALUE = re.compile(r"://[^/\s:@]*:[^/\s@]+@")
"""An address with a password, as of a database. It begins with what is rare: a search takes linear time."""
DIRECTORIES = ("PWD", "OLDPWD")


def secret_names(env: Mapping[str, str]) -> list[str]:
    """The names of the variables that look like secrets, in order."""
    return [name for name, value in env.items() if value and _is_secret(name, value)]


def masked(env: Mapping[str, str]) -> dict[str, str]:
    """`env` with HIDDEN_VALUE in the place of what looks like a secret."""
    hidden = set(secret_names(env))
    return {name: HIDDEN_VALUE if name in hidden else value for name, value in env.items()}


def _is_secret(name: str, value: str) -> bool:
    named = name not in DIRECTORIES and _NAME.search(name.upper()) is not None
    return named or _VALUE.search(value) is not None

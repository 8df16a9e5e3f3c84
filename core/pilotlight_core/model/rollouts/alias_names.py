"""What an alias may be called."""

from __future__ import annotations

import re

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.ids import END, NAME, VERSION_PIN, check_name

VERSION_LIKE = re.compile(r"v[0-9]+|ver_.*", re.IGNORECASE)
ALIAS_PATTERN = f"^(?![vV][0-9]+{END})(?![vV][eE][rR]_){NAME.pattern}{END}"
"""The same for schemas."""


def check_alias(name: str) -> str:
    """`name`, if an alias may be called so.

    Raises:
        BadInput: it is no name, or it looks like a version: `@v7` would mean something else once v7 is deployed.
    """
    check_name(name, "alias")
    if VERSION_PIN.fullmatch(name) or VERSION_LIKE.fullmatch(name):
        raise BadInput(
            f"An alias cannot be called {name!r}, which looks like a version: choose a word, such as prod.",
            field="alias",
        )
    return name

"""Names of models: what clients of OpenAI's API send as `model`.

A function is served under names that its tenant chooses, such as `acme/tiny-1.5`. A name is no ref: it may have
slashes, dots and colons, and is a tenant's own, so that two tenants may choose the same one.
"""

from __future__ import annotations

import re
from typing import Any

MODEL_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.+-]|[/:](?=[A-Za-z0-9])){0,127}")
"""Parts of letters, digits and ._+- with single slashes or colons between them: it is part of an address too."""
MOST_NAMES = 16
"""Of one function."""
MOST_MODELS = 1_000
"""Of one tenant."""
ADAPTER = ":"
"""Between the name of a model and that of an adapter on it."""
EXPECTED = (
    "1 to 128 letters, digits and characters of ._+- in parts with single slashes or colons between them, such as "
    '"acme/tiny-1.5"'
)


def is_model_name(name: Any) -> bool:
    """Whether a function may be served under it."""
    return isinstance(name, str) and MODEL_NAME.fullmatch(name) is not None


def model_names_fault(names: Any) -> str:
    """Why a function cannot be served under these names; "": it can."""
    if not isinstance(names, tuple | list) or not names:
        return 'expected a name such as "acme/tiny-1.5", or several'
    if len(names) > MOST_NAMES:
        return f"{len(names)} names are too many: expected at most {MOST_NAMES}"
    for name in names:
        if not is_model_name(name):
            return f"{name!r:.150} is no name of a model: expected {EXPECTED}"
    if len(set(names)) < len(names):
        return "a name is there twice"
    return ""


def model_digest(name: str) -> str:
    """What stands for a name where neither slashes nor dots may be: in the keys of records."""
    import hashlib  # who imports pilotlight does not wait for it

    return hashlib.sha256(name.encode()).hexdigest()[:32]


def adapter_name(name: str) -> tuple[str, str]:
    """`name:adapter` in its two parts; the second is "" if there is no colon."""
    base, colon, adapter = name.rpartition(ADAPTER)
    return (base, adapter) if colon else (name, "")

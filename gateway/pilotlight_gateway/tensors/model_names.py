"""Models by their names: `app.function`, `app.Class.method`, `tenant:app.function`, each with a version."""

from __future__ import annotations

import re
from typing import NamedTuple

from pilotlight_core.model.errors import BadInput

NUMBER = re.compile(r"[1-9][0-9]{0,8}")
LONGEST_MODEL = 512


class ModelName(NamedTuple):
    """What a model's name stands for."""

    ref: str
    """Of the function, with its version if one is named."""
    method: str | None = None
    """Of a class; None: the only one."""


def read_model(name: str, version: str = "") -> ModelName:
    """The function and method that a model's name and version say.

    Raises:
        BadInput: the name has two versions, or is far too long. What else is wrong shows when it is looked up.
    """
    if len(name) + len(version) > LONGEST_MODEL:
        raise BadInput(f"model: a name has at most {LONGEST_MODEL} characters.", field="model")
    whole, _, pin = name.partition("@")
    if pin and version:
        raise BadInput("model: the version stands in the name and beside it: name it once.", field="model")
    pin = pin or (f"v{version}" if NUMBER.fullmatch(version) else version)
    owner, colon, path = whole.rpartition(":")
    app, *rest = path.split(".")
    method = ".".join(rest[1:]) if len(rest) > 1 else None
    ref = f"{owner}{colon}{app}" + (f".{rest[0]}" if rest else "") + (f"@{pin}" if pin else "")
    return ModelName(ref, method)

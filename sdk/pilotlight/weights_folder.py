"""Where a function finds its weights."""

from __future__ import annotations

import os
from pathlib import Path

from pilotlight.definitions.errors import Misuse

MODELS_VARIABLE = "PILOTLIGHT_MODELS"
"""In containers: the folder of all artifacts and weights of the function."""
LOCAL_VARIABLE = "PILOTLIGHT_WEIGHTS"
"""Elsewhere: a folder with a folder for each name."""


def weights(name: str) -> Path:
    """Return the folder of weights that `weights=[name]` gives a function: read-only, the same for all containers.

    Outside of a container it is the folder `name` of $PILOTLIGHT_WEIGHTS, if that is set.

    Raises:
        Misuse: if there are none of that name, or there is no folder of weights here.
    """
    for variable in (MODELS_VARIABLE, LOCAL_VARIABLE):
        if root := os.environ.get(variable):
            return _below(Path(root), name, variable)
    raise Misuse(
        f"weights({name!r}): there are weights in containers only. To run this here, set {LOCAL_VARIABLE} to a folder "
        f"that has {name}/ in it.",
        field="weights",
    )


def _below(root: Path, name: str, variable: str) -> Path:
    folder = root / name
    if name and "/" not in name and name not in (".", "..") and folder.is_dir():
        return folder
    known = ", ".join(sorted(one.name for one in root.iterdir() if one.is_dir())) if root.is_dir() else ""
    how = f'write weights=["{name}"] at the function' if variable == MODELS_VARIABLE else f"make {root}/{name}"
    there = f"there are none of that name here (there are: {known or 'none'})"
    raise Misuse(f"weights({name!r}): {there}: {how}.", field="weights")

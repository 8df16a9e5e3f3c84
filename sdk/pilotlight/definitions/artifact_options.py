"""Artifacts: what a function needs beside its code, such as the weights of a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from pilotlight.definitions.errors import OptionError
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.ids import check_name
from pilotlight_core.model.spec import ArtifactKind

KINDS = tuple(kind.value for kind in ArtifactKind)


class Artifact(msgspec.Struct, frozen=True):
    """Files that containers of a function have read-only, in the folder `name` of $PILOTLIGHT_MODELS.

    They are no part of the bundle, and of its limits. What is stored is not sent again.

    Raises:
        OptionError: naming the field.
    """

    kind: Literal["weights", "tokenizer", "adapter", "config", "sbom"]
    """What it is; it is shown, and changes nothing yet."""
    name: str
    path: str
    """A file or folder, from the folder of the module that names it. Read by `pilotlight deploy` alone."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise OptionError(f"Artifact(kind={self.kind!r}): expected one of {', '.join(KINDS)}.", field="artifacts")
        try:
            check_name(self.name, "name")
        except BadInput as error:
            raise OptionError(f"Artifact: {error.detail}", field="artifacts") from None
        if not isinstance(self.path, str) or not self.path:
            raise OptionError(f"Artifact(path={self.path!r}): expected a file or folder.", field="artifacts")


def artifacts_of(options: Mapping[str, Any]) -> tuple[Artifact, ...]:
    """Return the Artifacts among the options of a function.

    Raises:
        OptionError: if `artifacts` is no list of them, or two have one name.
    """
    value = options.get("artifacts", ())
    if not isinstance(value, list | tuple) or not all(isinstance(one, Artifact) for one in value):
        raise OptionError(
            f'artifacts={value!r}: expected a list such as [Artifact("weights", "tiny", "models/tiny")].',
            field="artifacts",
        )
    names = [one.name for one in value]
    if twice := [name for name in names if names.count(name) > 1]:
        raise OptionError(f"artifacts: two are called {twice[0]!r}.", field="artifacts")
    return tuple(value)

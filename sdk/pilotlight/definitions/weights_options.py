"""`weights=`: the weights of a function that were pushed, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pilotlight.definitions.errors import OptionError
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.versions.pushed_weights import parse_weights


def weights_of(options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the weights among the options of a function, each `name` or `name@digest`; none if they are a text.

    Raises:
        OptionError: if one is no such name, or two are alike.
    """
    value = options.get("weights", ())
    if isinstance(value, str):
        return ()  # a name by which nodes are preferred
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
        raise OptionError(
            f'weights={value!r}: expected a list of names such as ["llama"] or ["llama@3f9a0c1d"].', field="weights"
        )
    try:
        names = [parse_weights(one).name for one in value]
    except BadInput as error:
        raise OptionError(error.detail, field="weights") from None
    if twice := [name for name in names if names.count(name) > 1]:
        raise OptionError(f"weights: {twice[0]!r} is named twice.", field="weights")
    return tuple(value)

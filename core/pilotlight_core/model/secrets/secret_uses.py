"""Which secrets a function uses, and where its code finds their values."""

from __future__ import annotations

import re

from msgspec import UNSET

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.ids import NAME
from pilotlight_core.model.spec import FunctionSpec

MOST_SECRETS = 16
"""Of one function: all values go in one message."""
MOST_PLACES = 32
"""Variables and files of one function."""
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
FILE = re.compile(r"/run/secrets/[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}")
PLATFORM_VARIABLES = ("PL_", "PILOTLIGHT_")
"""Names that begin so belong to the platform."""


def secrets_of(spec: FunctionSpec) -> dict[str, str]:
    """The place of each value, an environment variable or a file, and the name of the secret."""
    return {} if spec.secrets is UNSET else spec.secrets


def secrets_named(spec: FunctionSpec) -> tuple[str, ...]:
    """The names of the secrets that it uses, each once, sorted."""
    return tuple(sorted(set(secrets_of(spec).values())))


def is_file(place: str) -> bool:
    """Whether a place is a file's path, and no variable."""
    return place.startswith("/")


def uses_files(spec: FunctionSpec) -> bool:
    """Whether some value is to be a file."""
    return any(map(is_file, secrets_of(spec)))


def check_secrets(spec: FunctionSpec) -> None:
    """Refuse places of secrets that there cannot be.

    Raises:
        BadInput: naming the field.
    """
    uses = secrets_of(spec)
    if spec.secrets == {}:
        raise _wrong(spec, "expected one or more, or no such field")
    if len(uses) > MOST_PLACES or len(set(uses.values())) > MOST_SECRETS:
        raise _wrong(spec, f"expected at most {MOST_SECRETS} secrets at {MOST_PLACES} places")
    for place, name in uses.items():
        if not (FILE if is_file(place) else VARIABLE).fullmatch(place):
            raise _wrong(spec, f"{place!r:.100} is no variable such as HF_TOKEN, and no file such as /run/secrets/key")
        if place.startswith(PLATFORM_VARIABLES):
            raise _wrong(spec, f"{place}: names with {' or '.join(PLATFORM_VARIABLES)} belong to the platform")
        if place in spec.env:
            raise _wrong(spec, f"{place} is in env too")
        if not NAME.fullmatch(name):
            raise _wrong(
                spec, f"{name!r:.100} is no name of a secret: expected letters, digits, '_' or '-', 63 at most"
            )


def _wrong(spec: FunctionSpec, why: str) -> BadInput:
    return BadInput(f"{spec.name}: secrets: {why}.", field="secrets")

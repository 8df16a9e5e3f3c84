"""What an operator hands to a host that is to join: the token, and behind it the public keys that its agent trusts.

The keys are put there on the operator's machine, and taken off by the host before it shows the token to a gateway: no
gateway has a say in whom agents trust. `pl_join_…_….KEY.KEY`, each key in base 64 for URLs, which has no dot.
"""

from __future__ import annotations

import base64
from typing import NamedTuple

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.versions.public_keys import PUBLIC_BYTES

MOST_TRUSTED = 8
"""Keys: the operator's and those it replaces."""


class JoinText(NamedTuple):
    token: str
    """For a gateway."""
    trusted: tuple[bytes, ...] = ()
    """32 bytes each."""

    def __str__(self) -> str:
        return ".".join((self.token, *(base64.urlsafe_b64encode(key).decode().rstrip("=") for key in self.trusted)))


def parse_join_text(text: str) -> JoinText:
    """Its parts.

    Raises:
        BadInput: what stands behind the token are no keys.
    """
    token, *parts = text.split(".")
    try:
        keys = tuple(base64.b64decode(part + "=", altchars=b"-_", validate=True) for part in parts)
    except ValueError:
        keys = (b"",)
    if len(keys) > MOST_TRUSTED or any(len(key) != PUBLIC_BYTES for key in keys):
        raise BadInput(
            "token: behind it stand no public keys; it must be used as 'node token' printed it.", field="token"
        )
    return JoinText(token, keys)

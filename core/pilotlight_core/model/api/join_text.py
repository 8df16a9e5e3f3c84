"""What an operator hands to a host that is to join: the token, and behind it the public keys that its agent trusts.

The keys are put there on the operator's machine, and taken off by the host before it shows the token to a gateway: no
gateway has a say in whom agents trust. `pl_join_…_….KEY.KEY`, each key in base 64 for URLs, which has no dot.
"""

from __future__ import annotations

import base64
import re
from typing import NamedTuple

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.versions.public_keys import PUBLIC_BYTES

JOIN_TOKEN = re.compile(r"pl_join_([0-9a-z]{8})_([0-9A-Za-z_-]{40})")
"""Its id and its secret, as gateways make them; no dot, behind which keys would stand."""
MOST_TRUSTED = 8
"""Keys: the operator's and those it replaces."""


class JoinText(NamedTuple):
    token: str
    """For a gateway."""
    trusted: tuple[bytes, ...] = ()
    """32 bytes each."""

    def __str__(self) -> str:
        if "." in self.token:
            raise BadInput("token: it has a dot, and what stands behind one counts as a key.", field="token")
        return ".".join((self.token, *(base64.urlsafe_b64encode(key).decode().rstrip("=") for key in self.trusted)))


def check_join_token(text: str) -> str:
    """A token as a gateway answered it, before keys are put behind it: no gateway may have put some there itself.

    Raises:
        BadInput: it is none.
    """
    if JOIN_TOKEN.fullmatch(text) is None:
        raise BadInput("token: what the gateway answers is none. Do not use it; is this your gateway?", field="token")
    return text


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

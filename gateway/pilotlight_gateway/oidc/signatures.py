"""Whether a token was signed with a key, by joserfc. It is loaded with the first token: a gateway without any pays
nothing for it."""

from __future__ import annotations

import warnings
from functools import lru_cache
from typing import Any

from pilotlight_gateway.oidc.jwks import SignatureKey
from pilotlight_gateway.oidc.token_text import SignedToken

KEYS_AT_HAND = 256
"""That are not read anew for each token."""


def load_verifier() -> None:
    """Load what verifies, which takes 0.1 s and is for a thread."""
    import joserfc.jws  # noqa: F401


def is_signed_by(token: SignedToken, key: SignatureKey) -> bool:
    """Whether `key` has signed the token by the algorithm that it names; candidates of other kinds never have."""
    from joserfc.errors import JoseError, SecurityWarning
    from joserfc.jws import JWSRegistry, deserialize_compact

    registry = JWSRegistry(algorithms=[token.algorithm], strict_check_header=False)
    registry.max_header_length = 4_096
    registry.max_signature_length = 2_048
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SecurityWarning)  # of a name: EdDSA is the same as Ed25519
        try:
            made = _imported(tuple(key.members.items()))
            deserialize_compact(token.text, made, algorithms=[token.algorithm], registry=registry)
        except (JoseError, ValueError, TypeError):
            return False
    return True


@lru_cache(KEYS_AT_HAND)
def _imported(members: tuple[tuple[str, str], ...]) -> Any:
    from joserfc.jwk import JWKRegistry

    return JWKRegistry.import_key(dict(members))

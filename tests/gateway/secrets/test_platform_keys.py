"""How bytes are sealed by a key, and the platform's key in memory."""

from __future__ import annotations

import os

import pytest

from pilotlight_gateway.secrets.platform_keys import (
    KEY_BYTES,
    MemoryPlatformKey,
    NoPlatformKey,
    PlatformKeyDown,
    open_bytes,
    seal_bytes,
)


def test_what_is_sealed_opens_with_the_same_key_and_context() -> None:
    """And with no other."""
    key = os.urandom(KEY_BYTES)
    sealed = seal_bytes(key, b"data", b"for this")

    assert open_bytes(key, sealed, b"for this") == b"data"
    for other, context in ((os.urandom(KEY_BYTES), b"for this"), (key, b"for that")):
        with pytest.raises(ValueError, match="sealed by another key"):
            open_bytes(other, sealed, context)
    with pytest.raises(ValueError, match="was changed"):
        open_bytes(key, sealed[:-1] + bytes([sealed[-1] ^ 1]), b"for this")


async def test_the_key_in_memory_does_as_tests_want() -> None:
    """It is another tenant's for no one, away, or refused."""
    key = MemoryPlatformKey()
    sealed = await key.seal("acme", b"data key")

    assert await key.open("acme", sealed) == b"data key"
    with pytest.raises(NoPlatformKey):
        await key.open("rival", sealed)
    key.down = True
    with pytest.raises(PlatformKeyDown):
        await key.identity(create=False)
    key.down, key.refused = False, True
    with pytest.raises(NoPlatformKey):
        await key.open("acme", sealed)

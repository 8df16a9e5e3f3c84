"""Names of stored prefixes: a chain of hashes, one for each full block of tokens.

Two sequences share a block only if all before it is equal too: tokens, the tenant's salt, the adapter with its content,
and the model's version. Without the adapter in the name, sequences of one adapter would read what another one stored.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Sequence as Seq

HASH_BYTES = 16
"""128 bits: nobody finds two prefixes of one name, and within a salt a tenant harms itself only."""


def prefix_root(*, salt: str, adapter: str, adapter_digest: str, model_version: str) -> bytes:
    """What a chain begins with: nothing is shared between sequences whose roots differ."""
    digest = hashlib.blake2b(digest_size=HASH_BYTES)
    for part in (salt, adapter, adapter_digest, model_version):
        raw = part.encode()
        digest.update(len(raw).to_bytes(8, "little"))
        digest.update(raw)
    return digest.digest()


def next_hash(parent: bytes, tokens: Seq[int]) -> bytes:
    """The name of the block that holds `tokens`, after the one with the name `parent`."""
    return hashlib.blake2b(array("q", tokens).tobytes(), key=parent, digest_size=HASH_BYTES).digest()

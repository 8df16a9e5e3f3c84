"""How a blob is sealed: by a key of its own, in segments, under a name that tells nothing.

A tenant has one key of 32 bytes. Two are derived from it (HKDF-SHA256): one that seals names, and for each blob, by its
tenant and digest, one that seals that blob. Whoever is given a blob's key reads that blob and no other.

A sealed blob begins with a head, which names this format and has 32 random bytes. Key and random bytes derive the key
of this one writing, so that no two writings share a nonce, whatever is written. Then come segments of 64 KiB, each
sealed by AES-256-GCM (16 bytes more) with its number and whether it is the last as the nonce, and head, tenant and
digest as associated data. So a blob that was cut, lengthened, moved, or whose segments were exchanged, does not open,
and its beginning opens without the rest. (The construction is STREAM, Hoang et al. 2015.)

The stored name is the digest of the content, sealed deterministically (AES-SIV, RFC 5297): the same content of one
tenant is one blob, that of two tenants has two names of which nobody sees that they belong together, and whoever reads
names cannot ask for a content whether it is there.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator

from pilotlight_core.host.blobs.blob_port import BlobChanged, BlobContent, pieces
from pilotlight_core.host.blobs.whole_reads import BlobSource

KEY_BYTES = 32
SEGMENT = 64 * 1024
TAG = 16
SALT = 32
MAGIC = b"pilotlight sealed blob 1\n"
HEAD = len(MAGIC) + SALT
WHOLE = SEGMENT + TAG
AT_ONCE = 16
"""Segments of one piece: 1 MiB."""
SEALED_NAME = re.compile(r"[0-9a-f]{96}")


class BlobKey:
    """A tenant's key of blobs."""

    def __init__(self, tenant: str, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESSIV

        self.tenant = tenant
        self._key = key
        self._context = [b"pilotlight blob name 1", tenant.encode()]
        self._names = AESSIV(_derived(key, b"pilotlight blob names 1\0" + tenant.encode(), length=64))

    def name(self, sha256: str) -> str:
        """Under which the blob with this digest is stored."""
        return self._names.encrypt(bytes.fromhex(sha256), self._context).hex()

    def digest(self, name: str) -> str:
        """The digest of the blob with this name; "": it is no name under this key."""
        from cryptography.exceptions import InvalidTag

        if not SEALED_NAME.fullmatch(name):
            return ""
        try:
            return self._names.decrypt(bytes.fromhex(name), self._context).hex()
        except InvalidTag:
            return ""

    def of(self, sha256: str) -> bytes:
        """The key of one blob."""
        return _derived(self._key, b"pilotlight blob 1\0" + _bound(self.tenant, sha256))


class _Segments:
    """Seals and opens the segments of one writing, in order."""

    def __init__(self, key: bytes, tenant: str, sha256: str, head: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._aead = AESGCM(_derived(key, b"pilotlight blob segments 1", salt=head[len(MAGIC) :]))
        self._context = head + _bound(tenant, sha256)
        self._sha256 = sha256
        self._number = 0

    def seal(self, segment: bytes | bytearray | memoryview, *, is_last: bool) -> bytes:
        return self._aead.encrypt(self._nonce(is_last), segment, self._context)

    def open(self, segment: bytes | bytearray | memoryview, *, is_last: bool) -> bytes:
        from cryptography.exceptions import InvalidTag

        try:
            return self._aead.decrypt(self._nonce(is_last), segment, self._context)
        except InvalidTag:
            raise changed(self._sha256) from None

    def _nonce(self, is_last: bool) -> bytes:
        nonce = self._number.to_bytes(11, "big") + bytes([is_last])
        self._number += 1
        return nonce


async def sealed(key: bytes, tenant: str, sha256: str, content: BlobContent) -> AsyncIterator[bytes]:
    """What is stored of a content, by the blob's key, in pieces of about 1 MiB."""
    head = MAGIC + os.urandom(SALT)
    segments, waiting, out = _Segments(key, tenant, sha256, head), bytearray(), [head]
    async for piece in pieces(content):
        waiting += piece
        whole = max(0, len(waiting) - 1) // SEGMENT  # one byte at least stays for the last
        with memoryview(waiting) as view:
            for start in range(0, whole * SEGMENT, SEGMENT):
                out.append(segments.seal(view[start : start + SEGMENT], is_last=False))
                if len(out) >= AT_ONCE:
                    yield b"".join(out)
                    out.clear()
        del waiting[: whole * SEGMENT]
    out.append(segments.seal(waiting, is_last=True))
    yield b"".join(out)


async def opened(key: bytes, tenant: str, sha256: str, stored: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The content of what is stored, in pieces of at most 1 MiB.

    Raises:
        BlobChanged: it is not what was sealed. What came before it was.
    """
    segments: _Segments | None = None
    waiting = bytearray()
    async for piece in stored:
        waiting += piece
        if segments is None:
            if len(waiting) < HEAD:
                continue
            segments = _begun(key, tenant, sha256, bytes(waiting[:HEAD]))
            del waiting[:HEAD]
        while len(waiting) > WHOLE:
            ready = min((len(waiting) - 1) // WHOLE, AT_ONCE) * WHOLE
            with memoryview(waiting) as view:
                found = [segments.open(view[at : at + WHOLE], is_last=False) for at in range(0, ready, WHOLE)]
            del waiting[:ready]
            yield b"".join(found)
    if segments is None:
        raise changed(sha256)
    if last := segments.open(waiting, is_last=True):
        yield last


class OpenedSource:
    """The content of what is stored, for one thread. `readinto` raises BlobChanged: it is not what was sealed.

    What came before that was.
    """

    def __init__(self, key: bytes, tenant: str, sha256: str, stored: BlobSource) -> None:
        self._bound = key, tenant, sha256
        self._stored = stored
        self._segments: _Segments | None = None
        self._next = b""
        """The segment that is opened next: whether it is the last is known once the one after it is read."""
        self._opened = memoryview(b"")
        self._is_over = False

    def readinto(self, buffer: memoryview, /) -> int:
        if self._segments is None:
            self._segments = _begun(*self._bound, self._exactly(HEAD))
            self._next = self._exactly(WHOLE)
        while not self._opened and not self._is_over:
            following = self._exactly(WHOLE) if len(self._next) == WHOLE else b""
            self._opened = memoryview(self._segments.open(self._next, is_last=not following))
            self._next, self._is_over = following, not following
        count = min(len(buffer), len(self._opened))
        buffer[:count] = self._opened[:count]
        self._opened = self._opened[count:]
        return count

    def _exactly(self, size: int) -> bytes:
        """So many bytes; fewer at the end."""
        found, have = memoryview(bytearray(size)), 0
        while have < size and (count := self._stored.readinto(found[have:])):
            have += count
        return bytes(found[:have])


def opened_head(key: bytes, tenant: str, sha256: str, beginning: bytes, size: int) -> bytes:
    """At most the first `size` bytes of a content, from the first `length_for(size)` of what is stored.

    Raises:
        BlobChanged: it is not what was sealed.
    """
    segments, found = _begun(key, tenant, sha256, beginning[:HEAD]), bytearray()
    is_whole = len(beginning) < length_for(size)
    for at in range(HEAD, max(len(beginning), HEAD + 1), WHOLE):
        if len(found) >= size:
            break
        segment = beginning[at : at + WHOLE]
        found += segments.open(segment, is_last=is_whole and at + len(segment) == len(beginning))
    return bytes(found[:size])


def length_for(size: int) -> int:
    """How much of what is stored is read for the first `size` bytes: a byte beyond their segments tells the last."""
    return HEAD + max(1, -(-size // SEGMENT)) * WHOLE + 1


def content_size(stored: int) -> int:
    """The size of the content of which so many bytes are stored."""
    segments = max(1, -(-(stored - HEAD) // WHOLE))
    return max(0, stored - HEAD - segments * TAG)


def changed(sha256: str) -> BlobChanged:
    return BlobChanged(f"The blob {sha256} is not what was sealed: it was changed in its store, or sealed by another.")


def _begun(key: bytes, tenant: str, sha256: str, head: bytes) -> _Segments:
    if len(head) < HEAD or not head.startswith(MAGIC):
        raise changed(sha256)
    return _Segments(key, tenant, sha256, head)


def _bound(tenant: str, sha256: str) -> bytes:
    return f"{tenant}\0{sha256}".encode()


def _derived(key: bytes, info: bytes, *, length: int = KEY_BYTES, salt: bytes | None = None) -> bytes:
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(algorithm=SHA256(), length=length, salt=salt, info=info).derive(key)

"""The interface of blob stores.

A blob is immutable and named by the sha256 of its content, in lower-case hexadecimal. The same content of two tenants
is two blobs, so that knowing a digest gives no access to another tenant's file. What is sealed has a longer name, which
says nothing of its content to whoever has not its key (`blob_sealing`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncIterator, Callable, Iterable
from typing import ClassVar, NamedTuple, Protocol, TypeVar

from pilotlight_core.host.blobs.whole_reads import BlobSource
from pilotlight_core.model.errors import BadInput, Conflict, NotFound, Unavailable
from pilotlight_core.model.ids import check_name

SHA256 = re.compile(r"[0-9a-f]{64}")
STORED_NAME = re.compile(r"[0-9a-f]{64}|[0-9a-f]{96}")
"""A digest, or the name of a sealed blob."""
CHUNK = 2**20
T = TypeVar("T")

BlobContent = bytes | AsyncIterator[bytes]


class BadBlob(BadInput):
    """The content does not match its digest, or the digest is malformed."""


class BlobMissing(NotFound):
    """There is no such blob."""


class BlobsDown(Unavailable):
    """The store cannot be reached now."""

    code: ClassVar[str] = "overloaded"


class NoBlobStore(BlobsDown):
    """There is no such bucket or folder, or it may not be used: its operator has to mend that."""

    code: ClassVar[str] = "misconfigured"


class BlobsErased(Conflict):
    """The tenant was erased: nothing is stored for it, now or later."""


class BlobChanged(NoBlobStore):
    """A sealed blob is not what was sealed: its operator has to look who changes the store."""


STORE_ID = "store-id"
"""The name of what holds a store's id, beside the tenants' folders."""


class BlobInfo(NamedTuple):
    tenant: str
    sha256: str
    size: int
    at: float
    """Unix seconds of its last `put` or `renew`."""


class ErasedBlobs(NamedTuple):
    """What of a tenant's was deleted."""

    blobs: int = 0
    size: int = 0
    """Bytes, as stored."""


class BlobStore(Protocol):
    async def put(self, tenant: str, sha256: str, content: BlobContent) -> int:
        """Store `content` and return its size in bytes; a repetition renews the stored blob's `at`.

        Raises:
            BadBlob: if its sha256 is another. Nothing is stored then.
            BlobsErased: the tenant was erased.
            BlobsDown: if the store cannot be reached.
        """
        ...

    def get(self, tenant: str, sha256: str) -> AsyncIterator[bytes]:
        """The content in pieces of at most 1 MiB.

        Raises:
            BlobMissing, BlobsDown: with the first piece.
        """
        ...

    async def read(self, tenant: str, sha256: str) -> bytes:
        """The content whole.

        Raises:
            BlobMissing, BlobsDown.
        """
        ...

    async def head(self, tenant: str, sha256: str, size: int) -> bytes:
        """At most the first `size` bytes, without reading the rest.

        Raises:
            BlobMissing, BlobsDown.
        """
        ...

    async def stored(self, tenant: str, digests: Iterable[str]) -> dict[str, BlobInfo]:
        """What is known of the stored ones of `digests`."""
        ...

    def listed(self, tenant: str | None = None) -> AsyncIterator[BlobInfo]:
        """All blobs of a tenant (None: of all tenants); blobs stored or deleted meanwhile may or may not be included.

        Raises:
            BlobsDown: if the store cannot be reached.
        """
        ...

    async def renew(self, tenant: str, sha256: str) -> bool:
        """Renew the stored blob's `at` without its content; False: there is no such blob.

        Raises:
            BlobsDown: if the store cannot be reached.
        """
        ...

    async def delete(self, tenant: str, sha256: str) -> None: ...

    async def store_id(self, *, create: bool) -> str:
        """What tells this store from others, which `create` makes if there is none; "": there is none.

        Raises:
            NoBlobStore: there is no such store. BlobsDown: it cannot be reached.
        """
        ...

    async def aclose(self) -> None: ...


class BlobBackend(BlobStore, Protocol):
    """Where blobs lie: it also takes the names of sealed ones, whose content it cannot check."""

    async def put(self, tenant: str, sha256: str, content: BlobContent, *, anew: bool = False) -> int:
        """As a store's. `anew`: what is there under the name is replaced, at once and whole."""
        ...

    async def read_whole(self, tenant: str, sha256: str, work: Callable[[BlobSource], T]) -> T:
        """What `work` makes of a blob as it is stored, in a thread; many are read at once (`whole_reads`).

        Raises:
            BlobMissing, BlobsDown.
        """
        ...

    async def link(self, tenant: str, sha256: str, seconds: float) -> str:
        """A URL from which whoever has it can read the blob for so long; "" if the store gives none.

        Raises:
            BlobsDown: if the store's credentials cannot be had.
        """
        ...

    async def erase(self, tenant: str) -> ErasedBlobs:
        """Delete all that there is of a tenant, whatever it is called. It can be repeated.

        Raises:
            BlobsDown: not all of it is deleted.
        """
        ...


def check_blob(tenant: str, sha256: str) -> None:
    """Refuse a tenant or digest that must not become a path or key.

    Raises:
        BadInput: naming the field.
    """
    check_name(tenant, "tenant")
    if not SHA256.fullmatch(sha256):
        raise BadBlob(f"{sha256!r} is not a sha256: expected 64 lower-case hexadecimal digits.", field="sha256")


def erased_blobs(tenant: str) -> BlobsErased:
    return BlobsErased(f"The tenant {tenant} was erased: nothing is stored for it.")


def check_stored(tenant: str, name: str) -> None:
    """As `check_blob`, where blobs lie: the name may be that of a sealed blob.

    Raises:
        BadInput: naming the field.
    """
    if STORED_NAME.fullmatch(name):
        check_name(tenant, "tenant")
    else:
        check_blob(tenant, name)


async def pieces(content: BlobContent) -> AsyncIterator[bytes]:
    """`content` in pieces of at most 1 MiB, or as given."""
    if isinstance(content, bytes):
        for start in range(0, len(content), CHUNK):
            yield content[start : start + CHUNK]
    else:
        async for piece in content:
            yield piece


class DigestChecker:
    """Computes the size and digest of pieces, and checks the digest, which the name of a sealed blob has not."""

    def __init__(self, sha256: str) -> None:
        self._expected = sha256
        self._hash = hashlib.sha256()
        self.size = 0

    def add(self, piece: bytes) -> None:
        self._hash.update(piece)
        self.size += len(piece)

    def finish(self) -> None:
        """Check the digest of all pieces.

        Raises:
            BadBlob: if it is another.
        """
        if SHA256.fullmatch(self._expected) and (actual := self._hash.hexdigest()) != self._expected:
            raise BadBlob(
                f"The content has sha256 {actual}, not {self._expected} as announced: it was damaged on its way.",
                field="sha256",
            )

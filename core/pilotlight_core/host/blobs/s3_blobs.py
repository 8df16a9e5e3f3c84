"""Blobs in S3, or a store with its protocol: `<prefix>/<tenant>/<sha256>`.

boto3 is synchronous, so each call runs in a thread. A blob is uploaded from a temporary file after its digest was
checked, so that every object in S3 matches its name.
"""

from __future__ import annotations

import asyncio
import math
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import aclosing
from functools import partial
from typing import IO, Any, TypeVar

from pilotlight_core.host.blobs.blob_port import (
    CHUNK,
    STORE_ID,
    STORED_NAME,
    BlobContent,
    BlobInfo,
    BlobMissing,
    BlobsDown,
    DigestChecker,
    ErasedBlobs,
    NoBlobStore,
    check_stored,
    pieces,
)
from pilotlight_core.host.blobs.s3_source import S3Source
from pilotlight_core.host.blobs.signed_reads import SignedReads
from pilotlight_core.host.blobs.whole_reads import READERS, BlobReaders, BlobSource
from pilotlight_core.host.outbound.aws_clients import open_aws
from pilotlight_core.model.ids import check_name, token

T = TypeVar("T")
RunCall = Callable[[Callable[[], Any]], Awaitable[Any]]
CONNECT_TIMEOUT = 5
READ_TIMEOUT = 30
ATTEMPTS = 4
IN_MEMORY = 8 * 2**20
AT_ONCE = READERS + 8
"""Connections: large blobs that are read whole, and beside them small ones."""
MISSING = frozenset({"404", "NoSuchKey", "NotFound"})
UNUSABLE = frozenset({"NoSuchBucket", "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "403"})
"""What no repetition mends."""


class S3Blobs:
    """Blobs in `bucket` below `prefix`. boto3 finds credentials and region; `endpoint` is for other stores than AWS."""

    def __init__(
        self,
        bucket: str,
        prefix: str = "",
        *,
        endpoint: str | None = None,
        region: str | None = None,
        attempts: int = ATTEMPTS,
    ) -> None:
        opened = open_aws(
            "s3", "s3", endpoint=endpoint, region=region, connect_s=CONNECT_TIMEOUT, read_s=READ_TIMEOUT,
            attempts=attempts, connections=AT_ONCE,
        )  # fmt: skip
        self._s3, self._client_errors, self._transport_errors = opened
        self._bucket = bucket
        self._prefix = prefix.strip("/")
        self._root = f"{self._prefix}/" if self._prefix else ""
        self._id_key = f"{self._root}{STORE_ID}"
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._readers = BlobReaders()
        self._signed = SignedReads(self._s3, bucket, self._transport_errors)

    def key(self, tenant: str, sha256: str) -> str:
        check_stored(tenant, sha256)
        return f"{self._root}{tenant}/{sha256}"

    async def put(self, tenant: str, sha256: str, content: BlobContent, *, anew: bool = True) -> int:  # noqa: ARG002 - always
        key = self.key(tenant, sha256)
        checker = DigestChecker(sha256)
        with tempfile.SpooledTemporaryFile(max_size=IN_MEMORY) as file:
            async for piece in pieces(content):
                checker.add(piece)
                await asyncio.to_thread(file.write, piece)
            checker.finish()
            file.seek(0)
            await self._do(lambda: self._s3.put_object(Bucket=self._bucket, Key=key, Body=_body(file)), sha256)
        return checker.size

    async def get(self, tenant: str, sha256: str) -> AsyncIterator[bytes]:
        body = await self._open(tenant, sha256)
        try:
            while piece := await self._do(lambda: body.read(CHUNK), sha256):
                yield piece
        finally:
            await asyncio.to_thread(body.close)

    async def read(self, tenant: str, sha256: str) -> bytes:
        return b"".join([piece async for piece in self.get(tenant, sha256)])

    async def read_whole(self, tenant: str, sha256: str, work: Callable[[BlobSource], T]) -> T:
        key = self.key(tenant, sha256)

        def read() -> T:
            with self._opened(key) as source:
                return work(source)

        return await self._do(read, sha256, self._readers.run)

    async def head(self, tenant: str, sha256: str, size: int) -> bytes:
        body = await self._open(tenant, sha256)
        try:
            found: bytes = await self._do(lambda: body.read(size), sha256)
            return found
        finally:
            await asyncio.to_thread(body.close)

    async def stored(self, tenant: str, digests: Iterable[str]) -> dict[str, BlobInfo]:
        found = await asyncio.gather(*(self._info(tenant, digest) for digest in digests))
        return {info.sha256: info for info in found if info is not None}

    async def listed(self, tenant: str | None = None) -> AsyncIterator[BlobInfo]:
        prefix = self._root if tenant is None else f"{self._root}{check_name(tenant, 'tenant')}/"
        objects: Any = self._objects(prefix)
        async with aclosing(objects):
            async for one in objects:
                owner, _, name = one["Key"].removeprefix(self._root).partition("/")
                if STORED_NAME.fullmatch(name):
                    yield BlobInfo(owner, name, int(one["Size"]), one["LastModified"].timestamp())

    async def renew(self, tenant: str, sha256: str) -> bool:
        """Copies the object onto itself, which S3 allows where its metadata are replaced."""
        key = self.key(tenant, sha256)
        copy = partial(
            self._s3.copy_object,
            Bucket=self._bucket,
            Key=key,
            CopySource={"Bucket": self._bucket, "Key": key},
            MetadataDirective="REPLACE",
        )
        try:
            await self._do(copy, sha256)
        except BlobMissing:
            return False
        return True

    async def link(self, tenant: str, sha256: str, seconds: float) -> str:
        what = {"Bucket": self._bucket, "Key": self.key(tenant, sha256)}
        url: str = await self._do(
            lambda: self._s3.generate_presigned_url("get_object", Params=what, ExpiresIn=math.ceil(seconds)), sha256
        )
        return url

    async def delete(self, tenant: str, sha256: str) -> None:
        key = self.key(tenant, sha256)
        await self._do(lambda: self._s3.delete_object(Bucket=self._bucket, Key=key), sha256)

    async def erase(self, tenant: str) -> ErasedBlobs:
        found = [one async for one in self._objects(f"{self._root}{check_name(tenant, 'tenant')}/")]
        for one in found:
            await self._do(partial(self._s3.delete_object, Bucket=self._bucket, Key=one["Key"]), one["Key"])
        return ErasedBlobs(len(found), sum(int(one["Size"]) for one in found))

    async def store_id(self, *, create: bool) -> str:
        found = await self._read_id()
        if not found and create:
            # Of two that make one at the same time the last one stays, so it is read again.
            body = token().encode()
            await self._do(lambda: self._s3.put_object(Bucket=self._bucket, Key=self._id_key, Body=body), STORE_ID)
            found = await self._read_id()
        return found

    async def _read_id(self) -> str:
        try:
            answer = await self._do(lambda: self._s3.get_object(Bucket=self._bucket, Key=self._id_key), STORE_ID)
        except BlobMissing:
            return ""
        data: bytes = await self._do(answer["Body"].read, STORE_ID)
        return data.decode(errors="replace")

    async def aclose(self) -> None:
        self._readers.close()
        await asyncio.to_thread(self._s3.close)

    async def _objects(self, prefix: str) -> AsyncIterator[dict[str, Any]]:
        """All objects whose keys begin so, as S3 lists them."""
        more: dict[str, str] = {}
        while True:
            page = await self._do(partial(self._s3.list_objects_v2, Bucket=self._bucket, Prefix=prefix, **more), "")
            for one in page.get("Contents", ()):
                yield one
            if not page.get("IsTruncated"):
                return
            more = {"ContinuationToken": page["NextContinuationToken"]}

    def _opened(self, key: str) -> S3Source:
        if (source := self._signed.open(key)) is not None:
            return source
        answer = self._s3.get_object(Bucket=self._bucket, Key=key)
        self._signed.note_found()
        return S3Source(answer)

    async def _open(self, tenant: str, sha256: str) -> Any:
        key = self.key(tenant, sha256)
        answer = await self._do(lambda: self._s3.get_object(Bucket=self._bucket, Key=key), sha256)
        return answer["Body"]

    async def _info(self, tenant: str, sha256: str) -> BlobInfo | None:
        key = self.key(tenant, sha256)
        try:
            head = await self._do(lambda: self._s3.head_object(Bucket=self._bucket, Key=key), sha256)
        except BlobMissing:
            return None
        return BlobInfo(tenant, sha256, int(head["ContentLength"]), head["LastModified"].timestamp())

    async def _do(self, call: Callable[[], T], sha256: str, run: RunCall = asyncio.to_thread) -> T:
        async with self._slots:
            try:
                found: T = await run(call)
                return found
            except self._client_errors as error:
                if error.response["Error"]["Code"] in MISSING:  # type: ignore[attr-defined]
                    raise BlobMissing(f"There is no blob {sha256}.") from None
                if error.response["Error"]["Code"] in UNUSABLE:  # type: ignore[attr-defined]
                    raise NoBlobStore(f"The bucket {self._bucket} cannot be used: {error}.") from error
                raise BlobsDown(f"S3 refused: {error}.") from error
            except self._transport_errors as error:
                raise BlobsDown(f"S3 cannot be reached: {error}.") from error


def _body(file: IO[bytes]) -> IO[bytes]:
    file.seek(0)
    return file

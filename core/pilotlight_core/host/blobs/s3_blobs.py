"""Blobs in S3, or a store with its protocol: `<prefix>/<tenant>/<sha256>`.

boto3 is synchronous, so each call runs in a thread. A blob is uploaded from a temporary file after its digest was
checked, so that every object in S3 matches its name.
"""

from __future__ import annotations

import asyncio
import math
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable
from functools import partial
from typing import IO, Any, TypeVar

from pilotlight_core.host.blobs.blob_port import (
    CHUNK,
    SHA256,
    STORE_ID,
    BlobContent,
    BlobInfo,
    BlobMissing,
    BlobsDown,
    DigestChecker,
    NoBlobStore,
    check_blob,
    pieces,
)
from pilotlight_core.model.ids import check_name, token

T = TypeVar("T")
CONNECT_TIMEOUT = 5
READ_TIMEOUT = 30
ATTEMPTS = 4
IN_MEMORY = 8 * 2**20
AT_ONCE = 16
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
        try:
            import boto3  # an optional dependency, which takes 0.2 s to import
        except ModuleNotFoundError:
            raise ValueError("s3:// needs boto3: pip install 'pilotlight[aws]'") from None
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError, ClientError

        self._bucket = bucket
        self._prefix = prefix.strip("/")
        self._id_key = "/".join(part for part in (self._prefix, STORE_ID) if part)
        self._transport_errors: type[Exception] = BotoCoreError
        self._client_errors: type[Exception] = ClientError
        self._slots = asyncio.Semaphore(AT_ONCE)
        config = Config(
            connect_timeout=CONNECT_TIMEOUT,
            read_timeout=READ_TIMEOUT,
            retries={"total_max_attempts": attempts, "mode": "standard"},
            max_pool_connections=AT_ONCE,
        )
        self._s3: Any = boto3.client("s3", endpoint_url=endpoint, region_name=region, config=config)

    def key(self, tenant: str, sha256: str) -> str:
        check_blob(tenant, sha256)
        return "/".join(part for part in (self._prefix, tenant, sha256) if part)

    async def put(self, tenant: str, sha256: str, content: BlobContent) -> int:
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
        root = f"{self._prefix}/" if self._prefix else ""
        prefix = root if tenant is None else f"{root}{check_name(tenant, 'tenant')}/"
        more: dict[str, str] = {}
        while True:
            page = await self._do(partial(self._s3.list_objects_v2, Bucket=self._bucket, Prefix=prefix, **more), "")
            for one in page.get("Contents", ()):
                owner, _, sha256 = one["Key"].removeprefix(root).partition("/")
                if SHA256.fullmatch(sha256):
                    yield BlobInfo(owner, sha256, int(one["Size"]), one["LastModified"].timestamp())
            if not page.get("IsTruncated"):
                return
            more = {"ContinuationToken": page["NextContinuationToken"]}

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
        await asyncio.to_thread(self._s3.close)

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

    async def _do(self, call: Callable[[], T], sha256: str) -> T:
        async with self._slots:
            try:
                return await asyncio.to_thread(call)
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

"""The platform's key in AWS KMS: it never leaves there, and each use of it is in that account's own log.

boto3 is synchronous, so each call runs in a thread. The tenant is the encryption context of its data key: it is logged
by KMS, and policies may go by it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from pilotlight_core.host.outbound.aws_clients import open_aws
from pilotlight_gateway.secrets.platform_keys import NoPlatformKey, PlatformKeyDown

T = TypeVar("T")
CONNECT_TIMEOUT = 3
READ_TIMEOUT = 5
ATTEMPTS = 2
AT_ONCE = 8
UNUSABLE = frozenset({
    "AccessDeniedException", "DisabledException", "IncorrectKeyException", "InvalidCiphertextException",
    "InvalidKeyUsageException", "KMSInvalidStateException", "NotFoundException", "UnrecognizedClientException",
    "InvalidSignatureException",
})  # fmt: skip
"""What no repetition mends."""


class KmsPlatformKey:
    """A symmetric key of KMS, by alias, id or ARN. boto3 finds credentials and region; `endpoint` is for others."""

    def __init__(self, key: str, *, endpoint: str | None = None, region: str | None = None) -> None:
        opened = open_aws(
            "kms", "aws-kms", endpoint=endpoint, region=region, connect_s=CONNECT_TIMEOUT, read_s=READ_TIMEOUT,
            attempts=ATTEMPTS, connections=AT_ONCE,
        )  # fmt: skip
        self._key = key
        self._kms, self._client_errors, self._transport_errors = opened
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def identity(self, *, create: bool) -> str:  # noqa: ARG002 - keys of KMS are made by its owner
        """Its ARN, which an alias leads to: an alias that is moved to another key is noticed."""
        found = await self._do(lambda: self._kms.describe_key(KeyId=self._key))
        return f"aws-kms:{found['KeyMetadata']['Arn']}"

    async def seal(self, tenant: str, data_key: bytes) -> bytes:
        found = await self._do(
            lambda: self._kms.encrypt(KeyId=self._key, Plaintext=data_key, EncryptionContext=_context(tenant))
        )
        return bytes(found["CiphertextBlob"])

    async def open(self, tenant: str, sealed: bytes) -> bytes:
        found = await self._do(
            lambda: self._kms.decrypt(KeyId=self._key, CiphertextBlob=sealed, EncryptionContext=_context(tenant))
        )
        return bytes(found["Plaintext"])

    async def _do(self, call: Callable[[], T]) -> T:
        async with self._slots:
            try:
                return await asyncio.to_thread(call)
            except self._client_errors as error:
                code = error.response["Error"]["Code"]  # type: ignore[attr-defined]
                if code in UNUSABLE:
                    raise NoPlatformKey(f"KMS does not let the key {self._key} be used: {code}") from None
                raise PlatformKeyDown(f"KMS refused: {code}") from None
            except self._transport_errors as error:
                raise PlatformKeyDown(f"KMS cannot be reached: {type(error).__name__}") from None


def _context(tenant: str) -> dict[str, str]:
    return {"pilotlight:tenant": tenant}

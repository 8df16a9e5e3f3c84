"""The platform's key in KMS: moto's, over HTTP."""

from __future__ import annotations

from typing import Any

import boto3
import pytest

from pilotlight_gateway.secrets.kms_keys import KmsPlatformKey
from pilotlight_gateway.secrets.platform_keys import NoPlatformKey, PlatformKeyDown
from tests.gateway.secrets.makers import VALUE, Vaulted


@pytest.fixture
def kms(s3_endpoint: str) -> Any:
    """moto's server is for all services."""
    return boto3.client("kms", endpoint_url=s3_endpoint, region_name="us-east-1")


@pytest.fixture
def arn(kms: Any) -> str:
    """A symmetric key."""
    return str(kms.create_key()["KeyMetadata"]["Arn"])


def key_of(name: str, endpoint: str) -> KmsPlatformKey:
    return KmsPlatformKey(name, endpoint=endpoint, region="us-east-1")


async def test_a_data_key_opens_for_its_tenant_alone(s3_endpoint: str, arn: str, anyio_backend: str) -> None:
    """The tenant is the context of its data key."""
    key = key_of(arn, s3_endpoint)
    sealed = await key.seal("acme", b"a data key of 32 bytes, or nearly")

    assert await key.open("acme", sealed) == b"a data key of 32 bytes, or nearly"
    with pytest.raises(NoPlatformKey, match="InvalidCiphertext"):
        await key.open("rival", sealed)


async def test_an_alias_leads_to_the_key(s3_endpoint: str, kms: Any, arn: str, anyio_backend: str) -> None:
    """Whose ARN is the identity: an alias that is moved is another key."""
    kms.create_alias(AliasName="alias/secrets", TargetKeyId=arn)
    key = key_of("alias/secrets", s3_endpoint)
    assert await key.identity(create=False) == f"aws-kms:{arn}"

    other = str(kms.create_key()["KeyMetadata"]["Arn"])
    kms.update_alias(AliasName="alias/secrets", TargetKeyId=other)
    assert await key.identity(create=False) == f"aws-kms:{other}"


async def test_values_are_sealed_under_it(s3_endpoint: str, arn: str, anyio_backend: str) -> None:
    """A gateway that has only the key's name opens what another has sealed."""
    one = Vaulted(platform=key_of(arn, s3_endpoint))  # type: ignore[arg-type]
    await one.set()
    other = Vaulted(store=one.store, platform=key_of(arn, s3_endpoint))  # type: ignore[arg-type]

    assert await other.values("token") == {"token": VALUE}
    assert one.store.platform == f"aws-kms:{arn}"


async def test_a_key_that_is_not_there_is_said(s3_endpoint: str, anyio_backend: str) -> None:
    """No repetition mends it."""
    with pytest.raises(NoPlatformKey, match="NotFoundException"):
        await key_of("alias/none", s3_endpoint).identity(create=True)


async def test_a_service_that_is_away_is_down(s3_endpoint: str, anyio_backend: str) -> None:
    """It may be back soon."""
    with pytest.raises(PlatformKeyDown, match="cannot be reached"):
        await key_of("alias/secrets", "http://127.0.0.1:1").identity(create=False)

"""Clients of AWS's services, or of what speaks their protocols: bounded in time, tries and connections.

boto3 is synchronous: each call of a client runs in a thread of its caller's, never more at a time than connections.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class AwsClient(NamedTuple):
    client: Any
    client_errors: type[Exception]
    """What the service refuses; the code is in `error.response["Error"]["Code"]`."""
    transport_errors: type[Exception]
    """It cannot be reached."""


def open_aws(
    service: str,
    scheme: str,
    *,
    endpoint: str | None,
    region: str | None,
    connect_s: float,
    read_s: float,
    attempts: int,
    connections: int,
) -> AwsClient:
    """A client of a service, which URLs with `scheme` name. boto3 finds credentials, and the region if none is given.

    Raises:
        ValueError: boto3 is not installed.
    """
    try:
        import boto3  # an optional dependency, which takes 0.2 s to import
    except ModuleNotFoundError:
        raise ValueError(f"{scheme}:// needs boto3: pip install 'pilotlight[aws]'") from None
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError, ClientError

    config = Config(
        connect_timeout=connect_s,
        read_timeout=read_s,
        retries={"total_max_attempts": attempts, "mode": "standard"},
        max_pool_connections=connections,
    )
    client = boto3.client(service, endpoint_url=endpoint, region_name=region, config=config)  # type: ignore[call-overload]
    return AwsClient(client, ClientError, BotoCoreError)

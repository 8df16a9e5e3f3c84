"""Clients of AWS are bounded, whatever they are of."""

from __future__ import annotations

import sys

import pytest

from pilotlight_core.host.outbound.aws_clients import open_aws
from pilotlight_supervisor.free_ports import free_port


def test_a_client_has_bounds_and_says_what_it_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service that is not there is a transport's error, at once."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    opened = open_aws(
        "s3", "s3", endpoint=f"http://127.0.0.1:{free_port()}", region="us-east-1", connect_s=1.0, read_s=2.0,
        attempts=1, connections=3,
    )  # fmt: skip
    config = opened.client.meta.config

    assert (config.connect_timeout, config.read_timeout, config.max_pool_connections) == (1.0, 2.0, 3)
    with pytest.raises(opened.transport_errors):
        opened.client.head_bucket(Bucket="x")
    opened.client.close()


def test_without_boto3_it_says_how_to_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the words of the URL that needs it."""
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(ValueError, match=r"aws-kms:// needs boto3: pip install 'pilotlight\[aws\]'"):
        open_aws("kms", "aws-kms", endpoint=None, region=None, connect_s=1, read_s=1, attempts=1, connections=1)

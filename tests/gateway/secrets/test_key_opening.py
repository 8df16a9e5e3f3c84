"""Platform keys by URL."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotlight_gateway.secrets.key_files import FilePlatformKey
from pilotlight_gateway.secrets.key_opening import open_platform_key
from pilotlight_gateway.secrets.kms_keys import KmsPlatformKey


async def test_a_file_is_the_default(tmp_path: Path, anyio_backend: str) -> None:
    """Below the folder of keys, or where it is said to be."""
    own, named = open_platform_key("", tmp_path), open_platform_key(f"file://{tmp_path}/a%20key", tmp_path)
    for key in (own, named):
        assert isinstance(key, FilePlatformKey)
        await key.identity(create=True)

    assert sorted(path.name for path in tmp_path.iterdir())  # noqa: ASYNC240 - in memory == ["a key", KEY_FILE]


@pytest.mark.parametrize(
    "url",
    [
        "aws-kms://alias/pilotlight?region=eu-central-1",
        "aws-kms://arn:aws:kms:eu-central-1:111122223333:key/1234abcd?region=eu-central-1&endpoint=http://127.0.0.1:1",
    ],
)
def test_a_key_service_is_named_by_what_it_calls_the_key(url: str, tmp_path: Path) -> None:
    """An alias, an id or an ARN."""
    assert isinstance(open_platform_key(url, tmp_path), KmsPlatformKey)


@pytest.mark.parametrize("url", ["vault://x", "file://host/key", "file:key", "aws-kms://", "aws-kms://a?key=b", "/key"])
def test_what_is_none_is_refused(url: str, tmp_path: Path) -> None:
    """With what is expected."""
    with pytest.raises(ValueError, match="is no key of secrets: expected file:///path or aws-kms://"):
        open_platform_key(url, tmp_path)

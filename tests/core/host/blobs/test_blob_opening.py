"""Addresses of blob stores."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotlight_core.host.blobs import FolderBlobs, open_blobs


def test_a_file_address_is_a_folder() -> None:
    """Escapes are read."""
    store = open_blobs("file:///var/lib/my%20blobs")

    assert isinstance(store, FolderBlobs)
    assert store.root == Path("/var/lib/my blobs")


@pytest.mark.parametrize(
    "url", ["", "/var/lib", "file://host/x", "file:relative", "s3://", "s3://b?wat=1", "http://x/y"]
)
def test_other_addresses_are_refused(url: str) -> None:
    """The message names the expected forms."""
    with pytest.raises(ValueError, match="expected file:///folder or s3://bucket/prefix"):
        open_blobs(url)

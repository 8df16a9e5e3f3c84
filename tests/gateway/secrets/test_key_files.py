"""The platform's key in a file."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path

import pytest

from pilotlight_core.host.file_permissions import private_file
from pilotlight_gateway.secrets.key_files import FilePlatformKey
from pilotlight_gateway.secrets.platform_keys import NoPlatformKey


async def test_it_is_made_once_for_its_owner_alone(tmp_path: Path, anyio_backend: str) -> None:
    """Of several gateways that share a folder, all get the first one's."""
    path = tmp_path / "keys" / "secrets_aes256"
    keys = [FilePlatformKey(path) for _ in range(8)]
    names = await asyncio.gather(*(key.identity(create=True) for key in keys))

    assert len(set(names)) == 1
    assert names[0].startswith("file:")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [each.name for each in path.parent.iterdir()] == [path.name]


async def test_its_name_tells_nothing_of_it(tmp_path: Path, anyio_backend: str) -> None:
    """It stands in records."""
    key = FilePlatformKey(tmp_path / "key")
    name = await key.identity(create=True)
    assert name.removeprefix("file:") not in (tmp_path / "key").read_text()


async def test_what_it_seals_opens_after_a_restart(tmp_path: Path, anyio_backend: str) -> None:
    """For the tenant that it was sealed for."""
    key = FilePlatformKey(tmp_path / "key")
    await key.identity(create=True)
    sealed = await key.seal("acme", b"data key")
    again = FilePlatformKey(tmp_path / "key")

    assert await again.open("acme", sealed) == b"data key"
    assert await again.identity(create=False) == await key.identity(create=False)
    with pytest.raises(NoPlatformKey, match="did not seal the data key of rival"):
        await again.open("rival", sealed)


@pytest.mark.parametrize("text", [None, "", "no key", "abcd", "zz" * 32])
async def test_without_a_key_nothing_is_done(tmp_path: Path, anyio_backend: str, text: str | None) -> None:
    """One that is not there is made only where it may be."""
    if text is not None:
        private_file(tmp_path / "key").write_text(text)
    with pytest.raises(NoPlatformKey, match="key of secrets"):
        await FilePlatformKey(tmp_path / "key").identity(create=text is not None)


async def test_a_key_that_others_may_have_read_is_not_used(tmp_path: Path, anyio_backend: str) -> None:
    """Until it is closed, as the error says."""
    path = tmp_path / "key"
    name = await FilePlatformKey(path).identity(create=True)
    path.chmod(0o644)
    with pytest.raises(NoPlatformKey, match=f"the key of secrets is not used: .*chmod 600 {path}"):
        await FilePlatformKey(path).identity(create=False)

    path.chmod(0o600)
    assert await FilePlatformKey(path).identity(create=False) == name

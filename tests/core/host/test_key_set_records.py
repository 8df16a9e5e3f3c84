"""The record of the set of keys of several gateways."""

from __future__ import annotations

from pathlib import Path

from pilotlight_core.bus import connect
from pilotlight_core.host.key_set_records import KeySets
from pilotlight_core.host.key_sets import sign_keys
from pilotlight_core.host.signing import Signer
from pilotlight_core.model.ids import token


async def test_gateways_carry_it_to_the_bus(server_url: str, tmp_path: Path, anyio_backend: str) -> None:
    """The latest is there, whoever comes last."""
    operator, one, other = (Signer.load_or_create(tmp_path / name) for name in ("operator", "one", "other"))
    older, newer = sign_keys(operator, [one.public], 1), sign_keys(operator, [one.public, other.public], 2)
    async with connect(server_url, name="key-sets") as bus:
        sets = KeySets(bus, region=f"r{token(8)}")
        assert await sets.read() is None
        for offered in (newer, older):
            await sets.offer(offered)
            assert await sets.read() == newer
        adopted = sign_keys(other, [one.public], 1)
        await sets.offer(adopted, adopt=True)
        assert await sets.read() == adopted

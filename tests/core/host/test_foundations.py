"""What all processes of a platform have in common, and who is refused."""

from __future__ import annotations

import asyncio

import pytest

from pilotlight_core.bus import Bus, connect
from pilotlight_core.host import foundations
from pilotlight_core.host.foundations import (
    Foundation,
    Foundations,
    WrongFoundation,
    check_foundation,
    read_adopted,
    registered_with,
)
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.ids import token

OURS = Foundation(manifest_key="k", blob_store="b", ledger="l")


@pytest.mark.parametrize(
    ("own", "said"),
    [
        (
            Foundation(manifest_key="x"),
            r"the key that signs manifests .*\(x\) .*\(k\): copy the folder keys",
        ),
        (Foundation(blob_store="x"), r"the blob store .* the same --blob-url, .* --adopt blob_store"),
        (Foundation(ledger="x"), r"the ledger .* the same --ledger-url. .* --adopt ledger"),
    ],
)
def test_whoever_has_another_one_is_told_what_to_do(own: Foundation, said: str) -> None:
    """By what differs; what a process does not use, or nobody registered, does not."""
    with pytest.raises(WrongFoundation, match=said):
        check_foundation(OURS, own)
    check_foundation(OURS, OURS)
    check_foundation(OURS, Foundation())
    check_foundation(Foundation(), own)


def test_a_gateway_adds_what_is_missing_and_replaces_what_it_is_told_to() -> None:
    """And nothing else."""
    other = Foundation(manifest_key="x", blob_store="x", ledger="x")

    assert registered_with(None, OURS) == OURS
    assert registered_with(OURS, other) == OURS
    assert registered_with(OURS, Foundation()) == OURS
    assert registered_with(Foundation(ledger="l"), other) == Foundation(manifest_key="x", blob_store="x", ledger="l")
    assert registered_with(OURS, other, ("ledger",)) == Foundation(manifest_key="k", blob_store="b", ledger="x")


def test_names_to_adopt_are_known_ones() -> None:
    """Another is refused by the setting's name."""
    assert read_adopted("ledger, manifest_key") == ("ledger", "manifest_key")
    assert read_adopted("") == ()
    with pytest.raises(BadInput, match="expected some of manifest_key, blob_store, ledger, secrets_key, not 'keys'"):
        read_adopted("keys")


async def test_the_first_gateway_says_what_holds(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a real bus: others are compared with it, as soon as it is there."""
    monkeypatch.setattr(foundations, "ASK_EVERY_S", 0.01)
    known = Foundations(bus, region=f"r{token(8)}")

    async def wrong(_: Foundation) -> Foundation:
        return Foundation(ledger="x")

    async def right(registered: Foundation) -> Foundation:
        return registered

    assert await known.check(wrong) is False
    waiting = asyncio.ensure_future(known.check_until_known(wrong))
    await known.register(OURS)
    with pytest.raises(WrongFoundation, match="ledger"):
        await asyncio.wait_for(waiting, 30)
    assert await known.check(right)
    with pytest.raises(WrongFoundation, match="manifests"):
        await known.register(Foundation(manifest_key="x"))
    await known.register(Foundation(manifest_key="x"), ("manifest_key",))
    assert await known.read() == Foundation(manifest_key="x", blob_store="b", ledger="l")


async def test_an_old_bus_without_the_bucket_holds_nobody_up(server_url: str) -> None:
    """Agents and duties are upgraded before the gateways, which make it."""
    async with connect(server_url, name="foundation-test", makes_streams=False) as old:
        known = Foundations(old, region="local")
        known._kv = old.kv("NEVER_MADE")

        async def own(_: Foundation) -> Foundation:
            raise AssertionError("there is nothing to compare with")

        assert await known.check(own) is False

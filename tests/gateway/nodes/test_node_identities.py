"""A gateway's part as a whole. What it answers: `test_node_admission`."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotlight_core.bus import Bus
from pilotlight_core.host.config import Settings
from pilotlight_core.host.registry import Registry
from pilotlight_core.model.errors import BadInput
from pilotlight_gateway.nodes.node_identities import (
    BusAddress,
    JoiningTerms,
    joining_terms,
    node_identities,
    without_credentials,
)
from pilotlight_gateway.nodes.node_issuer import make_issuer


@pytest.mark.parametrize(
    ("url", "known"),
    [
        ("nats://gateway:secret@10.0.0.5:4222", "nats://10.0.0.5:4222"),
        ("nats://a:b@x:1,tls://a:b@y:2", "nats://x:1,tls://y:2"),
        ("nats://127.0.0.1:4222", "nats://127.0.0.1:4222"),
    ],
)
def test_nodes_are_told_no_password(url: str, known: str) -> None:
    """Of any server of the bus."""
    assert without_credentials(url) == known


def test_a_gateway_tells_nodes_where_the_bus_is() -> None:
    """As it was told, or as it does itself; one that lets none in tells nothing."""
    own = Settings(nats_url="nats://gateway:secret@10.0.0.5:4222", region="eu", zone="eu-1")

    assert joining_terms(own, "", takes_nodes=True) == JoiningTerms(
        bus_url="nats://10.0.0.5:4222", region="eu", zone="eu-1"
    )
    assert joining_terms(own, "tls://bus:4222", takes_nodes=True).bus_url == "tls://bus:4222"
    assert joining_terms(own, "tls://bus:4222", takes_nodes=False).bus_url == ""


async def test_a_bus_that_does_not_know_the_keys_is_told_of(bus: Bus, server_url: str, tmp_path: Path) -> None:
    """At the start, with what its configuration lacks."""
    issuer = make_issuer(tmp_path / "issuer.json")
    async with Registry(bus) as registry:
        async with node_identities(bus, registry, None, BusAddress(server_url), region="r", name="g"):
            pass
        with pytest.raises(BadInput, match=issuer.keeper.public):
            async with node_identities(bus, registry, issuer, BusAddress(server_url), region="r", name="g"):
                pass

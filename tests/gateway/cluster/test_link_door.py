"""Which offers of links can be claimed, by whom, and for how long."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from pilotlight_core.links.link_requests import proof_of_caller, proof_of_listener
from pilotlight_core.model.messages.link_messages import LinkHello, LinkOffer
from pilotlight_gateway.cluster.link_door import OFFERED_S, LinkDoor


class Place:
    """A door with one offer, of link l1."""

    def __init__(self) -> None:
        self.at = 10.0
        self.door = LinkDoor(lambda: self.at)
        self.opened: list[Any] = []
        self.expect("l1")

    def expect(self, link: str) -> None:
        hello = LinkHello(link=link, gateway="gw1", node="n1", instance="i1")
        self.door.expect(LinkOffer(hello=hello, url="", secret="s"), self.opened.append)  # type: ignore[arg-type]


def test_who_knows_the_secret_claims_the_offer_once() -> None:
    """And is told that we know it too."""
    place = Place()
    claimed = place.door.claim("l1", "nonce", proof_of_caller("s", "l1", "nonce"))
    assert claimed is not None
    assert claimed.proof == proof_of_listener("s", "l1", "nonce")
    claimed.open(cast("asyncio.Transport", "a connection"))
    assert place.opened == ["a connection"]
    assert place.door.claim("l1", "nonce", proof_of_caller("s", "l1", "nonce")) is None


@pytest.mark.parametrize(
    ("link", "proof"),
    [
        ("l2", proof_of_caller("s", "l2", "nonce")),
        ("l1", proof_of_caller("guessed", "l1", "nonce")),
        ("l1", proof_of_caller("s", "l1", "another")),
        ("l1", proof_of_listener("s", "l1", "nonce")),
        ("l1", ""),
    ],
    ids=["no such offer", "another secret", "another nonce", "our own proof", "none"],
)
def test_a_wrong_proof_claims_nothing(link: str, proof: str) -> None:
    """And takes the offer from nobody."""
    place = Place()
    assert place.door.claim(link, "nonce", proof) is None
    assert place.door.claim("l1", "nonce", proof_of_caller("s", "l1", "nonce")) is not None


def test_offers_end() -> None:
    """And are not kept."""
    place = Place()
    place.at += OFFERED_S
    assert place.door.claim("l1", "nonce", proof_of_caller("s", "l1", "nonce")) is None
    place.expect("l2")
    assert len(place.door) == 1

"""What is said before a link: requests, answers and proofs."""

from __future__ import annotations

import pytest

from pilotlight_core.links.link_requests import (
    NONCE,
    PROOF,
    LinkAddress,
    address_of_link,
    header_of,
    is_proof,
    link_answer,
    link_request,
    new_nonce,
    proof_in_answer,
    proof_of_caller,
    proof_of_listener,
)
from pilotlight_core.model.messages.link_messages import LinkHello, LinkOffer

HELLO = LinkHello(link="l1", gateway="gw1", node="n1", instance="i1")
OFFER = LinkOffer(hello=HELLO, url="https://gw-1:8471", secret="s3cret")


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("https://gw-1:8471", LinkAddress("gw-1", 8471, tls=True)),
        ("http://10.0.0.5:8471", LinkAddress("10.0.0.5", 8471, tls=False)),
        ("https://gw-1.example.com", LinkAddress("gw-1.example.com", 443, tls=True)),
        ("https://[fd00::5]:8471", LinkAddress("fd00::5", 8471, tls=True)),
        ("file:///etc/passwd", None),
        ("https://", None),
        ("https://gw-1:port", None),
        ("https://[gw-1:1", None),
    ],
)
def test_an_address_is_read_of_a_url(url: str, found: LinkAddress | None) -> None:
    """Of what is neither http nor https none is."""
    assert address_of_link(url) == found


def test_a_request_has_a_proof_and_not_the_secret() -> None:
    """Of this link, by this nonce, for this direction."""
    request = link_request(OFFER, LinkAddress("fd00::5", 8471, tls=True), "abc")
    first, *lines = request.removesuffix(b"\r\n\r\n").split(b"\r\n")
    headers = [(name, value) for name, _, value in (line.partition(b": ") for line in lines)]
    assert first == b"GET /links/l1 HTTP/1.1"
    assert (header_of(headers, b"host"), header_of(headers, NONCE)) == ("[fd00::5]:8471", "abc")
    assert is_proof(header_of(headers, PROOF), proof_of_caller("s3cret", "l1", "abc"))
    assert b"s3cret" not in request


def test_a_proof_is_good_for_one_secret_link_nonce_and_direction() -> None:
    """And for nothing else."""
    proofs = {
        proof_of_caller("s", "l", "n"),
        proof_of_listener("s", "l", "n"),
        proof_of_caller("t", "l", "n"),
        proof_of_caller("s", "m", "n"),
        proof_of_caller("s", "l", "o"),
    }
    assert len(proofs) == 5
    assert not any(is_proof("", proof) or is_proof("ü", proof) for proof in proofs)
    assert new_nonce() != new_nonce()


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 404 Not Found\r\npilotlight-proof: x",
        b"HTTP/1.1 200 OK\r\npilotlight-proof: x",
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket",
        b"HTTP/1.1 101 Switching Protocols\r\npilotlight-proof: x\r\npilotlight-proof: y",
        b"",
    ],
    ids=["not found", "a page", "no proof", "two proofs", "nothing"],
)
def test_what_is_no_answer_has_no_proof(head: bytes) -> None:
    """Whoever sent it."""
    assert proof_in_answer(head) == ""
    assert proof_in_answer(link_answer("p").removesuffix(b"\r\n\r\n")) == "p"

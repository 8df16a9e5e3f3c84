"""Gates are asked over an HTTP client that is made at the first question."""

from __future__ import annotations

import asyncio

import pytest

from pilotlight_core.host.outbound.address_policy import read_networks
from pilotlight_gateway.rollouts.gate_sender import GateSender
from tests.gateway.webhooks.receivers import receiving

HEADERS = {"content-type": "application/json"}


async def test_questions_arrive_at_gates_that_may_be_reached() -> None:
    """Two at once make one client."""
    sender = GateSender(allowed=read_networks("127.0.0.1"))
    async with sender.running(), receiving() as receiver:
        url = f"http://127.0.0.1:{receiver.port}/gate"
        outcomes = await asyncio.gather(*(sender.post("acme", url, HEADERS, b"{}") for _ in range(2)))

    assert [outcome.attempt.status for outcome in outcomes] == [200, 200]
    assert [got.body for got in receiver.got] == [b"{}", b"{}"]


async def test_gates_within_are_not_asked() -> None:
    """Its owner chooses the URL."""
    sender = GateSender()
    async with sender.running(), receiving() as receiver:
        outcome = await sender.post("acme", f"http://127.0.0.1:{receiver.port}/gate", HEADERS, b"{}")

    assert outcome.attempt.status == 0
    assert outcome.attempt.error
    assert receiver.got == []


async def test_who_asks_nothing_makes_no_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most gateways ask no gate."""
    made: list[object] = []
    monkeypatch.setattr(GateSender, "_made", lambda self: made.append(self))
    async with GateSender().running():
        pass

    assert made == []

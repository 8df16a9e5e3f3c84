"""The hooks of a class whose node is taken away."""

from __future__ import annotations

import socket

import pytest

from pilotlight_runtime.guest.agent_channel import Channel
from pilotlight_runtime.guest.drain_hooks import DrainHooks
from pilotlight_runtime.guest.frames import DrainHooksEnded, FrameDecoder, FromGuest


def test_each_runs_once_in_its_order(capfd: pytest.CaptureFixture[str]) -> None:
    """Plain or asynchronous; what raises is in the log; the agent is told once that they have ended."""
    ran: list[str] = []

    async def last() -> None:
        ran.append("last")

    def broken() -> None:
        raise ValueError("no room")

    agent, guest = socket.socketpair()
    with agent, guest:
        hooks = DrainHooks(Channel(guest), (lambda: ran.append("first"), broken, last))
        hooks.join()  # they have not begun
        hooks.start()
        hooks.start()
        hooks.join()
        decoder = FrameDecoder(FromGuest)
        frames = decoder.filled(agent.recv_into(decoder.space()))

    assert ran == ["first", "last"]
    assert frames == [DrainHooksEnded()]
    assert "no room" in capfd.readouterr().err

"""A stream over a bus that loses messages both ways: its caller gets each chunk once, in order, and its end."""

from __future__ import annotations

import random

import pytest

from pilotlight_core.model.messages.call_messages import Chunk, ChunkGroup, Ended, Outcome, Window
from pilotlight_core.model.messages.message import Message
from pilotlight_gateway.calls.effects import Effect, FailCall, RelayChunks, SendControl
from pilotlight_gateway.calls.origin import Origin, OriginState
from pilotlight_runtime.calls.gateway_links import GatewayLinks
from pilotlight_runtime.calls.origin_frames import OriginSender
from pilotlight_runtime.calls.slot_table import AcceptedCall
from tests.builders.calls import run
from tests.gateway.calls.origin_steps import sent as sent_call

CHUNKS = 200
STEP_S = 0.25
ASKS_EVERY_S = 2.0
"""A gateway asks for calls of which it has heard nothing for so long (`Reconciler`)."""


class LossyBus:
    """Between the agent's side of a stream and its origin."""

    def __init__(self, chance: random.Random, lost: float) -> None:
        self.chance, self.lost = chance, lost
        self.at = self.heard_at = 2.0
        self.under_way: list[Message] = []
        self.origin: Origin = sent_call()
        links = GatewayLinks(self, region="local", node="n1", instance="i")
        self.sender = OriginSender(
            self, links, "_PL.n1.i", region="local", node="n1", clock=lambda: self.at, call_soon=lambda send: send()
        )
        self.call = AcceptedCall(run("a", gateway="gw1", groups=True), self.at, self.at)
        self.relayed: list[bytes] = []
        self.error: FailCall | None = None

    def publish_nowait(self, _subject: str, message: Message, *, reply: str = "") -> None:
        """Of the agent."""
        del reply
        if self.chance.random() >= self.lost:
            self.under_way.append(message)

    def deliver(self) -> None:
        arrived, self.under_way = self.under_way, []
        for message in arrived:
            self.heard_at = self.at
            if isinstance(message, ChunkGroup):
                for row in message.rows:
                    self._act(self.origin.chunks(row, self.at))
            elif isinstance(message, Chunk | Ended):
                self._act(self.origin.frame("n1", message, self.at))

    def _act(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, RelayChunks):
                assert effect.seq == len(self.relayed) + 1
                self.relayed += effect.data
                self._act(self.origin.was_read(len(effect.data), sum(map(len, effect.data))))
            elif isinstance(effect, FailCall):
                self.error = effect
            elif isinstance(effect, SendControl) and self.chance.random() >= self.lost:
                assert isinstance(effect.message, Window)
                self.sender.on_window("a", effect.message.upto, again=effect.message.again)

    def pass_time(self) -> None:
        self.at += STEP_S
        self.sender.sweep(self.at)
        self.deliver()
        self._act(self.origin.tick(self.at))
        if self.at - self.heard_at > ASKS_EVERY_S and self.chance.random() >= self.lost:
            self.sender.resend("a", 1)
            self.heard_at = self.at


@pytest.mark.parametrize("seed", range(30))
def test_a_stream_is_whole_though_messages_are_lost(seed: int) -> None:
    """One of ten, at any time, also its last ones, and what is said about it."""
    chance = random.Random(seed)
    bus = LossyBus(chance, 0.1)
    seq = 1
    while seq <= CHUNKS:
        data = tuple(b"%d" % number for number in range(seq, min(CHUNKS + 1, seq + chance.randrange(1, 5))))
        bus.sender.send_chunks(bus.call, seq, data)
        seq += len(data)
        if chance.random() < 0.3:
            bus.pass_time()
    ended = Ended(call_id="a", grant_number=1, container="c1", outcome=Outcome.OK, last_seq=CHUNKS)
    bus.sender.send("gw1", ended)
    for _ in range(400):
        bus.pass_time()
        if bus.origin.state is OriginState.DONE:
            break

    assert bus.error is None
    assert bus.relayed == [b"%d" % number for number in range(1, CHUNKS + 1)]
    assert bus.origin.state is OriginState.DONE

"""Frames to gateways, and gateways that do not listen."""

from __future__ import annotations

from collections.abc import Callable

from pilotlight_core.bus import NO_RESPONDERS, BusDown
from pilotlight_core.model.messages.call_messages import (
    Chunk,
    ChunkGroup,
    ChunkRow,
    Ended,
    Outcome,
    RemoteError,
    Started,
    StreamCheckpoint,
)
from pilotlight_core.model.messages.message import Message
from pilotlight_runtime.calls import origin_frames
from pilotlight_runtime.calls.chunk_groups import GROUP_BYTES, GROUP_CHUNKS
from pilotlight_runtime.calls.gateway_links import GatewayLinks
from pilotlight_runtime.calls.origin_frames import OriginSender
from tests.builders.calls import run
from tests.runtime.fake_runner_io import accepted


class World:
    """A bus that writes down what is sent, and a clock that is set."""

    def __init__(self) -> None:
        self.at = 100.0
        self.down = False
        self.sent: list[tuple[str, Message, str]] = []
        self.vanished: list[str] = []
        self.links = GatewayLinks(self, region="local", node="n", instance="i")
        self.soon: list[Callable[[], None]] = []
        self.origins = OriginSender(
            self,
            self.links,
            "_PL.n.i",
            region="local",
            node="n",
            clock=lambda: self.at,
            call_soon=self.soon.append,
        )

    def publish_nowait(self, subject: str, message: Message, *, reply: str = "") -> None:
        if self.down:
            raise BusDown("down")
        self.sent.append((subject, message, reply))

    def end_turn(self) -> None:
        """The loop's turn is over."""
        soon, self.soon[:] = list(self.soon), []
        for call in soon:
            call()

    def told(self) -> list[Message]:
        return [message for _, message, _ in self.sent]

    def later(self, seconds: float) -> None:
        self.at += seconds
        self.vanished += self.origins.sweep(self.at)

    def unheard(self) -> None:
        """The bus says that nobody heard the last message."""
        self.origins.on_notice(self.sent[-1][2], NO_RESPONDERS, self.sent[-1][0])


def ended(call: str = "call_1", output: bytes = b"") -> Ended:
    return Ended(call_id=call, grant_number=1, container="c1", outcome=Outcome.OK, output=output)


def test_frames_go_to_their_gateway() -> None:
    """With an address for complaints that names gateway and call."""
    world = World()
    world.origins.send("gw1", Started(call_id="call_1", grant_number=1))
    world.origins.send("gw1", ended())

    assert [(subject, reply) for subject, _, reply in world.sent] == [
        ("pl.local.gw.gw1.reply.n", "_PL.n.i.gw1.-"),
        ("pl.local.gw.gw1.reply.n", "_PL.n.i.gw1.call_1"),
    ]


def test_a_last_frame_is_offered_until_it_is_heard() -> None:
    """For a while; one that was heard is not repeated."""
    world = World()
    world.origins.send("gw1", ended())
    world.unheard()
    world.later(0.5)
    assert len(world.sent) >= 2
    assert world.sent[1][1] == ended()

    count = sum(message == ended() for _, message, _ in world.sent)
    world.later(0.5)
    assert sum(message == ended() for _, message, _ in world.sent) == count


def test_a_frame_that_was_lost_on_its_way_is_sent_when_it_is_asked_for() -> None:
    """A server may have held it for a gateway that stood still until its connection was closed."""
    world = World()
    world.origins.send("gw1", ended())
    for _ in range(16):
        world.later(0.5)

    assert world.origins.resend("call_1", grant_number=1)
    assert [message for _, message, _ in world.sent] == [ended(), ended()]
    world.later(origin_frames.KEEP_S + 1)
    assert not world.origins.resend("call_1", grant_number=1)


def chunks(first: int, *data: bytes, grant: int = 1) -> ChunkGroup:
    return ChunkGroup(rows=(ChunkRow("call_1", grant, first, data),))


def test_chunks_that_were_lost_on_their_way_are_sent_when_they_are_asked_for() -> None:
    """Those behind the last that the gateway has, in order, and the end behind them; what it has is kept no longer."""
    world = World()
    one = Chunk(call_id="call_1", grant_number=1, seq=1, data=b"1")
    call = accepted(run("call_1", groups=True), 0.0)
    world.origins.send("gw1", one)
    for first, data in ((2, (b"2", b"3")), (4, (b"4", b"5"))):
        world.origins.send_chunks(call, first, data)
        world.end_turn()
    world.origins.send("gw1", ended())
    sent = world.told()
    assert [type(each) for each in sent] == [Chunk, ChunkGroup, ChunkGroup, Ended]

    world.origins.on_window("call_1", 2, again=True)
    assert world.told()[4:] == sent[1:]
    world.origins.on_window("call_1", 3, again=False)
    world.origins.on_window("call_1", 3, again=True)
    assert world.told()[7:] == sent[2:]
    world.origins.on_window("call_1", 5, again=True)
    assert world.told()[9:] == [ended()]
    world.origins.on_window("call_9", 0, again=True)
    assert len(world.told()) == 10


def test_chunks_of_a_turn_without_a_bus_are_sent_when_it_is_back() -> None:
    """The gateway sees the gap by what comes next."""
    world = World()
    world.down = True
    world.origins.send("gw1", Chunk(call_id="call_1", grant_number=1, seq=1, data=b"1"))
    world.down = False
    world.origins.on_window("call_1", 0, again=True)
    assert [message.seq for message in world.told() if isinstance(message, Chunk)] == [1]


def test_while_the_bus_is_down_last_frames_wait() -> None:
    """Other frames are lost: the last one says enough, or the stream shows its gap."""
    world = World()
    world.down = True
    world.origins.send("gw1", Chunk(call_id="call_1", grant_number=1, seq=1, data=b""))
    world.origins.send("gw1", ended())
    world.later(3.0)

    world.down = False
    world.later(0.5)

    assert [message for _, message, _ in world.sent] == [ended()]


def test_last_frames_are_not_kept_for_ever() -> None:
    """Neither too long nor too many bytes of them."""
    world = World()
    world.down = True
    world.origins.send("gw1", ended())
    world.later(origin_frames.KEEP_S + 1)
    size = origin_frames.KEEP_BYTES // 4
    for number in range(5):
        world.origins.send("gw1", ended(f"call_{number}", b"x" * size))

    world.down = False
    world.later(0.5)

    assert len(world.sent) == 3


def test_what_a_function_raised_counts_as_well() -> None:
    """A traceback outside of ASCII takes four bytes a character."""
    world = World()
    raised = RemoteError(type="E", message="", traceback="\U0001f525" * 32_000)
    for number in range(1_000):
        frame = Ended(call_id=f"call_{number}", grant_number=1, container="c1", outcome=Outcome.RAISED, error=raised)
        world.origins.send("gw1", frame)

    kept = [number for number in range(1_000) if world.origins.resend(f"call_{number}", 1)]
    assert kept == list(range(1_000 - len(kept), 1_000))
    assert 500 < len(kept) <= origin_frames.KEEP_BYTES // 128_000


def test_a_gateway_that_stays_away_has_vanished() -> None:
    """It is asked again before that is believed, and reported once."""
    world = World()
    world.origins.send("gw1", Started(call_id="call_1", grant_number=1))
    for _ in range(10):
        world.unheard()
        world.later(0.5)
        if world.vanished:
            break

    assert world.vanished == ["gw1"]
    assert world.at - 100.0 > origin_frames.VANISHED_S


def test_a_gateway_that_is_back_has_not_vanished() -> None:
    """One question that nobody complains about clears it."""
    world = World()
    world.origins.send("gw1", Started(call_id="call_1", grant_number=1))
    world.unheard()
    for _ in range(10):
        world.later(0.5)

    assert world.vanished == []
    assert len(world.sent) == 2  # the frame, and one question


def test_our_own_absence_says_nothing_of_gateways() -> None:
    """While we are disconnected, nobody vanishes."""
    world = World()
    world.origins.send("gw1", Started(call_id="call_1", grant_number=1))
    world.unheard()
    world.down = True
    for _ in range(10):
        world.later(0.5)

    assert world.vanished == []


def test_a_last_frame_can_be_asked_for() -> None:
    """By an origin that has missed it, for that very grant."""
    world = World()
    world.origins.send("gw1", ended())

    assert world.origins.resend("call_1", 1)
    assert not world.origins.resend("call_1", 2)
    assert not world.origins.resend("call_2", 1)
    assert [message for _, message, _ in world.sent] == [ended(), ended()]


def test_what_is_no_notice_is_ignored() -> None:
    """Somebody may publish there."""
    world = World()
    world.origins.on_notice("_PL.n.i.gw1.-", ended(), "")
    world.later(0.5)

    assert world.sent == []


def row(call: str, seq: int, *data: bytes) -> ChunkRow:
    return ChunkRow(call, 1, seq, data)


def test_the_chunks_of_one_turn_go_to_their_gateway_together() -> None:
    """In one message at its end, of however many calls they are."""
    world = World()
    for call, seq in (("a", 1), ("b", 1), ("a", 2)):
        world.origins.send_chunks(accepted(run(call, gateway="gw1", groups=True), 0.0), seq, (b"%d" % seq,))
    world.origins.send_chunks(accepted(run("c", gateway="gw2", groups=True), 0.0), 1, (b"1",))
    assert world.sent == []

    world.end_turn()
    assert world.told() == [
        ChunkGroup(rows=(row("a", 1, b"1", b"2"), row("b", 1, b"1"))),
        ChunkGroup(rows=(row("c", 1, b"1"),)),
    ]
    world.end_turn()
    assert len(world.sent) == 2


def test_a_gateway_of_before_gets_each_chunk_by_itself() -> None:
    """It would close its link at a message that it does not know."""
    world = World()
    world.origins.send_chunks(accepted(run("a", gateway="gw1"), 0.0), 1, (b"1",))

    assert world.told() == [Chunk(call_id="a", grant_number=1, seq=1, data=b"1")]


def test_other_frames_of_a_call_come_behind_its_chunks() -> None:
    """Its checkpoints and its end: what waits goes first."""
    world = World()
    stream = accepted(run("a", gateway="gw1", groups=True), 0.0)
    saved = StreamCheckpoint(call_id="a", grant_number=1, seq=1, state=b"s")
    world.origins.send_chunks(stream, 1, (b"1",))
    world.origins.send("gw1", saved)
    world.origins.send_chunks(stream, 2, (b"2",))
    world.origins.send("gw1", ended("a"))
    world.end_turn()

    assert world.told() == [
        ChunkGroup(rows=(row("a", 1, b"1"),)), saved, ChunkGroup(rows=(row("a", 2, b"2"),)), ended("a"),
    ]  # fmt: skip


def test_chunks_wait_on_when_another_call_has_something_to_say() -> None:
    """A state that is saved before its chunk does not part the chunks of a turn."""
    world = World()
    saved = StreamCheckpoint(call_id="b", grant_number=1, seq=0, state=b"s")
    world.origins.send_chunks(accepted(run("a", gateway="gw1", groups=True), 0.0), 1, (b"1",))
    world.origins.send("gw1", saved)
    world.origins.send_chunks(accepted(run("b", gateway="gw1", groups=True), 0.0), 1, (b"1",))
    world.end_turn()

    assert world.told() == [saved, ChunkGroup(rows=(row("a", 1, b"1"), row("b", 1, b"1")))]


def test_a_full_group_and_a_large_chunk_do_not_wait() -> None:
    """The gateway works on them meanwhile; a large chunk goes by itself, behind those before it."""
    world = World()
    stream = accepted(run("a", gateway="gw1", groups=True), 0.0)
    for seq in range(1, GROUP_CHUNKS + 2):
        world.origins.send_chunks(stream, seq, (b"x",))
    world.origins.send_chunks(stream, GROUP_CHUNKS + 2, (bytes(GROUP_BYTES),))

    assert world.told() == [
        ChunkGroup(rows=(row("a", 1, *[b"x"] * GROUP_CHUNKS),)),
        ChunkGroup(rows=(row("a", GROUP_CHUNKS + 1, b"x"),)),
        Chunk(call_id="a", grant_number=1, seq=GROUP_CHUNKS + 2, data=bytes(GROUP_BYTES)),
    ]


def test_chunks_of_a_link_that_ends_are_told_again_over_the_bus() -> None:
    """Those that its gateway has not confirmed, in order, before later ones."""
    world = World()
    group = ChunkGroup(rows=(row("a", 1, b"1"),))
    world.origins.send_chunks(accepted(run("a", gateway="gw1", groups=True), 0.0), 2, (b"2",))
    world.links.resend("gw1", [group, ended("b")])
    world.end_turn()

    assert world.told() == [group, ChunkGroup(rows=(row("a", 2, b"2"),))]

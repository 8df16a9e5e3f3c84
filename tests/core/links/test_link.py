"""One end of a link over a transport in memory: groups, what is unheard, and what ends it."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from typing import Any, cast

import msgspec
import pytest

from pilotlight_core.links import TO_AGENT, TO_GATEWAY, Link, LinkPort, link
from pilotlight_core.model.messages.call_messages import Cancel, Started
from pilotlight_core.model.messages.message import Message


class Pipe:
    """A transport that writes down, and a loop that is turned by hand."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.paused = self.aborted = False
        self.unsent = 0
        self.soon: list[Callable[[], None]] = []

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False

    def abort(self) -> None:
        self.aborted = True

    def call_soon(self, do: Callable[[], None]) -> None:
        self.soon.append(do)

    def turn(self) -> None:
        due, self.soon = self.soon, []
        for do in due:
            do()


class End:
    """A link with its owner."""

    def __init__(self, *, agent: bool = True) -> None:
        self.pipe = Pipe()
        self.got: list[Any] = []
        self.groups = 0
        self.ends = 0
        self.on_group: Callable[[], None] = lambda: None
        decoder = TO_AGENT if agent else TO_GATEWAY
        loop = cast("asyncio.AbstractEventLoop", self.pipe)
        self.link = Link(self, decoder, loop, keeps_unheard=agent)
        self.link.connection_made(cast("asyncio.Transport", self.pipe))

    def opened(self, link: LinkPort) -> None:
        pass

    def received(self, link: LinkPort, messages: list[Any]) -> None:
        self.groups += 1
        self.got += messages
        self.on_group()

    def closed(self, link: LinkPort) -> None:
        self.ends += 1

    @property
    def is_over(self) -> bool:
        return self.ends == 1

    def hear(self, end: End) -> None:
        """All that the other end has written arrives."""
        data, end.pipe.written = b"".join(end.pipe.written), []
        self.link.data_received(data)


def started(number: int) -> Message:
    return Started(call_id=f"c{number}", grant_number=1)


def cancel(number: int) -> Message:
    return Cancel(call_id=f"c{number}")


def frame(*messages: Message, heard: int = 0) -> bytes:
    payload = msgspec.msgpack.encode((heard, messages))
    return struct.pack(">I", len(payload)) + payload


def ends() -> tuple[End, End]:
    """An agent's and a gateway's."""
    return End(agent=True), End(agent=False)


def greeted_ends() -> tuple[End, End]:
    """That have said one thing each already."""
    agent, gateway = ends()
    for teller, message in ((agent, started(0)), (gateway, cancel(0))):
        teller.link.send(message)
        teller.link.flush()
    agent.hear(gateway)
    gateway.hear(agent)
    return agent, gateway


def test_a_turn_s_messages_are_one_write_and_arrive_in_order() -> None:
    """Unless they are more than a group: then each full one leaves at once."""
    agent, gateway = ends()
    for number in range(link.GROUP + 3):
        agent.link.send(started(number))

    assert len(agent.pipe.written) == 1
    agent.pipe.turn()
    assert len(agent.pipe.written) == 2
    gateway.hear(agent)
    assert (gateway.groups, gateway.got) == (2, [started(number) for number in range(link.GROUP + 3)])


def test_frames_may_come_in_any_pieces() -> None:
    """Also byte by byte, and several at once."""
    end, data = End(), frame(cancel(1)) + frame(cancel(2), cancel(3))
    for at in range(len(data)):
        end.link.data_received(data[at : at + 1])
    end.link.data_received(data)

    assert end.got == [cancel(1), cancel(2), cancel(3)] * 2


def test_what_the_other_end_has_handled_is_heard() -> None:
    """With its next frame, or its next tick; what has not left is unheard too."""
    agent, gateway = greeted_ends()
    agent.link.send(started(1))
    agent.link.flush()
    gateway.hear(agent)
    agent.link.send(started(2))
    agent.link.flush()
    gateway.link.tick()
    agent.hear(gateway)
    agent.link.send(started(3))

    assert agent.link.unheard() == [started(2), started(3)]


def test_a_reader_that_has_nothing_to_say_confirms_now_and_then() -> None:
    """So that a stream's chunks are not kept for ever."""
    agent, gateway = greeted_ends()
    for _ in range(link.HEARD_EVERY - 1):  # and what it has said already
        agent.link.send(started(1))
        agent.link.flush()
    gateway.hear(agent)
    agent.hear(gateway)

    assert not agent.link.unheard()


def test_a_held_link_reads_no_further_than_the_group_that_made_it_so() -> None:
    """And goes on with what has come when it is released."""
    end = End()
    end.on_group = end.link.hold
    end.link.data_received(frame(cancel(1)) + frame(cancel(2)))

    assert (end.pipe.paused, end.got) == (True, [cancel(1)])
    end.on_group = lambda: None
    end.link.release()
    assert (end.pipe.paused, end.got) == (False, [cancel(1), cancel(2)])


@pytest.mark.parametrize("held", [False, True], ids=["", "and held meanwhile"])
def test_many_small_groups_are_read_in_turns(held: bool) -> None:
    """Others have theirs between; nothing is lost, out of order or read before it is released."""
    end, many = End(), 2 * link.GROUPS_AT_ONCE + 1
    end.link.data_received(b"".join(frame(cancel(number)) for number in range(many)))
    counts, paused = [end.groups], end.pipe.paused
    if held:
        end.link.hold()
        end.pipe.turn()
        end.link.release()
    end.link.data_received(frame(cancel(many)))
    while end.pipe.soon:
        counts.append(end.groups)
        end.pipe.turn()

    assert paused
    assert (
        counts
        == [link.GROUPS_AT_ONCE, (2 if held else 1) * link.GROUPS_AT_ONCE, 2 * link.GROUPS_AT_ONCE][: len(counts)]
    )
    assert (end.pipe.paused, end.got) == (False, [cancel(number) for number in range(many + 1)])


def test_a_link_that_ends_while_others_have_their_turn_is_read_no_further() -> None:
    end = End()
    end.link.data_received(frame(cancel(1)) * (link.GROUPS_AT_ONCE + 1))
    end.link.close("enough")
    end.pipe.turn()

    assert (end.groups, end.ends) == (link.GROUPS_AT_ONCE, 1)


def test_a_greeting_is_small() -> None:
    """Later frames need not be."""
    large, end, stranger = frame(Cancel(call_id="x" * link.GREETING_BYTES)), End(), End()
    end.link.data_received(frame(cancel(1)) + large)
    stranger.link.data_received(large)

    assert (end.ends, len(end.got)) == (0, 2)
    assert (stranger.ends, stranger.got) == (1, [])


@pytest.mark.parametrize(
    "data",
    [
        struct.pack(">I", link.FRAME_BYTES + 1),
        struct.pack(">I", link.GREETING_BYTES + 1),
        frame(),  # no greeting
        struct.pack(">I", 3) + b"abc",
        frame(started(1)),  # of the other direction
        frame(*(cancel(number) for number in range(link.MOST_OF_GROUP + 1))),
        frame(heard=1),  # nothing was sent
        frame(heard=-1),
    ],
    ids=[
        "too large",
        "too large a greeting",
        "no greeting",
        "no msgpack",
        "another family",
        "too many",
        "heard too much",
        "heard less than nothing",
    ],
)
def test_a_bad_frame_ends_the_link(data: bytes) -> None:
    """Once, and nothing that follows is read."""
    end = End()
    end.link.data_received(data + frame(cancel(1)))
    end.link.connection_lost(None)

    assert end.pipe.aborted
    assert (end.ends, end.got) == (1, [])


def test_a_reader_that_does_not_read_loses_its_link() -> None:
    """What was on it is unheard."""
    end = End()
    end.pipe.unsent = link.UNSENT_BYTES + 1
    end.link.send(started(1))
    end.link.flush()

    assert end.ends == 1
    assert end.link.unheard() == [started(1)]


def test_what_is_sent_over_a_broken_link_stays_unheard() -> None:
    """In order, whether it was in a group or not."""
    end = End()
    end.link.send(started(1))
    end.link.connection_lost(None)
    for number in range(2, link.GROUP + 3):
        end.link.send(started(number))

    assert end.link.unheard() == [started(number) for number in range(1, link.GROUP + 3)]
    assert not end.pipe.written


def test_a_message_too_large_does_not_take_others_along(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of its group the others are sent, one by one."""
    agent, gateway = ends()
    monkeypatch.setattr(link, "FRAME_BYTES", 1_000)
    for message in (started(1), Started(call_id="x" * 2_000, grant_number=1), started(2)):
        agent.link.send(message)
    agent.link.flush()
    gateway.hear(agent)

    assert gateway.got == [started(1), started(2)]


def test_silence_ends_a_link() -> None:
    """Any group breaks it; an end that does not greet has less time."""
    greeted, stranger = End(), End()
    greeted.link.data_received(frame(cancel(1)))
    for _ in range(link.PATIENT_TICKS + 1):
        greeted.link.tick()
        stranger.link.tick()
    assert (greeted.ends, stranger.ends) == (0, 1)

    greeted.link.data_received(frame())
    over = []
    for _ in range(link.SILENT_TICKS + 1):
        greeted.link.tick()
        over.append(greeted.is_over)
    assert over == [False] * link.SILENT_TICKS + [True]


def test_a_link_that_is_held_for_too_long_ends() -> None:
    """Its agent's word on the bus was lost."""
    end = End()
    end.on_group = end.link.hold
    end.link.data_received(frame(cancel(1)))
    over = []
    for _ in range(link.PATIENT_TICKS + 1):
        end.link.tick()
        over.append(end.is_over)
    assert over == [False] * link.PATIENT_TICKS + [True]


def test_an_owner_that_raises_loses_no_other_group() -> None:
    """It is logged."""
    end = End()

    def fail() -> None:
        raise ValueError("no")

    end.on_group = fail
    end.link.data_received(frame(cancel(1)) + frame(cancel(2)))

    assert end.got == [cancel(1), cancel(2)]

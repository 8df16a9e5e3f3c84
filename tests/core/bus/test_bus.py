"""Messages: publish, request, subscribe, and their errors."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pilotlight_core.bus import NO_RESPONDERS, Bus, BusDown, BusTimeout, MessageTooLarge, NoResponders, connect
from pilotlight_core.bus.client import NatsClient
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.call_messages import Cancel
from pilotlight_core.model.messages.node_messages import CommandReply
from pilotlight_supervisor.embedded_bus import nats_url
from pilotlight_supervisor.free_ports import free_port


class Heard:
    """A handler that remembers, and a way to wait for as much as is expected."""

    def __init__(self, expected: int = 1) -> None:
        self.all: list[tuple[str, Any, str]] = []
        self._expected = expected
        self._enough = asyncio.Event()

    def __call__(self, subject: str, message: Any, reply: str) -> None:
        self.all.append((subject, message, reply))
        if len(self.all) >= self._expected:
            self._enough.set()

    async def wait(self) -> list[Any]:
        async with asyncio.timeout(30):
            await self._enough.wait()
        return [message for _, message, _ in self.all]


async def test_messages_arrive_decoded_and_in_order(bus: Bus, other: Bus) -> None:
    """A subscriber sees what was published, typed, in the order of publication."""
    subject, heard = f"t.{token()}", Heard(100)
    await other.subscribe(f"{subject}.*", heard)
    await other.flush()

    for number in range(100):
        await bus.publish(f"{subject}.x", Cancel(call_id=str(number)))

    assert [message.call_id for message in await heard.wait()] == [str(number) for number in range(100)]


async def test_of_several_addresses_one_that_answers_is_enough(server_url: str) -> None:
    """An address on which no server listens is skipped."""
    nobody = nats_url(free_port(), "x")
    for url in (f"{nobody},{server_url}", f"{server_url},{nobody}"):
        async with connect(url, name="x", timeout=5) as bus:
            await bus.flush()


async def test_a_queue_group_shares_the_messages(bus: Bus, other: Bus) -> None:
    """Of the members of a queue group one gets each message."""
    subject, heard = f"t.{token()}", Heard(20)
    for member in (bus, other):
        await member.subscribe(subject, heard, queue="workers")
        await member.flush()

    for number in range(20):
        bus.publish_nowait(subject, Cancel(call_id=str(number)))
    await heard.wait()
    await bus.flush()
    await other.flush()

    assert len(heard.all) == 20


async def test_a_request_is_answered(bus: Bus, other: Bus) -> None:
    """A request returns the decoded answer; many at once get their own."""
    subject = f"t.{token()}"

    def answer(_: str, message: Any, reply: str) -> None:
        other.publish_nowait(reply, CommandReply(ok=True, reason=message.call_id))

    await other.subscribe(subject, answer)
    await other.flush()

    answers = await asyncio.gather(*(bus.request(subject, Cancel(call_id=str(n)), 5.0) for n in range(50)))

    assert [answer.reason for answer in answers] == [str(n) for n in range(50)]
    assert bus.statistics().open_requests == 0


async def test_a_request_to_nobody_fails_at_once(bus: Bus) -> None:
    """Nobody listens: NoResponders, long before the timeout."""
    with pytest.raises(NoResponders):
        async with asyncio.timeout(30):
            await bus.request(f"t.{token()}", Cancel(call_id="x"), 90.0)


async def test_a_request_without_an_answer_times_out(bus: Bus, other: Bus) -> None:
    """A listener that does not answer causes BusTimeout."""
    subject = f"t.{token()}"
    await other.subscribe(subject, lambda *_: None)
    await other.flush()

    with pytest.raises(BusTimeout):
        await bus.request(subject, Cancel(call_id="x"), 0.05)


async def test_a_publisher_learns_that_nobody_listened(bus: Bus) -> None:
    """A message with a reply subject comes back as NO_RESPONDERS with its subject."""
    subject, heard = f"t.{token()}", Heard()
    await bus.subscribe(f"{subject}.back", heard)

    await bus.publish(f"{subject}.nobody", Cancel(call_id="x"), reply=f"{subject}.back")
    await heard.wait()

    assert heard.all == [(f"{subject}.back", NO_RESPONDERS, f"{subject}.nobody")]


async def test_unsubscribed_means_silence(bus: Bus) -> None:
    """After unsubscribe the handler is not called again."""
    subject, heard = f"t.{token()}", Heard()
    subscription = await bus.subscribe(subject, heard)

    await subscription.unsubscribe()
    await bus.publish(subject, Cancel(call_id="x"))
    await bus.flush()

    assert heard.all == []


async def test_what_listens_in_a_block_is_silent_after_it(bus: Bus, other: Bus) -> None:
    """Handlers, bells and reconnect callbacks end with the block, also if it fails."""
    subject, heard, rung = f"t.{token()}", Heard(), asyncio.Event()

    async def reconnected() -> None:
        """Never called."""

    async def listen_and_fail() -> None:
        bells = {f"{subject}.b": rung.set}
        async with bus.listening({f"{subject}.a": heard}, bells=bells, reconnected=reconnected):
            await bus.flush()
            assert bus.on_reconnect == [reconnected]
            for end in "ab":
                await other.publish(f"{subject}.{end}", Cancel(call_id=end))
            assert await heard.wait() == [Cancel(call_id="a")]
            await rung.wait()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await listen_and_fail()
    await bus.flush()

    assert bus.on_reconnect == []
    for end in "ab":
        with pytest.raises(NoResponders):
            await other.request(f"{subject}.{end}", Cancel(call_id=end), timeout=30.0)


async def test_a_bad_message_or_handler_harms_nobody(bus: Bus, server_url: str) -> None:
    """What cannot be decoded is counted and dropped, what a handler raises is logged; later messages arrive."""
    import nats  # the raw client, to send what ours cannot

    subject, heard = f"t.{token()}", Heard()

    def handler(subject: str, message: Any, reply: str) -> None:
        if message.call_id == "bad":
            raise RuntimeError("on purpose")
        heard(subject, message, reply)

    await bus.subscribe(subject, handler)
    await bus.flush()
    raw = await nats.connect(server_url)
    await raw.publish(subject, b"\xc1 not msgpack")
    await raw.flush()  # the server has seen it before what follows on another connection
    await raw.close()

    await bus.publish(subject, Cancel(call_id="bad"))
    await bus.publish(subject, Cancel(call_id="good"))

    assert [message.call_id for message in await heard.wait()] == ["good"]
    assert (bus.statistics().undecodable, bus.statistics().handler_errors) == (1, 1)


async def test_a_message_that_does_not_fit_is_refused(bus: Bus) -> None:
    """An oversize message is refused here: the server would close the connection for good."""
    with pytest.raises(MessageTooLarge):
        await bus.publish("t.large", Cancel(call_id="x" * (4 * 2**20 - 100)))
    await bus.flush()

    assert bus.connected


@pytest.mark.parametrize("subject", ["", "a b", "a\r\nPUB x 0", "x" * 600])
async def test_a_subject_cannot_break_the_protocol(bus: Bus, subject: str) -> None:
    """White space and endless subjects never reach the socket."""
    with pytest.raises(ValueError, match="is not a subject"):
        await bus.publish(subject, Cancel(call_id="x"))


async def test_a_flush_that_is_cancelled_does_no_harm(bus: Bus) -> None:
    """After a cancelled flush the connection still works."""
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await bus.flush()

    await bus.flush()


async def test_no_server_is_said_clearly() -> None:
    """Without a server, connecting ends within its time, with the address in the message, its token left out."""
    port = free_port()

    with pytest.raises(BusDown, match=f"at nats://127.0.0.1:{port} within"):
        async with connect(nats_url(port, "secret"), name="test", timeout=0.3):
            pass


async def test_without_the_token_there_is_no_connection(server_url: str) -> None:
    """Loopback is everybody's on the machine, the bus is not."""
    for place in (server_url.partition("@")[2], f"wrong@{server_url.partition('@')[2]}"):
        with pytest.raises(BusDown, match=r"No connection .* the server does not let it in: its password is another"):
            async with connect(f"nats://{place}", name="test", timeout=0.3):
                pass


async def test_what_the_block_raises_comes_out_as_it_is(server_url: str) -> None:
    """An exception in the block is not wrapped into a group."""
    with pytest.raises(KeyError):
        async with connect(server_url, name="test"):
            raise KeyError("mine")


async def test_a_standing_job_that_crashes_closes_the_bus(bus: Bus) -> None:
    """A crash of a background task sets `closed`, so that the process ends and is restarted."""

    async def crash() -> None:
        raise RuntimeError("on purpose")

    bus.spawn(crash())

    async with asyncio.timeout(30):
        await bus.closed.wait()


@pytest.mark.parametrize("anyio_backend", [("asyncio", {"use_uvloop": True})])
async def test_it_runs_on_uvloop(bus: Bus, other: Bus) -> None:
    """The gateway's event loop carries it too."""
    subject, heard = f"t.{token()}", Heard(3)
    await other.subscribe(subject, heard)
    await other.flush()

    for number in range(3):
        await bus.publish(subject, Cancel(call_id=str(number)))

    assert len(await heard.wait()) == 3
    assert "uvloop" in type(asyncio.get_running_loop()).__module__


async def test_a_lost_cancellation_does_not_keep_an_attempt_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within nats-py `wait_for` may lose one: the attempt is cancelled until it has ended."""
    cancelled = 0

    async def deaf(*_: object, **__: object) -> None:
        nonlocal cancelled
        while cancelled < 3:
            try:
                await asyncio.sleep(3_600)
            except asyncio.CancelledError:
                cancelled += 1

    monkeypatch.setattr(NatsClient, "connect", deaf)
    with pytest.raises(BusDown, match="No connection"):
        async with connect("nats://127.0.0.1:4", name="deaf", timeout=0.05):
            pass
    assert cancelled == 3

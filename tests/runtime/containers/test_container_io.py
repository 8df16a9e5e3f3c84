"""What a container's runner is connected to: real slots, notes, meter and socket."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pilotlight_core.bus import BusTimeout
from pilotlight_core.model.messages.call_messages import BodyRef, Outcome, Refusal, ResumePoint
from pilotlight_core.model.messages.message import Message
from pilotlight_core.model.messages.usage import LeaseState
from pilotlight_core.model.messages.usage_facts import Fault
from pilotlight_runtime.calls.credits import Credits
from pilotlight_runtime.calls.gateway_links import GatewayLinks
from pilotlight_runtime.calls.nested_asks import NestedAsks
from pilotlight_runtime.calls.node_calls import NodeCalls
from pilotlight_runtime.calls.origin_frames import OriginSender
from pilotlight_runtime.calls.remote_bodies import MAX_BODY, BodyTransfers
from pilotlight_runtime.calls.runner_io import RunnerIO
from pilotlight_runtime.calls.slot_table import AcceptedCall, SlotTable
from pilotlight_runtime.calls.waiting_calls import NO_NOTE, WaitingCalls
from pilotlight_runtime.containers.container_io import ContainerIO
from pilotlight_runtime.guest.frames import MAX_FRAME, Invoke, encode
from pilotlight_runtime.guest.guest_connection import GuestConnection
from pilotlight_runtime.metering.container_meter import ContainerMeter, WorkKey, WorkLog
from pilotlight_runtime.metering.meter import SliceMeter
from pilotlight_runtime.metering.metered_slice import MeteredSlice, SliceOwner
from tests.builders.calls import run
from tests.waiting import until

HUGE = BodyRef(url="http://origin/bodies/x", token="x", size=MAX_BODY + 1)


class World:
    """A ready container's connections, and what its runner's container was told."""

    def __init__(self, folder: Path, group: asyncio.TaskGroup, connection: GuestConnection) -> None:
        self.connection = connection
        self.sent: list[Message] = []
        self.kills: list[str] = []
        self.released: list[AcceptedCall] = []
        self.loop = asyncio.get_running_loop()
        self.slots = SlotTable(instance="i1")
        self.slots.open("c1", "ver_1", 4)
        self.waiting = WaitingCalls(folder / "waiting", "boot")
        self.bodies = BodyTransfers(group)
        links = GatewayLinks(self, region="local", node="n", instance="i1")
        calls = NodeCalls(
            slots=self.slots,
            waiting=self.waiting,
            links=links,
            origins=OriginSender(
                self,
                links,
                "_PL.n.i",
                region="local",
                node="n",
                clock=self.loop.time,
                call_soon=self.loop.call_soon,
            ),
            bodies=self.bodies,
            nested=NestedAsks(self, self.bodies, group, region="local", node="n", clock=self.loop.time),
            credits=Credits(
                self,
                links,
                region="local",
                node="n",
                instance="i1",
                epoch_of=self.slots.epoch,
                call_soon=self.loop.call_soon,
            ),
        )
        slice_ = MeteredSlice(instance="i1", node="n", device="cpu", slice="cpu-0", ppm=1_000_000, price="cpu")
        self.slice = SliceMeter(slice_, at_ns=0)
        self.work = WorkLog()
        key = WorkKey(container="c1", version="ver_1", slice="cpu-0")
        self.at_ns = 5
        self.meter = meter = ContainerMeter(self.slice, self.work, key, clock=lambda: self.at_ns)
        meter.owner = SliceOwner(tenant="acme", app="shop", function="rank", version="ver_1", container="c1")
        meter.enter(LeaseState.IDLE)
        self.io: RunnerIO = ContainerIO(
            calls=calls,
            connection=connection,
            meter=meter,
            release=self.released.append,
            retire=self.kills.append,
            kill=self.kills.append,
            clock=self.loop.time,
        )

    @property
    def state(self) -> LeaseState:
        """What the slice is doing."""
        return self.slice.state

    def publish_nowait(self, _subject: str, message: Message, *, reply: str = "") -> None:
        self.sent.append(message)

    async def request(self, subject: str, message: Message, timeout: float) -> object:
        """A gateway that answers nothing."""
        self.sent.append(message)
        await asyncio.sleep(timeout)
        raise BusTimeout(subject)

    def accept(self, call_id: str, **more: Any) -> AcceptedCall:
        """A call that the slot table has taken now."""
        call = self.slots.accept(run(call_id, **more), self.loop.time())
        assert isinstance(call, AcceptedCall)
        return call


@asynccontextmanager
async def world_in(folder: Path, max_unsent: int = MAX_FRAME) -> AsyncIterator[tuple[World, socket.socket]]:
    """A world, and the guest's end of its socket."""
    ours, theirs = socket.socketpair()
    with theirs:
        async with asyncio.TaskGroup() as group:
            connection = await GuestConnection.open(
                ours, on_frame=lambda _: None, on_closed=lambda _: None, max_unsent=max_unsent
            )
            world = World(folder, group, connection)
            yield world, theirs
            connection.close()
            await world.bodies.close()
            world.waiting.close()


async def test_a_guest_that_is_gone_is_no_error(tmp_path: Path, anyio_backend: str) -> None:
    """The exit of its sandbox follows, and ends every call."""
    async with world_in(tmp_path) as (world, theirs):
        theirs.setblocking(False)  # noqa: FBT003 - its only argument
        world.io.send_to_guest(Invoke(call_id="a"))
        assert await world.loop.sock_recv(theirs, 100) == encode(Invoke(call_id="a"))
        world.connection.close()

        world.io.send_to_guest(Invoke(call_id="b"))

        assert world.kills == []


async def test_a_guest_that_does_not_read_is_killed(tmp_path: Path, anyio_backend: str) -> None:
    """What waits for it is bounded."""
    async with world_in(tmp_path, max_unsent=1_000) as (world, _):
        world.io.send_to_guest(Invoke(call_id="a", input=bytes(2_000)))

        assert world.kills == ["0 bytes wait for a guest that does not read"]


async def test_an_input_beyond_a_frame_kills(tmp_path: Path, anyio_backend: str) -> None:
    """It could never be given to the guest."""
    async with world_in(tmp_path) as (world, _):
        world.io.send_to_guest(Invoke(call_id="a", input=bytes(MAX_FRAME)))

        assert len(world.kills) == 1
        assert "is larger than" in world.kills[0]


async def test_a_cancelled_call_does_not_start_and_costs_nothing(tmp_path: Path, anyio_backend: str) -> None:
    """Its note is removed all the same."""
    async with world_in(tmp_path) as (world, _):
        call = world.accept("a")
        world.io.note_waiting(call)
        assert len(world.waiting) == 1
        world.slots.cancel("a")

        assert world.io.start(call, world.loop.time()) is Refusal.GONE

        assert (len(world.waiting), call.note) == (0, NO_NOTE)
        assert world.state is LeaseState.IDLE


@pytest.mark.parametrize(
    ("resume", "sent", "kept", "fault"),
    [
        (ResumePoint(), 0, False, Fault.PLATFORM),  # nothing came of it: the next container does all of it
        (ResumePoint(), 3, True, Fault.NONE),
        (ResumePoint(), 0, True, Fault.NONE),  # it saved its state
        (ResumePoint(after=3, sent=3, resumed=True), 3, False, Fault.PLATFORM),  # another container had sent those
        (ResumePoint(after=3, sent=3, resumed=True), 4, True, Fault.NONE),
        (ResumePoint(after=3, sent=5, resumed=True, is_last=True), 5, False, Fault.PLATFORM),
        (None, 0, False, Fault.PLATFORM),
        (None, 1, False, Fault.NONE),  # its caller has that part
    ],
)
async def test_what_is_done_again_elsewhere_is_paid_there(
    tmp_path: Path, anyio_backend: str, resume: ResumePoint | None, sent: int, kept: bool, fault: Fault
) -> None:
    """Of a stream whose node is taken away; what its caller has, or the next container goes on from, was no waste."""
    async with world_in(tmp_path) as (world, _):
        call = world.accept("a", resume=resume)
        assert world.io.start(call, world.loop.time()) is None
        call.is_preempted, call.sent_seq = True, sent
        world.at_ns += 1
        if kept:
            world.io.keep_work([call])

        spent = world.io.finish(call, Outcome.DIED)

        assert spent is not None
        assert spent.fault is fault


@pytest.mark.parametrize("fault", [Fault.TENANT, Fault.PLATFORM])
async def test_whose_doing_a_death_was_is_known(tmp_path: Path, anyio_backend: str, fault: Fault) -> None:
    """Its origin is told."""
    async with world_in(tmp_path) as (world, _):
        call = world.accept("a")
        assert world.io.start(call, world.loop.time()) is None
        world.meter.fault_of_death = fault

        world.io.finish(call, Outcome.DIED)

        assert call.is_own_death is (fault is Fault.TENANT)


async def test_a_call_is_metered_from_its_start_to_its_end(tmp_path: Path, anyio_backend: str) -> None:
    """For the tenant that called."""
    async with world_in(tmp_path) as (world, _):
        call = world.accept("a", tenant="rival")

        assert world.io.start(call, world.loop.time()) is None
        busy = world.state
        spent = world.io.finish(call, Outcome.OK)
        world.io.record_batch(1, 2.5)

        assert spent is not None
        assert (spent.ppm, spent.price, spent.batch_size) == (1_000_000, "cpu", 1)
        assert world.io.price == "cpu"
        assert (busy, world.state) == (LeaseState.BUSY, LeaseState.IDLE)
        (event,) = [event for event in world.slice.checkpoint(6) if event.shares]
        assert [share.tenant for share in event.shares] == ["rival"]
        assert [(ran.batch, ran.ms) for ran in world.work.take()] == [(1, (2.5,))]


async def test_a_call_that_is_released_leaves_no_note(tmp_path: Path, anyio_backend: str) -> None:
    """The container does the rest."""
    async with world_in(tmp_path) as (world, _):
        call = world.accept("a")
        world.io.note_waiting(call)

        world.io.release(call)

        assert (len(world.waiting), world.released) == (0, [call])


async def test_bodies_that_cannot_be_transferred_are_answered(tmp_path: Path, anyio_backend: str) -> None:
    """With no data, and with not taken, at an instant of the container's clock."""
    async with world_in(tmp_path) as (world, _):
        call = world.accept("a", body=HUGE)
        call.decide(Outcome.OK, output=b"answer")
        fetched: asyncio.Future[tuple[AcceptedCall, bytes | None, float]] = world.loop.create_future()
        uploaded: asyncio.Future[tuple[AcceptedCall, bool, float]] = world.loop.create_future()
        before_at = world.loop.time()

        world.io.fetch_input(call, lambda *answer: fetched.set_result(answer))
        world.io.upload_output(call, lambda *answer: uploaded.set_result(answer))

        assert (await fetched)[:2] == (call, None)
        assert (await uploaded)[:2] == (call, False)
        assert before_at <= (await uploaded)[2] <= world.loop.time()


async def test_only_the_last_pump_that_was_asked_for_comes(tmp_path: Path, anyio_backend: str) -> None:
    """At its instant or later; none after None."""
    async with world_in(tmp_path) as (world, _):
        pumps: list[str] = []
        pumped: asyncio.Future[float] = world.loop.create_future()
        wanted_at = world.loop.time() + 0.02

        world.io.pump_at(world.loop.time(), lambda _: pumps.append("replaced"))
        world.io.pump_at(wanted_at, pumped.set_result)
        assert await pumped >= wanted_at - 0.001
        world.io.pump_at(world.loop.time(), lambda _: pumps.append("cancelled"))
        world.io.pump_at(None, lambda _: pumps.append("never"))
        world.io.pump_at(world.loop.time() + 0.02, lambda _: pumps.append("last"))
        await until(lambda: pumps)

        assert pumps == ["last"]

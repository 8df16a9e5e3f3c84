"""Bodies are bounded before anything is parsed, whatever the client says about them."""

from __future__ import annotations

import asyncio

import pytest
from starlette.types import Message

from pilotlight_core.model.errors import BadInput, DeadlineExceeded, Unavailable
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.http.calls.call_limits import CALL_BODY
from pilotlight_gateway.http.protocol.http_exchange import ClientGone
from pilotlight_gateway.http.protocol.request_bodies import BodyLimits, MinThroughput, pieces, read_body
from tests.gateway.http.asgi import Wire, ask
from tests.gateway.world import World, function
from tests.waiting import until

ELEVEN_MB = 11 * 10**6
LIMITS = BodyLimits(size=100)
PACED = BodyLimits(size=10**9, rate=50 * 1024, window=10.0)


@pytest.mark.parametrize("announced", [str(ELEVEN_MB), "5", None])
async def test_eleven_megabytes_are_refused_however_they_come(world: World, announced: str | None) -> None:
    """413 for an honest length, a lying one, and none; an honest one is refused before a byte is read."""
    world.deploy(function())
    piece = b"x" * 65_536
    wire = Wire(pieces=[piece] * (ELEVEN_MB // len(piece) + 1))
    headers = {"content_length": announced} if announced else {}

    await ask(world.app, wire, "POST", "/v1/functions/shop.hello/calls", authorization=f"Bearer {world.key}", **headers)

    assert (wire.status, wire.json["code"]) == (413, "too_large")
    assert world.services.budget.used == 0
    unread = len(wire._left)
    assert unread == len(list(wire.pieces)) if announced == str(ELEVEN_MB) else unread < 20


async def test_ten_megabytes_are_taken(world: World) -> None:
    """The published size works, in a thread and within the budget."""
    world.deploy(function())
    text = "x" * (10**7 - 100)
    async with world.client() as client:
        answer = await client.post("/v1/functions/shop.hello/calls", json={"input": {"name": text}})

    assert answer.json()["output"] == {"name": text}
    assert world.services.budget.used == 0


async def test_a_body_comes_whole_from_its_pieces() -> None:
    """In order, and counted until it is given back."""
    wire, budget = Wire(pieces=[b"ab", b"", b"cd"]), ByteBudget(limit=20)

    assert await read_body({"headers": []}, wire.receive, LIMITS, budget, "acme") == b"abcd"
    assert budget.used == 4


async def test_a_body_that_stalls_is_given_up() -> None:
    """Whoever sends a little and no more holds the connection for the grace, and nothing stays counted."""
    budget, limits = ByteBudget(limit=20), BodyLimits(size=100, grace=0.02)

    with pytest.raises(DeadlineExceeded):
        await read_body({"headers": []}, Wire(pieces=[b"ab"], stall=True).receive, limits, budget, "acme")

    assert budget.used == 0


async def test_a_body_that_came_while_the_gateway_stood_still_is_taken() -> None:
    """Its time is up before the gateway has looked: who wakes up finds the timers before what has arrived."""
    loop, limits, here = asyncio.get_running_loop(), BodyLimits(size=100, grace=0.02), asyncio.Event()
    loop.call_later(0.03, here.set)

    async def receive() -> Message:
        await here.wait()
        return {"type": "http.request", "body": b"abcd"}

    assert await read_body({"headers": []}, receive, limits, ByteBudget(limit=20), "acme") == b"abcd"


async def test_a_body_has_the_time_that_its_pace_has_earned() -> None:
    """What arrives at the rate may take far longer than the grace; what falls behind it is given up."""
    limits = BodyLimits(size=1_000, grace=0.1, rate=400)

    async def trickle(pause: float, pieces: int) -> bytes:
        left = pieces

        async def receive() -> dict[str, object]:
            nonlocal left
            left -= 1
            await asyncio.sleep(pause)
            return {"type": "http.request", "body": b"x" * 40, "more_body": left > 0}

        return await read_body({"headers": []}, receive, limits, ByteBudget(limit=2_000), "acme")

    assert len(await trickle(0.05, 6)) == 240
    with pytest.raises(DeadlineExceeded):
        await trickle(0.15, 6)


async def test_an_upload_that_pauses_too_long_is_given_up() -> None:
    """Large bodies have much time in all, but not between two pieces."""
    arriving = pieces({"headers": []}, Wire(pieces=[b"ab"], stall=True).receive, BodyLimits(size=9, idle_seconds=0.02))

    assert await anext(arriving) == b"ab"
    with pytest.raises(DeadlineExceeded):
        await anext(arriving)


def test_a_streamed_body_may_fall_behind_for_a_window() -> None:
    """What came late is made up for by what comes fast; nothing is saved beyond the window."""
    pace = MinThroughput(PACED)
    assert pace.left == 10.0
    pace.came(50 * 1024, 9.0)
    assert (pace.left, pace.slow) == (2.0, False)
    pace.came(10**6, 0.0)
    assert pace.left == 10.0
    pace.came(1, 30.0)
    assert pace.slow


class Paced:
    """A client that sends a piece of `size` bytes every `pause` seconds, on a clock of its own."""

    def __init__(self, pause: float, size: int, left: int = 10**6) -> None:
        self.pause = pause
        self.piece = b"x" * size
        self.left = left
        self.at = 0.0
        self.taken = 0

    async def receive(self) -> Message:
        self.at += self.pause
        self.left -= 1
        return {"type": "http.request", "body": self.piece, "more_body": self.left > 0}

    async def take_all(self, *, work: float = 0.0) -> int:
        """How many pieces came; each takes `work` seconds."""
        async for _ in pieces({"headers": []}, self.receive, PACED, lambda: self.at):
            self.taken += 1
            self.at += work
        return self.taken


@pytest.mark.parametrize(("pause", "size", "taken"), [(1.0, 1, 9), (5.0, 64 * 1024, 2), (0.2, 5 * 1024, 97)])
async def test_a_body_that_trickles_is_given_up(pause: float, size: int, taken: int) -> None:
    """However small or large its pieces are, after a window and what they have earned; 408 says how fast it must be."""
    client = Paced(pause, size)
    with pytest.raises(DeadlineExceeded, match="at least 512000 bytes have to come in 10 s") as refused:
        await client.take_all()

    assert (refused.value.wire_code, refused.value.meaning.status) == ("slow_body", 408)
    assert client.taken == taken


async def test_a_body_at_its_pace_may_take_long() -> None:
    """Ten minutes, say; and what is done with a piece does not count."""
    assert await Paced(1.0, 50 * 1024, left=600).take_all(work=1.0) == 600


async def test_a_client_that_hangs_up_is_noticed() -> None:
    """While its body arrives."""
    wire = Wire(pieces=[b"ab"], stall=True)
    wire.gone.set()

    with pytest.raises(ClientGone):
        await read_body({"headers": []}, wire.receive, LIMITS, ByteBudget(limit=20), "acme")


async def test_memory_for_bodies_is_bounded_over_all_requests() -> None:
    """The one that does not fit hears `overloaded`, and what it held is free again."""
    budget = ByteBudget(limit=20)
    budget.take(7, "acme")

    with pytest.raises(Unavailable) as caught:
        await read_body({"headers": []}, Wire(pieces=[b"ab", b"cd"]).receive, LIMITS, budget, "acme")

    assert caught.value.wire_code == "overloaded"
    assert budget.used == 7


@pytest.mark.parametrize("length", [b"many", b"-1", b"1e3", b"+5"])
async def test_a_length_that_is_no_number_is_refused(length: bytes) -> None:
    """A proxy and we must not read it differently."""
    with pytest.raises(BadInput) as caught:
        await read_body(
            {"headers": [(b"content-length", length)]}, Wire().receive, LIMITS, ByteBudget(limit=20), "acme"
        )

    assert caught.value.wire_code == "bad_request"


def test_the_bound_has_room_for_ten_megabytes_and_a_frame() -> None:
    """And for less than eleven."""
    assert 10 * 10**6 < CALL_BODY.size < ELEVEN_MB


async def test_cancelling_gives_back_what_was_held() -> None:
    """As when the process shuts down."""
    budget = ByteBudget(limit=20)
    wire = Wire(pieces=[b"ab"], stall=True)
    task = asyncio.create_task(read_body({"headers": []}, wire.receive, LIMITS, budget, "acme"))
    await until(lambda: budget.used)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert budget.used == 0

"""The crowd: callers in a process of their own."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from benchmarks import crowd as crowd_module
from benchmarks.crowd import Member, crowd
from tests.waiting import until

SERVED = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"
REFUSED = b"HTTP/1.1 429 Too Many Requests\r\nretry-after-ms: 60\r\ncontent-length: 2\r\n\r\n{}"


@contextmanager
def server(*answers: bytes) -> Iterator[str]:
    """Answers each request with the next of `answers`, the last one for ever."""
    left = list(answers)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(asyncio.IncompleteReadError):
                while head := await reader.readuntil(b"\r\n\r\n"):
                    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                    await reader.readexactly(length)
                    writer.write(left.pop(0) if len(left) > 1 else left[0])
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    loop = asyncio.new_event_loop()
    listening = loop.run_until_complete(asyncio.start_server(serve, "127.0.0.1", 0))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    finally:
        asyncio.run_coroutine_threadsafe(_close(listening), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _close(listening: asyncio.Server) -> None:
    listening.close()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def member(url: str, **more: float) -> Member:
    begins = time.monotonic()
    ends = begins + more.get("seconds", 1.5)
    return Member(
        name="m", key="k", urls=(url,), ref="app.fn", sizes_ms=(20.0,), begins=begins, until=ends,
        rate=more.get("rate", 0.0), outstanding=int(more.get("outstanding", 0)),
    )  # fmt: skip


def test_calls_come_at_their_rate() -> None:
    """About as many as rate times time, each with its answer."""
    with server(SERVED) as url, crowd([member(url, rate=200.0, seconds=4.0)]) as collect:  # its process starts first
        answers = collect()["m"]
    assert {one.status for one in answers} == {200}
    assert len(answers) > 20
    assert all(one.ended >= one.due and one.size_ms == 20.0 for one in answers)


def test_a_call_that_is_sent_late_has_waited_since_it_was_due() -> None:
    """A crowd that could not send for a while does not leave that out of its calls' latencies."""
    stopped_s = 0.5

    async def stop_once(player: crowd_module._Player) -> None:
        playing = asyncio.ensure_future(player.play())
        await until(lambda: player.answers)
        time.sleep(stopped_s)  # noqa: ASYNC251 - nothing is sent meanwhile
        await playing
        lines = [line for caller in player._callers for line in caller._idle]
        await until(lambda: all(line.transport is None for line in lines))

    with server(SERVED) as url:
        player = crowd_module._Player(member(url, rate=200.0))
        asyncio.run(stop_once(player))

    late = sorted(one.ms for one in player.answers)
    assert late[-1] >= 0.8 * stopped_s * 1000.0
    assert sum(ms > 100.0 for ms in late) > 20


def test_who_is_refused_comes_again() -> None:
    """A backlogged member goes on after a refusal."""
    with server(REFUSED, REFUSED, SERVED) as url, crowd([member(url, outstanding=2, seconds=6.0)]) as collect:
        answers = collect()["m"]
    assert [one.status for one in answers[:2]] == [429, 429]
    assert {one.status for one in answers[2:]} == {200}


def test_a_broken_connection_is_an_answer() -> None:
    """Nobody listens: the calls are counted, with status 0."""
    with server(SERVED) as url:
        pass
    with crowd([member(url, outstanding=1)]) as collect:
        assert {one.status for one in collect()["m"]} == {0}


def test_a_crowd_of_nobody_ends_at_once() -> None:
    """So that a run alone and one beside others are written alike."""
    with crowd([]) as collect:
        assert collect() == {}


@pytest.mark.parametrize("count", [1, 3])
def test_the_members_are_told_apart(count: int) -> None:
    """Each has its own answers."""
    with server(SERVED) as url:
        begins = time.monotonic()
        members = [
            Member(
                name=f"m{n}", key="k", urls=(url,), ref="app.fn", sizes_ms=(float(n),), begins=begins,
                until=begins + 1.0, outstanding=1,
            )
            for n in range(count)
        ]  # fmt: skip
        with crowd(members) as collect:
            answers = collect()
    assert {name: {one.size_ms for one in given} for name, given in answers.items()} == {
        f"m{n}": {float(n)} for n in range(count)
    }

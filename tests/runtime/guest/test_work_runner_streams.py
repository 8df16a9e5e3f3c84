"""Streams: far ahead of their reader with small chunks, and not with large ones."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field

import pytest

from pilotlight_core.model import values
from pilotlight_core.model.messages.call_messages import LEAST_AHEAD, WINDOW, Outcome
from pilotlight_core.model.spec import Mode
from pilotlight_runtime.guest.call_table import CallProgress, CallTable
from pilotlight_runtime.guest.frames import ChunkOut, GuestFrame, Invoke, Result, WindowUpdate
from pilotlight_runtime.guest.guest_target import target_of
from pilotlight_runtime.guest.work_runner import run_call
from tests.builders.specs import function_spec, method
from tests.runtime.guest.test_async_work_runner import ran
from tests.waiting import until

SIZES = [1] * WINDOW + [50_000] * 3
CALL = Invoke(call_id="a", input=values.encode({}), window=WINDOW)


def many() -> Iterator[bytes]:
    """Small chunks, then large ones."""
    yield from map(bytes, SIZES)


async def many_async() -> AsyncIterator[bytes]:
    """The same."""
    for size in SIZES:
        yield bytes(size)


@dataclass
class Reader:
    """A channel whose reader reads when it is waited for, and then no more than that."""

    sent: list[GuestFrame] = field(default_factory=list)
    waits: list[tuple[int, int]] = field(default_factory=list)
    """After so many chunks for so many."""

    def send(self, frame: GuestFrame) -> None:
        self.sent.append(frame)

    send_soon = send

    def read_cancels(self) -> None:
        pass

    def wait_read(self, progress: CallProgress, seq: int) -> bool:
        if seq > progress.read_seq:
            progress.read_seq = seq
            self.waits.append((len(self.sent), seq))
        return True


def test_a_stream_waits_before_a_large_chunk_as_if_all_had_been_large() -> None:
    """The small ones go ahead up to the window; of what is unread then most must be read first."""
    reader = Reader()
    result = run_call(target_of(function_spec("f", method(mode=Mode.GENERATOR)), many), CALL, CallProgress(), reader)

    assert (result.outcome, result.last_seq) == (Outcome.OK, len(SIZES))
    assert reader.waits == [(WINDOW + n, WINDOW + 1 + n - LEAST_AHEAD) for n in range(3)]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_an_async_stream_waits_alike(anyio_backend: str) -> None:
    """Until then it has sent all small ones."""
    table, sent = CallTable(), list[GuestFrame]()
    table.take(CALL)
    target = target_of(function_spec("f", method(mode=Mode.GENERATOR, is_async=True)), many_async)
    running = asyncio.ensure_future(ran(target, CALL, table, sent.append))
    await until(lambda: len(sent) == WINDOW)
    table.apply(WindowUpdate(call_id="a", upto=WINDOW - LEAST_AHEAD))
    await asyncio.sleep(0)
    assert len(sent) == WINDOW

    table.apply(WindowUpdate(call_id="a", upto=WINDOW + 3 - LEAST_AHEAD))
    result = await running
    assert isinstance(result, Result)
    assert [type(frame) for frame in sent] == [ChunkOut] * len(SIZES)

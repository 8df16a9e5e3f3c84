"""The thread that may hang."""

from __future__ import annotations

import threading

import pytest

from pilotlight_runtime.devices.nvidia.bounded_thread import BoundedThread

SOON = 5.0


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_it_answers_from_a_thread_of_its_own() -> None:
    """One thread for all calls, and it keeps no process alive."""
    thread = BoundedThread("test")

    first, second = [await thread.call(threading.current_thread, SOON) for _ in range(2)]

    assert first is second
    assert first is not threading.main_thread()
    assert first.daemon
    thread.close()
    first.join(SOON)
    assert not first.is_alive()


async def test_what_a_call_raises_is_raised_where_it_was_asked_for() -> None:
    """And the next call goes on."""
    thread = BoundedThread("test")

    with pytest.raises(ZeroDivisionError):
        await thread.call(lambda: 1 / 0, SOON)

    assert await thread.call(lambda: 1, SOON) == 1
    thread.close()


async def test_a_call_that_hangs_is_given_up_and_holds_up_only_its_own_kind() -> None:
    """Calls behind it are bounded too; once it returns, its answer is dropped and others are answered."""
    thread, gate = BoundedThread("test"), threading.Event()
    made: list[int] = []

    with pytest.raises(TimeoutError):
        await thread.call(lambda: gate.wait(SOON), 0.01)
    with pytest.raises(TimeoutError):
        await thread.call(lambda: made.append(1), 0.01)
    gate.set()

    assert await thread.call(lambda: "alive", SOON) == "alive"
    assert made == []
    thread.close()

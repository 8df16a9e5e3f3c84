"""The hooks of a container that is parked: what runs, in which order, and what is told of it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable
from types import SimpleNamespace
from typing import Any

import pytest

from pilotlight_runtime.guest.frames import HooksRan, ParkGuest, UnparkGuest
from pilotlight_runtime.guest.guest_target import GuestTarget
from pilotlight_runtime.guest.park_hooks import await_park_hooks, run_park_hooks

LOG: list[str] = []


async def late() -> None:
    """An asynchronous hook."""
    LOG.append("late")


def fail() -> None:
    """One that ends otherwise than it should."""
    raise SystemExit("not now")


TARGET = GuestTarget(methods={}, park=(lambda: LOG.append("away"), late), unpark=(lambda: LOG.append("back"),))
FAILING = GuestTarget(methods={}, park=(fail, late), unpark=(fail,))


def wait(hook: Awaitable[Any]) -> Any:
    """Runs an asynchronous hook in an event loop."""

    async def ended() -> Any:
        return await hook

    return asyncio.run(ended())


@pytest.fixture(autouse=True)
def _empty_log() -> None:
    LOG.clear()


def test_hooks_run_in_their_order_and_are_waited_for() -> None:
    """Asynchronous ones too, beside a function that is not."""
    assert run_park_hooks(TARGET, ParkGuest(), wait) == run_park_hooks(TARGET, UnparkGuest(), wait) == HooksRan()
    assert LOG == ["away", "late", "back"]
    assert (TARGET.parks, GuestTarget(methods={}).parks) == (True, False)


async def test_hooks_run_in_the_event_loop_of_the_calls(anyio_backend: str) -> None:
    """What they open belongs to it."""
    assert await await_park_hooks(TARGET, ParkGuest()) == await await_park_hooks(TARGET, UnparkGuest()) == HooksRan()
    assert LOG == ["away", "late", "back"]


async def test_what_a_hook_raises_is_told(anyio_backend: str) -> None:
    """Whatever it is; those behind it do not run."""
    for ran in (run_park_hooks(FAILING, ParkGuest(), wait), await await_park_hooks(FAILING, UnparkGuest())):
        assert ran.error is not None
        assert (ran.error.type, ran.error.message) == ("SystemExit", "not now")
    assert LOG == []


def test_what_torch_keeps_of_a_device_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once it was left, if it was used; a torch that knows no such thing is left alone."""
    for used in (True, False):
        LOG.clear()
        cuda = SimpleNamespace(is_initialized=lambda used=used: used, empty_cache=lambda: LOG.append("emptied"))
        monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
        run_park_hooks(TARGET, ParkGuest(), wait)
        run_park_hooks(TARGET, UnparkGuest(), wait)
        assert LOG.count("emptied") == used
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace())
    assert run_park_hooks(TARGET, ParkGuest(), wait) == HooksRan()

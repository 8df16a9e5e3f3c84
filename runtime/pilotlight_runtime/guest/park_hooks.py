"""Runs the hooks of a container that is parked, or serves again. No call runs meanwhile."""

from __future__ import annotations

import contextlib
import gc
import sys

from pilotlight_runtime.guest.basics.remote_errors import remote_error
from pilotlight_runtime.guest.frames import HooksRan, ParkGuest, UnparkGuest
from pilotlight_runtime.guest.guest_target import GuestTarget
from pilotlight_runtime.guest.loading import await_hook, call_hook
from pilotlight_runtime.guest.own_calls import RunHook

ParkWork = ParkGuest | UnparkGuest


def run_park_hooks(target: GuestTarget, asked: ParkWork, wait: RunHook) -> HooksRan:
    """Run them on this thread; `wait` runs asynchronous ones to their end."""
    try:
        for hook in target.park if isinstance(asked, ParkGuest) else target.unpark:
            call_hook(hook, wait)
    except BaseException as error:  # noqa: BLE001 - it is the tenant's code
        return HooksRan(error=remote_error(error))
    return ended(asked)


async def await_park_hooks(target: GuestTarget, asked: ParkWork) -> HooksRan:
    """Run them in the event loop of the calls."""
    try:
        for hook in target.park if isinstance(asked, ParkGuest) else target.unpark:
            await await_hook(hook)
    except BaseException as error:  # noqa: BLE001 - it is the tenant's code
        return HooksRan(error=remote_error(error))
    return ended(asked)


def ended(asked: ParkWork) -> HooksRan:
    """All of them have ended: what torch keeps of a device that was left goes back to it."""
    if isinstance(asked, ParkGuest):
        gc.collect()
        torch = sys.modules.get("torch")
        if torch is not None:
            with contextlib.suppress(Exception):  # without a device, or of another release
                if torch.cuda.is_initialized():
                    torch.cuda.empty_cache()
    return HooksRan()

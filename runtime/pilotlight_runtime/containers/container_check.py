"""The check of a ready container, again from time to time: the guest runs it in the place of one call.

It begins when the container has no call, or once it is as much overdue as it comes after the last one, when the guest
has room for another call. So a call waits for it at most as long as a check may take. One that fails, or takes longer,
takes the container out of service.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Protocol
from zlib import crc32

import msgspec
from msgspec import UNSET

from pilotlight_core.model.messages.call_messages import Outcome, RemoteError
from pilotlight_core.model.rehearsals.rehearsal import Rehearsal
from pilotlight_core.model.spec import FunctionSpec
from pilotlight_runtime.calls.call_errors import truncated_error
from pilotlight_runtime.guest import frames as guest

FIRST_CALL_S = 5.0
"""So long a container that was parked is not checked: somebody has called it."""
NO_ARGUMENTS = msgspec.msgpack.encode({})


class RoomForCheck(Protocol):
    """The part of a `CallRunner` that a check needs."""

    @property
    def is_idle(self) -> bool: ...

    def take_input(self) -> bool:
        """Take one of the guest's inputs for what is no call; False: there is none."""
        ...

    def free_input(self, at: float) -> None: ...


class ContainerCheck:
    """Begins one check after the other.

    `failed` is called once, with what is wrong, and the error if there was one. Instants are monotonic seconds.
    """

    def __init__(
        self,
        rehearsal: Rehearsal,
        room: RoomForCheck,
        *,
        send: Callable[[guest.GuestFrame], None],
        failed: Callable[[str, RemoteError | None], None],
        at: float,
    ) -> None:
        self._every = rehearsal.check_every
        self._most_s = rehearsal.check_timeout
        self._room = room
        self._send = send
        self._failed = failed
        self._last_at = self._began_at = self._away_at = at
        self._call_id = ""
        """Of the check under way."""
        self._numbers = count(1)
        self.done = 0
        """How many have gone well."""

    @property
    def is_under_way(self) -> bool:
        """Whether the guest has a check that it has not answered."""
        return bool(self._call_id)

    def pause(self, at: float) -> None:
        """The container is away from now on, and nothing changes in it."""
        self._away_at = at

    def resume(self, at: float) -> None:
        """It is back, for a call that comes before the next check. What it was away does not count.

        What is parked again and again is checked nevertheless, as often as it serves for so long.
        """
        soonest_at = at - self._every + min(FIRST_CALL_S, self._every / 2)
        self._last_at = max(self._last_at + at - self._away_at, soonest_at)

    def left_s(self, at: float) -> float:
        """How long the check that is under way may still take; 0 without one."""
        return max(0.0, self._began_at + self._most_s - at) if self._call_id else 0.0

    def begin_if_due(self, at: float) -> None:
        """Have the guest check itself, if it is time to and can be done."""
        if not self._every or self._call_id or not is_due(at - self._last_at, self._every, is_idle=self._room.is_idle):
            return
        if self._room.take_input():
            self._began_at, self._call_id = at, f"check-{next(self._numbers)}"
            self._send(guest.Invoke(call_id=self._call_id, method=guest.CHECK_METHOD, input=NO_ARGUMENTS))

    def tick(self, at: float) -> None:
        """Begin one, or give up one that takes too long."""
        self.begin_if_due(at)
        if self._call_id and at - self._began_at > self._most_s:
            self.stop()  # the input stays taken: the guest is not done with it
            self._failed(f"its check had not ended after {self._most_s:g} s", None)

    def on_result(self, frame: guest.Result, at: float) -> bool:
        """Take the guest's answer; False if it is none to a check."""
        if not self._call_id or frame.call_id != self._call_id:
            return False
        self._call_id, self._last_at = "", at
        if frame.outcome is Outcome.OK:
            self.done += 1
        else:
            self.stop()
            error = truncated_error(frame.error) if frame.error is not None else None
            self._failed("its check failed", error)
        self._room.free_input(at)
        return True

    def stop(self) -> None:
        """Begin no further one."""
        self._every, self._call_id = 0.0, ""


def check_of(
    spec: FunctionSpec,
    room: RoomForCheck,
    *,
    send: Callable[[guest.GuestFrame], None],
    failed: Callable[[str, RemoteError | None], None],
    container: str,
    at: float,
) -> ContainerCheck | None:
    """The repeated check of a function's container, ready at `at`; None: it has none."""
    if spec.rehearsal is UNSET or not spec.rehearsal.check_every:
        return None
    early_s = spec.rehearsal.check_every * early_part(container)
    return ContainerCheck(spec.rehearsal, room, send=send, failed=failed, at=at - early_s)


def early_part(container: str) -> float:
    """By which part of its period a container's first check comes early: up to half.

    Containers that have started together do not check themselves together, nor would all of them go at once.
    """
    return crc32(container.encode()) % 1_000 / 2_000


def is_due(since_s: float, every_s: float, *, is_idle: bool) -> bool:
    """Whether to check now, so long after the last check."""
    return since_s >= (every_s if is_idle else 2 * every_s)

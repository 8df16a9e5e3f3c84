"""The nested calls of one container: what its guest asks goes to the node's, within a rate."""

from __future__ import annotations

from collections.abc import Callable

from pilotlight_runtime.calls.answer_room import AnswerRoom
from pilotlight_runtime.calls.nested_asks import NestedAsks, problem_result
from pilotlight_runtime.calls.slot_table import AcceptedCall
from pilotlight_runtime.guest import frames as guest

MOST_A_SECOND = 2_000
"""Frames for calls that do not run here, those beyond a bound of the node's, and those that leave nested calls. An
honest guest sends few of them; one that sends more is killed. All others are bounded by the answers that they wait for.
"""


class ContainerNested:
    """`find_running` finds a call that the guest has, `kill` ends a guest that breaks a rule."""

    def __init__(
        self,
        nested: NestedAsks,
        container: str,
        *,
        find_running: Callable[[str], AcceptedCall | None],
        send: Callable[[guest.GuestFrame], None],
        room: AnswerRoom,
        kill: Callable[[str], None],
    ) -> None:
        self._nested = nested
        self._container = container
        self._find_running = find_running
        self._send = send
        self._room = room
        self._kill = kill
        self._needless = 0
        """Such frames since the last tick."""

    def on_frame(self, frame: guest.NestedCall | guest.NestedLeave) -> None:
        """The guest asks for a nested call, or leaves one."""
        call = self._find_running(frame.call_id) if isinstance(frame, guest.NestedCall) else None
        if isinstance(frame, guest.NestedCall) and call is not None:
            refused_before = self._nested.refused_here
            if fault := self._nested.begin(call, frame, self._send, self._room):
                self._kill(fault)
            elif self._nested.refused_here > refused_before:
                self._is_within_rate()
        elif not self._is_within_rate():
            return
        elif isinstance(frame, guest.NestedCall):
            self._send(problem_result(frame.number, "cancelled", "The call that makes it has ended, or is not wanted."))
        elif (parent := self._nested.parent_of(self._container, frame.number)) is not None:
            self._nested.leave(parent, frame.number)

    def _is_within_rate(self) -> bool:
        """Count a needless frame; a guest that sends too many is killed."""
        self._needless += 1
        if self._needless > MOST_A_SECOND:
            self._kill(f"the guest sent more than {MOST_A_SECOND} needless frames about nested calls within a second")
        return self._needless <= MOST_A_SECOND

    def tick(self) -> None:
        """Once a second."""
        self._needless = 0

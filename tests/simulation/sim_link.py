"""Links in the simulation: what is sent over one arrives in order, until it breaks.

A break loses what was on the link or delivers it first, as the history has it, and each end notices it at its own time.
What the other end has handled it confirms a little later, so that more is told again than was lost.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from pilotlight_core.links import LinkOwner
from pilotlight_core.links.link import PATIENT_TICKS, SILENT_TICKS
from pilotlight_core.model.messages.call_messages import CallFrame, Run
from pilotlight_core.model.messages.message import Message

if TYPE_CHECKING:
    from tests.simulation.world import Process


class SimLink:
    """One end, a `LinkPort`."""

    other: SimLink

    def __init__(self, process: Process, owner: LinkOwner) -> None:
        self.process = process
        self._world = process.world
        self._owner = owner
        self._life = process.life
        self.is_open = True
        self._broken = False
        """Whether nothing that is sent arrives any more."""
        self._held = False
        self._waiting: list[Message | None] = []
        self._on_its_way: deque[Message | None] = deque()
        """To the other end; None is a beat."""
        self._unheard: deque[Message] = deque()
        self._latest = 0.0
        self._quiet = 0
        self._greeted = False
        self._snaps: Callable[[], None] | None = None

    def send(self, message: Message) -> None:
        """See `LinkPort`."""
        self._world.promises.sent(message)
        self._unheard.append(message)
        self._put(message)

    def flush(self) -> None:
        """Everything leaves at once."""

    def unheard(self) -> list[Message]:
        """See `LinkPort`."""
        return list(self._unheard)

    def hold(self) -> None:
        """See `LinkPort`."""
        self._held, self._quiet = True, 0

    def release(self) -> None:
        """See `LinkPort`."""
        self._held, self._quiet = False, 0
        waiting, self._waiting = self._waiting, []
        for message in waiting:
            self._receive(message)

    def tick(self) -> None:
        """See `LinkPort`."""
        self._quiet += 1
        if self._quiet > (PATIENT_TICKS if self._held or not self._greeted else SILENT_TICKS):
            self.close("it is silent, or was held for too long")
        elif self._greeted:
            self._put(None)

    def close(self, reason: str) -> None:
        """See `LinkPort`."""
        if self.is_open:
            self._world.note("LINK", self.process.name, self.other.process.name, reason)
            self.other.lose()
            self.other.notice_after(self._latest)
            self._over()

    # -- what a history does to it -------------------------------------------------------------------------------

    def snap(self, *, delivers: bool) -> None:
        """It breaks, whoever has it. Both ends notice, at their own time."""
        if not self._broken:
            for end in (self, self.other):
                if not delivers:
                    end.lose()
                end.notice_after(end.other._latest if delivers else self._world.now)

    def snap_when_used(self, *, delivers: bool) -> None:
        """It breaks as soon as something is on it."""
        for end in (self, self.other):
            end._snaps = partial(self.snap, delivers=delivers)

    def lose(self) -> None:
        """What this end has sent and the other one has not got is gone."""
        self._broken = True
        dead = not self.process.alive or self.process.life != self._life
        for message in self._on_its_way:
            if isinstance(message, Run) or (dead and isinstance(message, CallFrame)):
                self._world.promises.lost(message)  # of other frames the agent tells again
        self._on_its_way.clear()

    def notice_after(self, instant: float) -> None:
        """It notices the break, not before `instant`."""
        self._broken = True
        soon = max(instant, self._world.now) + 0.0001 + self._world.link_rng.random() * 0.01
        self._world.at(soon, partial(self._in_its_turn, self._over))

    # -- inside --------------------------------------------------------------------------------------------------

    def _put(self, message: Message | None) -> None:
        if self._broken:
            if isinstance(message, Run):
                self._world.promises.lost(message)
            return
        rng = self._world.link_rng
        delay = 0.0002 + rng.random() * (0.05 if rng.random() < 0.03 else 0.001)
        self._latest = max(self._latest, self._world.now + delay)
        self._on_its_way.append(message)
        self._world.at(self._latest, self._arrive)
        if self._snaps is not None and message is not None:
            self._snaps()

    def _arrive(self) -> None:
        if self._on_its_way:
            message = self._on_its_way.popleft()
            if self.other.process.paused and message is not None:
                self._world.promises.stands_still(message)
            self.other._in_its_turn(partial(self.other._receive, message))

    def _in_its_turn(self, do: Callable[[], None]) -> None:
        if self.process.life == self._life:
            self.process._do(do)

    def _receive(self, message: Message | None) -> None:
        if not self.is_open:
            return
        if self._held:
            self._waiting.append(message)
            return
        self._quiet, self._greeted = 0, True
        if message is not None:
            self._world.note("link:", self.other.process.name, "->", self.process.name, message)
            self._owner.received(self, [message])
            self._world.at(self._world.now + self._world.link_rng.random() * 0.3, self.other._heard)

    def _heard(self) -> None:
        if self._unheard and not self._broken:
            self._unheard.popleft()

    def _over(self) -> None:
        if self.is_open:
            self._world.note("LINK of", self.process.name, "to", self.other.process.name, "is over")
            self.is_open = False
            self._broken = True
            self._owner.closed(self)


def link(one: Process, its_owner: LinkOwner, other: Process, others_owner: LinkOwner) -> SimLink:
    """A new link between two processes; the end of the first."""
    end, far = SimLink(one, its_owner), SimLink(other, others_owner)
    end.other, far.other = far, end
    one.world.links.append(end)
    others_owner.opened(far)
    its_owner.opened(end)
    return end


def break_links_of(process: Any, *, delivers: bool) -> None:
    """What a death does to links: the kernel still delivers what was written, or it had not left the process."""
    for end in process.world.links:
        if process in (end.process, end.other.process):
            end.snap(delivers=delivers)
    process.world.links = [end for end in process.world.links if not end._broken]

"""A small discrete-event world: virtual time, processes that can be killed, paused and cut off, and a bus between them.

Everything random comes from one seeded generator, so a seed is a history. The bus behaves as core NATS does, or worse:
it delays, it drops what goes to or comes from a process that is cut off or dead, it hands a paused process its
messages when that wakes up, it tells a sender "nobody listens" only when that is true (and not always then), and in
some worlds it duplicates, or reorders even between one sender and one receiver. Subjects are the real ones.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from pilotlight_core.bus import NO_RESPONDERS
from pilotlight_core.host.binding_book import MemoryBindings
from tests.simulation.promises import Promises
from tests.simulation.sim_link import SimLink, break_links_of
from tests.simulation.sim_loop import SimLoop

REGION = "local"
OWN = f"pl.{REGION}.gw."
"""What is said to one gateway, which may be oneself."""
KNOWN_AFTER = 3.0
"""Seconds until what was lost when a home began is mended."""
LAST_BREATH = 0.05
"""What a process sent this shortly before it was killed may still have been in its own buffers."""


@dataclass(frozen=True, slots=True)
class Mail:
    """A message on its way, as a handler gets it."""

    subject: str
    message: Any
    reply: str = ""


class World:
    """Time, bus and processes of one seed."""

    def __init__(self, seed: int, *, traced: bool = False) -> None:
        self.rng = random.Random(seed)
        self.now = 0.0
        self.promises = Promises()
        self.processes: dict[str, Process] = {}
        self.bindings = MemoryBindings()
        """What the controller has bound, as every process sees it at once."""
        self.cut_off: set[str] = set()
        self.in_order = self.rng.random() < 0.7
        self.duplicates = 0.05 if self.rng.random() < 0.3 else 0.0
        self.link_rng = random.Random(f"links {seed}")  # of its own: histories without links stay the same
        self.gateways_link = random.Random(f"gateways {seed}").random() < 0.5
        """Whether gateways do too, where there are links."""
        self.has_links = self.link_rng.random() < 0.5
        self.breaks_links_alone = self.has_links and self.link_rng.random() < 0.5
        """Whether nothing but links goes wrong."""
        if self.breaks_links_alone:
            self.in_order, self.duplicates = True, 0.0
        self.links: list[SimLink] = []
        """Those that stand, by the end that opened them."""
        self.traced = traced
        self.trace: list[str] = []
        self.is_calm = True
        """Whether nothing goes wrong, and every message arrives, once and in order."""
        self.loops: list[SimLoop] = []
        """Of all lives of all processes: what a kill leaves behind must not end before the history does."""
        self.homes_since: dict[int, float] = {}
        """Shard -> when its home began."""
        self.shards: tuple[int, ...] = ()
        """Those that matter: of the functions and tenants that there are."""
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self._latest: dict[tuple[str, str], float] = {}

    def note(self, *words: Any) -> None:
        """A line of the history, for a person who reads a failure."""
        if self.traced:
            self.trace.append(f"{self.now:9.4f}  " + " ".join(str(word) for word in words))

    def has_old_home(self, shard: int) -> bool:
        """Whether every gateway knows the home of a shard, and that has heard of what was said before it began."""
        return self.now - self.homes_since.get(shard, self.now) > KNOWN_AFTER

    def at(self, when: float, do: Callable[[], None]) -> None:
        """Let something happen at an instant."""
        self._count += 1
        heapq.heappush(self._heap, (when, self._count, do))

    def run(self, until: float, quiet: Callable[[], bool]) -> None:
        """Let time pass; stop early once all is quiet."""
        heap, events = self._heap, 0
        while heap and self.now < until:
            self.now, _, do = heapq.heappop(heap)
            do()
            events += 1
            if events % 32 == 0 and quiet():
                break

    def publish(self, sender: Process, mail: Mail) -> None:
        """Put a message on the bus, for everybody whom it concerns."""
        self.promises.sent(mail.message)
        for receiver in self._receivers(mail.subject):
            if receiver != sender.name or mail.subject.startswith(OWN):
                self._send(sender, receiver, mail)

    def _receivers(self, subject: str) -> list[str]:
        kind = subject.split(".")[2]
        if kind == "node":
            return [subject.split(".")[3]]
        if kind == "gw":
            name = subject.split(".")[3].rpartition("-")[0]
            return [name] if name in self.processes else []
        wanted = "controller" if kind == "demands" else "agent" if kind == "credits" else "gateway"
        return [name for name in self.processes if name.startswith(wanted)]

    def _send(self, sender: Process, receiver: str, mail: Mail) -> None:
        copies = 2 if self.duplicates and self.rng.random() < self.duplicates else 1
        for _ in range(copies):
            delay = 0.0005 + (self.rng.random() * 0.4 if self.rng.random() < 0.03 else self.rng.random() * 0.003)
            arrives = self.now + delay
            if self.in_order:
                pair = (sender.name, receiver)
                arrives = self._latest[pair] = max(arrives, self._latest.get(pair, 0.0))
            self.at(arrives, partial(self._deliver, sender, sender.life, self.now, receiver, mail))

    def _deliver(self, sender: Process, life: int, sent: float, receiver: str, mail: Mail) -> None:
        target, message = self.processes[receiver], mail.message
        buffered = sender.was_buffered(life, sent)
        nobody = not target.alive or receiver in self.cut_off or not target.listens(mail.subject)
        if buffered or nobody or sender.name in self.cut_off:
            self.note("LOST", sender.name, "->", receiver, message)
            self.promises.lost(message)
            if mail.reply and not buffered and sender.name not in self.cut_off and self.rng.random() < 0.7:
                self.at(self.now + 0.001, lambda: sender.take(Mail(mail.reply, NO_RESPONDERS, mail.subject)))
            return
        self.note(sender.name, "->", receiver, message)
        target.take(mail)


class Process:
    """Something that runs, with a clock of its own. A paused one sees its messages and timers late."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.life = 0
        self.alive = False
        self.paused = False
        self.killed_at = 0.0
        self.woke_at = 0.0
        self._skew = world.rng.uniform(0.0, 10_000.0)
        self._missed: list[Callable[[], None]] = []
        self._unread: list[Mail] = []
        world.processes[name] = self

    @property
    def clock(self) -> float:
        """Its monotonic clock, which no other process shares, and which goes on while it is paused."""
        return self.world.now + self._skew

    def boot(self) -> None:
        """Begin, with nothing remembered."""
        raise NotImplementedError

    def listens(self, subject: str) -> bool:
        """Whether messages on a subject are for this life of it."""
        raise NotImplementedError

    def receive(self, mail: Mail) -> None:
        """A message has come."""
        raise NotImplementedError

    def died(self) -> None:
        """It was killed."""

    def take(self, mail: Mail) -> None:
        """Receive a message as soon as it runs."""
        if self.paused:
            self._unread.append(mail)
            self.world.promises.stands_still(mail.message)
        self._do(lambda: self.receive(mail))

    def later(self, seconds: float, do: Callable[[], None]) -> None:
        """A timer: dies with this life, and is late if the process is paused."""
        life = self.life
        self.world.at(self.world.now + seconds, lambda: self._do(do) if life == self.life else None)

    def every(self, seconds: float, do: Callable[[], None]) -> None:
        """A timer that comes again and again."""

        def again() -> None:
            do()
            self.later(seconds, again)

        self.later(self.world.rng.random() * seconds, again)

    def publish(self, subject: str, message: Any, reply: str = "") -> None:
        """Put a message on the bus."""
        self.world.publish(self, Mail(subject, message, reply))

    def was_buffered(self, life: int, sent: float) -> bool:
        """Whether what it sent in a life was still its own when that ended."""
        is_late = self.life != life and self.killed_at - sent < LAST_BREATH
        return is_late and self.world.rng.random() < 0.5

    def start(self) -> None:
        """Run, if it does not."""
        if not self.alive:
            self.alive = True
            self.world.note("START", self.name)
            self.boot()

    def kill(self) -> None:
        """kill -9."""
        if self.alive:
            self.world.note("KILL", self.name)
            self.died()
            self.alive = self.paused = False
            self.life += 1
            self.killed_at = self.world.now
            break_links_of(self, delivers=self.world.link_rng.random() < 0.7)
            for mail in self._unread:
                self.world.promises.lost(mail.message)
            self._missed, self._unread = [], []

    def cut(self) -> None:
        """Nothing reaches it, and nothing that it sends arrives."""
        self.world.cut_off.add(self.name)

    def mend(self) -> None:
        """It is reached again."""
        self.world.cut_off.discard(self.name)

    def pause(self) -> None:
        """SIGSTOP."""
        if self.alive:
            self.world.note("PAUSE", self.name)
            self.paused = True

    def resume(self) -> None:
        """SIGCONT: what was missed comes at once, timers first or messages first."""
        if self.paused:
            self.world.note("RESUME", self.name)
            self.paused = False
            self.woke_at = self.world.now
            missed, self._missed, self._unread = self._missed, [], []
            for do in missed:
                self._do(do)

    def _do(self, do: Callable[[], None]) -> None:
        if self.paused:
            self._missed.append(do)
        elif self.alive:
            do()

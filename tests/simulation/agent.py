"""A node's agent in the simulation: the real slot table, and containers that take their time."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from pilotlight_core.links import AcceptedEnds
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.call_messages import (
    CallFrame,
    Cancel,
    Chunk,
    ChunkGroup,
    ChunkRow,
    Ended,
    Outcome,
    Reconcile,
    Refusal,
    Refused,
    RemoteError,
    Run,
    Spent,
    Stages,
    Started,
    StreamCheckpoint,
)
from pilotlight_core.model.messages.message import Message
from pilotlight_core.model.messages.node_messages import ContainerState, Credit, NodeReport
from pilotlight_core.model.messages.scheduling import CreditsWanted
from pilotlight_gateway.cluster.node_incarnations import LOST_AFTER_S
from pilotlight_runtime.calls.gateway_links import MOST_LINKS, GatewayLinks
from pilotlight_runtime.calls.slot_table import AcceptedCall, SlotTable
from tests.simulation.promises import Broken, answer_of
from tests.simulation.world import REGION, Mail, Process, World

FUNCTIONS = {"ver_1": "acme:app.fn", "ver_2": "acme:app.gn"}
"""Version -> its function: each has a home of its own."""
_bills = itertools.count(1)
LATE = 1.0
"""An agent that was away for nearly as long as nodes are waited for may speak too late for its predecessor."""


class SimPublisher:
    """The bus of an agent."""

    def __init__(self, agent: SimAgent) -> None:
        self._agent = agent

    def publish_nowait(self, subject: str, message: Message, *, reply: str = "") -> None:
        self._agent.publish(subject, message, reply)


@dataclass
class SimContainer:
    """A container: its version, room and state."""

    version: str
    slots: int
    state: ContainerState = ContainerState.LOADING


class SimAgent(Process):
    """One node. Killed, its containers die with it; the next life has a new instance and none of them."""

    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name)
        self._notes: list[Run] = []
        """What the last life had accepted and not started, as it would be found on the node's disk."""
        self.muted = False

    def boot(self) -> None:
        self.instance = f"{self.name}-{self.life}"
        self.table = SlotTable(instance=self.instance)
        self.containers: dict[str, SimContainer] = {}
        self._runs: dict[tuple[str, int], Run] = {}
        self._seq = 0
        self.links = GatewayLinks(SimPublisher(self), region=REGION, node=self.name, instance=self.instance)
        self.links.resend = self._resend_all
        self.links.ended = self._credit_all
        self.ends = AcceptedEnds(self.links, self._on_group, MOST_LINKS)
        self.every(1.0, self._beat)
        self._speak_for_the_dead()

    def died(self) -> None:
        self._notes += [run for run in self._runs.values() if self.has_note(run)]
        for run in self._runs.values():
            if self._is_running(run):
                self.world.promises.excused.add(run.call_id)
                self.world.promises.stopped(run.container)

    def has_note(self, run: Run) -> bool:
        """Whether its disk says that the call has not started."""
        return not self._is_running(run)

    def _speak_for_the_dead(self) -> None:
        notes, self._notes = self._notes, []
        for run in notes:
            if self.world.now - self.killed_at > LOST_AFTER_S - LATE:
                self.world.promises.excused.add(run.call_id)
            ended = Ended(
                call_id=run.call_id,
                grant_number=run.grant_number,
                container=run.container,
                outcome=Outcome.DIED,
                started=False,
            )
            self._tell(run.gateway, ended)

    # -- containers ----------------------------------------------------------------------------------------------

    def mute(self) -> None:
        """Its credits are lost from now on."""
        self.muted = True

    def unmute(self) -> None:
        """Its credits arrive again."""
        self.muted = False

    def take_command(self, command: Callable[[], None]) -> None:
        """Do what the controller says as soon as it gets here."""
        self.later(0.01, command)

    def bind(self, container: str, version: str, slots: int) -> None:
        """The controller wants a container."""
        self.containers[container] = SimContainer(version, slots)
        self._credit(container)
        self.later(0.1 + self.world.rng.random() * 0.4, partial(self._ready, container))

    def _ready(self, container: str) -> None:
        known = self.containers.get(container)
        if known is not None and known.state is ContainerState.LOADING:
            known.state = ContainerState.READY
            self.table.open(container, known.version, known.slots)
            self._credit(container)

    def drain(self, container: str) -> None:
        """The controller wants it gone once it is empty."""
        known = self.containers.get(container)
        if known is not None and known.state is ContainerState.READY:
            known.state = ContainerState.DRAINING
            self.table.drain(container)
            self._credit(container)
            self._leave_if_drained(container)

    def crash(self, container: str) -> None:
        """The guest dies; the agent tells everybody whose call it held."""
        known = self.containers.get(container)
        if known is None:
            return
        for item in self.table.close(container):
            self._over(self._run_of(item), Outcome.DIED, started=item.was_started, reason="exit code 139")
        known.state = ContainerState.GONE
        self._credit(container)
        del self.containers[container]

    def _leave_if_drained(self, container: str) -> None:
        known = self.containers.get(container)
        if known is not None and known.state is ContainerState.DRAINING and not self.table.held(container):
            self.crash(container)

    def _beat(self) -> None:
        report = NodeReport(node=self.name, instance=self.instance, seq=0, region="local", zone="a", sandbox="process")
        self.publish(subjects.beat(REGION, self.name), report)
        for item in self.table.release_overdue(self.clock):
            run = self._run_of(item)
            del self._runs[item.call_id, item.grant_number]
            self._refuse(run, Refusal.EXPIRED)
        self._credit_all()
        self.ends.tick()

    def _credit_all(self) -> None:
        for container in self.containers:
            self._credit(container)

    def _credit(self, container: str) -> None:
        known = self.containers[container]
        self._seq += 1
        credit = Credit(
            container=container,
            version=known.version,
            tenant="acme",
            function=FUNCTIONS[known.version],
            node=self.name,
            instance=self.instance,
            epoch=self.table.epoch(known.version),
            seq=self._seq,
            state=known.state,
            slots=known.slots,
            held=self.table.held(container),
        )
        if not self.muted:
            self.links.send_all(credit)
            self.publish(subjects.credit(REGION, self.name, known.version), credit)

    # -- calls ---------------------------------------------------------------------------------------------------

    def listens(self, subject: str) -> bool:
        return subject in (
            subjects.run(REGION, self.name, self.instance),
            subjects.control(REGION, self.name),
            subjects.credits_wanted(REGION),
        )

    def receive(self, mail: Mail) -> None:
        self._obey(mail.message)

    def _on_group(self, messages: list[Any]) -> None:
        for message in messages:
            self._obey(message)

    def _obey(self, message: Any) -> None:
        match message:
            case CreditsWanted():
                self._credit_all()
            case Run():
                self._run(message)
            case Cancel():
                self.world.promises.cancel_came(message.call_id, self.instance)
                self._cancel(self.table.cancel(message.call_id))
            case Reconcile():
                found = self.table.reconcile(message, self.clock)
                for item in found.orphans:
                    self._orphan(item)
                for past in found.released:
                    lost = Ended(
                        call_id=past.call_id, grant_number=past.grant_number, container="", outcome=Outcome.DIED,
                        started=past.was_started,
                        reason="its answer was lost",
                    )  # fmt: skip
                    self._tell(message.gateway, lost)

    def _run(self, run: Run) -> None:
        outcome = self.table.accept(run, self.clock)
        if isinstance(outcome, Refusal):
            self._refuse(run, outcome)
            return
        self._runs[run.call_id, run.grant_number] = run
        wait = self.world.rng.random() * 0.2 if self.world.rng.random() < 0.3 else 0.0
        self.later(wait, partial(self._start, run))

    def _start(self, run: Run) -> None:
        refusal = self.table.start(run.call_id, run.grant_number, self.clock)
        if refusal is Refusal.EXPIRED:
            self._refuse(self._runs.pop((run.call_id, run.grant_number)), refusal)
        if refusal is not None:
            return
        self.world.note("RUNS", run.call_id, run.grant_number, "in", run.container)
        self.world.promises.started(run, self.instance, self.containers[run.container].slots)
        fate = self.world.promises.fates[run.call_id]
        self._tell(run.gateway, Started(call_id=run.call_id, grant_number=run.grant_number))
        after = run.resume.after if run.resume is not None else 0
        for seq in range(after + 1, fate.chunks + 1):
            self.later(fate.seconds * (seq - after) / (fate.chunks - after + 1), partial(self._chunk, run, seq))
        self.later(fate.seconds, partial(self._finish, run))

    def _run_of(self, item: AcceptedCall) -> Run:
        run = self._runs.get((item.call_id, item.grant_number))
        if run is None:
            raise Broken("P6", f"{item.call_id} has ended and still holds a slot")
        return run

    def _is_running(self, run: Run) -> bool:
        held = self.table._held.get(run.call_id, {}).get(run.grant_number)
        return held is not None and held.was_started

    def _chunk(self, run: Run, seq: int) -> None:
        if (run.call_id, run.grant_number) in self._runs:
            data = b"%d" % seq
            if run.groups and seq % 2:
                self._tell(run.gateway, ChunkGroup(rows=(ChunkRow(run.call_id, run.grant_number, seq, (data,)),)))
            else:
                self._tell(run.gateway, Chunk(call_id=run.call_id, grant_number=run.grant_number, seq=seq, data=data))
            if run.resume is not None and seq == 2:
                state = StreamCheckpoint(call_id=run.call_id, grant_number=run.grant_number, seq=seq, state=data)
                self._tell(run.gateway, state)

    def _finish(self, run: Run) -> None:
        if (run.call_id, run.grant_number) not in self._runs:
            return
        promises = self.world.promises
        if promises.fates[run.call_id].deadly:
            self.crash(run.container)
            return
        cancelled = self.table._held[run.call_id][run.grant_number].is_cancelled
        self.table.release(run.call_id, run.grant_number)
        if cancelled:
            if self.world.rng.random() < 0.5:
                self._over(run, Outcome.CANCELLED, spent=Spent(ns=1, ppm=1, price="cpu"))
            else:  # it is asked what became of it
                del self._runs[run.call_id, run.grant_number]
                promises.stopped(run.container)
            self._credit(run.container)
        elif promises.raised[run.call_id] < promises.fates[run.call_id].raises:
            promises.raised[run.call_id] += 1
            self._over(run, Outcome.RAISED, error=RemoteError("ValueError", "no"))
        else:
            bill = next(_bills)
            promises.billed(run.call_id, bill)
            chunks = promises.fates[run.call_id].chunks
            output, spent = answer_of(run.call_id), Spent(ns=bill, ppm=1, price="cpu")
            self._over(run, Outcome.OK, output=output, spent=spent, last_seq=chunks)
        self._leave_if_drained(run.container)

    def _over(self, run: Run, outcome: Outcome, *, started: bool = True, **more: Any) -> None:
        del self._runs[run.call_id, run.grant_number]
        if started:
            self.world.promises.stopped(run.container)
        ended = Ended(
            call_id=run.call_id, grant_number=run.grant_number, container=run.container, outcome=outcome,
            started=started, stages=Stages(execute_ms=self.world.rng.random() * 3000.0), **more,
        )  # fmt: skip
        self._tell(run.gateway, ended)

    def _refuse(self, run: Run, reason: Refusal) -> None:
        self.world.promises.turned_away(run.call_id, reason, self.world.is_calm)
        self._tell(
            run.gateway,
            Refused(call_id=run.call_id, grant_number=run.grant_number, container=run.container, reason=reason),
        )

    def _tell(self, gateway: str, frame: CallFrame | ChunkGroup) -> None:
        if not self.links.send(gateway, frame):
            self.publish(subjects.reply(REGION, gateway, self.name), frame)

    def _resend_all(self, gateway: str, messages: list[Message]) -> None:
        """A link has ended, and these may be lost."""
        for message in messages:
            if isinstance(message, CallFrame | ChunkGroup):
                self._tell(gateway, message)

    def _cancel(self, items: tuple[AcceptedCall, ...]) -> None:
        for item in items:
            run = self._runs.get((item.call_id, item.grant_number))
            if run is not None and not item.was_started:
                self._over(run, Outcome.CANCELLED, started=False)

    def _orphan(self, item: AcceptedCall) -> None:
        """Cancelled, but not for ever: the call may come again with a newer grant."""
        item.is_cancelled = True
        run = self._run_of(item)
        if not item.was_started:
            self.table.release(item.call_id, item.grant_number)
            self._over(run, Outcome.CANCELLED, started=False)

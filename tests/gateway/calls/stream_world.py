"""An origin and its containers, which die when a test says so: what a caller of a resumable stream reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import cycle, groupby
from typing import Any

import msgspec

from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.messages.call_messages import (
    Chunk,
    ChunkRow,
    Run,
    Window,
)
from pilotlight_core.model.spec import FunctionSpec, Mode
from pilotlight_core.model.streams.resuming import Resumable
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.effects import (
    Effect,
    FailCall,
    HoldJournal,
    RelayChunks,
    ReportStage,
    SendControl,
    SendRun,
)
from pilotlight_gateway.calls.origin import Origin, OriginState
from pilotlight_runtime.calls.call_runner import CallRunner
from pilotlight_runtime.calls.slot_table import AcceptedCall
from pilotlight_runtime.guest.frames import CheckpointOut, ChunkOut, GuestFrame, Invoke, Result, WindowUpdate
from pilotlight_runtime.guest.stream_out import StreamOut
from tests.builders.calls import grant, prepared_call
from tests.builders.specs import function_spec, method, version_record
from tests.runtime.fake_runner_io import FakeRunnerIO

Tell = Callable[[StreamOut, int, int], Iterator[bytes]]


def spec_of(**more: Any) -> FunctionSpec:
    return function_spec("fn", method(mode=Mode.GENERATOR), resumable=Resumable(**more))


def origin_of(spec: FunctionSpec) -> Origin:
    """A call of the function, which waits for a container."""
    version = version_record(spec, app="app")
    origin = Origin(prepared_call(version=version, method=spec.methods[0], stream=True), "gw1", 0.0)
    origin.begin(0.0)
    origin.placed()
    return origin


def tell(out: StreamOut, words: int, every: int) -> Iterator[bytes]:
    """The function: words that follow from its state alone, which it saves behind each `every`th (0: never)."""
    number, last = msgspec.msgpack.decode(out.read_state() or b"\x92\x00\x01")
    while number < words:
        number, last = number + 1, last * 48_271 % 2_147_483_647
        yield b"%x" % last
        if every and number % every == 0:
            out.save_state(msgspec.msgpack.encode((number, last)))


def tell_at_length(out: StreamOut, words: int, every: int) -> Iterator[bytes]:
    """The same words, long ones."""
    for word in tell(out, words, every):
        yield word * 40


class World:
    """An origin, and one container after the other; each has a guest that works as far as its window lets it.

    What an agent says is heard in order, as far as the agent lives; each event that a tenant pays for is in `paid`.
    """

    def __init__(
        self,
        words: int,
        every: int,
        *,
        function: Tell = tell,
        groups: bool = False,
        taken: tuple[bool, ...] = (False,),
        **resumable: Any,
    ) -> None:
        """`groups`: whether the agent sends chunks that follow each other in one message; `taken`: whether the caller
        takes the next ones of those, in turn, as they come.
        """
        self.groups = groups
        self.takes = cycle(taken)
        self.spec = spec_of(**resumable)
        self.origin = origin_of(self.spec)
        self.function, self.words, self.every = function, words, every
        self.at = 1.0
        self.read: list[tuple[int, bytes]] = []
        self.paid: list[int] = []
        self.begun: set[int] = set()
        """Events under way on agents that fell silent: what was done of them stays paid there."""
        self.end: CallResult | PilotlightError | None = None
        self.stages: list[str] = []
        self.starts = self.unread = 0
        self.journal_bytes = 0
        self.has_returned = False
        self.chunks: Iterator[bytes] = iter(())

    def start(self) -> None:
        """The next container takes the call."""
        self.starts += 1
        self.io = FakeRunnerIO()
        self.runner = CallRunner(self.spec, "c", self.io)
        self._perform(self.origin.granted(grant(self.starts), self.at))

    def step(self) -> None:
        """The guest goes on: a chunk, a checkpoint, or its end."""
        self.at += 0.001
        if self.has_returned or self.out.needs_read > self.seen:
            return
        before = self.out.seq
        try:
            value = next(self.chunks)
        except StopIteration:
            self._hear_guest()
            self.has_returned = True
            self.runner.on_result(Result(call_id="a", last_seq=self.out.seq), self.at)
            return
        self._hear_guest()  # what it saved between
        self.out.check_resumed()
        held = self.runner.find_running("a")
        repeats = held is not None and held.repeats_until is not None
        self.out.send_chunk(value)
        self._hear_guest()
        if not repeats:
            self.paid.append(before + 1)

    def deliver(self, count: int) -> None:
        """The origin hears so many of the agent's frames."""
        heard, self.io.sent = self.io.sent[:count], self.io.sent[count:]
        for is_chunk, frames in groupby(heard, lambda frame: isinstance(frame, Chunk)):
            told = list(frames)
            if is_chunk and self.groups:
                chunks = [frame for frame in told if isinstance(frame, Chunk)]
                row = ChunkRow("a", chunks[0].grant_number, chunks[0].seq, tuple(chunk.data for chunk in chunks))
                self._hear_row(row)
            else:
                for frame in told:
                    self._perform(self.origin.frame("n1", frame, self.at))

    def _hear_row(self, row: ChunkRow) -> None:
        """As the driver does with chunks."""
        if self.origin.awaits(row.grant_number, row.seq, row.data) and not self.unread and next(self.takes):
            self.read += enumerate(row.data, row.seq)
            self._perform(self.origin.took_chunks(row.seq, row.data, self.at))
        else:
            self._perform(self.origin.chunks(row, self.at))

    def kill_guest(self) -> None:
        """Its agent says so, behind all that it had said."""
        self.runner.on_death("killed", self.at)
        self.deliver(len(self.io.sent))

    def kill_agent(self) -> None:
        """What it had said and was not heard is lost."""
        self.io.sent.clear()
        self.begun.add(self.origin.last_seq + 1)
        for effects in (self.origin.node_gone("n1", "i1", "it is gone", self.at), self.origin.tick(self.at + 5.0)):
            self._perform(effects)

    def read_all(self) -> None:
        """The caller reads what has come since."""
        count, self.unread = self.unread, 0
        self._perform(self.origin.was_read(count, 0))

    def _hear_guest(self) -> None:
        for frame in self.sent:
            if isinstance(frame, ChunkOut):
                self.runner.on_chunk(frame, self.at)
            elif isinstance(frame, CheckpointOut):
                self.runner.on_checkpoint(frame, self.at)
        self.sent.clear()

    def _begin(self, run: Run) -> None:
        self.runner.add(AcceptedCall(run, self.at, self.at), self.at)
        (invoke,) = self.io.of(Invoke)
        self.sent: list[GuestFrame] = []
        self.out = StreamOut(invoke, self.sent.append)
        self.seen = self.out.seq
        self.has_returned = False
        self.chunks = self.function(self.out, self.words, self.every)

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case SendRun():
                    self._begin(effect.run)
                case RelayChunks():
                    self.read += enumerate(effect.data, effect.seq)
                    self.unread += len(effect.data)
                case SendControl(message=Window(upto=upto, movable=movable)):
                    self.runner.on_window("a", upto, self.at, movable)
                    self.seen = max([self.seen, *(update.upto for update in self.io.of(WindowUpdate))])
                case CallResult():
                    self.end = effect
                case FailCall():
                    self.end = effect.error
                case HoldJournal():
                    self.journal_bytes = effect.size
                case ReportStage():
                    self.stages.append(effect.name)


def text(words: int, function: Tell = tell) -> list[tuple[int, bytes]]:
    """What an undisturbed caller reads."""
    return list(enumerate(function(StreamOut(Invoke(call_id="a"), lambda _: None), words, 0), 1))


def finish(world: World) -> None:
    """Nothing more happens to it."""
    for _ in range(20 * world.words + 200):
        if world.end is not None:
            return
        if world.origin.state is OriginState.QUEUED:
            world.start()
        world.step()
        world.deliver(10)
        world.read_all()
    raise AssertionError("it does not end")

"""An engine around the scheduler, but for the computing: what `TorchEngine` and `SimEngine` share.

One sequence's misfortune is its own: a pick that is no token ends its sequence, as does a lack of memory that persists
when the step is half as large. The budget grows back when many steps went well.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence as Seq
from typing import Generic, NamedTuple

from pilotlight_engine.engine_port import (
    AdapterSource,
    Capabilities,
    EngineEvent,
    EngineRefusal,
    EngineStats,
    Failed,
    FailureKind,
    Finished,
    FinishReason,
    GenRequest,
    SleepLevel,
    TokenOut,
)
from pilotlight_engine.scheduling.adapter_shelf import AdapterShelf, KnownAdapter, LoadedAdapter
from pilotlight_engine.scheduling.admission import check_request
from pilotlight_engine.scheduling.kv_blocks import KvBlocks
from pilotlight_engine.scheduling.prefix_hashes import prefix_root
from pilotlight_engine.scheduling.step_scheduler import SchedulerLimits, StepScheduler
from pilotlight_engine.scheduling.token_sequence import StepPlan, TokenSequence

STEPS_TO_GROW = 256
"""After as many steps without a lack of memory the budget doubles, up to what it was."""


class NoMemoryForStep(Exception):
    """The device has no memory for a step of this size. What the step would have computed is as before."""


class TokenPick(NamedTuple):
    """What came of a span that draws: a token, or the reason why there is none."""

    token: int
    logprob: float | None = None
    top: tuple[tuple[int, float], ...] = ()
    failure: str = ""
    """There is no token: the sequence ends."""


class ScheduledEngine(ABC, Generic[LoadedAdapter]):
    """Requests, sequences and events. A subclass computes plans, and reads adapters."""

    def __init__(
        self, capabilities: Capabilities, limits: SchedulerLimits, *, model_version: str, max_adapter_bytes: int
    ) -> None:
        self._capabilities = capabilities
        self._model_version = model_version
        blocks = KvBlocks(capabilities.kv_tokens // capabilities.page, capabilities.page)
        self.scheduler = StepScheduler(blocks, limits, self._may_start)
        self._shelf: AdapterShelf[LoadedAdapter] = AdapterShelf(max_adapter_bytes, self._read_adapter)
        self._step_ms = 0.0
        """Of the last plan: `_compute` says it."""
        self._events: list[EngineEvent] = []
        """Terminal ones that the next step reports."""
        self._decoded = self._prefilled = 0
        """Tokens, so far."""
        self._steps_since_shortage = 0
        self._asleep = False
        self._first_to_wait: TokenSequence | None = None
        """For room for its adapter."""

    # -- what a subclass does ------------------------------------------------------------------------------------------

    @abstractmethod
    def _compute(self, plan: StepPlan) -> Seq[TokenPick]:
        """Compute a plan: one pick for each of its spans that draws, in the order of `plan.spans`.

        Raises `NoMemoryForStep`, with all as before, or `EngineDead`.
        """

    @abstractmethod
    def _known_adapter(self, source: AdapterSource) -> KnownAdapter:
        """What the shelf has to know of an adapter. Raises `EngineRefusal`."""

    @abstractmethod
    def _read_adapter(self, adapter: KnownAdapter) -> LoadedAdapter:
        """An adapter, in memory. Raises `EngineRefusal`."""

    @abstractmethod
    def embed(self, inputs: Seq[Seq[int]]) -> list[list[float]]:
        """One vector of length 1 for each sequence of ids."""

    # -- the port ------------------------------------------------------------------------------------------------------

    def capabilities(self) -> Capabilities:
        """What this engine can do."""
        return self._capabilities

    def admit(self, request: GenRequest) -> None:
        """Take a request, which has its first turn in a later step."""
        check_request(request, self._capabilities, self.adapters())
        if self.scheduler.find(request.id) is not None:
            raise EngineRefusal("bad_tokens", f"there is a sequence {request.id!r} already", "id")
        if self.scheduler.waiting >= self.scheduler.limits.max_waiting:
            raise EngineRefusal("no_room", f"{self.scheduler.waiting} sequences wait already; try again later", "")
        root = prefix_root(
            salt=request.salt,
            adapter=request.adapter,
            adapter_digest=adapter.digest if (adapter := self._shelf.find(request.adapter)) is not None else "",
            model_version=self._model_version,
        )
        sequence = self.scheduler.add(request, root)
        self._finish_if_over(sequence, self._events)

    def has_work(self) -> bool:
        """Whether a step would do anything."""
        return bool(self._events or (not self._asleep and (self.scheduler.running or self.scheduler.waiting)))

    def step(self) -> list[EngineEvent]:
        """Compute one step, if anything is to be done, and return what came of it."""
        events, self._events = self._events, []
        if self._asleep:
            return events
        plan, picks = self._computed_plan(events)
        if not plan:
            return events
        self.scheduler.commit(plan)
        drawing = [span.sequence for span in plan.spans if span.draws]
        for sequence, pick in zip(drawing, picks, strict=True):
            self._on_pick(sequence, pick, events)
        self._decoded += len(plan.decodes)
        self._prefilled += sum(span.end - span.start for span in plan.prefills)
        self._shelf.release_unused(self._adapters_named())
        return events

    def abort(self, request_id: str) -> None:
        """End a sequence: the next step has its `Finished`, unless another terminal event came first."""
        sequence = self.scheduler.find(request_id)
        if sequence is not None:
            self._finish(sequence, "aborted", self._events)

    def checkpoint(self, request_id: str) -> GenRequest | None:
        """The request by which the sequence goes on elsewhere."""
        sequence = self.scheduler.find(request_id)
        return None if sequence is None else sequence.as_request()

    def stats(self) -> EngineStats:
        """How the engine is."""
        scheduler = self.scheduler
        return EngineStats(
            decode_tokens=self._decoded,
            prefill_tokens=self._prefilled,
            step_ms=self._step_ms,
            kv_used=scheduler.blocks.held * scheduler.blocks.page,
            kv_total=scheduler.blocks.blocks * scheduler.blocks.page,
            running=len(scheduler.running),
            waiting=scheduler.waiting,
            preempted=scheduler.preempted,
            prefix_hits=scheduler.prefix_hits,
            prefix_tokens=scheduler.prefix_tokens,
            adapters=self._shelf.resident(),
            token_budget=scheduler.token_budget,
            steps=scheduler.steps,
        )

    def adapters(self) -> tuple[str, ...]:
        """The adapters that requests can name, resident or not."""
        return self._shelf.names()

    def load_adapter(self, source: AdapterSource) -> None:
        """Make an adapter known and resident. Raises `EngineRefusal`."""
        if self._asleep:
            raise EngineRefusal("no_room", "the engine sleeps", "adapter")
        adapter, before = self._known_adapter(source), self._shelf.find(source.name)
        if before is not None and before.digest != adapter.digest and source.name in self._adapters_named():
            raise EngineRefusal("no_adapter", f"sequences run on another {source.name!r}; try again later", "adapter")
        self._shelf.add(adapter)
        try:
            self._shelf.get(source.name, self._adapters_running())
        except EngineRefusal:
            self._shelf.forget(source.name)
            raise

    def unload_adapter(self, name: str) -> None:
        """Forget an adapter. Sequences that use it run to their end."""
        self._shelf.forget(name)
        self._shelf.release_unused(self._adapters_named())

    def sleep(self, level: SleepLevel) -> None:  # noqa: ARG002 - how deeply is a subclass's concern
        """Give the device's memory back; running sequences wait."""
        self.scheduler.preempt_all()
        self._asleep = True

    def wake(self) -> None:
        """Be ready for steps again."""
        self._asleep = False

    # -- steps ---------------------------------------------------------------------------------------------------------

    def _computed_plan(self, events: list[EngineEvent]) -> tuple[StepPlan, Seq[TokenPick]]:
        """A plan and its picks; for want of memory a smaller one, or none."""
        plan = self._plan_with_adapters(events)
        for attempt in range(2):
            if not plan:
                return plan, ()
            try:
                picks = self._compute(plan)
            except NoMemoryForStep:
                pass
            else:
                self._on_enough_memory()
                return plan, picks
            self.scheduler.withdraw(plan)
            self._steps_since_shortage = 0
            self.scheduler.token_budget = max(1, self.scheduler.token_budget // 2)
            if attempt == 0:
                plan = self._plan_with_adapters(events)
        youngest = max((span.sequence for span in plan.spans), key=lambda sequence: sequence.arrival)
        text = f"the device has no memory left for a step of {self.scheduler.token_budget * 2} tokens"
        self._fail(youngest, "out_of_memory", text, events)
        return StepPlan(decodes=(), prefills=()), ()

    def _plan_with_adapters(self, events: list[EngineEvent]) -> StepPlan:
        """A plan whose adapters are all resident. Sequences whose adapter cannot be read end."""
        while True:
            plan = self.scheduler.plan_step()
            refusal, name = None, ""
            for name in {span.sequence.request.adapter for span in plan.spans} - {""}:
                try:
                    self._shelf.get(name, self._adapters_running())
                except EngineRefusal as error:
                    refusal = error
                    break
            if refusal is None:
                return plan
            self.scheduler.withdraw(plan)
            for sequence in [each for each in self.scheduler.sequences() if each.request.adapter == name]:
                self._fail(sequence, "no_adapter", refusal.text, events)

    def _on_enough_memory(self) -> None:
        self._steps_since_shortage += 1
        if self._steps_since_shortage >= STEPS_TO_GROW:
            self._steps_since_shortage = 0
            self.scheduler.token_budget = min(self.scheduler.limits.token_budget, self.scheduler.token_budget * 2)

    def _on_pick(self, sequence: TokenSequence, pick: TokenPick, events: list[EngineEvent]) -> None:
        if pick.failure:
            self._fail(sequence, "not_a_number", pick.failure, events)
            return
        request, index = sequence.request, sequence.generated
        sequence.tokens.append(pick.token)
        events.append(TokenOut(id=request.id, index=index, token=pick.token, logprob=pick.logprob, top=pick.top))
        self._finish_if_over(sequence, events)

    def _finish_if_over(self, sequence: TokenSequence, events: list[EngineEvent]) -> None:
        """End a sequence whose last token ends it, or that has all the tokens it asked for."""
        generated, request, last = sequence.generated, sequence.request, sequence.tokens[-1]
        ends = last in request.stop_ids or (last in self._capabilities.eos_ids and not request.ignore_eos)
        if ends and generated and generated > request.min_new:
            self._finish(sequence, "stop", events, stop_id=last)
        elif generated >= request.max_new:
            self._finish(sequence, "length", events)

    def end_ids(self, request: GenRequest) -> frozenset[int]:
        """The tokens that end a sequence."""
        return request.stop_ids if request.ignore_eos else request.stop_ids | self._capabilities.eos_ids

    def _finish(
        self, sequence: TokenSequence, reason: FinishReason, events: list[EngineEvent], stop_id: int | None = None
    ) -> None:
        self.scheduler.remove(sequence)
        events.append(Finished(id=sequence.id, reason=reason, usage=sequence.usage(), stop_id=stop_id))

    def _fail(self, sequence: TokenSequence, kind: FailureKind, text: str, events: list[EngineEvent]) -> None:
        self.scheduler.remove(sequence, spoiled=kind == "not_a_number")
        events.append(Failed(id=sequence.id, kind=kind, text=text, usage=sequence.usage()))

    def _may_start(self, sequence: TokenSequence) -> bool:
        """Whether a sequence's adapter has room beside those that run. While one waits for room, no sequence of another
        adapter begins: it would wait for as long as those come. Where there is room and it is not its turn, whoever has
        the turn begins: else both would wait for each other.
        """
        name, first = sequence.request.adapter, self._first_to_wait
        if not name:
            return True
        running = self._adapters_running()
        if first is not None and self.scheduler.find(first.id) is not first:
            first = None  # it was aborted
        if first is not None and first.request.adapter != name:
            if not self._shelf.can_hold(first.request.adapter, running):
                return False
            first = None
        has_room = self._shelf.can_hold(name, running)
        self._first_to_wait = None if has_room else first or sequence
        return has_room

    def _adapters_running(self) -> set[str]:
        return {sequence.request.adapter for sequence in self.scheduler.running.values()} - {""}

    def _adapters_named(self) -> set[str]:
        return {sequence.request.adapter for sequence in self.scheduler.sequences()} - {""}

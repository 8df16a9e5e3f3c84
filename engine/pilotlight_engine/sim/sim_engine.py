"""An engine without a model: tokens are a function of the seed and the position, and of the prompt where it is greedy.

It keeps the port with the scheduler that the real ones have. Time is an argument of `step_at`; `step` has a clock of its
own, which advances by what each step costs, and which `wait` can make real.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Sequence as Seq
from dataclasses import dataclass
from math import sqrt

from pilotlight_engine.engine_port import (
    AdapterSource,
    Capabilities,
    EngineDead,
    EngineEvent,
    EngineRefusal,
)
from pilotlight_engine.scheduling.adapter_shelf import AdapterShelf, KnownAdapter
from pilotlight_engine.scheduling.admission import check_ids
from pilotlight_engine.scheduling.counted_draws import drawn_bits, mixed, position_key
from pilotlight_engine.scheduling.scheduled_engine import NoMemoryForStep, ScheduledEngine, TokenPick
from pilotlight_engine.scheduling.step_scheduler import SchedulerLimits
from pilotlight_engine.scheduling.token_sequence import StepPlan, TokenSequence
from pilotlight_engine.sim.step_costs import StepCosts

VECTOR = 16
"""The length of its embeddings."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SimModel:
    """What the engine claims to run."""

    vocabulary: int = 512
    max_sequence: int = 4096
    kv_tokens: int = 65536
    page: int = 16
    eos_ids: frozenset[int] = frozenset()
    """A sequence draws one of them as often as any other token: 0 of them leaves the length to the request."""
    adapter_bytes: int = 1 << 20
    """Of each adapter, where memory has room for `max_adapter_bytes`."""
    max_adapter_bytes: int = 8 << 20
    version: str = "sim"


class SimEngine(ScheduledEngine):
    """Deterministic. Tests script its misfortunes by its fields."""

    def __init__(
        self,
        model: SimModel | None = None,
        limits: SchedulerLimits | None = None,
        costs: StepCosts | None = None,
        *,
        adapters: Iterable[AdapterSource] = (),
        wait: Callable[[float], None] | None = None,
    ) -> None:
        self.model = model or SimModel()
        self.costs = costs or StepCosts()
        self.now = 0.0
        """Seconds, by its own clock."""
        self.steps_without_memory = 0
        """As many steps to come find no memory."""
        self.dead = False
        """Its device is lost: the next step says so."""
        self.harmed: set[str] = set()
        """Sequences whose next pick is not a number."""
        limits = limits or SchedulerLimits()
        self._wait = wait
        self._shelf: AdapterShelf[str] = AdapterShelf(self.model.max_adapter_bytes, lambda adapter: adapter.digest)
        for source in adapters:
            self._know(source)
        super().__init__(
            Capabilities(
                architecture="Sim",
                vocabulary=self.model.vocabulary,
                max_sequence=self.model.max_sequence,
                max_running=limits.max_running,
                kv_tokens=self.model.kv_tokens // self.model.page * self.model.page,
                page=self.model.page,
                lora=True,
                prefix_cache=limits.prefix_cache,
                eos_ids=self.model.eos_ids,
            ),
            limits,
            self.model.version,
        )

    def step_at(self, at: float) -> tuple[list[EngineEvent], float]:
        """A step that begins at an instant, in seconds: its events, and when they are there."""
        self.now = at
        return self._stepped(), self.now

    def step(self) -> list[EngineEvent]:
        """A step by its own clock."""
        before = self.now
        events = self._stepped()
        if self._wait is not None and self.now > before:
            self._wait(self.now - before)
        return events

    def _stepped(self) -> list[EngineEvent]:
        if self.dead:
            raise EngineDead("the simulated device is lost")
        return super().step()

    def _compute(self, plan: StepPlan) -> Seq[TokenPick]:
        if self.steps_without_memory:
            self.steps_without_memory -= 1
            raise NoMemoryForStep
        for name in {span.sequence.request.adapter for span in plan.spans} - {""}:
            self._shelf.get(name, self._adapters_in_use())
        self._step_ms = self.costs.duration_ms(plan)
        self.now += self._step_ms / 1000
        return [self._pick(span.sequence) for span in plan.spans if span.draws]

    def _pick(self, sequence: TokenSequence) -> TokenPick:
        request = sequence.request
        if sequence.id in self.harmed:
            self.harmed.discard(sequence.id)
            return TokenPick(token=-1, failure="the simulated logits are not numbers")
        seed = request.sampling.seed if request.sampling.temperature else _seed_of(request.prompt_ids)
        key = position_key(seed, len(sequence.tokens))
        excluded = self.end_ids(request) if sequence.generated < request.min_new else frozenset()
        allowed = [token for token in range(self.model.vocabulary) if token not in excluded] if excluded else None
        draw = drawn_bits(key, 0)
        token = draw % self.model.vocabulary if allowed is None else allowed[draw % len(allowed)]
        if request.logprobs is None:
            return TokenPick(token=token)
        top = tuple(((token + n) % self.model.vocabulary, -0.5 - n) for n in range(request.logprobs))
        return TokenPick(token=token, logprob=-0.5, top=top)

    # -- adapters and vectors ------------------------------------------------------------------------------------------

    def adapters(self) -> tuple[str, ...]:
        """The adapters that requests can name."""
        return self._shelf.names()

    def load_adapter(self, source: AdapterSource) -> None:
        """Make an adapter known and resident."""
        self._know(source)
        self._shelf.get(source.name, self._adapters_in_use())

    def unload_adapter(self, name: str) -> None:
        """Forget an adapter."""
        self._shelf.forget(name)
        self._shelf.release_unused(self._adapters_in_use())

    def embed(self, inputs: Seq[Seq[int]]) -> list[list[float]]:
        """One vector of length 1 for each sequence of ids."""
        vectors = []
        for ids in inputs:
            if not ids or len(ids) > self.model.max_sequence:
                text = f"an input has {len(ids)} tokens; it has from 1 to {self.model.max_sequence}"
                raise EngineRefusal("too_long", text, "input")
            check_ids(tuple(ids), self.model.vocabulary, "input")
            key = _seed_of(ids)
            raw = [drawn_bits(key, n) / (1 << 63) - 1 for n in range(VECTOR)]
            length = sqrt(sum(value * value for value in raw))
            vectors.append([value / length for value in raw])
        return vectors

    def _know(self, source: AdapterSource) -> None:
        digest = source.digest or source.name
        self._shelf.add(KnownAdapter(source=source, digest=digest, bytes=self.model.adapter_bytes))

    def _adapter_digest(self, name: str) -> str:
        known = self._shelf.find(name)
        return "" if known is None else known.digest

    def _may_start(self, sequence: TokenSequence) -> bool:
        name = sequence.request.adapter
        return not name or self._shelf.can_hold(name, self._adapters_in_use())

    def _last_step_ms(self) -> float:
        return self._step_ms

    def _resident_adapters(self) -> tuple[str, ...]:
        return self._shelf.resident()


def _seed_of(ids: Iterable[int]) -> int:
    seed = 0
    for token in ids:
        seed = mixed((seed + token + 1) & ((1 << 64) - 1))
    return seed

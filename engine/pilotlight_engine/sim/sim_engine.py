"""An engine without a model: tokens are a function of the seed and the position, and of the prompt where it is greedy.

It keeps the port with the scheduler that the real ones have. Time is an argument of `step_at`; `step` has a clock of
its own, which advances by what each step costs, and which `wait` can make real.
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
from pilotlight_engine.scheduling.adapter_shelf import KnownAdapter
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


class SimEngine(ScheduledEngine[str]):
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
        self.unreadable: set[str] = set()
        """Adapters whose files are broken."""
        limits = limits or SchedulerLimits()
        self._wait = wait
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
            model_version=self.model.version,
            max_adapter_bytes=self.model.max_adapter_bytes,
        )
        for source in adapters:
            self._shelf.add(self._known_adapter(source))

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

    def _known_adapter(self, source: AdapterSource) -> KnownAdapter:
        return KnownAdapter(source=source, digest=source.digest or source.name, bytes=self.model.adapter_bytes)

    def _read_adapter(self, adapter: KnownAdapter) -> str:
        if adapter.source.name in self.unreadable:
            raise EngineRefusal("no_adapter", f"the simulated adapter {adapter.source.name!r} is unreadable", "adapter")
        return adapter.digest

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


def _seed_of(ids: Iterable[int]) -> int:
    seed = 0
    for token in ids:
        seed = mixed((seed + token + 1) & ((1 << 64) - 1))
    return seed

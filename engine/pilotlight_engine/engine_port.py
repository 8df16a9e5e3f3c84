"""What an engine promises to whoever serves it: requests in, tokens out, one step at a time.

An engine belongs to one thread: that thread calls `admit`, `step` and all the rest. `step` computes for every sequence
that has its turn and returns what became of it; whoever calls it decides when. What harms one sequence ends in its
`Failed`; only `EngineDead` ends them all.

Positions are absolute: a request that was cut goes on as the same request with the tokens that it has in `prefix_out`,
with the same `seed`, and draws the same tokens from there.
"""

from __future__ import annotations

from collections.abc import Sequence as Seq
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

RefusalKind = Literal["too_long", "bad_tokens", "no_adapter", "no_room"]
FinishReason = Literal["stop", "length", "aborted"]
FailureKind = Literal["not_a_number", "out_of_memory", "no_adapter", "engine"]
SleepLevel = Literal[1, 2]
"""1: weights go to the host's memory; 2: they are dropped, and read again by `wake`. Stored keys and values go."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampling:
    """How a token is drawn. Equal seeds draw equal tokens at equal positions, whatever else runs."""

    temperature: float = 1.0
    """0 takes the most likely token."""
    top_p: float = 1.0
    top_k: int = 0
    """0 keeps all tokens."""
    seed: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class GenRequest:
    """One sequence to be continued."""

    id: str
    tenant: str = ""
    prompt_ids: tuple[int, ...]
    prefix_out: tuple[int, ...] = ()
    """What was generated before, elsewhere: it is not reported again."""
    max_new: int
    """The most tokens after the prompt, `prefix_out` included."""
    min_new: int = 0
    """As many tokens come before any may end the sequence, `prefix_out` included."""
    sampling: Sampling = Sampling()
    stop_ids: frozenset[int] = frozenset()
    """Tokens that end the sequence, besides the model's own."""
    ignore_eos: bool = False
    """The model's own end tokens do not end it; `stop_ids` do."""
    logprobs: int | None = None
    """How many of the likeliest tokens are reported with each token; None reports no logprobs at all."""
    adapter: str = ""
    salt: str = ""
    """Only sequences of one salt share stored prefixes. The platform sets it, never a body."""
    weight: float = 1.0
    """Of its tenant, against other tenants."""
    priority: int = 0
    """Higher goes first, whatever the weights."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SequenceUsage:
    """What one sequence took. Of a resumed one too: all tokens after the prompt count."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    """Tokens of the prompt that were not computed: their keys and values were stored."""
    read_tokens: int = 0
    """Tokens of the prompt that were computed or stored, if it was aborted before the rest; 0 where nobody knows."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenOut:
    """A sequence has one token more."""

    id: str
    index: int
    """Its number after the prompt, from 0. They come in order, each once."""
    token: int
    logprob: float | None = None
    """Of the model's own distribution, before temperature, top_p and top_k."""
    top: tuple[tuple[int, float], ...] = ()
    """The likeliest tokens there, with their logprobs, as many as the request asked for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finished:
    """A sequence's last event, unless it failed."""

    id: str
    reason: FinishReason
    usage: SequenceUsage
    stop_id: int | None = None
    """The token that ended it, which was reported as any other. Its text is not part of the answer."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Failed:
    """A sequence's last event where it could not go on."""

    id: str
    kind: FailureKind
    text: str
    usage: SequenceUsage


EngineEvent = TokenOut | Finished | Failed


@dataclass(frozen=True, kw_only=True, slots=True)
class AdapterSource:
    """A LoRA adapter in PEFT's format: a folder with `adapter_config.json` and `adapter_model.safetensors`."""

    name: str
    folder: Path
    digest: str = ""
    """Of its content: another digest is another adapter to stored prefixes. Empty: the engine computes one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Capabilities:
    """What an engine can do; it does not change while the engine lives."""

    architecture: str
    vocabulary: int
    """Token ids are below it."""
    max_sequence: int
    """The most tokens of one sequence, prompt and output together."""
    max_running: int
    """The most sequences of one step."""
    kv_tokens: int
    """How many tokens' keys and values are stored at most."""
    page: int
    """How many tokens a block of them holds."""
    lora: bool
    prefix_cache: bool
    eos_ids: frozenset[int] = frozenset()
    """The model's own end tokens."""
    seeded_resume: bool = True
    """A cut sequence goes on with the tokens that it would have had, by its seed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineStats:
    """How an engine is. Counters are since its start."""

    kv_used: int = 0
    """Tokens' room that running sequences hold. What is stored for later prefixes only is free."""
    kv_total: int = 0
    running: int = 0
    waiting: int = 0
    prefill_tokens: int = 0
    decode_tokens: int = 0
    """The last one of a sequence, by which the next is known; all others are prefilled, again after a preemption."""
    preempted: int = 0
    prefix_hits: int = 0
    prefix_tokens: int = 0
    adapters: tuple[str, ...] = ()
    """Resident ones."""
    step_ms: float = 0.0
    """Of the last step."""
    token_budget: int = 0
    """The most tokens of one step, which a lack of memory halves."""
    steps: int = 0


class EngineRefusal(Exception):
    """A request that an engine does not take; nothing of it has begun."""

    def __init__(self, kind: RefusalKind, text: str, field: str) -> None:
        super().__init__(text)
        self.kind: RefusalKind = kind
        self.text = text
        self.field = field


class EngineDead(Exception):
    """The engine, and every sequence in it, is lost: its process has to go. Sequences can go on elsewhere."""


class Engine(Protocol):
    """The port: `TorchEngine`, `VLLMEngine` and `SimEngine` keep it."""

    def capabilities(self) -> Capabilities:
        """What this engine can do."""

    def admit(self, request: GenRequest) -> None:
        """Take a request, which has its first turn in a later step. Raises `EngineRefusal`."""

    def step(self) -> list[EngineEvent]:
        """Compute one step, if anything is to be done, and return what came of it. Raises `EngineDead`."""

    def has_work(self) -> bool:
        """Whether a step would do anything."""

    def abort(self, request_id: str) -> None:
        """End a sequence: the next step has its `Finished`, unless another terminal event came first. An id that is
        not known is nothing to end.
        """

    def checkpoint(self, request_id: str) -> GenRequest | None:
        """The request by which the sequence goes on elsewhere; None where it is not known."""

    def load_adapter(self, source: AdapterSource) -> None:
        """Make an adapter known and resident. Raises `EngineRefusal` with `no_adapter`, and why."""

    def unload_adapter(self, name: str) -> None:
        """Forget an adapter. Sequences that use it run to their end; nothing new begins on it."""

    def adapters(self) -> tuple[str, ...]:
        """The adapters that requests can name, resident or not."""

    def stats(self) -> EngineStats:
        """How the engine is."""

    def sleep(self, level: SleepLevel) -> None:
        """Give the device's memory back. Running sequences wait, and go on after `wake` from their tokens."""

    def wake(self) -> None:
        """Be ready for steps again."""

    def embed(self, inputs: Seq[Seq[int]]) -> list[list[float]]:
        """For each sequence of ids a vector of length 1: the mean of its last hidden states. Raises `EngineRefusal`."""

"""One sequence while it is in an engine: its tokens, and how many of them are computed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from pilotlight_engine.engine_port import GenRequest, SequenceUsage


@dataclass(kw_only=True, slots=True, eq=False)
class TokenSequence:
    """Mutable, and only the scheduler changes it."""

    request: GenRequest
    arrival: int
    """Its number among all that came. It keeps it when it is preempted."""
    root: bytes
    """What the names of its blocks begin with."""
    tokens: list[int]
    """Prompt and output."""
    blocks: list[int] = field(default_factory=list)
    names: list[bytes] = field(default_factory=list)
    """Of the full blocks of its tokens, in order, computed or not; as many as somebody asked for."""
    computed: int = 0
    """Of how many tokens keys and values are stored."""
    reached: int = 0
    """The most tokens that were computed at any time: it does not fall when it gives way."""
    cached: int = 0
    """How many tokens of the prompt were stored already when it began."""
    turn: int = 0
    """The step that last computed it."""
    began: bool = False
    """It has run before: what it finds stored now does not count as cached."""

    @property
    def id(self) -> str:
        """The request's."""
        return self.request.id

    @property
    def tenant(self) -> str:
        """The request's."""
        return self.request.tenant

    @property
    def generated(self) -> int:
        """How many tokens it has after its prompt."""
        return len(self.tokens) - len(self.request.prompt_ids)

    @property
    def pending(self) -> int:
        """How many tokens are to be computed before the next one is known."""
        return len(self.tokens) - self.computed

    def usage(self) -> SequenceUsage:
        """What it took so far."""
        prompt = len(self.request.prompt_ids)
        return SequenceUsage(
            prompt_tokens=prompt,
            completion_tokens=self.generated,
            cached_tokens=self.cached,
            read_tokens=min(prompt, self.reached),
        )

    def as_request(self) -> GenRequest:
        """The request by which it goes on elsewhere."""
        return replace(self.request, prefix_out=tuple(self.tokens[len(self.request.prompt_ids) :]))


class StepSpan(NamedTuple):
    """Tokens of one sequence that a step computes, from `start` up to `end`."""

    sequence: TokenSequence
    start: int
    end: int

    @property
    def draws(self) -> bool:
        """The next token is known after it."""
        return self.end == len(self.sequence.tokens)


@dataclass(frozen=True, kw_only=True, slots=True)
class StepPlan:
    """What a step computes. Room for every span is held."""

    decodes: tuple[StepSpan, ...]
    """Spans of one token that draw."""
    prefills: tuple[StepSpan, ...]
    """The others."""

    @property
    def spans(self) -> tuple[StepSpan, ...]:
        """All of them, prefills first."""
        return (*self.prefills, *self.decodes)

    def __bool__(self) -> bool:
        return bool(self.decodes or self.prefills)

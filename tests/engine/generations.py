"""What tests of engines share: a request with defaults, and an engine run to its end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from pilotlight_engine.engine_port import Engine, Failed, Finished, GenRequest, Sampling, TokenOut

GREEDY = Sampling(temperature=0.0)


@dataclass
class Ran:
    """What became of each request."""

    tokens: dict[str, list[int]] = field(default_factory=dict)
    finished: dict[str, Finished] = field(default_factory=dict)
    failed: dict[str, Failed] = field(default_factory=dict)
    outs: dict[str, list[TokenOut]] = field(default_factory=dict)
    steps: int = 0


def request(name: str, prompt: Iterable[int] = (1, 2, 3), max_new: int = 8, **others: Any) -> GenRequest:
    """A greedy one, unless it says otherwise."""
    return GenRequest(**{"sampling": GREEDY, "id": name, "prompt_ids": tuple(prompt), "max_new": max_new, **others})


def run(engine: Engine, *requests: GenRequest, steps: int = 100_000) -> Ran:
    """Admit requests, and step until nothing is left to do, or as often as said."""
    ran = Ran()
    for each in requests:
        engine.admit(each)
    while engine.has_work() and ran.steps < steps:
        step(engine, ran)
    return ran


def step(engine: Engine, ran: Ran) -> None:
    """One step, into `ran`. Indexes come in order, each once, and nothing comes after the end."""
    ran.steps += 1
    for event in engine.step():
        assert event.id not in ran.finished
        assert event.id not in ran.failed
        if isinstance(event, TokenOut):
            outs = ran.outs.setdefault(event.id, [])
            assert not outs or event.index == outs[-1].index + 1
            outs.append(event)
            ran.tokens.setdefault(event.id, []).append(event.token)
        elif isinstance(event, Finished):
            ran.finished[event.id] = event
        else:
            ran.failed[event.id] = event

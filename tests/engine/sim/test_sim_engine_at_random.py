"""The scheduler under all at once: whatever others do, each sequence has its tokens, reads its own keys, and ends."""

from __future__ import annotations

import random
from collections.abc import Sequence as Seq
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

import pytest

from pilotlight_engine.engine_port import AdapterSource, Finished, GenRequest, Sampling
from pilotlight_engine.scheduling.scheduled_engine import TokenPick
from pilotlight_engine.scheduling.step_scheduler import SchedulerLimits
from pilotlight_engine.scheduling.token_sequence import StepPlan, StepSpan
from pilotlight_engine.sim.sim_engine import SimEngine, SimModel
from tests.engine.generations import GREEDY, Ran, request, run, step
from tests.variants import with_variants

CALLS = 300
ADAPTERS = ("x", "y", "z")


class CheckedEngine(SimEngine):
    """Remembers what lies in each place for keys and values, and that nobody reads another one's."""

    def __init__(self, model: SimModel, limits: SchedulerLimits) -> None:
        super().__init__(
            model, limits, adapters=[AdapterSource(name=name, folder=Path(name), digest=name) for name in ADAPTERS]
        )
        self.places: dict[int, int] = {}

    def _compute(self, plan: StepPlan) -> Seq[TokenPick]:
        picks = super()._compute(plan)
        for span in plan.spans:
            self._store(span)
        for span in plan.spans:
            assert [self.places.get(place) for place in _places(span, self.model.page)] == _chain(span)
        return picks

    def _store(self, span: StepSpan) -> None:
        places, chain = _places(span, self.model.page), _chain(span)
        for position in range(span.start, span.end):
            self.places[places[position]] = chain[position]


def _places(span: StepSpan, page: int) -> list[int]:
    return [span.sequence.blocks[at // page] * page + at % page for at in range(span.end)]


def _chain(span: StepSpan) -> list[int]:
    """For each position what its keys depend on: all tokens up to it, the adapter and the salt."""
    request, tokens = span.sequence.request, span.sequence.tokens[: span.end]
    first = hash((request.adapter, request.salt))
    return list(accumulate(tokens, lambda before, token: hash((before, token)), initial=first))[1:]


def _request(number: int, chance: random.Random, most: int) -> GenRequest:
    shared = [chance.randrange(3)] * chance.choice((0, 8, 40))
    prompt = (*shared, *(chance.randrange(9) for _ in range(chance.randrange(1, 40))))
    sampling = GREEDY if chance.random() < 0.3 else Sampling(seed=chance.randrange(5))
    tenant = chance.choice("abc")
    return request(
        str(number),
        prompt[: most - 1],
        chance.randrange(1, min(30, most - len(prompt[: most - 1])) + 1),
        sampling=sampling,
        tenant=tenant,
        salt=tenant,
        weight={"a": 1.0, "b": 0.3, "c": 5.0}[tenant],
        priority=chance.choice((0, 0, 1, 2)),
        adapter=chance.choice(("", "", *ADAPTERS)),
    )


def _engine(chance: random.Random) -> CheckedEngine:
    """With little room, of any size."""
    kv_tokens = chance.choice((96, 200, 640))
    model = SimModel(
        kv_tokens=kv_tokens,
        max_sequence=kv_tokens // 8 * 8,
        page=8,
        adapter_bytes=1,
        max_adapter_bytes=chance.choice((1, 2, 3)),
    )
    limits = SchedulerLimits(
        token_budget=chance.choice((8, 32, 128)),
        max_running=chance.choice((2, 8)),
        quantum=chance.choice((4, 32)),
        prefix_cache=chance.random() < 0.8,
        attention_tokens=chance.choice((None, 16)),
    )
    return CheckedEngine(model, limits)


def _disturb(made: CheckedEngine, paused: list[GenRequest], chance: random.Random) -> None:
    """What callers and the device do between two steps."""
    there = [each.id for each in made.scheduler.sequences()]
    if there and chance.random() < 0.05:
        made.abort(there.pop(chance.randrange(len(there))))
    if there and chance.random() < 0.1:  # its reader is slow: it leaves, and comes back under another name
        one = chance.choice(there)
        left = made.checkpoint(one)
        assert left is not None
        made.abort(one)
        paused.append(replace(left, id=f"{one}+"))
    made.steps_without_memory = chance.choice((0,) * 40 + (1, 2))
    if there and chance.random() < 0.01:
        made.harmed.add(chance.choice(there))
    if chance.random() < 0.01:
        made.sleep(1)
        made.wake()


@pytest.mark.parametrize("seed", with_variants(range(8), 3))
def test_whatever_happens_each_sequence_has_its_own_tokens_and_all_room_comes_back(seed: int) -> None:
    """Little room, adapters beyond their room, priorities, aborts, pauses, lack of memory, harm and sleep."""
    chance = random.Random(seed)
    made = _engine(chance)
    asked = [_request(number, chance, made.model.max_sequence) for number in range(CALLS)]
    coming, ran, idle = list(asked), Ran(), 0
    paused: list[GenRequest] = []
    while coming or paused or made.has_work():
        for _ in range(chance.randrange(3)):
            if coming:
                made.admit(coming.pop(0))
        if paused and chance.random() < 0.3:
            made.admit(paused.pop(chance.randrange(len(paused))))
        before = (made.stats().steps, len(ran.finished), len(ran.failed))
        step(made, ran)
        idle = idle + 1 if before == (made.stats().steps, len(ran.finished), len(ran.failed)) else 0
        assert idle < 3 or not made.scheduler.waiting, "calls wait, and nothing runs"
        _disturb(made, paused, chance)
        made.scheduler.blocks.check_integrity()

    assert (made.stats().kv_used, made.scheduler.running) == (0, {})
    assert made.scheduler.blocks.available == made.scheduler.blocks.blocks
    alone = SimEngine(made.model)
    for each in asked:
        _check(each, ran, run(alone, replace(each, adapter="")).tokens[each.id])


def _check(asked: GenRequest, ran: Ran, whole: list[int]) -> None:
    """A call has the tokens that it has alone, over all its parts, and one end."""
    names = [f"{asked.id}{'+' * cuts}" for cuts in range(40)]
    tokens = [token for name in names for token in ran.tokens.get(name, ())]
    assert tokens == whole[: len(tokens)]
    ends = [ran.finished.get(name) or ran.failed.get(name) for name in names]
    last = [end for end in ends if end is not None][-1]
    assert tokens == whole or not isinstance(last, Finished) or last.reason == "aborted"

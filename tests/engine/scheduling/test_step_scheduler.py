"""Which tokens a step computes, and who holds the room."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_engine.scheduling.kv_blocks import KvBlocks
from pilotlight_engine.scheduling.step_scheduler import SchedulerLimits, StepScheduler
from pilotlight_engine.scheduling.token_sequence import StepPlan, TokenSequence
from tests.engine.generations import request
from tests.example_counts import examples

PAGE = 4


def scheduler(blocks: int = 100, **limits: Any) -> StepScheduler:
    """With small numbers, unless said otherwise."""
    return StepScheduler(
        KvBlocks(blocks, PAGE), SchedulerLimits(**{"token_budget": 16, "quantum": 4, "burst": 0, **limits})
    )


def add(made: StepScheduler, name: str, prompt: int = 8, max_new: int = 8, **others: Any) -> TokenSequence:
    """A sequence whose tokens are nobody else's."""
    ids = tuple(range(1000 * made._arrivals, 1000 * made._arrivals + prompt))
    return made.add(request(name, others.pop("ids", ids), max_new, **others), b"root")


def compute(made: StepScheduler) -> StepPlan:
    """One step: each sequence that draws gets a token, and ends when it has all of them."""
    plan = made.plan_step()
    made.commit(plan)
    for span in plan.spans:
        if span.sequence.computed == len(span.sequence.tokens):
            span.sequence.tokens.append(7)
            if span.sequence.generated >= span.sequence.request.max_new:
                made.remove(span.sequence)
    made.blocks.check_integrity()
    return plan


def counts(plan: StepPlan) -> dict[str, int]:
    """How many tokens each sequence has in a plan."""
    return {span.sequence.id: span.end - span.start for span in plan.spans}


def test_decodes_come_first_and_prompts_get_the_rest() -> None:
    """A long prompt stalls no stream."""
    made = scheduler()
    add(made, "stream", 8, 50)
    compute(made)
    add(made, "long", 100, 1)

    assert counts(compute(made)) == {"stream": 1, "long": 15}
    assert counts(compute(made)) == {"stream": 1, "long": 15}


def test_a_chunk_of_one_token_is_no_decode() -> None:
    """Nothing is known after it."""
    made = scheduler(token_budget=5)
    for number in range(4):
        add(made, str(number), 1, 50)
    compute(made)
    add(made, "prompt", 20, 1)
    plan = compute(made)

    assert [span.sequence.id for span in plan.prefills] == ["prompt"]
    assert counts(plan)["prompt"] == 1


def test_a_prompt_is_computed_in_chunks_that_follow_each_other() -> None:
    """Each token once, and the last chunk draws."""
    made = scheduler()
    sequence = add(made, "a", 40, 2)
    spans = [compute(made).spans[0] for _ in range(3)]

    assert [(span.start, span.end) for span in spans] == [(0, 16), (16, 32), (32, 40)]
    assert sequence.generated == 1


def test_prompts_share_a_step_by_weight_in_tokens() -> None:
    """A tenant with one long prompt has no more of it than one with many short ones."""
    made = scheduler(blocks=1000)
    add(made, "long", 400, 1, tenant="a", weight=1.0)
    for number in range(60):
        add(made, f"short-{number}", 8, 1, tenant="b", weight=3.0)
    total: Counter[str] = Counter()
    for _ in range(20):
        for span in compute(made).spans:
            total[span.sequence.tenant] += span.end - span.start

    assert total["a"] + total["b"] == 320
    assert total["a"] == pytest.approx(80, abs=8)


def test_a_higher_priority_goes_first() -> None:
    """Whatever the weights."""
    made = scheduler()
    add(made, "low", 40, 1, tenant="a", weight=100.0)
    add(made, "high", 20, 1, tenant="b", priority=1)

    assert counts(compute(made)) == {"high": 16}
    assert counts(compute(made)) == {"high": 4, "low": 12}


def test_of_one_tenant_whoever_came_first_goes_first() -> None:
    """Unless another has a higher priority."""
    made = scheduler(max_running=1)
    add(made, "first")
    add(made, "second")
    add(made, "urgent", priority=1)

    assert counts(compute(made)) == {"urgent": 8}


def test_if_the_budget_is_too_small_for_all_decodes_they_take_turns() -> None:
    """As after a lack of memory."""
    made = scheduler()
    for number in range(4):
        add(made, str(number), 2, 50)
    compute(made)
    made.token_budget = 2
    seen: Counter[str] = Counter()
    for _ in range(4):
        seen.update(counts(compute(made)))

    assert set(seen.values()) == {2}


def test_a_sequence_begins_when_there_is_room_for_all_its_tokens() -> None:
    """And the next one."""
    made = scheduler(blocks=4)
    add(made, "a", 8, 2)
    add(made, "b", 8, 2)

    assert counts(compute(made)) == {"a": 8}
    assert made.waiting == 1

    compute(made)  # `a` ends
    assert counts(compute(made)) == {"b": 8}


def test_when_room_runs_out_the_youngest_of_the_lowest_priority_gives_way() -> None:
    """It comes back with what it has generated, and what it had is computed again but for what is still stored."""
    made = scheduler(blocks=6, watermark=0.0)
    sequences = [add(made, name, 4, 12, priority=priority) for name, priority in (("a", 0), ("b", 1), ("c", 0))]
    while not made.preempted:
        compute(made)

    assert list(made.running) == ["b", "a"]
    assert sequences[2].generated > 0
    assert sequences[2].computed == 0

    while list(made.sequences()):
        compute(made)

    assert [sequence.generated for sequence in sequences] == [12, 12, 12]
    assert made.blocks.held == 0


def test_a_sequence_that_is_last_of_all_gives_way_itself() -> None:
    """It takes nobody's room."""
    made = scheduler(blocks=5, watermark=0.0)
    add(made, "old", 6, 12, priority=1)
    add(made, "new", 7, 12)
    while not made.preempted:
        compute(made)

    assert list(made.running) == ["old"]


def test_while_others_wait_a_tenant_begins_nothing_beyond_its_share() -> None:
    """Alone it has everything."""
    made = scheduler(blocks=30, token_budget=1000)
    for number in range(10):
        add(made, f"a{number}", 10, 2, tenant="a")
    alone = counts(compute(made))
    assert len(alone) == 10

    made = scheduler(blocks=30, token_budget=1000)
    for number in range(10):
        add(made, f"a{number}", 10, 2, tenant="a")
        add(made, f"b{number}", 10, 2, tenant="b")
    together = Counter(name[0] for name in counts(compute(made)))

    assert together == {"a": 5, "b": 5}


def test_a_tenant_within_its_share_takes_room_back() -> None:
    """From whoever holds more than a share, the youngest first, and no more than it needs."""
    made = scheduler(blocks=30, token_budget=1000, watermark=0.0)
    for number in range(10):
        add(made, f"a{number}", 10, 50, tenant="a")
    compute(made)
    add(made, "b", 10, 50, tenant="b")
    plan = compute(made)

    assert counts(plan)["b"] == 10
    assert made.preempted == 1
    assert "a9" not in made.running


def test_a_tenant_beyond_its_share_takes_nothing_back() -> None:
    """It waits."""
    made = scheduler(blocks=30, token_budget=1000, watermark=0.0)
    for number in range(5):
        add(made, f"a{number}", 10, 50, tenant="a")
        add(made, f"b{number}", 10, 50, tenant="b")
    compute(made)
    add(made, "a5", 10, 50, tenant="a")
    compute(made)

    assert made.preempted == 0
    assert made.waiting == 1


def test_room_is_not_taken_back_if_it_would_not_be_enough() -> None:
    """Nobody is preempted for nothing."""
    made = scheduler(blocks=12, token_budget=1000, watermark=0.0)
    add(made, "a", 10, 50, tenant="a", priority=5)
    add(made, "b", 10, 50, tenant="b")
    add(made, "c", 10, 50, tenant="c")
    compute(made)
    add(made, "d", 30, 10, tenant="d")
    compute(made)

    assert made.preempted == 0


def test_a_slot_is_taken_back_as_room_is() -> None:
    """A tenant cannot keep all others out by many small sequences."""
    made = scheduler(max_running=4, token_budget=1000)
    for number in range(8):
        add(made, f"a{number}", 4, 50, tenant="a")
    compute(made)
    add(made, "b", 4, 50, tenant="b")

    assert "b" in counts(compute(made))
    assert made.preempted == 1


def test_what_needs_more_than_a_share_waits_and_nobody_begins_before_it() -> None:
    """Otherwise it would wait for as long as others come."""
    made = scheduler(blocks=20, token_budget=1000, watermark=0.0)
    for number in range(3):
        add(made, f"a{number}", 10, 3, tenant="a")
    compute(made)
    add(made, "large", 60, 3, tenant="b")
    for number in range(3, 40):
        add(made, f"a{number}", 10, 3, tenant="a")
    began = []
    for _ in range(8):
        began += [name for name in counts(compute(made)) if name not in began]

    assert "large" in began[:7]


def test_stored_prefixes_are_shared() -> None:
    """Whole blocks of them, and never the last token."""
    made = scheduler()
    ids = tuple(range(12))
    add(made, "a", ids=ids, max_new=2)
    compute(made)
    compute(made)
    second = add(made, "b", ids=ids, max_new=2)
    longer = add(made, "c", ids=(*ids, 99, 98), max_new=2)

    assert counts(compute(made)) == {"b": 4, "c": 2}
    assert (second.cached, longer.cached) == (8, 12)
    assert (made.prefix_hits, made.prefix_tokens) == (2, 20)


def test_prefixes_are_not_shared_if_told_so() -> None:
    """Nor is anything stored."""
    made = scheduler(prefix_cache=False)
    add(made, "a", ids=tuple(range(12)), max_new=1)
    compute(made)
    add(made, "b", ids=tuple(range(12)), max_new=1)

    assert counts(compute(made)) == {"b": 12}


def test_sequences_of_other_roots_share_nothing() -> None:
    """Another salt, adapter or model."""
    made = scheduler()
    made.add(request("a", range(12), 1), b"one")
    compute(made)
    made.add(request("b", range(12), 1), b"other")

    assert counts(compute(made)) == {"b": 12}


def test_a_withdrawn_plan_costs_nobody_anything() -> None:
    """And is made again."""
    made = scheduler()
    add(made, "a", 40, 1, tenant="a")
    add(made, "b", 40, 1, tenant="b")
    plan = made.plan_step()
    made.withdraw(plan)

    assert counts(made.plan_step()) == counts(plan)


def test_a_sequence_may_have_to_wait_for_more_than_room() -> None:
    """Such as for its adapter."""
    made = StepScheduler(KvBlocks(100, PAGE), SchedulerLimits(), lambda sequence: sequence.id != "no")
    add(made, "no", tenant="a")
    add(made, "yes", tenant="b")

    assert counts(compute(made)) == {"yes": 8}


def test_all_can_be_preempted() -> None:
    """And all is computed again."""
    made = scheduler()
    sequence = add(made, "a")
    compute(made)
    made.preempt_all()

    assert (sequence.computed, made.waiting, made.blocks.held) == (0, 1, 0)
    assert counts(compute(made)) == {"a": 9}
    assert sequence.cached == 0


@pytest.mark.parametrize("field", ["token_budget", "max_running", "quantum"])
def test_limits_are_at_least_one(field: str) -> None:
    """Whoever makes an engine of them is told."""
    with pytest.raises(ValueError, match="at least 1"):
        scheduler(**{field: 0})


@examples(60)
@given(st.integers(0, 2**32))
def test_whatever_comes_all_get_their_tokens_and_no_block_is_lost(seed: int) -> None:
    """Random tenants, weights, priorities, lengths and aborts in a room for little more than one sequence."""
    chance = random.Random(seed)
    made = scheduler(
        blocks=chance.randint(12, 30), token_budget=chance.randint(1, 24), max_running=chance.randint(1, 6)
    )
    sequences = []
    for number in range(25):
        tenant = chance.choice("abc")
        ids = tuple(chance.randrange(2) for _ in range(chance.randint(1, 30)))
        sequences.append(
            add(
                made,
                str(number),
                ids=ids,
                max_new=chance.randint(1, 15),
                tenant=tenant,
                weight=chance.choice((0.5, 1.0, 4.0)),
                priority=chance.randrange(2),
            )
        )
        for _ in range(chance.randrange(3)):
            plan = compute(made)
            assert sum(counts(plan).values()) <= made.token_budget
            assert len(made.running) <= made.limits.max_running
    aborted = chance.sample(sequences, 3)
    for sequence in aborted:
        if made.find(sequence.id) is not None:
            made.remove(sequence)
    for _ in range(5000):
        if not compute(made):
            break

    assert list(made.sequences()) == []
    assert made.blocks.held == 0
    assert all(each.generated == each.request.max_new for each in sequences if each not in aborted)

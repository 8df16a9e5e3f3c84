"""How long a step is where tokens deep in a context cost more."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from pilotlight_engine.scheduling.step_scheduler import SchedulerLimits
from tests.engine.scheduling.test_step_scheduler import add, compute, counts, scheduler


def test_a_chunk_deep_in_a_context_is_smaller() -> None:
    """Four times the cost, a quarter of the tokens, and one for what is left."""
    made = scheduler(attention_tokens=32)
    add(made, "long", 120, 1)
    taken = []
    while made.running or made.waiting:
        taken.append(counts(compute(made))["long"])

    assert taken == [16, 16, 8, 8, 8, 8, 6, 6, 6, 6, 6, 6, 4, 4, 4, 4, 4]


def test_a_prompt_goes_on_beside_as_many_decodes_as_a_step_has_tokens_less_one() -> None:
    """However deep it is: a token that costs more than is left has its turn."""
    made = scheduler(blocks=1000, max_running=16, attention_tokens=4, token_budget=8)
    for number in range(7):
        add(made, str(number), 1, 60)
    compute(made)
    add(made, "long", 40, 1)
    total: Counter[str] = Counter()
    for _ in range(40):
        total.update(counts(compute(made)))

    assert total["long"] == 40


def test_tenants_share_in_tokens_whatever_they_cost() -> None:
    """One tenant's tokens are deep in a long prompt, the other's are not."""
    made = scheduler(blocks=2000, attention_tokens=128, token_budget=64)
    add(made, "long", 4000, 1, tenant="a")
    for number in range(200):
        add(made, f"short-{number}", 32, 1, tenant="b")
    total: Counter[str] = Counter()
    for _ in range(200):
        for span in compute(made).spans:
            total[span.sequence.tenant] += span.end - span.start

    assert total["a"] == pytest.approx(total["b"], rel=0.02)


def test_who_is_preempted_gives_its_places_back() -> None:
    """Or the step would be too short for whoever took its room."""
    made = scheduler(blocks=20, attention_tokens=8)
    add(made, "low", 60, 4)
    for _ in range(6):
        compute(made)
    add(made, "high", 40, 1, tenant="b", priority=1)

    assert counts(compute(made)) == {"high": 12}  # the last four take two places each


def test_the_least_is_one() -> None:
    """Zero would be no length."""
    with pytest.raises(ValueError, match="attention_tokens"):
        SchedulerLimits(attention_tokens=0)
    assert [SchedulerLimits(attention_tokens=4).places(at) for at in (0, 3, 4, 9)] == [1, 1, 2, 3]


def test_a_flood_of_long_prompts_keeps_no_other_tenant_waiting() -> None:
    """A step lasts as long as what it computes, and a little: the time to a first token is about that without it."""

    def waits(*, flood: bool) -> list[float]:
        """From when each question was asked to its first token."""
        made = scheduler(
            blocks=2300, max_running=4, attention_tokens=100, token_budget=32, quantum=32, burst=1024,
            prefix_cache=False,
        )  # fmt: skip
        chance, now, asked, found = random.Random(3), 0.0, dict[str, float](), list[float]()
        due = [(250.0 + 10_000.0 * number, f"short-{number}") for number in range(6)]
        while due or asked:
            while flood and sum(each.tenant == "flood" for each in made.sequences()) < 6:
                add(made, f"long-{made._arrivals}", 2000, 2, tenant="flood")
            while due and due[0][0] <= now:
                at, name = due.pop(0)
                asked[name] = at
                add(made, name, chance.randint(128, 256), 2, tenant="asks")
            if not (made.running or made.waiting):
                now = due[0][0]
                continue
            spans = compute(made).spans
            now += 5.0 + sum((span.end - span.start) * (1 + span.end / 100) for span in spans)
            begun = [span.sequence.id for span in spans if span.sequence.generated and span.sequence.id in asked]
            found += [now - asked.pop(name) for name in begun]
        return found

    alone, beside = waits(flood=False), waits(flood=True)

    assert max(beside) <= 1.2 * max(alone)
    assert sum(beside) <= 1.2 * sum(alone)

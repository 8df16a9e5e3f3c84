"""Weights in the memory that parked containers share."""

from __future__ import annotations

from pilotlight_core.model.scaling.warm_things import RESIDENT_S
from pilotlight_runtime.containers.warm_memory import WarmMemory
from pilotlight_runtime.containers.weights_budget import WeightsBudget

GIB = 2**30


def test_weights_take_the_place_of_what_was_not_used_for_long() -> None:
    """Of what was used again since, nothing goes; what is let go takes nothing."""
    at, gone = [0.0], list[str]()
    memory = WarmMemory(2 * GIB)
    budget = WeightsBudget(memory, lambda: at[0])

    def take(name: str) -> bool:
        return budget.take(f"acme:{name}", GIB, 5.0, lambda: gone.append(name))

    assert take("a")
    assert take("b")
    assert not take("c")  # both came a moment ago
    at[0] = 2 * RESIDENT_S
    budget.touch("acme:a")
    at[0] = 4 * RESIDENT_S
    assert take("c")
    assert gone == ["b"]
    assert memory.report.cached == 2 * GIB
    budget.release("acme:a")
    assert memory.report.cached == GIB


def test_nobodys_weights_go_for_those_of_who_has_more() -> None:
    """However old they are: else whoever starts one model after another has all of the memory."""
    at, gone = [0.0], list[str]()
    budget = WeightsBudget(WarmMemory(3 * GIB), lambda: at[0])

    def take(name: str) -> bool:
        return budget.take(name, GIB, 5.0, lambda: gone.append(name))

    assert take("small:a")
    for number in range(5):
        at[0] += 2 * RESIDENT_S
        assert take(f"greedy:{number}")
    assert gone == ["greedy:0", "greedy:1", "greedy:2"]

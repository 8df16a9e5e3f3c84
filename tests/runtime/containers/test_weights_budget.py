"""Weights in the memory that parked containers share."""

from __future__ import annotations

from pilotlight_runtime.containers.warm_memory import RESIDENT_S, WarmMemory
from pilotlight_runtime.containers.weights_budget import WeightsBudget

GIB = 2**30


def test_weights_take_the_place_of_what_was_not_used_for_long() -> None:
    """Of what was used again since, nothing goes; what is let go takes nothing."""
    at, gone = [0.0], list[str]()
    memory = WarmMemory(2 * GIB)
    budget = WeightsBudget(memory, lambda: at[0])

    def take(name: str) -> bool:
        return budget.take(name, GIB, 5.0, lambda: gone.append(name))

    assert take("a")
    assert take("b")
    assert not take("c")  # both came a moment ago
    at[0] = 2 * RESIDENT_S
    budget.touch("a")
    at[0] = 4 * RESIDENT_S
    assert take("c")
    assert gone == ["b"]
    assert memory.report.cached == 2 * GIB
    budget.release("a")
    assert memory.report.cached == GIB

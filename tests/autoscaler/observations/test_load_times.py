"""How long starts take, by function."""

from __future__ import annotations

from pilotlight_autoscaler.observations.load_times import LONGEST_S, LoadTimes


def test_the_longest_start_of_a_function_counts() -> None:
    """In whole seconds; of others nothing is known."""
    times = LoadTimes()
    times.on_ready("acme:llm.chat", {"stage": 1_200.0, "load": 20_000.0})
    times.on_ready("acme:llm.chat", {"load": 900.0})
    assert (times.longest_s("acme:llm.chat"), times.longest_s("acme:llm.other")) == (22.0, 0.0)


def test_a_start_that_took_for_ever_is_no_measure() -> None:
    """A window's containers begin at most so long before it opens; a credit of an old agent names no function."""
    times = LoadTimes()
    times.on_ready("acme:llm.chat", {"load": 1e12})
    times.on_ready("", {"load": 1.0})
    assert times.longest_s("acme:llm.chat") == LONGEST_S
    assert times.longest_s("") == 0.0

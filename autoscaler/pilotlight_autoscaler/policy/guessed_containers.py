"""Which containers are there by the platform's guess, and not because their tenant asks for them. Pure.

A tenant asks for what its calls and jobs need, for what it declares, and for the window of each container that has had
a call. What stays beyond that is a guess until its next call: for a forecast, because a step down is paced, or because
a number rose a while ago. The longest idle ones are the guesses, as they would go first.
"""

from __future__ import annotations

from collections.abc import Iterator

from pilotlight_autoscaler.policy.scaling_policy import VersionView, is_idle
from pilotlight_core.model.messages.node_messages import ContainerReport


def taken_otherwise(view: VersionView, declared: int) -> Iterator[tuple[ContainerReport, bool]]:
    """The containers of a deployed version that their agents take for something else, each with whether it is a guess.

    Args:
        view: the version; nothing is known while its home is silent.
        declared: how many of its containers are there by no guess.
    """
    spare = max(0, view.size - declared)
    guessed = sorted((each for each in view.containers if each.guessed), key=_longest_idle)
    if view.home_is_silent or not view.deployed or (not spare and not guessed):
        return
    yield from ((each, False) for each in guessed[spare:])
    idle = sorted(
        (each for each in view.containers if each.guessed is False and is_idle(each, view.window_s)), key=_longest_idle
    )
    for number, each in enumerate(idle[: max(0, spare - len(guessed))], start=len(guessed) + 1):
        if number < view.size or is_idle(each, view.zero_window_s):
            yield each, True


def _longest_idle(container: ContainerReport) -> tuple[float, str]:
    return -container.idle_s, container.id

"""Which containers are on nodes that are taken away."""

from __future__ import annotations

from pilotlight_gateway.fleet.preempted_containers import MOST, PreemptedContainers


def test_what_is_repeated_is_no_news() -> None:
    """A notice may be withdrawn, and come again."""
    known = PreemptedContainers()

    said = [known.note("c1", is_so=is_so) for is_so in (False, True, True, False, False, True)]
    assert said == [False, True, False, True, False, True]


def test_they_are_bounded() -> None:
    """The one that was told first is forgotten."""
    known = PreemptedContainers()
    for number in range(MOST + 1):
        known.note(f"c{number}", is_so=True)

    assert not known.note("c1", is_so=True)
    assert known.note("c0", is_so=True)

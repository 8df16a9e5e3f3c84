"""What functions have had."""

from __future__ import annotations

from pilotlight_runtime.egress.function_counts import (
    COUNTS_KEPT,
    LAST_WORD_S,
    OF_TENANT,
    OTHERS,
    RESTS_S,
    EgressCounts,
    FunctionCounts,
)
from pilotlight_runtime.egress.proxy_messages import CountedBytes


def said(container: str, refused: int, *, is_last: bool = False) -> CountedBytes:
    return CountedBytes(container=container, sent=0, received=0, connections=0, refused=refused, is_last=is_last)


def test_counts_are_whole_each_time() -> None:
    """What is new of them is added; another process of the proxy begins at nothing."""
    counts = FunctionCounts()
    counts.open("c1", "acme", "acme:app.f")
    assert counts.add(said("c1", 2), 1.0) == counts.add(said("c1", 3), 2.0) == "acme:app.f"
    assert counts.counts == {"acme:app.f": EgressCounts(refused=3)}
    counts.restart()
    counts.add(said("c1", 1), 3.0)
    assert counts.counts == {"acme:app.f": EgressCounts(refused=4)}
    assert counts.add(said("unknown", 7), 4.0) == ""


def test_a_last_word_that_does_not_come() -> None:
    """A packet may be lost; the container is not kept for it."""
    counts = FunctionCounts()
    for name in ("c1", "c2"):
        counts.open(name, "acme", "acme:app.f")
        counts.close(name, 10.0)
    counts.add(said("c1", 1, is_last=True), 11.0)
    counts.forget(10.0 + LAST_WORD_S - 1.0)
    assert counts.containers == 1
    counts.forget(10.0 + LAST_WORD_S)
    assert counts.containers == 0


def test_one_tenant_does_not_take_all_places() -> None:
    """Whoever has many functions has the rest of them counted together."""
    counts = FunctionCounts()

    def add(tenant: str, number: int) -> str:
        name = f"{tenant}:app.f{number}"
        counts.open(name, tenant, name)
        counts.add(said(name, 1, is_last=True), 1.0)
        return name

    for number in range(2 * COUNTS_KEPT):
        add("acme", number)
    assert len(counts.counts) == OF_TENANT + 1
    assert counts.counts[OTHERS] == EgressCounts(refused=2 * COUNTS_KEPT - OF_TENANT)
    assert add("other", 0) in counts.counts
    for number in range(COUNTS_KEPT):
        add(f"t{number}", 0)
    assert len(counts.counts) == COUNTS_KEPT + 1


def test_places_are_given_away() -> None:
    """Of functions that rest, not of those that have a container."""
    counts = FunctionCounts()
    counts.open("c1", "acme", "acme:app.f")
    counts.add(said("c1", 1), 1.0)
    counts.forget(1.0 + RESTS_S)
    assert counts.counts
    counts.close("c1", 1.0 + RESTS_S)
    counts.add(said("c1", 2, is_last=True), 2.0 + RESTS_S)
    counts.forget(1.0 + 2 * RESTS_S)
    assert counts.counts
    counts.forget(2.0 + 2 * RESTS_S)
    assert counts.counts == {}

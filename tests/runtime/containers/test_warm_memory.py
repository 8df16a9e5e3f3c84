"""The memory of a node for what may be needed again: who stays, who goes, and who is not kept."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.messages.node_messages import HostMemory
from pilotlight_core.model.scaling.warm_things import RESIDENT_S, WarmKind, WarmThing
from pilotlight_runtime.containers.warm_memory import WarmMemory
from tests.example_counts import examples

GIB = 2**30


class Keeper:
    """A memory of ten GiB, and what has gone of it."""

    def __init__(self) -> None:
        self.memory = WarmMemory(10 * GIB)
        self.gone: list[str] = []

    def keep(
        self,
        name: str,
        gib: float,
        *,
        load_s: float = 1.0,
        at: float = 0.0,
        kind: WarmKind = WarmKind.PARKED,
        tenant: str = "acme",
    ) -> bool:
        """Whether it was kept."""
        return self.memory.take(
            WarmThing(
                kind=kind, name=name, tenant=tenant, size=int(gib * GIB), load_s=load_s, likelihood=1.0, since=at,
                evict=lambda: self.gone.append(name),
            )
        )  # fmt: skip


def test_parked_containers_and_weights_have_one_budget() -> None:
    """Each is told apart; what has gone takes nothing."""
    keeper = Keeper()
    assert keeper.keep("a", 4)
    assert keeper.keep("a", 5, kind=WarmKind.CACHED)
    assert keeper.memory.report == HostMemory(total=10 * GIB, parked=4 * GIB, cached=5 * GIB)
    assert not keeper.keep("b", 2)

    keeper.memory.release(WarmKind.CACHED, "a")
    keeper.memory.release(WarmKind.CACHED, "a")

    assert keeper.keep("b", 2)
    assert keeper.memory.taken() == 6 * GIB


def test_what_is_worth_less_goes_for_what_is_worth_more() -> None:
    """The least worth first, and no more of it than is needed."""
    keeper = Keeper()
    for name, load_s in (("dear", 9.0), ("cheap", 1.0), ("fair", 3.0)):
        assert keeper.keep(name, 3, load_s=load_s)

    assert keeper.keep("new", 4, load_s=8.0, at=RESIDENT_S)

    assert keeper.gone == ["cheap"]
    assert not keeper.keep("vast", 9, load_s=50.0, at=2 * RESIDENT_S) or keeper.gone == ["cheap", "fair", "new", "dear"]


def test_nobody_takes_the_place_of_who_has_less() -> None:
    """However long its loads take: a tenant's own code says that. Of those that have as much it may."""
    keeper = Keeper()
    assert keeper.keep("small", 2, tenant="zoo")
    assert keeper.keep("large", 7, load_s=50.0)

    assert not keeper.keep("more", 2, load_s=9.0, at=60.0)
    assert keeper.gone == []
    assert keeper.keep("other", 2, load_s=9.0, at=60.0, tenant="rival")
    assert keeper.gone == ["small"]


def test_what_came_a_moment_ago_stays() -> None:
    """Else two that are worth about the same would chase each other out."""
    keeper = Keeper()
    assert keeper.keep("a", 8)

    assert not keeper.keep("b", 8, load_s=2.0, at=RESIDENT_S - 1)
    assert keeper.keep("b", 8, load_s=2.0, at=RESIDENT_S)
    assert keeper.gone == ["a"]


def test_what_does_not_fit_leaves_all_as_it_was() -> None:
    """Nothing goes for what is not kept even so."""
    keeper = Keeper()
    assert keeper.keep("a", 3, load_s=1.0)
    assert keeper.keep("b", 3, load_s=9.0)

    assert not keeper.keep("new", 9, load_s=2.0, at=60.0)
    assert not keeper.keep("too large", 11, load_s=1e6, at=60.0)
    assert keeper.gone == []


def test_it_may_be_taken_anew_with_another_size() -> None:
    """What it uses is known better once it is frozen."""
    keeper = Keeper()
    assert keeper.keep("a", 9)
    assert keeper.keep("a", 4)
    assert keeper.memory.taken() == 4 * GIB


def test_a_need_renews_the_worth() -> None:
    """Weights that were loaded again are as likely to be needed as then."""
    keeper = Keeper()
    assert keeper.keep("a", 5, kind=WarmKind.CACHED)
    assert keeper.keep("b", 5, kind=WarmKind.CACHED, at=1.0)
    keeper.memory.touch(WarmKind.CACHED, "a", 1.0, 500.0)
    keeper.memory.touch(WarmKind.CACHED, "nobody", 1.0, 500.0)

    assert keeper.keep("c", 5, load_s=5.0, at=600.0)

    assert keeper.gone == ["b"]


def test_what_is_kept_for_nobody_is_found() -> None:
    """A leak is a mistake."""
    keeper = Keeper()
    keeper.keep("a", 1)
    keeper.memory.check_integrity({"a"})

    with pytest.raises(AssertionError, match="parked are"):
        keeper.memory.check_integrity(set())


@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.floats(0.1, 8), st.floats(0.01, 100), st.floats(0, 30), st.booleans()),
        max_size=40,
    )
)
@examples(100)
def test_it_never_keeps_more_than_there_is(steps: list[tuple[int, float, float, float, bool]]) -> None:
    """Whatever comes and goes, and each that goes is told so once."""
    keeper, at, kept = Keeper(), 0.0, set[str]()
    for number, gib, load_s, later_s, ends in steps:
        at, name = at + later_s, f"c{number}"
        if ends:
            keeper.memory.release(WarmKind.PARKED, name)
            kept.discard(name)
        elif keeper.keep(name, gib, load_s=load_s, at=at):
            kept = (kept | {name}) - set(keeper.gone)
        keeper.gone.clear()
        keeper.memory.check_integrity(kept)

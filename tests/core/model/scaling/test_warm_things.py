"""What goes for something new; what a node makes of it is tested with its memory."""

from __future__ import annotations

from pilotlight_core.model.scaling.warm_things import RESIDENT_S, WarmKind, WarmThing, WarmThings, victims


def thing(name: str, size: int = 4, load_s: float = 1.0, since: float = 0.0) -> WarmThing:
    return WarmThing(
        kind=WarmKind.PARKED, name=name, size=size << 30, load_s=load_s, likelihood=1.0, since=since,
        evict=lambda: None,
    )  # fmt: skip


def test_the_least_worth_goes_first_and_no_more_than_is_needed() -> None:
    """Nothing, where there is room; None, where it does not fit even so."""
    kept = [thing("dear", load_s=9.0), thing("cheap")]
    new = thing("new", load_s=5.0, since=RESIDENT_S)
    assert victims(new, kept, 12 << 30) == []
    assert victims(new, kept, 8 << 30) == [kept[1]]
    assert victims(new, kept, 4 << 30) is None


def test_what_is_kept_is_told_by_kind() -> None:
    """Until it is released."""
    things = WarmThings(8 << 30)
    assert things.take(thing("a"))
    assert (things.names(WarmKind.PARKED), things.names(WarmKind.CACHED), things.taken()) == ({"a"}, set(), 4 << 30)
    things.release(WarmKind.PARKED, "a")
    assert things.get(WarmKind.PARKED, "a") is None

"""What is known of a function's speed, in words."""

from __future__ import annotations

from pilotlight_core.model.messages.node_messages import SliceKind
from pilotlight_placement.asks.curves import Curves, ThroughputPoint
from pilotlight_placement.explain.speeds import explain_containers, key_of_slice, lines, on_slice, slice_kinds, where
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.hardware.node import Slice
from tests.placement.makers import ask, cpu, gpu, node

SLOW, FAST = (
    ThroughputPoint(batch=batch, throughput=10.0 * batch, p95_ms=10.0 * batch, samples=30) for batch in (2, 8)
)
CURVES = Curves({("T4", "whole"): (SLOW, FAST)})


def slice_of(**more: object) -> Slice:
    fields = {"node": "n", "kind": SliceKind.GPU, "type": "T4", "ids": ("g",), "memory": 1} | more
    return Slice(**fields)  # type: ignore[arg-type]


def test_each_kind_of_slice_has_the_name_that_curves_use() -> None:
    """Whole devices by their number, instances by their profile, shares by their thousandths, slots by their kind."""
    named = [slice_of(), slice_of(ids=("a", "b")), slice_of(profile="3g"), slice_of(units=250)]

    assert [key_of_slice(each) for each in named] == ["whole", "whole:2", "3g", "share:250"]
    assert key_of_slice(slice_of(slot=True, kind=SliceKind.CPU)) == "slot"
    assert [where("T4", key) for key in ("whole", "whole:2", "share:250", "3g")] == [
        "a whole T4", "2 whole T4", "25% of T4", "3g of T4"
    ]  # fmt: skip


def test_the_fastest_batch_within_the_level_is_what_a_slice_does() -> None:
    """And nothing is known of other slices."""
    assert on_slice(CURVES, slice_of(), 50.0) == SLOW
    assert on_slice(CURVES, slice_of(), None) == FAST
    assert on_slice(CURVES, slice_of(type="A10"), None) is None
    assert on_slice(None, slice_of(), None) is None


def test_lines_say_how_many_containers_carry_a_rate() -> None:
    """Or that no batch size keeps the level."""
    (line,) = lines(CURVES, None, rps=100.0)
    (slow,) = lines(CURVES, 5.0)

    assert line.startswith("on a whole T4: 80 per second at batch 8, p95 80 ms")
    assert line.endswith("= 1.56 -> 2 containers")
    assert slow.startswith("on a whole T4: no batch size is within 5 ms; 20 per second at batch 2")
    assert explain_containers(FAST, None) == ""


def test_slice_kinds_are_those_that_would_hold_the_ask_in_either_mode() -> None:
    """A Hopper's both modes, and each once."""
    fleet = Fleet([node("n", gpu("a"), gpu("b", mig=True), slots=(cpu(0),))])

    kinds = {(each.gpu, each.slice) for each in slice_kinds(fleet, ask("H100", gib=70))}

    assert kinds == {("H100-80GB", "7g"), ("H100-80GB", "whole")}
    assert [each.slice for each in slice_kinds(fleet, ask())] == ["slot"]

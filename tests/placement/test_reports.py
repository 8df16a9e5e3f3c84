"""From node reports to the fleet."""

from __future__ import annotations

import msgspec

from pilotlight_core.model.messages import NodeReport, SliceKind, SliceReport
from pilotlight_placement.ask import GIB, Ask
from pilotlight_placement.node import Held, Slice
from pilotlight_placement.place import place
from pilotlight_placement.record import NoFit, Placement
from pilotlight_placement.reports import Mirror
from tests.autoscaler.builders import container
from tests.placement.makers import ask


def cpu(number: int, holder: str = "") -> SliceReport:
    return SliceReport(
        id=f"cpu-{number}", kind=SliceKind.CPU, device="cpu", ppm=250_000, price="cpu", container=holder, memory=GIB
    )


def gpu(name: str, kind: str, gib: int, **more: object) -> SliceReport:
    part = SliceReport(
        id=name, kind=SliceKind.GPU, device=name, ppm=1_000_000, price="x", gpu_type=kind, memory=gib * GIB
    )
    return msgspec.structs.replace(part, **more)


def report(node: str, *slices: SliceReport, **more: object) -> NodeReport:
    made = NodeReport(node=node, instance="i", seq=1, region="r", zone="z", sandbox="s", slices=slices)
    return msgspec.structs.replace(made, **more)


def found(mirror: Mirror, wanted: Ask) -> str:
    placed = place(mirror.fleet, wanted)
    return f"{placed.slice.node}/{placed.slice.id}" if isinstance(placed, Placement) else placed.reason


def test_a_type_asked_for_without_its_size_takes_any_size() -> None:
    """ "A100" is either kind; a size is taken at its word, and no other product begins alike."""
    mirror = Mirror()
    mirror.sync([report("a", gpu("x", "A10", 24), gpu("s", "A100-40GB", 40), gpu("l", "A100-80GB", 80))], {})

    assert found(mirror, ask("A100")) == "a/s"
    assert found(mirror, ask("A100", gib=60)) == "a/l"
    assert found(mirror, ask("A100-80GB")) == "a/l"
    assert found(mirror, ask("A10")) == "a/x"
    assert "the fleet has 1 A10, 1 A100-40GB, 1 A100-80GB" in found(mirror, ask("A1"))


def test_the_preferred_gpu_wins_and_several_of_a_reported_kind_never_fit() -> None:
    """A fallback list is an order of preference; agents give each slice as it is."""
    mirror = Mirror()
    mirror.sync([report("a", gpu("t", "T4", 16)), report("b", gpu("h", "H100", 80), gpu("i", "H100", 80))], {})

    assert found(mirror, ask("H100", "T4")) in ("b/h", "b/i")
    assert found(mirror, ask("H100:2")) == "it asks for H100:2, and the fleet has 2 H100-80GBs, 1 T4"


def test_containers_and_what_is_on_its_way_take_their_slices() -> None:
    """The report counts where both speak of a slice; a container that is gone from both is released."""
    mirror = Mirror()
    running = container("c1", "ver_1", slice_="cpu-0")
    first = report("a", cpu(0, "c1"), cpu(1), containers=(running,))
    slice_ = Slice(node="a", kind=SliceKind.CPU, type="", ids=("cpu-1",), memory=0)
    coming = {("a", "cpu-1"): Held(container="c2", slice=slice_), ("a", "cpu-0"): Held(container="c3", slice=slice_)}

    fleet = mirror.sync([first], coming)

    assert set(fleet.held) == {"c1", "c2"}
    assert fleet.held["c1"].function == "acme:hello.greet"
    assert fleet.zones("acme:hello.greet") == {("r", "z"): 1}
    assert "in use" in found(mirror, ask())
    fleet.check_integrity()
    assert set(mirror.sync([report("a", cpu(0), cpu(1))], {}).held) == set()
    assert found(mirror, ask()).startswith("a/cpu-")


def test_only_what_changed_is_changed() -> None:
    """The same reports leave the fleet's revision alone, and what a pass had held for itself is taken back."""
    mirror = Mirror()
    reports = [report("a", cpu(0), cpu(1)), report("b", cpu(0))]
    fleet = mirror.sync(reports, {})
    revision = fleet.revision
    mirror.sync(reports, {})
    assert fleet.revision == revision

    placed = place(fleet, ask())
    assert isinstance(placed, Placement)
    fleet.hold(Held(container="mine", slice=placed.slice))
    mirror.sync(reports, {})
    assert fleet.held == {}

    mirror.sync(reports[:1], {})
    assert set(fleet.places) == {"a"}


def test_two_nodes_that_speak_of_one_container_both_have_their_slice_taken() -> None:
    """One of them is behind."""
    mirror = Mirror()

    fleet = mirror.sync([report("a", cpu(0, "c1")), report("b", cpu(0, "c1"))], {})

    assert len(fleet.held) == 2
    assert "in use" in found(mirror, ask())


def test_draining_nodes_and_small_hosts_take_nothing() -> None:
    """A draining node does not even count as possible; the host's memory is what its CPU slots share."""
    mirror = Mirror()
    mirror.sync([report("a", cpu(0), draining=True)], {})
    refused = place(mirror.fleet, ask())
    assert isinstance(refused, NoFit)
    assert (refused.reason, refused.never) == ("it asks for a CPU slot, and the fleet has nothing", True)

    mirror.sync([report("a", cpu(0), cpu(1))], {})
    assert found(mirror, ask(memory=2 * GIB)).startswith("a/")
    refused = place(mirror.fleet, ask(memory=3 * GIB))
    assert isinstance(refused, NoFit)
    assert refused.never
    assert "3.0 GiB of host memory" in refused.reason


def test_slices_with_one_name_count_once() -> None:
    """A report that contradicts itself must not stop the controller."""
    mirror = Mirror()

    fleet = mirror.sync([report("a", cpu(0), cpu(0))], {})

    assert fleet.size == 1

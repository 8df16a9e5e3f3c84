"""First fit over CPU slots and whole GPUs."""

from __future__ import annotations

from pilotlight_core.model.messages import SliceKind, SliceReport
from pilotlight_core.model.spec import Isolation
from pilotlight_core.model.units import WHOLE_DEVICE, GpuAsk
from pilotlight_placement.first_fit import place
from pilotlight_placement.fleet import Ask, Fleet, Node, NoFit, Placement


def cpu(number: int, container: str = "") -> SliceReport:
    return SliceReport(
        id=f"cpu-{number}", kind=SliceKind.CPU, device="cpu", ppm=250_000, price="cpu", container=container
    )


def gpu(kind: str, gib: int, container: str = "") -> SliceReport:
    return SliceReport(
        id=f"gpu-{kind}",
        kind=SliceKind.GPU,
        device=f"GPU-{kind}",
        ppm=WHOLE_DEVICE,
        price=kind.lower(),
        gpu_type=kind,
        memory=gib * 2**30,
        container=container,
    )


def test_a_plain_function_gets_the_first_free_cpu_slot() -> None:
    """Nodes are tried in the order of their names, slices as reported."""
    fleet = Fleet([Node(name="b", slices=(cpu(0),)), Node(name="a", slices=(cpu(0, "taken"), cpu(1)))])

    assert place(fleet, Ask()) == Placement(node="a", slice="cpu-1")


def test_the_preferred_gpu_wins_over_the_first_node() -> None:
    """A fallback list is an order of preference."""
    fleet = Fleet([Node(name="a", slices=(gpu("T4", 16),)), Node(name="b", slices=(gpu("H100", 80),))])

    assert place(fleet, Ask(gpu=(GpuAsk("H100"), GpuAsk("T4")))) == Placement(node="b", slice="gpu-H100")


def test_a_slice_taken_by_the_plan_is_not_given_twice() -> None:
    """`take` holds until the plan is done."""
    fleet = Fleet([Node(name="a", slices=(cpu(0),))])
    first = place(fleet, Ask())
    assert isinstance(first, Placement)
    fleet.take(first)

    second = place(fleet, Ask())

    assert isinstance(second, NoFit)
    assert not second.never


def test_what_never_fits_is_told_with_the_fleet_in_words() -> None:
    """The reason names what was asked for and what there is."""
    fleet = Fleet([Node(name="a", slices=(cpu(0), cpu(1), gpu("T4", 16)))])

    found = place(fleet, Ask(gpu=(GpuAsk("H100"),), vram=40 * 2**30))

    assert found == NoFit(
        reason="it asks for H100 with 40.0 GiB, and the fleet has 2 CPU slots, 1 T4",
        never=True,
    )


def test_too_little_memory_and_several_gpus_never_fit() -> None:
    """Neither is silently weakened."""
    fleet = Fleet([Node(name="a", slices=(gpu("T4", 16),))])

    assert place(fleet, Ask(gpu=(GpuAsk("T4"),), vram=20 * 2**30)) != Placement(node="a", slice="gpu-T4")
    assert isinstance(place(fleet, Ask(gpu=(GpuAsk("T4", 2),))), NoFit)


def test_a_type_asked_for_without_its_size_takes_any_size() -> None:
    """ "A100" is either kind; a size is taken at its word, and no other product begins alike."""
    small, large, other = gpu("A100-40GB", 40), gpu("A100-80GB", 80), gpu("A10", 24)
    fleet = Fleet([Node(name="a", slices=(other, small, large))])

    def placed(ask: Ask) -> str:
        found = place(fleet, ask)
        return found.slice if isinstance(found, Placement) else ""

    assert placed(Ask(gpu=(GpuAsk("A100"),))) == small.id
    assert placed(Ask(gpu=(GpuAsk("A100"),), vram=60 * 2**30)) == large.id
    assert placed(Ask(gpu=(GpuAsk("A100-80GB"),))) == large.id
    assert placed(Ask(gpu=(GpuAsk("A10"),))) == other.id
    assert placed(Ask(gpu=(GpuAsk("A1"),))) == ""


def test_exclusive_isolation_wants_a_whole_device() -> None:
    """A share of a GPU is not exclusive."""
    share = SliceReport(
        id="s", kind=SliceKind.SHARE, device="d", ppm=500_000, price="t4", gpu_type="T4", memory=8 * 2**30
    )
    fleet = Fleet([Node(name="a", slices=(share,))])

    assert isinstance(place(fleet, Ask(gpu=(GpuAsk("ANY"),), isolation=Isolation.EXCLUSIVE)), NoFit)
    assert isinstance(place(fleet, Ask(gpu=(GpuAsk("ANY"),))), Placement)


def test_a_draining_node_takes_nothing() -> None:
    """Its slices do not even count as possible."""
    fleet = Fleet([Node(name="a", slices=(cpu(0),), draining=True)])

    assert place(fleet, Ask()) == NoFit(reason="it asks for a CPU slot, and the fleet has nothing", never=True)


def test_more_memory_than_any_host_has_never_fits() -> None:
    """Where nodes say how much they have; the refusal names what was asked for."""
    slots = tuple(
        SliceReport(id=f"cpu-{n}", kind=SliceKind.CPU, device="cpu", ppm=500_000, price="cpu", memory=8 * 2**30)
        for n in range(2)
    )
    fleet = Fleet([Node(name="a", slices=slots)])

    assert isinstance(place(fleet, Ask(memory=16 * 2**30)), Placement)
    found = place(fleet, Ask(memory=17 * 2**30))
    assert isinstance(found, NoFit)
    assert found.never
    assert "17.0 GiB of host memory" in found.reason

"""How many blanks a node is told to keep."""

from __future__ import annotations

from pilotlight_autoscaler.policy.nodes.blank_sizes import (
    CALLED,
    DEPLOYED,
    FORETOLD,
    MOST_CLASSES,
    BlankNeed,
    StartableFunctions,
    blank_sizes,
    fits_on,
    is_served,
    need_of,
)
from pilotlight_core.model.messages.node_messages import BlankSize, NodeReport, SliceKind, SliceReport
from pilotlight_core.model.units import GpuAsk
from tests.builders.nodes import GIB, cpu_slot, gpu_slice, node_report
from tests.builders.specs import function_spec, version_record

H100 = "H100-80GB"
SMALL = 10 * GIB


def node(*slices: SliceReport, bases: tuple[str, ...] = ("default", "vllm")) -> NodeReport:
    """A node with these slices."""
    return node_report(slices=slices, bases=bases)


def whole(name: str = "GPU-1", gpu_type: str = H100, memory: int = 80 * GIB) -> SliceReport:
    """A GPU that is not cut."""
    return gpu_slice(name, gpu_type=gpu_type, memory=memory)


def instance(name: str, memory: int = SMALL) -> SliceReport:
    """A MIG instance."""
    return gpu_slice(name, kind=SliceKind.MIG, device="GPU-2", gpu_type=H100, memory=memory)


def on_gpus(sizes: tuple[BlankSize, ...]) -> list[tuple[str, str, int]]:
    """Base environment, type and count of those on GPUs, in their order."""
    return [(size.base, size.gpu_type, size.count) for size in sizes if size.gpu_type]


def test_a_need_is_what_a_function_asks_for() -> None:
    """Its base environment, the types of which it takes one, and memory; several GPUs at once have no blank."""
    spec = function_spec(gpu=(GpuAsk("H100"), GpuAsk("A10", 2), GpuAsk("CPU")), vram=8 * GIB)

    assert need_of(version_record(spec, base="vllm")) == BlankNeed(base="vllm", types=("H100", "CPU"), mib=8 * 1024)
    assert need_of(version_record()) == BlankNeed(base="default", types=("CPU",), mib=0)


def test_a_blank_serves_who_could_start_on_its_slice() -> None:
    """By type and by memory; who does not say how much memory it needs starts on whole GPUs only."""
    known = BlankNeed(base="default", types=("H100",), mib=8 * 1024)
    unknown = BlankNeed(base="default", types=("ANY",), mib=0)

    assert is_served(known, SliceKind.MIG, H100, SMALL)
    assert not is_served(known, SliceKind.MIG, H100, 5 * GIB)
    assert not is_served(known, SliceKind.GPU, "A10", 24 * GIB)
    assert not is_served(known, SliceKind.CPU, "", 0)
    assert is_served(unknown, SliceKind.GPU, "A10", 24 * GIB)
    assert not is_served(unknown, SliceKind.MIG, H100, SMALL)
    assert is_served(BlankNeed(base="default", types=("CPU",), mib=0), SliceKind.CPU, "", 0)


def test_a_node_without_functions_is_ready_for_the_first_ones() -> None:
    """Of the environment that most are of; of the others on CPU slots alone."""
    sizes = blank_sizes(node(cpu_slot(0), cpu_slot(1), cpu_slot(2), whole(), instance("a"), instance("b")), {})

    assert set(sizes) == {
        BlankSize(base="default", count=2),
        BlankSize(base="vllm", count=1),
        BlankSize(base="default", gpu_type=H100, memory=80 * GIB, count=1),
        BlankSize(base="default", gpu_type=H100, memory=SMALL, count=1),
    }


def test_what_starts_soon_comes_first_then_what_is_called() -> None:
    """And no more than there are slices, or functions."""
    slices = [whole(f"GPU-{number}") for number in range(4)]
    needs = {
        BlankNeed(base="default", types=("H100",), mib=0): StartableFunctions(1, CALLED),
        BlankNeed(base="vllm", types=("ANY",), mib=0): StartableFunctions(5, FORETOLD),
        BlankNeed(base="elsewhere", types=("ANY",), mib=0): StartableFunctions(9, 9 * DEPLOYED),
    }

    assert on_gpus(blank_sizes(node(*slices), needs)) == [("vllm", H100, 4), ("default", H100, 2)]


def test_needs_of_one_base_environment_add_up() -> None:
    """On the slices that serve them."""
    needs = {
        BlankNeed(base="default", types=("H100",), mib=8 * 1024): StartableFunctions(1, DEPLOYED),
        BlankNeed(base="default", types=("H100",), mib=40 * 1024): StartableFunctions(1, DEPLOYED),
    }
    slices = [instance(name) for name in "abc"] + [instance(name, 40 * GIB) for name in "def"]

    sizes = blank_sizes(node(*slices), needs)

    assert {(size.memory, size.count) for size in sizes} == {(SMALL, 2), (40 * GIB, 3)}


def test_an_agent_of_before_has_the_one_environment() -> None:
    """And says none."""
    assert blank_sizes(node(cpu_slot(), bases=()), {}) == (BlankSize(base="default", count=1),)


def test_a_node_that_claims_thousands_of_kinds_gets_an_answer_of_bounded_size() -> None:
    """A hostile one must not occupy the controller."""
    slices = [cpu_slot(), *(instance(str(number), number * GIB) for number in range(1, 3_000))]
    needs = {
        BlankNeed(base=base, types=("ANY",), mib=1): StartableFunctions(1, DEPLOYED) for base in ("default", "vllm")
    }

    assert len(blank_sizes(node(*slices), needs)) <= 2 * MOST_CLASSES


def test_a_function_fits_where_its_environment_and_a_slice_are() -> None:
    """Taken or not; a node that drains takes nothing new."""
    need = BlankNeed(base="vllm", types=("H100",), mib=8 * 1024)

    assert fits_on(node(cpu_slot(), instance("a")), need)
    assert not fits_on(node(cpu_slot()), need)
    assert not fits_on(node(instance("a"), bases=("default",)), need)
    assert not fits_on(node_report(slices=(instance("a"),), bases=("vllm",), draining=True), need)

"""Which slice of a GPU gets a blank, and of which base environment."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.messages.node_messages import BlankSize, SliceKind, SliceReport
from pilotlight_runtime.containers.blanks.blank_plan import everywhere, is_on, planned_blanks
from tests.builders.nodes import GIB, cpu_slot, gpu_slice
from tests.example_counts import examples

SMALL, HALF = 10 * GIB, 40 * GIB


def instance(name: str, memory: int = SMALL) -> SliceReport:
    """A MIG instance of an H100."""
    return gpu_slice(name, kind=SliceKind.MIG, device="GPU-1", gpu_type="H100-80GB", memory=memory)


def size(base: str, count: int = 1, memory: int = SMALL) -> BlankSize:
    """So many on such instances."""
    return BlankSize(base=base, gpu_type="H100-80GB", memory=memory, count=count)


def test_each_free_slice_gets_one_until_somebody_says_otherwise() -> None:
    """Of one base environment; CPU slots have theirs in a pool."""
    free = [instance("a"), instance("b"), instance("c", HALF)]

    sizes = everywhere("default", [*free, cpu_slot()])

    assert sizes == [size("default", 2), size("default", 1, HALF)]
    assert planned_blanks(free, sizes, {}, 8) == dict.fromkeys("abc", "default")


def test_a_node_keeps_no_more_than_it_may() -> None:
    """Those that are there count, and stay."""
    free = [instance(name) for name in "abc"]

    assert planned_blanks(free, [size("default", 3)], {}, 2) == {"a": "default", "b": "default"}
    assert planned_blanks(free, [size("default", 3)], {"c": "default"}, 1) == {"c": "default"}
    assert planned_blanks(free, [size("default", 3)], {}, 0) == {}


def test_one_of_each_comes_before_a_second_of_any() -> None:
    """In the order of the sizes."""
    free = [instance(name) for name in "abc"]

    planned = planned_blanks(free, [size("vllm", 3), size("default", 3)], {}, 8)

    assert planned == {"a": "vllm", "b": "default", "c": "vllm"}


def test_a_blank_that_is_of_use_stays_where_it_is() -> None:
    """Another of the same size goes elsewhere, and one that nobody wants gives its slice to one that is wanted."""
    free = [instance("a"), instance("b")]

    assert planned_blanks(free, [size("vllm"), size("default")], {"a": "default"}, 8) == {"a": "default", "b": "vllm"}
    assert planned_blanks(free, [size("vllm", 2)], {"a": "default"}, 8) == {"a": "vllm", "b": "vllm"}
    assert planned_blanks(free, [], {"a": "default"}, 8) == {}


@given(
    kinds=st.lists(st.sampled_from([SMALL, HALF]), max_size=8),
    sizes=st.lists(
        st.builds(size, st.sampled_from(["default", "vllm"]), st.integers(0, 5), st.sampled_from([SMALL, HALF])),
        max_size=4,
        unique_by=lambda each: (each.base, each.memory),
    ),
    most=st.integers(0, 8),
    data=st.data(),
)
@examples(100)
def test_a_plan_is_stable_and_within_its_sizes(
    kinds: list[int], sizes: list[BlankSize], most: int, data: st.DataObject
) -> None:
    """What was planned is planned again; no kind has more than was said, and no slice is empty that could have one."""
    free = [instance(str(number), memory) for number, memory in enumerate(kinds)]
    bases = st.dictionaries(st.sampled_from([part.id for part in free] or ["x"]), st.sampled_from(["default", "old"]))

    planned = planned_blanks(free, sizes, data.draw(bases), most)

    assert planned_blanks(free, sizes, planned, most) == planned
    assert len(planned) <= most
    left = {each: each.count for each in sizes}
    for part in free:
        if part.id in planned:
            left[next(each for each in sizes if each.base == planned[part.id] and is_on(each, part))] -= 1
    assert min(left.values(), default=0) >= 0
    empty = [part for part in free if part.id not in planned]
    assert len(planned) == most or not any(
        count and is_on(each, part) for each, count in left.items() for part in empty
    )

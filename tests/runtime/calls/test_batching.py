"""The batch former: who goes together, and when."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model import values
from pilotlight_core.model.spec import Batching
from pilotlight_runtime.calls.batching import BatchFormer, ComputeModel, item_cost
from tests.example_counts import examples


def former(size: int = 4, wait_ms: float = 10.0, cost: float | None = None, slo: float | None = None) -> BatchFormer:
    """A former with a new compute model."""
    return BatchFormer(Batching(max_batch_size=size, wait_ms=wait_ms, max_batch_cost=cost), slo_p95_ms=slo)


def test_nothing_is_never_due() -> None:
    """Without items there is no instant to wake for, and nothing to take."""
    empty = former()

    assert (empty.due_at(5.0), empty.pop_due(5.0), empty.room, len(empty)) == (None, (), 0, 0)


def test_a_first_item_waits_for_company() -> None:
    """The batch goes `wait_ms` after its first item came, whoever came since."""
    batch = former(wait_ms=10)
    batch.add("a", at=1.0)
    batch.add("b", at=1.009)

    assert batch.due_at(1.009) == pytest.approx(1.010)
    assert batch.pop_due(1.009) == ()
    assert batch.pop_due(1.010) == ("a", "b")
    assert batch.due_at(1.010) is None


def test_a_full_batch_goes_at_once() -> None:
    """Size: nobody waits for a place that there is not; who came too late begins the next batch."""
    batch = former(size=2)
    for call in "abc":
        batch.add(call, at=1.0)

    assert batch.due_at(1.0) == 1.0
    assert batch.pop_due(1.0) == ("a", "b")
    assert batch.pop_due(1.0) == ()
    assert batch.due_at(1.0) == pytest.approx(1.010)


def test_a_batch_grows_while_the_guest_is_busy() -> None:
    """What is due and not taken goes on taking company, up to its size."""
    batch = former(size=3, wait_ms=1)
    for n, call in enumerate("abcd"):
        batch.add(call, at=float(n))

    assert batch.pop_due(9.0) == ("a", "b", "c")


def test_cost_closes_a_batch() -> None:
    """Cost: the item that does not fit any more closes the batch and begins the next."""
    batch = former(size=10, cost=100)
    batch.add("a", cost=60, at=0.0)
    batch.add("b", cost=30, at=0.0)
    assert batch.pop_due(0.0) == ()
    batch.add("c", cost=20, at=0.0)

    assert batch.pop_due(0.0) == ("a", "b")
    assert batch.pop_due(0.0) == ()


def test_an_item_beyond_the_cost_goes_alone() -> None:
    """It can never have company, so it does not wait for it either."""
    batch = former(cost=100)
    batch.add("a", cost=500, at=0.0)
    batch.add("b", cost=1, at=0.0)

    assert batch.pop_due(0.0) == ("a",)
    assert batch.pop_due(0.0) == ()


def test_the_slo_shortens_the_wait() -> None:
    """Wait = SLO - measured compute - margin, when that is less than `wait_ms`."""
    batch = former(size=1000, wait_ms=50, slo=40)
    batch.add("a", at=0.0)
    assert batch.due_at(0.0) == pytest.approx(0.036)
    batch.compute.observe(1, 20)

    assert batch.due_at(0.0) == pytest.approx(0.016)
    batch.compute.observe(2, 500)
    batch.add("b", at=0.0)
    assert batch.due_at(0.0) == 0.0


def test_a_deadline_cuts_the_wait() -> None:
    """Deadline: an item that would be too late otherwise takes all the others with it."""
    batch = former(wait_ms=1000)
    batch.compute.observe(2, 30)
    batch.add("a", at=0.0)
    batch.add("b", at=0.0, deadline_at=0.1)

    assert batch.due_at(0.0) == pytest.approx(0.1 - 0.030 - 0.001)
    batch.remove("b")
    assert batch.due_at(0.0) == pytest.approx(1.0)


def test_a_removed_call_leaves_room() -> None:
    """A cancelled call is not in the batch, and the next one moves up."""
    batch = former(size=2)
    for call in "abc":
        batch.add(call, at=0.0)

    assert batch.remove("a")
    assert not batch.remove("a")
    assert batch.pop_due(0.0) == ("b", "c")


def test_room_is_that_of_the_forming_batch() -> None:
    """What is full is no room; a batch that forms behind it is."""
    batch = former(size=3)
    rooms = []
    for n in range(5):
        batch.add(str(n), at=0.0)
        rooms.append(batch.room)

    assert rooms == [2, 1, 0, 2, 1]


def test_a_draining_container_does_not_wait() -> None:
    """When nobody else comes, waiting helps nobody."""
    batch = former(wait_ms=1000)
    batch.add("a", at=0.0)
    batch.stop_waiting()

    assert batch.pop_due(0.0) == ("a",)


def test_statistics_say_how_it_is() -> None:
    """What waits, the room, the wait and the compute time are readable."""
    batch = former(size=4, wait_ms=10)
    batch.compute.observe(1, 7)
    batch.add("a", at=0.0)
    told = batch.statistics()

    assert (told.waiting, told.room, told.wait_ms, told.compute_p95_ms) == (1, 3, 10, 7)


def test_compute_is_known_by_size() -> None:
    """The 95th percentile of recent batches of like size; a size never seen is estimated from its neighbours."""
    model = ComputeModel()
    assert model.p95_ms(8) == 0.0
    for ms in range(1, 101):
        model.observe(8, float(ms))

    assert model.p95_ms(5) == 97.0
    assert model.p95_ms(3) == 97.0
    assert model.p95_ms(16) == 194.0


@pytest.mark.parametrize(
    ("cost_of", "named", "cost"),
    [
        (None, {"text": "abc"}, 1),
        ("len:text", {"text": "abc"}, 3),
        ("len:text", {"text": [1, 2]}, 2),
        ("len:text", {"text": 7}, 1),
        ("len:text", {}, 1),
        ("value:tokens", {"tokens": 250}, 250),
        ("value:tokens", {"tokens": 2.5}, 2.5),
        ("value:tokens", {"tokens": -3}, 0),
        ("value:tokens", {"tokens": float("nan")}, 1),
        ("value:tokens", {"tokens": True}, 1),
        ("value:tokens", {"tokens": "many"}, 1),
        ("len:text", {"text": msgspec.msgpack.Ext(9, b"x")}, 1),
    ],
)
def test_cost_of_an_item(cost_of: str | None, named: dict[str, object], cost: float) -> None:
    """One each, a parameter's length or its value; what cannot be measured counts one."""
    assert item_cost(Batching(max_batch_size=8, cost_of=cost_of), named) == cost


def test_cost_of_an_array_is_its_first_side() -> None:
    """Arrays are measured without being decoded."""
    numpy = pytest.importorskip("numpy")
    named = values.decode_opaque(values.encode({"x": numpy.zeros((5, 2), "float32")}))

    assert item_cost(Batching(max_batch_size=8, cost_of="len:x"), named) == 5


STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "remove", "take"]), st.integers(0, 20), st.floats(0, 40)), max_size=60
)


@examples(200)
@given(STEPS, st.integers(1, 5), st.none() | st.floats(1, 60))
def test_batches_keep_order_size_and_cost(steps: list[tuple[str, int, float]], size: int, most: float | None) -> None:
    """Whatever happens: in grant order, no call lost or doubled, never beyond size, beyond cost only alone."""
    batch = former(size=size, cost=most)
    waiting: dict[str, float] = {}
    for number, (what, which, cost) in enumerate(steps):
        if what == "add":
            batch.add(str(number), cost=cost, at=number / 100)
            waiting[str(number)] = cost
        elif what == "remove":
            call = str(which)
            assert batch.remove(call) is (waiting.pop(call, None) is not None)
        else:
            taken = batch.pop_due(number / 100)
            assert list(taken) == list(waiting)[: len(taken)]
            assert len(taken) <= size
            assert len(taken) <= 1 or most is None or sum(waiting[call] for call in taken) <= most
            for call in taken:
                del waiting[call]
        assert len(batch) == len(waiting)
        assert 0 <= batch.room < size
    batch.stop_waiting()
    while waiting:
        for call in batch.pop_due(1e9):
            del waiting[call]
    assert batch.due_at(1e9) is None

"""Batches: one item's failure is that item's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pilotlight_core.model import values
from pilotlight_core.model.messages.call_messages import Outcome
from pilotlight_runtime.guest.frames import BatchResult, CancelCall, Invoke, InvokeBatch, Result
from tests.runtime.guest.apps import shop
from tests.runtime.guest.harness import Guest, spec_of


@pytest.fixture(scope="module")
def guest() -> Iterator[Guest]:
    """An open shop."""
    with Guest() as opened:
        opened.load(spec_of(shop.Shop))
        yield opened


def batch(*items: object) -> InvokeBatch:
    """A batch with one call for each item."""
    calls = tuple((f"c{n}", values.encode({"item": item, "count": n})) for n, item in enumerate(items))
    return InvokeBatch(batch=7, method="price", items=calls)


def answer(guest: Guest, frame: InvokeBatch) -> BatchResult:
    """What the guest answers to a batch."""
    guest.send(frame)
    result = guest.receive()
    assert isinstance(result, BatchResult)
    assert [item.call_id for item in result.results] == [call for call, _ in frame.items]
    return result


def test_columns_in_and_items_out(guest: Guest) -> None:
    """Called once with one list per parameter; answered item by item."""
    result = answer(guest, batch("tea", "milk"))

    assert [values.decode(item.output) for item in result.results] == ["tea x 0", "milk x 1"]
    assert (result.batch, result.whole, result.started) == (7, False, True)
    assert result.execute_ns > 0


def test_one_bad_item_fails_alone(guest: Guest) -> None:
    """An exception in an item's place, an answer that cannot travel, and arguments that do not fit."""
    result = answer(guest, batch("tea", "broken", "thing", 17, "milk"))

    assert [item.outcome.value for item in result.results] == ["ok", "raised", "bad_output", "bad_input", "ok"]
    errors = [(item.error.type, item.error.message) for item in result.results if item.error]
    assert errors[0] == ("ValueError", "it is broken")
    assert errors[1][1].startswith("a object cannot travel")
    assert errors[2] == ("BadInput", "item: Expected `str`, got `int`")


def test_only_bad_items_call_nothing(guest: Guest) -> None:
    """Without an item that can be read the code does not run."""
    result = answer(guest, batch(1, 2))

    assert [item.outcome for item in result.results] == [Outcome.BAD_INPUT] * 2
    assert result.whole is False


@pytest.mark.parametrize(
    ("item", "outcome", "says"),
    [
        ("fire", Outcome.RAISED, "the shop burns"),
        ("list", Outcome.BAD_OUTPUT, "a batched method must return a list, and it returned a tuple"),
        ("short", Outcome.BAD_OUTPUT, "as long as its arguments: 2 were given, 1 returned"),
    ],
)
def test_a_batch_that_fails_whole_fails_all(guest: Guest, item: str, outcome: Outcome, says: str) -> None:
    """It raised, or answered what cannot be assigned to items: each might do alone, and `whole` says so."""
    result = answer(guest, batch(item, "tea"))

    assert result.whole
    assert [item.outcome for item in result.results] == [outcome] * 2
    assert all(item.error is not None and says in item.error.message for item in result.results)


def test_a_batch_that_raises_says_how_to_fail_one_item(guest: Guest) -> None:
    """Below the traceback, for the function's author; a batch of one has no neighbours to spare."""

    def last_lines(*items: str) -> set[str]:
        errors = [item.error for item in answer(guest, batch(*items)).results]
        return {error.traceback.splitlines()[-1] for error in errors if error is not None}

    (together,), (alone,) = last_lines("fire", "tea"), last_lines("fire")
    assert together.startswith("(This batch of 2 raised, so each of its items failed: return an exception")
    assert alone == "RuntimeError: the shop burns"


def test_answers_together_fit_a_frame(guest: Guest) -> None:
    """What would not fit any more fails, and its neighbours do not."""
    result = answer(guest, batch("bulk", "bulk", "tea"))

    assert [item.outcome.value for item in result.results] == ["ok", "bad_output", "ok"]


def test_cancelled_items_are_dropped(guest: Guest) -> None:
    """Before the batch they are not in it; during it their answer is dropped; their neighbours have theirs."""
    guest.send(batch("slow", "tea"))
    assert guest.line() == "pricing"
    guest.send(CancelCall(call_id="c1"))
    running = guest.receive()
    assert [item.outcome.value for item in running.results] == ["ok", "cancelled"]

    guest.send(batch("tea", "tea"), CancelCall(call_id="c0"), CancelCall(call_id="c1"))
    gone = guest.receive()
    assert [item.outcome.value for item in gone.results] == ["cancelled"] * 2
    assert gone.started is False


def test_a_method_streams_beside_batches(guest: Guest) -> None:
    """One class may have all kinds of methods."""
    guest.invoke("s", "each", upto=2)

    assert guest.chunks()[0] == [0, 1]


def test_what_the_code_counts_is_in_its_result(guest: Guest) -> None:
    """Added up, also from its own threads and of a call that fails; the next call begins at none."""
    found = [
        result_of(guest, "weigh", grams=5),
        result_of(guest, "weigh", grams=7, fails=True),
        result_of(guest, "history"),
    ]

    assert [(result.outcome.value, result.units) for result in found] == [
        ("ok", {"custom": 6, "images": 2}), ("raised", {"custom": 8, "images": 2}), ("ok", None),
    ]  # fmt: skip


def test_a_batch_counts_for_each_of_its_items(guest: Guest) -> None:
    """An item that could not be read has none; a number in the place of a list is refused."""
    result = answer(guest, batch("weighed", 17, "milk"))
    miscounted = answer(guest, batch("miscounted", "milk"))

    assert [item.units for item in result.results] == [{"custom": 0}, None, {"custom": 2}]
    error = miscounted.results[0].error
    assert error is not None
    assert "custom must be a list with a number for each of the 2 items of the batch" in error.message


def result_of(guest: Guest, name: str, **arguments: object) -> Result:
    """What the guest answers to a call."""
    guest.send(Invoke(call_id=f"call-{name}", method=name, input=values.encode(arguments)))
    result = guest.receive()
    assert isinstance(result, Result)
    return result

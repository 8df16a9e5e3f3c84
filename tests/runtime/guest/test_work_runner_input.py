"""Calls and batches with their arguments read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pilotlight_core.model import values
from pilotlight_core.model.messages.call_messages import Outcome
from pilotlight_core.model.spec import Batching
from pilotlight_runtime.guest import work_runner
from pilotlight_runtime.guest.basics.remote_errors import BadAnswer, BadArguments
from pilotlight_runtime.guest.frames import Invoke, InvokeBatch
from pilotlight_runtime.guest.guest_target import GuestTarget, target_of
from pilotlight_runtime.guest.work_runner import ColumnBatch, prepared
from tests.builders.specs import function_spec, method


def target(function: Callable[..., Any], **more: Any) -> GuestTarget:
    return target_of(function_spec("f", method(**more)), function)


def batch(*items: dict[str, Any], of: Callable[..., Any], drop: str = "") -> ColumnBatch:
    """A batch of calls a, b, … with those arguments; `drop` names calls that were cancelled before."""
    batched = target(of, batching=Batching(max_batch_size=9))
    frame = InvokeBatch(
        batch=1,
        method="",
        items=tuple((name, values.encode(item)) for name, item in zip("abcdef", items, strict=False)),
    )
    return ColumnBatch(batched, frame, set(drop))


def double(numbers: list[int]) -> list[int]:
    return [2 * number for number in numbers]


def outcomes(columns: ColumnBatch) -> dict[str, Outcome]:
    return {result.call_id: result.outcome for result in columns.result(0).results}


def test_a_call_is_bound_to_its_arguments() -> None:
    """By name, and by place where the function allows no other."""

    def power(base: int, /, *, exponent: int = 2) -> int:
        return int(base**exponent)

    call = Invoke(call_id="a", input=values.encode({"base": 3, "exponent": 4}))
    _, ready = prepared(target(power), call)
    assert ready() == 81


@pytest.mark.parametrize(
    ("method_name", "arguments", "why"), [("other", {}, "no method 'other'"), ("", {}, "base: the argument is missing")]
)
def test_a_call_that_does_not_fit_is_refused(method_name: str, arguments: dict[str, Any], why: str) -> None:
    """Before any of the tenant's code runs."""
    call = Invoke(call_id="a", method=method_name, input=values.encode(arguments))
    with pytest.raises(BadArguments, match=why):
        prepared(target(lambda base: base), call)


def test_a_batch_is_columns_of_its_items() -> None:
    """And each item gets its element of the list."""
    columns = batch({"numbers": 1}, {"numbers": 2}, of=double)
    columns.answer(columns.ready()())

    result = columns.result(9)
    assert [(item.call_id, values.decode(item.output)) for item in result.results] == [("a", 2), ("b", 4)]
    assert (result.execute_ns, result.whole) == (9, False)


def test_an_item_that_cannot_be_read_is_not_given_to_the_method() -> None:
    """The others are."""
    columns = batch({"numbers": 1}, {"numbers": "x"}, of=double)
    assert columns.calls == ["a"]
    columns.answer(columns.ready()())

    assert outcomes(columns) == {"a": Outcome.OK, "b": Outcome.BAD_INPUT}


def test_a_dropped_item_is_cancelled() -> None:
    """It is left out of the columns."""
    columns = batch({"numbers": 1}, {"numbers": 2}, of=double, drop="a")
    assert columns.calls == ["b"]
    columns.answer(columns.ready()())

    assert outcomes(columns) == {"a": Outcome.CANCELLED, "b": Outcome.OK}


@pytest.mark.parametrize(("value", "why"), [({1: 2}, "must return a list"), ([1], "as long as its arguments")])
def test_an_answer_that_is_no_list_of_the_items_is_refused(value: object, why: str) -> None:
    """Which element would be whose?"""
    with pytest.raises(BadAnswer, match=why):
        batch({"numbers": 1}, {"numbers": 2}, of=double).answer(value)


def test_an_exception_in_the_list_is_its_items_alone() -> None:
    """And a value that cannot travel too."""
    columns = batch({"numbers": 1}, {"numbers": 2}, {"numbers": 3}, of=double)
    columns.answer([1, ValueError("no"), object()])

    assert outcomes(columns) == {"a": Outcome.OK, "b": Outcome.RAISED, "c": Outcome.BAD_OUTPUT}


def test_a_method_that_raised_failed_for_every_item() -> None:
    """The same error for each, and the batch says that it failed as a whole."""
    columns = batch({"numbers": 1}, {"numbers": 2}, of=double)
    columns.fail(ValueError("no"))

    result = columns.result(0)
    assert result.whole
    assert [(item.call_id, item.error and item.error.message) for item in result.results] == [("a", "no"), ("b", "no")]


def test_answers_of_a_batch_fit_one_frame_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """An item for which no room is left is told so."""
    monkeypatch.setattr(work_runner, "MAX_VALUE", 60)
    columns = batch({"numbers": 1}, {"numbers": 2}, of=double)
    columns.answer(["x" * 50, "y" * 50])

    assert outcomes(columns) == {"a": Outcome.OK, "b": Outcome.BAD_OUTPUT}

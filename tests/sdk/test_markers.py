"""The decorators below `gpu_function`."""

from __future__ import annotations

from typing import Any

import pytest

from pilotlight import App, OptionError, batched, concurrent, drain, enter, exit, method  # noqa: A004
from pilotlight.definitions.decorated import markers_of


def test_a_mark_leaves_the_function_as_it_was() -> None:
    """It is still a plain function, and markers add up, with or without parentheses."""

    @method()
    @batched(max_batch_size=8, wait_ms=5, cost="len:texts", max_batch_cost=100)
    def embed(texts: list[str]) -> list[int]:
        return [len(text) for text in texts]

    @enter
    def load(self: object) -> None: ...

    @exit
    def close(self: object) -> None: ...

    mark = markers_of(embed)
    assert embed(["abc"]) == [3]
    assert mark.method
    assert mark.batched is not None
    assert (mark.batched.max_batch_size, mark.batched.wait_ms, mark.batched.max_batch_cost) == (8, 5.0, 100.0)
    assert (markers_of(load).enter, markers_of(close).exit) == (True, True)
    assert markers_of(3).is_callable is False


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "max_batch_size must be 1 to 1000, not None"),
        ({"max_batch_size": 0}, "max_batch_size must be 1 to 1000"),
        ({"max_batch_size": True}, "max_batch_size"),
        ({"max_batch_size": 8, "wait_ms": -1}, "wait_ms must be 0 to 600000"),
        ({"max_batch_size": 8, "max_batch_cost": 0}, "max_batch_cost must be more than 0"),
        ({"max_batch_size": 8, "cost": lambda text: 1}, "runs no code of yours outside"),
        ({"max_batch_size": 8, "batch_wait_timeout_s": 1}, r"wait_ms= \(milliseconds\)"),
        ({"max_batch_size": 8, "batch_size_fn": len}, "cost="),
        ({"max_batch_sise": 8}, r"did you mean max_batch_size=\?"),
    ],
)
def test_batched_refuses_wrong_options(options: dict[str, Any], message: str) -> None:
    """They are out of bounds, of other platforms, or code that would run outside the sandbox."""
    with pytest.raises(OptionError, match=message):
        batched(**options)


def test_concurrent_refuses_wrong_options() -> None:
    """It takes a number of inputs and no target."""
    with pytest.raises(OptionError, match="max_inputs must be 1 to 10000"):
        concurrent()
    with pytest.raises(OptionError, match="finds the target itself"):
        concurrent(max_inputs=3, target_inputs=2)


def test_hooks_take_no_options() -> None:
    """Snapshots are not supported yet, and a generator needs no flag."""
    with pytest.raises(OptionError, match=r"snap= .*snapshots come later"):
        enter(snap=True)  # type: ignore[call-overload]
    with pytest.raises(OptionError, match="takes no options"):
        exit(grace=3)  # type: ignore[call-overload]
    with pytest.raises(OptionError, match="takes no options"):
        drain(within=3)  # type: ignore[call-overload]
    with pytest.raises(OptionError, match="a method that yields is a generator"):
        method(is_generator=True)  # type: ignore[call-overload]


def test_the_order_of_decorators_matters() -> None:
    """`gpu_function` stands on top, and a property cannot be marked."""
    decorated = App("tests").gpu_function(test_concurrent_refuses_wrong_options)
    with pytest.raises(OptionError, match="belongs on top"):
        batched(max_batch_size=3)(decorated)
    with pytest.raises(OptionError, match="mark a plain method"):
        enter(property(lambda self: 1))  # type: ignore[call-overload]
    with pytest.raises(OptionError, match="cannot be marked"):
        enter(3)  # type: ignore[call-overload]

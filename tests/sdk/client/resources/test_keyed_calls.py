"""Calls with an idempotency key: what is sent again, and what is not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy
import pytest

import pilotlight
from pilotlight import gpu_function
from pilotlight_core.model import values
from tests.sdk.scripted import Answer, ScriptedPlatform, problem

GREET = "/v1/functions/keyed.greet/calls"


@gpu_function(app="keyed")
def greet(name: Any) -> Any:
    return name


@gpu_function(app="keyed")
def count(upto: int) -> Iterator[int]:
    yield from range(upto)


def given(output: Any, *, cut: bool = False) -> Answer:
    """A unary answer as msgpack; `cut`: the connection breaks in it."""
    return Answer(headers={"content-type": "application/msgpack"}, pieces=[values.encode({"output": output})], cut=cut)


def test_an_attempt_whose_connection_breaks_is_sent_again_with_the_same_key(platform: ScriptedPlatform) -> None:
    """So is an attempt that was refused, or whose first one still runs."""
    sent = numpy.arange(3)
    platform.will(
        "POST",
        GREET,
        given(0, cut=True),
        problem("idempotency_key_in_use", headers={"retry-after": "0"}),
        problem("no_capacity", headers={"retry-after": "0"}),
        given(sent),
    )

    assert (greet.options(idempotency_key="auto").remote("Ada") == sent).all()
    asked = platform.asked(GREET)
    assert len(asked) == 4
    assert len({request.headers["idempotency-key"] for request in asked}) == 1
    assert {request.headers["accept"] for request in asked} == {"application/msgpack"}
    assert {request.headers["prefer"] for request in asked} == {"wait=25"}
    assert asked[0].call == {"input": {"name": "Ada"}}


def test_a_key_of_ones_own_travels_and_auto_makes_a_fresh_one_each(platform: ScriptedPlatform) -> None:
    """A given key is sent as it is, and each call of a map has another."""
    platform.will("POST", GREET, given("x"))
    greet.options(idempotency_key="order-7").remote("Ada")
    list(greet.options(idempotency_key="auto").map(["a", "b"], durable=False))

    keys = [request.headers["idempotency-key"] for request in platform.asked(GREET)]
    assert keys[0] == "order-7"
    assert len(set(keys)) == 3


@pytest.mark.parametrize("code", ["idempotency_key_reused", "answer_not_kept", "function_raised", "container_died"])
def test_a_final_answer_is_not_requested_again(platform: ScriptedPlatform, code: str) -> None:
    """The same key would bring the same answer."""
    platform.will("POST", GREET, problem(code))

    with pytest.raises(pilotlight.PilotlightError) as caught:
        greet.options(idempotency_key="k").remote("Ada")

    assert (caught.value.wire_code, len(platform.asked(GREET))) == (code, 1)


def test_a_deadline_bounds_a_keyed_call(platform: ScriptedPlatform) -> None:
    """The wait for a first attempt that still runs counts, too."""
    platform.will("POST", GREET, problem("idempotency_key_in_use", headers={"retry-after": "30"}))

    with pytest.raises(pilotlight.PilotlightError, match="wrong"):
        greet.options(idempotency_key="k", deadline=5).remote("Ada")
    assert platform.requests[0].call["deadline_ms"] <= 5_000


def test_an_answer_that_cannot_be_read_is_an_error(platform: ScriptedPlatform) -> None:
    """A proxy's page is an example."""
    platform.will("POST", GREET, Answer(pieces=[b"<html>"]))

    with pytest.raises(pilotlight.BadOutput):
        greet.options(idempotency_key="k").remote("Ada")


def test_streams_stages_and_malformed_keys_are_refused(platform: ScriptedPlatform) -> None:
    """Nothing is sent."""
    for key in ("two words", "", "x" * 256):
        with pytest.raises(pilotlight.Misuse, match="idempotency_key"):
            greet.options(idempotency_key=key)
    with pytest.raises(pilotlight.Misuse, match="no stages"):
        greet.options(idempotency_key="k", on_stage=print)
    with pytest.raises(pilotlight.Misuse, match="cannot have one"):
        list(count.options(idempotency_key="k").remote_gen(2))
    with pytest.raises(pilotlight.Misuse, match="is a generator"):
        count.options(idempotency_key="k").remote(2)
    assert platform.requests == []

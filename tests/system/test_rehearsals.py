"""A function's warm-up examples and its check, on a whole platform."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.system.support.platform import Platform
from tests.system.support.sample_apps import APPS, deployed
from tests.waiting import wait_until


@pytest.fixture(scope="module", autouse=True)
def _rehearsed(platform: Platform) -> Iterator[None]:
    with deployed(platform, APPS / "rehearsed" / "app.py"):
        yield


def texts(platform: Platform, function: str, at_least: int = 0) -> list[str]:
    """The function's log; nothing if it has fewer lines."""
    lines = [line["text"] for line in platform.logs("rehearsed", function)]
    return lines if len(lines) >= at_least else []


def test_a_container_rehearses_before_its_first_call_and_is_replaced_when_it_is_unfit(platform: Platform) -> None:
    """What it did before is in the breakdown of the call that waited for it; later its own check finds the fault."""
    answer = platform.answer("rehearsed.Counter", method="count", text="fourth")

    assert answer["output"] == 4
    assert {"warmup", "check"} <= answer["cold_start"].keys()
    first = platform.container_of("rehearsed", "Counter")["id"]
    lines = wait_until(lambda: texts(platform, "Counter", at_least=5), "its lines are there")
    assert lines[:5] == ["counts first", "counts second", "checked after 2", "counts third", "counts fourth"]
    platform.answer("rehearsed.Counter", method="wear")
    wait_until(
        lambda: first not in {container["id"] for container in platform.containers("rehearsed")},
        "the container whose check fails is gone",
    )
    told = "the container is taken out of service: its check failed: AssertionError: the check's example: "
    wait_until(lambda: any(text.startswith(told) for text in texts(platform, "Counter")), "its log says why")
    assert platform.answer("rehearsed.Counter", method="count", text="fourth")["output"] == 4


def test_a_warm_up_that_fails_is_the_calls_failure_and_says_where(platform: Platform) -> None:
    """With the function's own traceback, to its owner."""
    failed = platform.call("rehearsed.cold", of=1)

    problem = failed.json()
    assert (problem["code"], problem["detail"]) == ("load_failed", "ZeroDivisionError: division by zero")
    assert "return of / 0" in str(problem)
    told = "warmup failed: ZeroDivisionError: division by zero"
    wait_until(lambda: told in texts(platform, "cold"), "its log says which step it was")

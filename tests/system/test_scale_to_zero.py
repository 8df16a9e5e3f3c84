"""The known failures of scaling from zero and back, each under its name."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import pilotlight
from tests.system.apps.zero.app import LOADS, SHORT
from tests.system.support.events import events_of
from tests.system.support.further_controller import further_controller
from tests.system.support.ledger import rows
from tests.system.support.platform import Platform
from tests.system.support.processes import Sandboxes, descendants, is_alive, sandboxes_of
from tests.system.support.sample_apps import APPS, deployed
from tests.waiting import wait_until

LOAD_MS = 2000.0
"""What `Heavy` sleeps while it loads."""
MANY = 200
"""Calls at once."""


@pytest.fixture(scope="module", autouse=True)
def _zero(platform: Platform) -> Iterator[None]:
    with deployed(platform, APPS / "zero" / "app.py"):
        yield


def to_zero(platform: Platform, app: str = "zero") -> None:
    """Wait until no container of the app is left."""
    wait_until(lambda: not platform.containers(app), f"the containers of {app} go")


def zero_is_reached(platform: Platform) -> None:
    """Wait until the host shows the blank and nothing else: no process, uid, control group or folder of a container."""
    seen: tuple[Sandboxes, int, list[str]] | None = None

    def is_reached() -> bool:
        nonlocal seen
        left = [f"{container['function']} is {container['state']}" for container in platform.containers()]
        seen = sandboxes_of(platform.pids["agent"], platform.state / "node" / "local"), platform.blanks(), left
        return seen[0].count == seen[1] == 1 and not left

    try:
        wait_until(is_reached, "zero is reached")
    except AssertionError as error:
        raise AssertionError(f"{error}; seen last: {seen}") from None


def logged(platform: Platform, function: str, text: str) -> int:
    """How often a function has logged a line."""
    return sum(line["text"] == text for line in platform.logs("zero", function))


def test_first_calls_are_held_while_a_container_starts(platform: Platform) -> None:
    """However many come before there is a container, each is answered, none is turned away."""
    to_zero(platform)
    with ThreadPoolExecutor(MANY) as callers:
        answers = list(callers.map(lambda number: platform.call("zero.quick", number=number), range(MANY)))

    assert [answer.status_code for answer in answers] == [200] * MANY
    assert [answer.json()["output"] for answer in answers] == list(range(MANY))
    cold = next(answer.json() for answer in answers if answer.json()["cold_start"])
    warm = wait_until(lambda: warm_answer(platform), "a call meets no container that has just started")
    told = [wait_until(partial(receipt, platform, one["id"]), "there is a receipt") for one in (cold, warm)]
    assert told[0]["cold_start_ms"] == pytest.approx(sum(cold["cold_start"].values()), abs=0.001)
    assert [one["cold_start_billed"] for one in told] == [True, False]
    assert told[1]["cold_start_ms"] == 0.0


def warm_answer(platform: Platform) -> dict[str, Any] | None:
    """The answer to a call; None if it is the first of its container, of which a burst may have started several."""
    answer = platform.answer("zero.quick")
    return answer if answer["cold_start"] is None else None


def receipt(platform: Platform, call: str) -> dict[str, Any] | None:
    """What the ledger has billed a call; None: nothing yet."""
    answer = platform.http.get(f"/v1/calls/{call}/receipt")
    return answer.json() if answer.status_code == 200 else None


def test_a_first_burst_of_long_calls_does_not_wait_for_the_first_to_end(platform: Platform) -> None:
    """Nobody knows yet how long they take: all containers that they need load before the first one runs."""
    to_zero(platform)
    names = [pilotlight.call_id() for _ in range(MANY)]

    def begin(name: str) -> str:
        body = {"id": name, "input": {"seconds": 60.0}, "method": "work"}
        answer = many.post("/v1/functions/zero.Lasting/calls", json=body, timeout=150.0)
        return str(answer.json().get("code"))

    def loading() -> int:
        return sum(container["state"] != "ready" for container in platform.containers("zero"))

    with platform.as_holder_of(platform.key) as many, ThreadPoolExecutor(MANY) as callers:
        calls = callers.map(begin, names)
        try:
            wait_until(lambda: loading() == 4, "all four load at once")
            left = 4
            while left:
                left -= wait_until(lambda: let_go_on(platform), "another one may go on")
            wait_until(lambda: sum(each["running"] for each in platform.containers("zero")) == MANY, "each call runs")
        finally:
            cancelled = [platform.http.delete(f"/v1/calls/{name}").status_code for name in names]
        assert set(cancelled) == {202}
        assert set(calls) == {"cancelled"}
    to_zero(platform)


def let_go_on(platform: Platform) -> int:
    """Let the containers of `Lasting` go on that load; how many of them there were."""
    let = 0
    for pid in descendants(platform.pids["agent"]):
        with contextlib.suppress(OSError):  # it does not load, or not any more
            Path(f"/proc/{pid}/root{LOADS}").unlink()
            let += 1
    return let


@pytest.mark.variant
def test_a_load_that_flaps_does_not_flap_containers(platform: Platform) -> None:
    """Between bursts one container goes per window, and only what has gone comes again."""
    to_zero(platform)
    began, names = time.monotonic(), set[str]()

    def there() -> set[str]:
        return {container["id"] for container in platform.containers("zero")}

    def keep_calling(over: threading.Event) -> None:
        while not over.is_set():
            assert platform.output("zero.flaps", seconds=0.2) == 0.2

    for _ in range(3):
        over = threading.Event()
        with ThreadPoolExecutor(4) as callers:
            loops = [callers.submit(keep_calling, over) for _ in range(4)]
            try:
                most = wait_until(lambda: found if len(found := there()) == 4 else None, "each has a container")
            finally:
                over.set()
        for loop in loops:
            loop.result()
        names |= most
        wait_until(lambda: len(there()) < 4, "one goes")

    assert len(names) <= 4 + (time.monotonic() - began) / SHORT
    to_zero(platform)


def test_calls_that_cannot_wait_for_a_start_bring_it_about(platform: Platform) -> None:
    """Those that come too early are refused with when to come again, and whoever does finds a container."""
    assert platform.output("zero.Prompt", method="ask") == "there"
    to_zero(platform)
    body = {"input": {}, "method": "ask", "deadline_ms": 300.0}
    answers = [platform.http.post("/v1/functions/zero.Prompt/calls", json=body)]
    while answers[-1].status_code == 503 and len(answers) < 5:
        time.sleep(answers[-1].json()["retry_after"])
        answers.append(platform.http.post("/v1/functions/zero.Prompt/calls", json=body))

    assert answers[0].json()["code"] == "no_capacity"
    assert answers[-1].json().get("output") == "there", [answer.text for answer in answers]


def test_a_load_longer_than_any_idle_timer_is_not_reaped(platform: Platform) -> None:
    """It loads once, answers those who waited all the while, and leaves in order when it was idle for its window."""
    to_zero(platform)
    with ThreadPoolExecutor(8) as callers:
        answers = list(callers.map(lambda _: platform.answer("zero.Heavy", method="ask"), range(8)))

    assert {answer["output"] for answer in answers} == {"there"}
    # Whichever came first waited for all of it.
    assert max(answer["latency"]["stages"]["start"] for answer in answers) >= LOAD_MS
    to_zero(platform)
    wait_until(lambda: logged(platform, "Heavy", "left"), "the exit hook has run")
    assert logged(platform, "Heavy", "loaded") == logged(platform, "Heavy", "left") == 1


def test_a_cold_start_is_told_as_it_happens(platform: Platform) -> None:
    """Each stage of it is an event with the milliseconds since the request, and they are there before the answer."""
    to_zero(platform)
    told = list(events_of(platform, "zero.Heavy", method="ask"))

    stages = [event.data["name"] for event in told if event.name == "stage"]
    assert list(dict.fromkeys(stages)) == ["queued", "binding", "loading", "running"]
    instants = [event.data["ms"] for event in told if event.name == "stage"]
    assert instants == sorted(instants)
    assert told[-1].name == "result"
    assert told[-1].data["cold_start"]["enter"] >= LOAD_MS
    assert set(told[-1].data["cold_start"]) >= {"manifest", "stage", "import", "enter"}


def test_zero_is_reached_after_a_stream_that_was_left(platform: Platform) -> None:
    """The caller hangs up in the middle: the generator is closed, its container goes."""
    for event in events_of(platform, "zero.trickles", count=1000, pause=0.05):
        if event.name == "chunk" and event.data["value"] == 3:
            break

    wait_until(lambda: logged(platform, "trickles", "closed"), "the generator is closed")
    zero_is_reached(platform)


def test_zero_is_reached_after_errors(platform: Platform) -> None:
    """A function that raised is idle like any other."""
    assert [platform.call("zero.fails").json()["code"] for _ in range(3)] == ["function_raised"] * 3

    zero_is_reached(platform)


def test_what_stays_beyond_its_window_is_not_its_tenants(platform: Platform) -> None:
    """Of three containers that become idle together one goes per window: for the others the operator pays meanwhile."""
    to_zero(platform)
    query = "SELECT DISTINCT purpose, used, tenant, holder FROM lease_line WHERE function = 'flaps' AND state = 'idle'"

    def payers() -> set[tuple[str, int, str]]:
        with ThreadPoolExecutor(3) as callers:
            list(callers.map(lambda seconds: platform.output("zero.flaps", seconds=seconds), [0.5] * 3))
        to_zero(platform)
        return {
            (purpose, used, "tenant" if payer == holder else "operator" if payer == "" else payer)
            for purpose, used, payer, holder in rows(platform, query)
        }

    wait_until(lambda: {("call", 1, "tenant"), ("prewarm", 0, "operator")} <= payers(), "both pay for idle containers")


def test_zero_is_reached_after_a_crash(platform: Platform) -> None:
    """The container is gone with everything in it, children too."""
    platform.output("zero.quick")
    before = descendants(platform.pids["agent"])
    assert platform.call("zero.dies").json()["code"] == "container_died"

    zero_is_reached(platform)
    assert not [pid for pid in before - descendants(platform.pids["agent"]) if is_alive(pid)]


def test_a_caller_who_leaves_takes_one_item_out_of_the_batch_that_forms(platform: Platform) -> None:
    """The others are answered, and the function never sees the item."""
    ready(platform)
    with ThreadPoolExecutor(2) as callers:
        others = [callers.submit(platform.answer, "zero.Together", "work", item=name) for name in ("a", "b")]
        hang_up(platform, "gone", when="queued")
        answers = [other.result() for other in others]

    assert [answer["output"] for answer in answers] == ["A", "B"]
    assert {answer["usage"]["batch_size"] for answer in answers} == {2}
    wait_until(lambda: logged(platform, "Together", "batch a b"), "the batch is logged")


def test_a_caller_who_leaves_a_batch_that_runs_harms_nobody(platform: Platform) -> None:
    """Its answer is dropped; the others get theirs."""
    ready(platform)
    with ThreadPoolExecutor(3) as callers:
        others = [callers.submit(platform.answer, "zero.Together", "work", item=f"slow {n}") for n in range(3)]
        hang_up(platform, "slow gone", when="running")
        answers = [other.result() for other in others]

    assert [answer["output"] for answer in answers] == ["SLOW 0", "SLOW 1", "SLOW 2"]
    assert {answer["usage"]["batch_size"] for answer in answers} == {4}


def ready(platform: Platform) -> None:
    """`Together` has a container: a full batch waits for nobody."""
    with ThreadPoolExecutor(4) as callers:
        list(callers.map(lambda n: platform.output("zero.Together", "work", item=f"ready {n}"), range(4)))


def hang_up(platform: Platform, item: str, *, when: str) -> None:
    """Send an item to `Together`, and close the connection as soon as it has gone to its container.

    Args:
        when: "queued" hangs up while its batch forms, "running" when the function has begun to work on it.
    """
    name = pilotlight.call_id()

    def state() -> str:
        status: str = platform.http.get(f"/v1/calls/{name}").json().get("state", "")
        return status

    for event in events_of(platform, "zero.Together", id=name, method="work", item=item):
        if event.name == "stage" and event.data["name"] == when:
            wait_until(lambda: state() == "running", "the item has gone to its container")
            break
    wait_until(lambda: state() == "cancelled", "the platform has seen the caller go")


def test_containers_that_shall_stay_stay(platform: Platform) -> None:
    """`min_containers` are there before the first call, beyond the window, and until the app is stopped."""
    platform.deploy(APPS / "kept" / "app.py")
    [warm] = wait_until(
        lambda: [c for c in platform.containers("kept") if c["state"] == "ready" and c["idle_s"] > 0.5],
        "one container is ready, and the gateway has heard of it",
    )

    assert platform.answer("kept.warm")["cold_start"] is None
    [kept] = wait_until(lambda: [c for c in platform.containers("kept") if c["idle_s"] > 2.0], "it has been idle")
    assert kept["id"] == warm["id"]

    platform.cli("app", "stop", "kept")
    to_zero(platform, "kept")
    assert platform.call("kept.warm").status_code == 404


def test_a_controller_that_advises_says_what_it_would_have(platform: Platform) -> None:
    """Beside the one that leads. Where none is there, the answer says how to start one."""
    nobody = platform.cli("explain", "zero.quick", "--advised", check=False)
    assert nobody.returncode != 0
    assert "--advise" in nobody.stderr

    with further_controller(platform, "--advise"):

        def advised() -> bool:
            platform.output("zero.quick")
            told = platform.cli("explain", "zero.quick", "--advised", "--json", check=False)
            return told.returncode == 0 and any(c["wanted"] for c in json.loads(told.stdout)["changes"])

        wait_until(advised, "advice of a function that is called")

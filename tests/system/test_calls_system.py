"""What a call can be, through the whole path: its values, its ends, and what is told of it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from functools import partial
from typing import Any

import httpx
import msgspec
import numpy as np
import pytest

import pilotlight
from pilotlight.client.portal import shared_portal
from pilotlight_core.model.units import cost_of, money
from tests.system.support.events import events_of, read_events
from tests.system.support.ledger import check_no_instant_is_sold_twice, ended, receipts, rows
from tests.system.support.platform import Platform
from tests.system.support.sample_apps import APPS, deployed
from tests.waiting import wait_until

MB_10 = 10 * 10**6
AHEAD = 1_500
"""Chunks of 16 KiB: the window is 256, the rest is what the kernel's socket buffers hold."""


@pytest.fixture(scope="module", autouse=True)
def _calls(platform: Platform) -> Iterator[None]:
    with deployed(platform, APPS / "calls" / "app.py"):
        yield


@pytest.fixture
def sdk(client: pilotlight.Client) -> Any:
    """`sdk("echo")` is the SDK's function."""

    def function(name: str, method: str = "", **options: Any) -> Any:
        found = pilotlight.Function.from_name("calls", name, method=method)
        return found.options(client=client, **options)

    return function


def state(platform: Platform, call: str) -> str:
    """What the platform says of a call; "" while it knows none."""
    status: str = platform.http.get(f"/v1/calls/{call}").json().get("state", "")
    return status


def logged(platform: Platform, function: str) -> list[str]:
    """The lines of a function."""
    return [line["text"] for line in platform.logs("calls", function)]


# -- values -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ({"a": [1, 2.5, None, True, "ä"]}, "builtins.dict"),
        (b"\x00\xff" * 10, "builtins.bytes"),
        (np.arange(6, dtype=np.float32).reshape(2, 3), "numpy.ndarray"),
        (np.array([], dtype=np.int64), "numpy.ndarray"),
    ],
    ids=["json", "bytes", "numpy", "empty"],
)
def test_values_keep_their_types(sdk: Any, value: Any, kind: str) -> None:
    """What is sent with the SDK arrives as what it was, and comes back so."""
    found, back = sdk("mirror").remote(value=value)

    assert found == kind
    assert same(back, value)


def test_tensors_stay_tensors(sdk: Any) -> None:
    """Of a type that only torch has, and deep in a value."""
    import torch

    for value, kind in (
        (torch.arange(4, dtype=torch.bfloat16), "torch.Tensor"),
        ([torch.ones(2, 2), {"deep": np.array([1.5])}], "builtins.list"),
    ):
        found, back = sdk("mirror").remote(value=value)

        assert found == kind
        assert same(back, value)


def same(one: Any, other: Any) -> bool:
    """Equal in type, shape and content."""
    if type(one).__module__ == "torch":
        import torch

        return bool(one.dtype == other.dtype) and torch.equal(one, other)
    if isinstance(one, np.ndarray):
        return bool(one.dtype == other.dtype) and np.array_equal(one, other)
    if isinstance(one, list):
        return len(one) == len(other) and all(same(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return type(one) is type(other) and bool(one == other)


def test_msgpack_is_spoken_without_the_sdk(platform: Platform) -> None:
    """A body and an answer in msgpack carry bytes as bytes; to JSON callers they are base64."""
    body = msgspec.msgpack.encode({"input": {"value": b"\x00\x01"}})
    headers = {"Content-Type": "application/msgpack", "Accept": "application/msgpack"}

    answer = platform.http.post("/v1/functions/calls.echo/calls", content=body, headers=headers)

    assert answer.headers["content-type"] == "application/msgpack"
    assert msgspec.msgpack.decode(answer.content)["output"] == b"\x00\x01"


def test_ten_megabytes_go_in_and_come_out(platform: Platform, sdk: Any) -> None:
    """As text in JSON, and as bytes through the SDK."""
    text = "x" * (MB_10 - 100)
    data = bytes(range(256)) * (MB_10 // 256)

    assert platform.output("calls.echo", value=text) == text
    assert sdk("echo").remote(value=data) == data


# -- streams ----------------------------------------------------------------------------------------------------------


def test_a_slow_reader_holds_the_function_back(platform: Platform) -> None:
    """While nobody reads, the guest makes no more than fits on the way; later everything arrives, in order."""
    upto = 4000
    body = {"input": {"upto": upto, "size": 16 * 1024}}
    headers = {"Accept": "text/event-stream"}
    path = "/v1/functions/calls.counts/calls"
    with platform.http.stream("POST", path, json=body, headers=headers) as answer:
        events = read_events(answer)
        while next(events).name != "chunk":
            pass
        wait_until(lambda: "at 200" in logged(platform, "counts"), "it fills the way")
        for number in range(50):  # a clock of events: what would not be held back would be done long before
            platform.output("calls.echo", value=number)
        ahead = max(int(line.removeprefix("at ")) for line in logged(platform, "counts") if line.startswith("at "))
        rest = [event.data for event in events if event.name == "chunk"]

    assert ahead < AHEAD
    assert [chunk["seq"] for chunk in rest] == list(range(2, upto + 1))


def test_a_generator_called_for_one_answer_gives_all_its_chunks(platform: Platform) -> None:
    """Even more than may be on their way at a time."""
    assert platform.output("calls.counts", upto=3000) == ["eA=="] * 3000


def test_leaving_a_stream_ends_its_work(platform: Platform, sdk: Any) -> None:
    """Whoever breaks off the loop closes the generator: its `finally` runs, and it yields no more."""
    before = logged(platform, "counts").count("closed")
    for number, _ in enumerate(sdk("counts").remote_gen(upto=10**7)):
        if number == 10:
            break

    wait_until(lambda: logged(platform, "counts").count("closed") > before, "the generator is closed")
    wait_until(lambda: not any(c["running"] for c in platform.containers("calls")), "nothing runs any more")


# -- ends -------------------------------------------------------------------------------------------------------------


def test_a_call_is_cancelled_by_the_callers_own_id(platform: Platform, client: pilotlight.Client, sdk: Any) -> None:
    """One that waits never runs, one that runs is answered at once, and both are remembered as cancelled."""
    running, waiting = pilotlight.call_id(), pilotlight.call_id()
    with ThreadPoolExecutor(2) as callers:
        first = callers.submit(sdk("naps", id=running).remote, seconds=60.0, name=running)
        wait_until(lambda: state(platform, running) == "running", "the first runs")
        second = callers.submit(sdk("naps", id=waiting).remote, seconds=60.0, name=waiting)
        wait_until(lambda: state(platform, waiting) == "queued", "the second waits")
        wait_until(lambda: f"ran {running}" in logged(platform, "naps"), "the first has said that it runs")
        for call in (waiting, running):
            shared_portal().run(client.platform.cancel_call(call))
        for left in (first, second):
            with pytest.raises(pilotlight.Cancelled):
                left.result(timeout=30.0)

    assert state(platform, running) == state(platform, waiting) == "cancelled"
    assert platform.output("calls.naps", seconds=0.0, name="last") == "last"
    lines = wait_until(lambda: "ran last" in (lines := logged(platform, "naps")) and lines, "the last is logged")
    assert f"ran {running}" in lines
    assert f"ran {waiting}" not in lines


def test_code_that_raised_is_tried_again_as_often_as_it_says(platform: Platform) -> None:
    """`retries=2` is three tries in all; the receipt tells how many there were."""
    mended = platform.answer("calls.flaky", name="mends", failures=2)
    hopeless = platform.call("calls.flaky", name="never", failures=9)

    assert (mended["output"], mended["usage"]["attempts"]) == (3, 3)
    assert (hopeless.status_code, hopeless.json()["code"]) == (500, "function_raised")
    assert "failure 3" in hopeless.json()["detail"]
    raised = ["1 of mends", "2 of mends", "1 of never", "2 of never", "3 of never"]
    said = re.compile(r"failure (\d of (mends|never))$")
    wait_until(
        lambda: [found[1] for line in logged(platform, "flaky") if (found := said.search(line))] == raised,
        "each try's traceback is in the log",
    )


def test_the_request_of_a_failed_call_is_in_the_logs(platform: Platform, sdk: Any) -> None:
    """In the function's, with what it raised, and in the gateway's, however it was called."""
    failed = platform.call("calls.flaky", name="fails", failures=9).json()
    with pytest.raises(pilotlight.FunctionRaised) as caught:
        sdk("flaky").remote(name="fails too", failures=9)
    for request_id, text in ((failed["request_id"], "of fails"), (caught.value.more["request_id"], "of fails too")):
        words = ("logs", "calls.flaky", "--call", str(request_id))
        wait_until(partial(logs_have, platform, words, f"failure 3 {text}\n"), "its lines are stored")
        gateway = (platform.state / "logs" / "gateway.log").read_text()
        assert [line for line in gateway.splitlines() if request_id in line and "function_raised" in line]


def logs_have(platform: Platform, words: tuple[str, ...], text: str) -> bool:
    return text in platform.cli(*words).stdout


def test_it_is_tried_again_whichever_way_it_is_called(sdk: Any) -> None:
    """Live with and without a key, streamed, batched, mapped, and stored."""
    name = pilotlight.call_id
    assert sdk("flaky").remote(name=name(), failures=2) == 3
    assert sdk("flaky", idempotency_key="auto").remote(name=name(), failures=2) == 3
    assert list(sdk("flaky_stream").remote_gen(name=name(), failures=2)) == [3, 3]
    assert sdk("FlakyBatch", "work").remote(name=name(), failures=2) == 3
    assert list(sdk("flaky").starmap([(name(), 2)] * 1, durable=False)) == [3]
    assert sdk("flaky").spawn(name=name(), failures=2).get(timeout=60) == 3


def test_tries_have_the_time_that_one_may_take_each(platform: Platform) -> None:
    """A timeout of four seconds bounds each of three tries that take four and a half together."""
    answer = platform.answer("calls.slow_flaky", name="late", failures=2, seconds=1.5)

    assert (answer["output"], answer["usage"]["attempts"]) == (3, 3)


def test_an_idempotent_call_that_kills_its_container_is_given_up(platform: Platform) -> None:
    """Run again at most twice: three deaths, then the caller is told."""
    answer = platform.call("calls.hopeless", name="again")

    assert (answer.status_code, answer.json()["code"]) == (502, "container_died")
    wait_until(lambda: logged(platform, "hopeless").count("ran again") == 3, "three starts are logged")


def test_one_bad_item_fails_alone(platform: Platform) -> None:
    """Its neighbours in the batch are answered."""
    answers = together(platform, "calls.Batches", "halve", [2, 3, 4, 5])

    assert [answer.status_code for answer in answers] == [200, 500, 200, 500]
    assert [answer.json().get("output") for answer in answers] == [1, None, 2, None]
    assert answers[1].json()["detail"] == "ValueError: 3 is odd"
    assert {answer.json()["usage"]["batch_size"] for answer in (answers[0], answers[2])} == {4}


def test_a_batch_that_raises_fails_all_its_items(platform: Platform) -> None:
    """Each is told what to do instead. Where it may run again, each item is run by itself."""
    spoiled = together(platform, "calls.Batches", "all_or_none", [2, 3, 4, 6])
    careful = together(platform, "calls.Careful", "halve", [2, 3, 4, 6])

    assert [answer.json()["code"] for answer in spoiled] == ["function_raised"] * 4
    assert all("return an exception in the place of a bad item" in answer.json()["traceback"] for answer in spoiled)
    assert [answer.status_code for answer in careful] == [200, 500, 200, 200]
    assert careful[1].json()["detail"] == "ValueError: [3] are odd"
    assert "bad item" not in careful[1].json()["traceback"]


def together(platform: Platform, ref: str, method: str, numbers: list[int]) -> list[httpx.Response]:
    """Calls that share a batch, which runs as soon as it is full."""
    with ThreadPoolExecutor(len(numbers)) as callers:
        return list(callers.map(lambda number: platform.call(ref, method=method, number=number), numbers))


def test_one_container_works_on_many_calls(platform: Platform) -> None:
    """Eight callers meet in it: none could be answered before all are there."""
    with ThreadPoolExecutor(8) as callers:
        met = list(callers.map(lambda _: platform.output("calls.Many", "meet", others=8), range(8)))

    assert met == [8] * 8


# -- what is told -----------------------------------------------------------------------------------------------------


def test_the_stages_of_a_call_sum_to_its_latency(platform: Platform) -> None:
    """Cold or warm, fast or slow, unary or stream."""
    answers = [platform.answer("calls.metered", seconds=seconds) for seconds in (0.0, 0.05, 0.0)]
    answers.append(list(events_of(platform, "calls.counts", upto=5))[-1].data)

    for answer in answers:
        latency = answer["latency"]
        assert math.isclose(sum(latency["stages"].values()), latency["total_ms"], abs_tol=0.01)
        assert all(stage >= 0 for stage in latency["stages"].values())
    assert answers[1]["latency"]["stages"]["execute"] >= 50


def test_receipts_sum_to_the_report(platform: Platform) -> None:
    """What callers were told they used is, to the nanosecond, what the ledger has and the report shows."""
    with ThreadPoolExecutor(8) as callers:
        answers = list(callers.map(lambda n: platform.answer("calls.metered", seconds=n / 1000), range(40)))
    told = {answer["id"]: answer["usage"]["ns"] for answer in answers}
    wait_until(lambda: told.keys() <= ended(platform, "metered"), "all calls are folded")

    kept = receipts(platform, "metered")
    assert {call: kept[call] for call in told} == told
    lines = platform.http.get("/v1/usage", params={"group": "app,function,state"}).json()["lines"]
    [line] = [one for one in lines if (one["app"], one["function"], one["state"]) == ("calls", "metered", "busy")]
    assert (line["calls"], line["ns"]) == (len(kept), sum(kept.values()))


def test_what_a_function_counts_is_on_the_receipt_and_in_the_ledger(platform: Platform) -> None:
    """Of a call and of a job, beside the key that asked and why the container was there."""
    answer = platform.answer("calls.completes", prompt="how are you")
    (key,) = {one["id"] for one in platform.http.get("/v1/keys").json()["keys"]}
    job = platform.http.post(
        "/v1/functions/calls.completes/calls",
        json={"input": {"prompt": "hello there"}},
        headers={"prefer": "respond-async"},
    ).json()["id"]
    done = wait_until(
        lambda: (found := platform.http.get(f"/v1/calls/{job}").json())["state"] == "succeeded" and found,
        "the job ends",
    )

    assert answer["usage"]["units"] == {"prompt_tokens": 3, "completion_tokens": 1}
    assert done["usage"]["units"] == {"prompt_tokens": 2, "completion_tokens": 1}
    assert "units" not in platform.answer("calls.metered", seconds=0.0)["usage"]
    told = {answer["id"], done["run"]}
    wait_until(lambda: told <= ended(platform, "completes"), "both are folded")
    lines = {
        line[0]: line[1:]
        for line in rows(
            platform,
            "SELECT call, key_id, fault, units FROM receipt_line WHERE function = 'completes' AND outcome != ''",
        )
    }
    assert lines[answer["id"]] == (key, "none", '{"completion_tokens":1,"prompt_tokens":3}')
    assert lines[done["run"]] == (key, "none", '{"completion_tokens":1,"prompt_tokens":2}')
    facts = rows(
        platform,
        "SELECT DISTINCT purpose, region, zone, purchase, memory > 0, wall_ns > 0 FROM lease_line "
        "WHERE function = 'completes' AND state = 'busy'",
    )
    assert facts == [("call", "local", "local-a", "on-demand", 1, 1)]


def test_prices_are_exact(platform: Platform) -> None:
    """A call's cost is its nanoseconds times its part of a device, of cores and of memory, each times the price."""
    usage = platform.answer("calls.metered", seconds=0.01)["usage"]
    roomy = platform.answer("calls.roomy", seconds=0.01)
    wait_until(lambda: roomy["id"] in ended(platform, "roomy"), "the call is folded")
    rates = dict(rows(platform, "SELECT DISTINCT price, rate FROM usage_day"))

    for one in (usage, roomy["usage"]):
        assert [part["cost"] for part in one["parts"]] == [
            money(cost_of(one["ns"], part["ppm"], rates[part["price"]])) for part in one["parts"]
        ]
        assert Decimal(one["cost"]) == sum(Decimal(part["cost"]) for part in one["parts"])
    kept = rows(platform, "SELECT price, ppm, ns FROM receipt_line WHERE call = ?", roomy["id"])
    told = [(part["price"], part["ppm"], roomy["usage"]["ns"]) for part in roomy["usage"]["parts"]]
    assert sorted(kept) == sorted(told)
    paid = {part["price"]: part["ppm"] for part in roomy["usage"]["parts"]}
    assert paid["memory_gib"] == 4_000_000
    assert paid["cpu_core"] > {part["price"]: part["ppm"] for part in usage["parts"]}.get("cpu_core", 0)
    assert Decimal(roomy["usage"]["cost"]) / roomy["usage"]["ns"] > Decimal(usage["cost"]) / usage["ns"]
    assert usage["gpu_ms"] == usage["ns"] * usage["ppm"] / 1e12
    check_no_instant_is_sold_twice(platform)

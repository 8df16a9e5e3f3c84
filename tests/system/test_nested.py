"""Functions that call functions, through the whole path: guest, agent, gateway, and back."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.system.support.ledger import rows
from tests.system.support.platform import Platform
from tests.system.support.sample_apps import APPS, deployed
from tests.waiting import wait_until


@pytest.fixture(scope="module", autouse=True)
def _nested(platform: Platform) -> Iterator[None]:
    with deployed(platform, APPS / "nested" / "app.py"):
        yield


def nested_of(platform: Platform, call: str) -> list[str]:
    """The calls that a call made, as the ledger has them."""
    return [made for (made,) in rows(platform, "SELECT call_id FROM nested_call WHERE parent = ?", call)]


# -- what works -------------------------------------------------------------------------------------------------------


def test_a_function_calls_another(platform: Platform) -> None:
    """By its decorated name and by its deployed one, with arguments by place and by name, and from threads."""
    assert platform.output("nested.twice", number=4) == 8
    assert platform.output("nested.by_name", function="double", values=[5], named={"nap": 0.0}) == 10
    assert platform.output("nested.by_name", function="double", values=[5], named={}, threads=8) == [10] * 8


def test_it_calls_many_at_a_time(platform: Platform) -> None:
    """In an event loop, and by a map."""
    numbers = list(range(20))
    assert platform.output("nested.gathers", numbers=numbers) == [2 * number for number in numbers]
    assert platform.output("nested.maps", numbers=numbers) == [2 * number for number in numbers]


def test_a_request_may_be_as_large_as_from_outside(platform: Platform) -> None:
    """Beyond what the bus takes it goes past it, and so does the answer."""
    text = "x" * 3_000_000

    assert platform.output("nested.by_name", function="length", values=[text], named={}) == [3_000_000, text]


def test_a_run_calls_deployed_functions(platform: Platform) -> None:
    """A function of a file calls others while it is developed."""
    assert platform.cli("run", f"{APPS / 'nested' / 'app.py'}::twice", "number=3").stdout.strip() == "6"


def test_a_job_calls_as_any_call(platform: Platform) -> None:
    """In the name of the key that stored it."""
    job = platform.cli("call", "nested.twice", "number=5", "--spawn").stdout.strip()

    assert platform.cli("job", "get", job, "--wait", "30").stdout.strip() == "10"


def test_what_a_nested_call_raises_is_raised(platform: Platform) -> None:
    """As outside: the error of the function, of its arguments, or of its name."""
    failed = platform.call("nested.by_name", function="double", values=["three", 4, 5], named={})
    assert "its parameters are (number, nap)" in failed.json()["detail"]
    failed = platform.call("nested.by_name", function="double", values=[], named={"number": "three"})
    assert "number" in failed.json()["detail"]
    failed = platform.call("nested.by_name", function="nothing", values=[], named={})
    assert failed.json()["detail"].startswith("pilotlight.UnknownFunction")


# -- whose it is, and how long it may take ----------------------------------------------------------------------------


def test_it_is_billed_to_the_caller_once_and_names_its_parent(platform: Platform) -> None:
    """Each call has a receipt of its own, which says which one made it; the parent's says which it made."""
    parent = platform.answer("nested.twice", number=1)["id"]
    made = wait_until(lambda: nested_of(platform, parent), "the ledger has the nested call")

    (child,) = made
    receipt = platform.http.get(f"/v1/calls/{child}/receipt").json()
    assert receipt["parent"] == parent
    assert receipt["key"] == platform.http.get(f"/v1/calls/{parent}/receipt").json()["key"] != ""
    assert f"Made by the call {parent}." in platform.cli("billing", "receipt", child).stderr
    assert child in platform.cli("billing", "receipt", parent).stderr
    slices = rows(platform, "SELECT count(*) FROM receipt_line WHERE call = ? AND price LIKE '%xcpu'", child)
    assert slices == [(1,)]


def test_nothing_of_the_tenant_is_in_the_sandbox(platform: Platform) -> None:
    """No key in the environment, and no network."""
    found = platform.output("nested.environment")

    assert not [name for name in found["names"] if "KEY" in name or "_TOKEN" in name or "URL" in name]
    assert platform.key not in " ".join(found["values"])
    assert set(found["network"]) <= {"lo"}


def test_it_ends_with_its_parent(platform: Platform) -> None:
    """At the parent's deadline, and when its caller leaves: the nested call is cancelled with it."""
    platform.output("nested.waits", seconds=0.0)
    body = {"input": {"seconds": 60.0}, "deadline_ms": 3_000}
    late = platform.http.post("/v1/functions/nested.waits/calls", json=body)
    assert late.json()["code"] == "deadline_exceeded"
    wait_until(lambda: woken(platform) == 1, "the nested call is woken")

    with pytest.raises(httpx.ReadTimeout):
        platform.call("nested.waits", seconds=60.0, timeout=3.0)
    wait_until(lambda: woken(platform) == 2, "the second one, too")


def woken(platform: Platform) -> int:
    """How many sleepers were cancelled."""
    return [line["text"] for line in platform.logs("nested", "sleeper")].count("woken")


# -- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("spawn", "job:"),
        ("remote_gen", "stream:"),
        ("cancel", "client: a function has no key"),
        ("client", "options(client=…)"),
        ("key", "options(idempotency_key=…)"),
        ("itself", "circle: default:nested.misuse > default:nested.misuse."),
    ],
)
def test_what_does_not_work_is_refused_by_name(platform: Platform, how: str, said: str) -> None:
    """With what to do instead."""
    assert platform.output("nested.misuse", how=how).startswith(said)


def test_a_batch_makes_no_calls(platform: Platform) -> None:
    """Nothing says for which of its items."""
    assert "batch: a batched function" in platform.call("nested.in_batch", number=1).json()["detail"]


def test_a_circle_is_refused_at_once(platform: Platform) -> None:
    """Also over another function: the outer call holds the only slot."""
    refused = platform.call("nested.left", turns=2)

    assert "circle: default:nested.left > default:nested.right > default:nested.left." in refused.json()["detail"]


def test_trees_that_hold_what_the_other_waits_for_do_not_hang(platform: Platform) -> None:
    """Each holds the only slot of a function that the other one calls: one is refused, and the other goes on."""
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda ref: platform.call(ref, turns=1), ("nested.left", "nested.right")))

    assert sorted(answer.status_code for answer in answers) == [200, 500]
    (refused,) = [answer.json()["detail"] for answer in answers if answer.status_code == 500]
    assert "deadlock: all 1 slots of default:nested." in refused


# -- who attacks ------------------------------------------------------------------------------------------------------


def test_a_guest_speaks_for_its_own_calls_alone(platform: Platform) -> None:
    """A call of another container, an invented one, and none: nothing is called in their names."""
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(platform.answer, "nested.waits", seconds=3.0)
        live = wait_until(lambda: running_of(platform), "it runs")
        codes = platform.output("nested.hostile", parents=[live, "call_local_1_00000000000000000000", ""], times=1)
        assert codes == ["cancelled"] * 3
        other.result()


def running_of(platform: Platform) -> str:
    """The id of the call that `sleeper` runs, as its log has it."""
    found = [line["call"] for line in platform.logs("nested", "sleeper") if line.get("call")]
    return str(found[-1]) if found else ""


def test_a_guest_that_floods_its_agent_is_killed(platform: Platform) -> None:
    """The rate of frames is bounded."""
    died = platform.call("nested.hostile", parents=["x"], times=5_000)

    assert died.json()["code"] == "container_died"
    assert "needless frames about nested calls" in died.json()["detail"]


def test_functions_of_others_stay_theirs(platform: Platform, stranger: httpx.Client) -> None:
    """A name of another tenant's function is unknown, as from outside."""
    failed = platform.call("nested.by_name", app="stranger:nested", function="double", values=[1], named={})
    assert "UnknownFunction" in failed.json()["detail"]
    assert stranger.post("/v1/functions/default:nested.twice/calls", json={"input": {"number": 1}}).status_code == 404


# -- who dies ---------------------------------------------------------------------------------------------------------


def test_a_killed_guest_takes_its_nested_calls_along(platform: Platform) -> None:
    """The parent fails as any call whose container died, and what it waited for is cancelled."""
    before = woken(platform)
    with ThreadPoolExecutor(1) as pool:
        dying = pool.submit(platform.call, "nested.waits", seconds=60.0, name="dying")
        wait_until(lambda: "began dying" in [line["text"] for line in platform.logs("nested", "sleeper")], "it runs")
        container = platform.container_of("nested", "waits")["id"]
        platform.cli("container", "stop", container, "--grace", "0")
        assert dying.result().json()["code"] == "container_died"
    wait_until(lambda: woken(platform) == before + 1, "the nested call is woken")

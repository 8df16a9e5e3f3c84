"""Who holds places without need loses them: callers that leave, apps that are stopped, tenants that are disabled."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests.system.support.ledger import check_no_instant_is_sold_twice, ended, rows
from tests.system.support.platform import Platform, make_tenant
from tests.system.support.platform import platform as run_platform
from tests.waiting import wait_until

pytestmark = pytest.mark.system
APP = Path(__file__).parent / "apps" / "held" / "app.py"
SLOTS = 6
GRACE_S = 1.0
CALLS = "/v1/functions/held.sleep/calls"
HOUR = {"input": {"seconds": 3_600.0}}


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """A platform of its own, with a short grace and a tier of its operator's."""
    folder = tmp_path_factory.mktemp("held")
    (folder / "tiers.toml").write_text("[tiers.tiny]\nlimits = {containers = 1}\n")
    env = {
        "PILOTLIGHT_STOP_GRACE": str(GRACE_S),
        "PILOTLIGHT_TIERS_FILE": str(folder / "tiers.toml"),
    }
    with run_platform(folder, "--cpu-slots", str(SLOTS), "--blanks", "2", env=env) as running:
        yield running


@pytest.fixture(autouse=True)
def held(platform: Platform) -> Iterator[None]:
    """The app is deployed, and nothing of an earlier test is there."""
    platform.deploy(APP)
    wait_free(platform)
    yield
    platform.http.post("/v1/apps/held/stop")
    wait_free(platform)


def free_slots(platform: Platform) -> int:
    nodes = platform.http.get("/v1/nodes").json()["nodes"]
    return sum(not slice_["container"] for node in nodes for slice_ in node["slices"])


def wait_free(platform: Platform) -> None:
    wait_until(lambda: free_slots(platform) == SLOTS, "every slot is free again")


def busy(platform: Platform, function: str = "sleep") -> dict[str, Any]:
    """The container that runs a call of the function."""

    def look() -> dict[str, Any] | None:
        found = [each for each in platform.containers("held") if each["function"] == function and each["running"]]
        return found[0] if found else None

    return wait_until(look, f"a call of held.{function} runs")


@contextmanager
def calling(
    platform: Platform, function: str = "sleep", client: httpx.Client | None = None, **more: Any
) -> Iterator[Callable[[], httpx.Response]]:
    """A call under way in a thread; what is given returns its answer."""
    with ThreadPoolExecutor(1) as pool:
        sent = pool.submit(
            (client or platform.http).post, f"/v1/functions/held.{function}/calls", json=HOUR | more, timeout=120.0
        )
        yield sent.result


def leave(platform: Platform, function: str) -> None:
    """The caller's connection ends while its call runs."""
    with closing(HTTPConnection(urlsplit(platform.url).netloc, timeout=60.0)) as connection:
        headers = {"Authorization": f"Bearer {platform.key}", "Content-Type": "application/json"}
        connection.request("POST", f"/v1/functions/held.{function}/calls", json.dumps(HOUR), headers)
        busy(platform, function)


def pass_deadline(platform: Platform, function: str) -> None:
    """The caller gives it ten seconds, more than earlier calls had."""
    assert platform.http.post(f"/v1/functions/held.{function}/calls", json=HOUR | {"deadline_ms": 10_000}).is_error


def cancel(platform: Platform, function: str) -> None:
    """The caller cancels it by the name that it has given it."""
    with calling(platform, function, id=f"cid_held_{function}") as answer:
        busy(platform, function)
        assert platform.http.delete(f"/v1/calls/cid_held_{function}").json()["cancelled"]
        assert answer().json()["code"] == "cancelled"


def cancel_job(platform: Platform, function: str) -> None:
    """It is a job, which its owner cancels."""
    path, headers = f"/v1/functions/held.{function}/calls", {"Prefer": "respond-async"}
    job = platform.http.post(path, json=HOUR, headers=headers).json()["id"]
    busy(platform, function)
    assert platform.http.delete(f"/v1/calls/{job}").json()["cancelled"]


@pytest.mark.parametrize(
    ("give_up", "function"),
    [
        (leave, "sleep"),
        pytest.param(pass_deadline, "stay", marks=pytest.mark.long),
        pytest.param(cancel, "stay", marks=pytest.mark.variant),
        pytest.param(cancel_job, "sleep", marks=pytest.mark.variant),
    ],
)
def test_a_call_that_nobody_wants_any_more_gives_its_place_back(
    platform: Platform, give_up: Callable[[Platform, str], None], function: str
) -> None:
    """Although its function may run for a day; what it took is on a receipt, once."""
    before = ended(platform, function)

    give_up(platform, function)

    wait_free(platform)
    made = wait_until(lambda: ended(platform, function) - before, "its receipt is written")
    outcomes = rows(platform, "SELECT call, outcome FROM receipt_line WHERE outcome != ''")
    assert [outcome for call, outcome in outcomes if call in made] == ["cancelled"]
    check_no_instant_is_sold_twice(platform)


def test_a_stopped_app_ends_with_what_it_runs(platform: Platform) -> None:
    """Its calls have a grace; then their callers hear why they are over."""
    with calling(platform) as answer:
        busy(platform)

        assert platform.http.post("/v1/apps/held/stop").is_success

        over = answer()
        assert (over.status_code, over.json()["code"]) == (502, "container_died")
        assert "its app is stopped" in over.json()["detail"]
    wait_free(platform)


def test_a_start_that_never_ends_is_ended_with_its_app(platform: Platform) -> None:
    """Nothing runs in it that could be waited for, and the call that waits for it hears why it is over."""
    with ThreadPoolExecutor(1) as pool:
        sent = pool.submit(platform.http.post, "/v1/functions/held.Endless/calls", json={}, timeout=120.0)
        wait_until(lambda: platform.containers("held"), "it starts")

        platform.http.post("/v1/apps/held/stop")

        over = sent.result()
    assert (over.status_code, over.json()["code"]) in [(503, "no_capacity"), (500, "load_failed")], over.text
    wait_free(platform)


def test_a_disabled_tenant_holds_nothing(platform: Platform) -> None:
    """Neither its own functions nor those that were shared with it; another tenant's calls go on."""
    key = make_tenant(platform, "rogue", tier="enterprise")
    platform.cli("deploy", str(APP), key=key)
    platform.cli("app", "share", "held", "rogue", "sleep")
    with platform.as_holder_of(key) as rogue, calling(platform, client=rogue) as own, calling(platform, "stay"):
        with ThreadPoolExecutor(1) as pool:
            shared = pool.submit(rogue.post, "/v1/functions/default:held.sleep/calls", json=HOUR, timeout=120.0)
            wait_until(lambda: free_slots(platform) == SLOTS - 3, "all run")

            platform.cli("tenant", "disable", "rogue")

            wait_until(lambda: free_slots(platform) == SLOTS - 1, "its slots are free")
            assert [answer.status_code for answer in (own(), shared.result())] == [401, 401]
        assert busy(platform, "stay")
        platform.http.post("/v1/apps/held/stop")


@pytest.mark.parametrize("who", ["owner", "operator"])
def test_a_container_is_stopped_by_hand(platform: Platform, who: str) -> None:
    """By the one whose it is, and by an operator; for everybody else there is none."""
    name = f"hand-{who}"
    key = make_tenant(platform, name, tier="enterprise")
    strange = make_tenant(platform, f"other-{who}")
    platform.cli("deploy", str(APP), key=key)
    with platform.as_holder_of(key) as client, calling(platform, client=client) as answer:
        container = wait_until(
            lambda: next((c["id"] for c in client.get("/v1/containers").json()["containers"] if c["running"]), None),
            "it runs",
        )
        refused = platform.cli("container", "stop", container, key=strange, check=False)
        assert (refused.returncode != 0, "There is no container" in refused.stderr) == (True, True)

        done = platform.cli("container", "stop", container, "--grace", "0", key=key if who == "owner" else "")

        where = "" if who == "owner" else r" on \S+"  # nodes are named to operators
        assert re.search(rf"^{container}{where} is killed\.$", done.stdout.strip())
        assert answer().json()["code"] == "container_died"
        assert f"by {'its owner' if who == 'owner' else 'an operator'}" in answer().json()["detail"]
        client.post("/v1/apps/held/stop")


@pytest.mark.long
def test_who_would_fill_the_fleet_is_refused_with_the_limit_named(platform: Platform) -> None:
    """A free tenant gets as many containers as its limit allows, and another tenant's call starts."""
    key = make_tenant(platform, "greedy", tier="free")
    too_long = platform.cli("deploy", str(APP), key=key, check=False)
    assert "timeout_s of greedy" in too_long.stderr
    platform.cli("quota", "set", "greedy", "timeout_s=86400")
    platform.cli("deploy", str(APP), key=key)
    with ThreadPoolExecutor(10) as pool, platform.as_holder_of(key) as greedy:
        sent = [
            pool.submit(greedy.post, CALLS, json=HOUR | {"deadline_ms": 15_000}, timeout=60.0) for _ in range(2 * SLOTS)
        ]
        wait_until(lambda: free_slots(platform) == SLOTS - 4, "it has its four")

        assert platform.call("held.sleep", seconds=0.0).status_code == 200
        assert free_slots(platform) >= SLOTS - 5
        limit = "greedy has 4 containers, and its limit containers=4 allows no more"
        wait_until(lambda: limit in platform.cli("placement", "explain", "greedy:held.sleep").stdout, "it is explained")
        answers = [each.result() for each in sent]
    told = "the function's owner may have 4 at a time (limit containers)"
    assert sum(told in answer.json()["detail"] for answer in answers) >= 10 - 4, [answer.text for answer in answers]
    platform.cli("tenant", "disable", "greedy")


@pytest.mark.long
def test_an_operators_tier_holds_where_containers_are_decided(platform: Platform) -> None:
    """The controller knows it as gateways do."""
    key = make_tenant(platform, "small", tier="tiny")
    platform.cli("deploy", str(APP), key=key)
    with (
        platform.as_holder_of(key) as small,
        calling(platform, client=small, deadline_ms=10_000) as first,
        calling(platform, "stay", client=small, deadline_ms=10_000) as second,
    ):
        wait_until(lambda: free_slots(platform) == SLOTS - 1, "one runs")
        told = [answer().json()["detail"] for answer in (first, second)]
        assert sum("may have 1 at a time (limit containers)" in detail for detail in told) == 1, told
    platform.cli("tenant", "disable", "small")


@pytest.mark.parametrize("part", ["controller", "agent"])
def test_a_part_that_is_killed_meanwhile_saves_nobody(platform: Platform, part: str) -> None:
    """It is killed before the grace is over: the slot is free all the same, and nothing is billed twice."""
    with calling(platform) as answer:
        busy(platform)
        platform.http.post("/v1/apps/held/stop")
        platform.signal(part, signal.SIGKILL)
        assert answer().is_error
    wait_free(platform)
    check_no_instant_is_sold_twice(platform)

"""Durable calls, through the whole path: stored, run, polled, cancelled, driven again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

import pilotlight
from tests.system.support.platform import Platform
from tests.system.support.sample_apps import APPS, deployed
from tests.waiting import wait_until

ASYNC = {"Prefer": "respond-async"}


@pytest.fixture(scope="module", autouse=True)
def _calls(platform: Platform) -> Iterator[None]:
    with deployed(platform, APPS / "calls" / "app.py"):
        yield


def submit(platform: Platform, name: str, *, wait: int = 0, headers: dict[str, str] | None = None, **body: Any) -> Any:
    """The answer to a submission."""
    prefer = {"Prefer": f"respond-async, wait={wait}"} if wait else ASYNC
    return platform.http.post(f"/v1/functions/calls.{name}/calls", json=body, headers=prefer | (headers or {}))


def ended(platform: Platform, job: str) -> dict[str, Any]:
    """The job once it has ended."""

    def look() -> dict[str, Any] | None:
        found: dict[str, Any] = platform.http.get(f"/v1/calls/{job}", headers={"Prefer": "wait=5"}).json()
        return found if found["state"] not in ("queued", "running") else None

    return wait_until(look, f"{job} ends", 60.0)


def test_a_job_is_accepted_run_and_polled(platform: Platform) -> None:
    """202 with an address; there the result is, with what it cost."""
    answer = submit(platform, "echo", input={"value": [1, "two"]})

    assert answer.status_code == 202, answer.text
    assert answer.headers["preference-applied"] == "respond-async"
    assert answer.headers["location"] == f"/v1/calls/{answer.json()['id']}"
    done = ended(platform, answer.json()["id"])
    assert (done["state"], done["output"], done["attempts"]) == ("succeeded", [1, "two"], 1)
    assert done["usage"]["ns"] > 0


def test_waiting_makes_it_an_ordinary_answer(platform: Platform) -> None:
    """`wait=N`: what it came to, if it did in time; a failure as a live call's failure."""
    done = submit(platform, "echo", wait=30, input={"value": 7})
    assert (done.status_code, done.json()["output"]) == (200, 7)
    assert done.headers["location"] == f"/v1/calls/{done.json()['id']}"
    failed = submit(platform, "hopeless", wait=30, input={"name": "waited"})
    assert failed.status_code in (500, 502), failed.text


def test_large_values_and_streams(platform: Platform) -> None:
    """What does not fit a record is a blob; a generator's result is the list of what it yields."""
    text = "x" * 3_000_000
    done = ended(platform, submit(platform, "echo", input={"value": text}).json()["id"])
    assert done["output"] == text
    counted = ended(platform, submit(platform, "counts", input={"upto": 5}).json()["id"])
    assert len(counted["output"]) == 5


def test_code_that_raises_is_tried_again(platform: Platform) -> None:
    """As often as the function says, with pauses; what counts is the attempt that succeeds."""
    done = ended(platform, submit(platform, "flaky", input={"name": "job", "failures": 1}).json()["id"])
    assert (done["state"], done["attempts"]) == ("succeeded", 2)


def test_dead_jobs_are_listed_and_driven_again(platform: Platform) -> None:
    """With the reason and the traceback; driven again, it has all its tries once more."""
    job = submit(platform, "flaky", input={"name": "dead", "failures": 3}).json()["id"]
    dead = ended(platform, job)
    assert (dead["state"], dead["reason"], dead["attempts"]) == ("failed", "raised", 3)
    assert "Traceback" in dead["error"]["traceback"]
    listed = platform.http.get("/v1/jobs", params={"state": "failed,expired", "function": "calls.flaky"}).json()
    assert job in [one["id"] for one in listed["jobs"]]

    assert platform.http.post(f"/v1/jobs/{job}/redrive").status_code == 202
    again = ended(platform, job)
    assert (again["state"], again["attempts"], again["redrives"]) == ("succeeded", 4, 1)
    assert platform.http.post(f"/v1/jobs/{job}/redrive").status_code == 409


def test_a_job_waits_for_its_time(platform: Platform) -> None:
    """`run_at`: it is queued until then, and one that may not wait so long for a container expires."""
    at = time.time() + 3.0
    job = submit(platform, "echo", input={"value": 1}, run_at=at).json()
    assert (job["state"], job["attempts"]) == ("queued", 0)
    done = ended(platform, job["id"])
    assert done["started_at"] >= at
    explained = platform.http.get("/v1/functions/calls.echo/explanation").json()
    assert "planned" in {change["rule"] for change in explained["changes"]}, explained  # it was ready for it
    assert submit(platform, "echo", input={"value": 1}, run_at=time.time() + 1e9).status_code == 422
    live = platform.http.post("/v1/functions/calls.echo/calls", json={"input": {"value": 1}, "run_at": at})
    assert (live.status_code, live.json()["field"]) == (422, "run_at")


def test_cancelling_what_waits_and_what_runs(platform: Platform) -> None:
    """Both end as cancelled; what had ended stays what it was."""
    runs = submit(platform, "naps", input={"seconds": 30.0}).json()["id"]
    wait_until(lambda: platform.http.get(f"/v1/calls/{runs}").json()["state"] == "running", "it runs", 60.0)
    waits = submit(platform, "naps", input={"seconds": 30.0}).json()["id"]
    place = wait_until(
        lambda: (one := platform.http.get(f"/v1/calls/{waits}").json()).get("position") is not None and one,
        "its place is known",
    )
    assert place["state"] == "queued"

    for job in (waits, runs):
        assert platform.http.delete(f"/v1/calls/{job}").json() == {"id": job, "cancelled": True}
        assert ended(platform, job)["state"] == "cancelled"
    assert platform.http.delete(f"/v1/calls/{runs}").json()["cancelled"] is False


def test_what_does_not_start_in_its_time_expires(platform: Platform) -> None:
    """Behind a long call, with little patience."""
    blocker = submit(platform, "naps", input={"seconds": 60.0}).json()["id"]
    wait_until(lambda: platform.http.get(f"/v1/calls/{blocker}").json()["state"] == "running", "it runs", 60.0)
    late = ended(platform, submit(platform, "naps", input={"seconds": 0.0}, expires_in_s=1.0).json()["id"])

    assert (late["state"], late["reason"], late["attempts"]) == ("expired", "expired", 0)
    assert platform.http.get(f"/v1/calls/{blocker}").json()["state"] == "running"
    assert platform.http.delete(f"/v1/calls/{blocker}").json()["cancelled"]
    assert ended(platform, blocker)["state"] == "cancelled"


def test_a_key_stands_for_one_job(platform: Platform) -> None:
    """The same submission meets the first job; another under the same key is refused. So it is with a client's id."""
    key = {"Idempotency-Key": "order-7"}
    first = submit(platform, "echo", headers=key, input={"value": 1})
    second = submit(platform, "echo", headers=key, input={"value": 1})
    assert first.json()["id"] == second.json()["id"]
    assert second.headers["idempotent-replayed"] == "true"
    other = submit(platform, "echo", headers=key, input={"value": 2})
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")

    mine = submit(platform, "echo", input={"value": 3}, id="cid_my-own-job").json()
    found = ended(platform, "cid_my-own-job")
    assert (found["id"], found["output"]) == (mine["id"], 3)


def test_pages_are_whole(platform: Platform) -> None:
    """Page after page, the last changed first: every job once."""
    jobs = {submit(platform, "echo", input={"value": n}).json()["id"] for n in range(12)}
    for job in jobs:
        ended(platform, job)
    seen: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = platform.http.get("/v1/jobs", params={"limit": 5, **cursor}).json()
        seen += [job["id"] for job in page["jobs"]]
        if page["next"] is None:
            break
        cursor = {"cursor": page["next"]}
    assert len(seen) == len(set(seen))
    assert jobs <= set(seen)


def test_another_tenant_finds_no_job(platform: Platform, stranger: Any) -> None:
    """It is as if it were not there: to look at, to cancel, to drive again, to list."""
    job = submit(platform, "echo", input={"value": 1}).json()["id"]
    assert stranger.get(f"/v1/calls/{job}").status_code == 404
    assert stranger.delete(f"/v1/calls/{job}").status_code == 404
    assert stranger.post(f"/v1/jobs/{job}/redrive").status_code == 404
    assert stranger.get("/v1/jobs").json() == {"jobs": [], "next": None}
    assert ended(platform, job)["state"] == "succeeded"


def test_from_python_and_the_command_line(platform: Platform, client: pilotlight.Client) -> None:
    """Spawned here, fetched by its id there; listed, shown and driven again by command."""
    echo = pilotlight.Function.from_name("calls", "echo").options(client=client)
    calls = [echo.spawn(value=b"\x00"), echo.spawn(value=[1, 2])]
    assert pilotlight.FunctionCall.gather(*calls, timeout=60) == [b"\x00", [1, 2]]
    assert pilotlight.FunctionCall.from_id(calls[1].id, client=client).get() == [1, 2]
    flaky = pilotlight.Function.from_name("calls", "flaky").options(client=client)
    dead = flaky.spawn(name="spawned", failures=3)
    with pytest.raises(RuntimeError, match="failure 3"):
        dead.get(timeout=60)

    assert dead.id in platform.cli("job", "list", "--state", "failed", "--function", "calls.flaky").stdout
    platform.cli("job", "redrive", dead.id)
    assert platform.cli("job", "get", dead.id, "--wait", "30").stdout.strip() == "4"
    assert "had ended" in platform.cli("job", "cancel", dead.id).stderr


def test_a_map_is_jobs(platform: Platform, client: pilotlight.Client) -> None:
    """Ordered or not, with what raised in its place; whoever leaves takes back what waits."""
    echo = pilotlight.Function.from_name("calls", "echo").options(client=client)
    before = {job["id"] for job in platform.http.get("/v1/jobs", params={"limit": 1000}).json()["jobs"]}
    assert list(echo.map(range(100))) == list(range(100))
    assert sorted(echo.map(range(20), order_outputs=False)) == list(range(20))
    listed = platform.http.get("/v1/jobs", params={"limit": 1000, "state": "succeeded"}).json()["jobs"]
    assert len({job["id"] for job in listed} - before) == 120
    halve = pilotlight.Function.from_name("calls", "Batches", method="halve").options(client=client)
    odd, *even = halve.map([3, 4, 6, 8], return_exceptions=True)
    assert (isinstance(odd, ValueError), even) == (True, [2, 3, 4])

    naps = pilotlight.Function.from_name("calls", "naps").options(client=client)
    answers = naps.starmap([(0.0, "first"), *((6.0, f"nap {number}") for number in range(40))])
    assert next(answers) == "first"
    answers.close()  # type: ignore[attr-defined]
    open_ones: dict[str, str | int] = {"state": "queued,running", "function": "calls.naps", "limit": 1000}
    wait_until(lambda: not platform.http.get("/v1/jobs", params=open_ones).json()["jobs"], "all are cancelled", 120.0)
    del open_ones["state"]
    states = {job["state"] for job in platform.http.get("/v1/jobs", params=open_ones).json()["jobs"]}
    assert "cancelled" in states

"""A class with hooks on a whole platform: where its parts run, what they cost, and how they fail."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.system.support.platform import Platform
from tests.system.support.sample_apps import APPS, deployed
from tests.waiting import wait_until

CALLS = "/v1/functions/hooked.Words/calls"
STAGES = {"preprocess", "", "postprocess"}


@pytest.fixture(scope="module", autouse=True)
def _hooked(platform: Platform) -> Iterator[None]:
    with deployed(platform, APPS / "hooked" / "app.py"):
        yield


def receipt_lines(platform: Platform, call: str, stages: set[str]) -> list[dict[str, object]]:
    """The lines of a call's receipt, once each of these stages has one."""

    def look() -> list[dict[str, object]] | None:
        answer = platform.http.get(f"/v1/calls/{call}/receipt")
        lines: list[dict[str, object]] = answer.json()["lines"] if answer.status_code == 200 else []
        return lines if {line["stage"] for line in lines} >= stages else None

    return wait_until(look, "the call has its receipt")


def running(platform: Platform) -> dict[str, int]:
    """How many containers each function of the app has."""
    found: dict[str, int] = {}
    for container in platform.containers("hooked"):
        found[container["function"]] = found.get(container["function"], 0) + 1
    return found


def test_a_call_runs_through_its_hooks_in_containers_of_their_own(platform: Platform) -> None:
    """A failing first hook starts nothing else; then all three run, under one id and with one receipt."""
    failed = platform.call("hooked.Words", method="add", text="one four")
    problem = failed.json()
    assert (failed.status_code, problem["code"], problem["stage"]) == (500, "function_raised", "preprocess")
    assert problem["detail"] == "KeyError: 'four' (in read, the @preprocess() hook)"
    assert float(problem["usage"]["cost"]) > 0
    lines = receipt_lines(platform, failed.headers["pilotlight-call-id"], {"preprocess"})
    assert {line["stage"] for line in lines} == {"preprocess"}
    assert "Words" not in running(platform)  # nothing was started for the method

    answer = platform.answer("hooked.Words", method="add", text="one two")
    parts = {"Words", "Words~pre", "Words~post"}
    wait_until(
        lambda: platform.answer("hooked.Words", method="add", text="one two") and running(platform).keys() == parts,
        "each part has a container of its own",
    )
    stages = answer["latency"]["stages"]
    assert answer["output"] == "it is 3"
    assert stages["preprocess"] > 0 < stages["postprocess"]
    assert abs(sum(stages.values()) - answer["latency"]["total_ms"]) < 1.0
    assert {"import", "postprocess: import"} <= answer["cold_start"].keys()
    lines = receipt_lines(platform, answer["id"], STAGES)
    assert {line["function"] for line in lines} == {"hooked.Words"}
    assert sum(float(str(line["cost"])) for line in lines) == pytest.approx(float(answer["usage"]["cost"]), abs=1e-9)

    (shown,) = [one for one in platform.http.get("/v1/apps").json()["apps"] if one["app"] == "hooked"]
    assert [one["name"] for one in shown["functions"]] == ["Words"]
    assert platform.call("hooked.Words~pre", method="add", text="one").status_code == 422
    broken = platform.call("hooked.Words", method="add", text="one two three").json()
    assert (broken["code"], broken["stage"]) == ("function_raised", "postprocess")


def test_jobs_and_cancelled_calls_go_through_hooks_too(platform: Platform) -> None:
    """A job has the whole answer; of a cancelled call its hook ends, and nothing behind it begins."""
    asked = {"method": "add", "input": {"text": "two"}}
    job = platform.http.post(CALLS, json=asked, headers={"Prefer": "respond-async"})
    assert job.status_code == 202, job.text
    path = f"/v1/calls/{job.json()['id']}"
    ended = wait_until(lambda: _ended(platform, path), "the job has ended")
    assert (ended["state"], ended["output"]) == ("succeeded", "it is 2")

    name = "cid_hookcancelled"
    body = {"method": "add", "input": {"text": "one", "pause": 30.0}, "id": name}
    with platform.http.stream("POST", CALLS, json=body, headers={"Accept": "text/event-stream"}) as answer:
        said = iter(answer.iter_lines())
        next(line for line in said if '"preprocess: running"' in line)
        assert platform.http.delete(f"/v1/calls/{name}").status_code == 202
        assert "cancelled" in "".join(said)


def _ended(platform: Platform, path: str) -> dict[str, object] | None:
    job: dict[str, object] = platform.http.get(path, headers={"Prefer": "wait=5"}).json()
    return job if job["state"] not in ("queued", "running") else None

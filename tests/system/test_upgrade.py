"""The state that an earlier release left, started by this one: nothing is lost, renumbered or billed anew."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.releases.make_state import APP, ENDED, OPTIONS, versions_of
from tests.releases.stored_release import RELEASES, StoredRelease
from tests.system.support.ledger import check_no_instant_is_sold_twice, check_nothing_is_in_quarantine
from tests.system.support.platform import Platform
from tests.system.support.platform import platform as run_platform
from tests.waiting import wait_until

JOBS_LAST_S = 23 * 3_600
"""After that jobs that the release left may have expired, rather than run: by default they wait for a day."""


@pytest.fixture(scope="module", params=RELEASES, ids=lambda release: release.folder.name)
def release(request: pytest.FixtureRequest) -> StoredRelease:
    found: StoredRelease = request.param
    return found


@pytest.fixture(scope="module")
def upgraded(release: StoredRelease, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """This release on that state, asked with the key that the other one gave."""
    folder = tmp_path_factory.mktemp("upgrade")
    release.unpack("state", folder)
    client = {"url": "http://127.0.0.1:1", "api_key": release.told.tenants["default"]}
    (folder / "client.json").write_text(json.dumps(client))
    with run_platform(folder, *OPTIONS) as running:
        yield running


def bill(running: Platform) -> dict[tuple[str, ...], dict[str, Any]]:
    """The lines of the bill by what they are of."""
    lines = running.http.get("/v1/usage").json()["lines"]
    return {tuple(str(line[key]) for key in ("day", "version", "state", "price", "ppm")): line for line in lines}


def test_keys_and_tenants_go_on(upgraded: Platform, release: StoredRelease) -> None:
    """Those that the release gave."""
    assert upgraded.key == release.told.tenants["default"]
    for key in release.told.tenants.values():
        with upgraded.as_holder_of(key) as holder:
            assert holder.get("/v1/apps").status_code == 200
    assert [hook["label"] for hook in upgraded.http.get("/v1/webhooks").json()["webhooks"]] == ["kept"]


def test_every_version_keeps_its_number_and_its_history(upgraded: Platform, release: StoredRelease) -> None:
    """And its id."""
    assert versions_of(upgraded) == release.told.versions
    lines = upgraded.http.get("/v1/apps/shelf/history").json()["history"]
    kept = [
        {name: line[name] for name in before} for line, before in zip(lines, release.told.history, strict=True)
    ]  # fmt: skip
    assert kept == release.told.history


def test_every_function_answers(upgraded: Platform) -> None:
    """From what the release signed; an older version too."""
    assert upgraded.output("shelf.plain", text="after") == "after"
    assert upgraded.output("shelf.plain@v2", text="older") == "older"
    assert upgraded.output("shelf.asked", text="a", times=3) == {"text": "aaa", "times": 3}
    assert upgraded.output("shelf.Desk", method="both", number=4) == 8
    assert upgraded.output("shelf.Desk", method="one", number=4) == 5
    with upgraded.http.stream(
        "POST", "/v1/functions/shelf.counts/calls", json={"input": {"upto": 3}}, headers={"accept": "text/event-stream"}
    ) as answer:
        assert answer.status_code == 200
        assert sum(line == "event: chunk" for line in answer.iter_lines()) == 3


def test_a_deploy_of_the_same_source_changes_nothing(
    upgraded: Platform, release: StoredRelease, tmp_path: Path
) -> None:
    """An older version, deployed again, has its old number too."""
    path = tmp_path / "app.py"
    path.write_text(APP.read_text())

    said = upgraded.deploy(path)

    assert said.count("(unchanged)") == len(release.told.versions)
    assert versions_of(upgraded) == release.told.versions


def test_every_job_ends(upgraded: Platform, release: StoredRelease) -> None:
    """Those that had ended stay as they were; those that ran, waited or had a time come to an end."""
    told = release.told

    def states() -> dict[str, str]:
        return {job: upgraded.http.get(f"/v1/calls/{job}").json().get("state", "forgotten") for job in told.jobs}

    wait_until(lambda: all(state in (*ENDED, "forgotten") for state in states().values()), "all jobs have ended", 120.0)
    if time.time() < told.made_at + JOBS_LAST_S:
        # The one that ran was interrupted: its function is not declared idempotent.
        cut = {job for job, state in told.jobs.items() if state == "running"}
        assert {job: state for job, state in states().items() if job not in cut} == dict.fromkeys(
            set(told.jobs) - cut, "succeeded"
        )
    else:
        assert {state for job, state in states().items() if told.jobs[job] == "queued"} <= {"succeeded", "expired"}


def test_the_bill_goes_on(upgraded: Platform, release: StoredRelease) -> None:
    """What the release had billed stands unchanged, and what runs now is added."""
    upgraded.output("shelf.plain", text="billed")
    before = {
        tuple(str(line[key]) for key in ("day", "version", "state", "price", "ppm")): line
        for line in release.told.usage["lines"]
    }

    def has_grown() -> bool:
        now = bill(upgraded)
        return bool(sum(line["calls"] for line in now.values()) > release.told.usage["total"]["calls"])

    wait_until(has_grown, "the call is billed")
    now = bill(upgraded)
    for key, line in before.items():
        assert now[key]["ns"] >= line["ns"], key
        assert now[key]["calls"] >= line["calls"], key
    check_no_instant_is_sold_twice(upgraded)
    check_nothing_is_in_quarantine(upgraded)

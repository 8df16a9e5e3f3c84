"""Batches of a whole platform: submitted as a file, run by and by, whatever dies meanwhile; webhooks hear of them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.system.support.platform import Platform
from tests.system.support.platform import platform as run_platform
from tests.system.support.sample_apps import APPS
from tests.system.test_webhooks import answer, receiver
from tests.waiting import wait_until

OPTIONS = ("--cpu-slots", "4", "--blanks", "0")
ENV = {"PILOTLIGHT_WEBHOOK_ALLOW": "127.0.0.1"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("batches")


@pytest.fixture(scope="module")
def batching(folder: Path) -> Iterator[Platform]:
    """A platform whose parts are killed here, with the functions of `apps/batches`."""
    with run_platform(folder, *OPTIONS, env=ENV) as running:
        running.deploy(APPS / "batches" / "app.py")
        yield running


def lines_of(file: Path, inputs: list[dict[str, Any]]) -> str:
    """A file of inputs; its path."""
    rows = ({"custom_id": f"row-{number}", "input": one} for number, one in enumerate(inputs))
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(file)


def status(platform: Platform, batch: str) -> dict[str, Any]:
    """How far it is."""
    found: dict[str, Any] = wait_until(lambda: _told(platform, batch), "the store answers").json()
    return found


def _told(platform: Platform, batch: str) -> httpx.Response | None:
    answer = platform.http.get(f"/v1/batches/{batch}")
    return answer if answer.status_code != 503 else None


def over(platform: Platform, batch: str, within: float = 120.0) -> dict[str, Any]:
    """The batch, once it is over."""

    def look() -> dict[str, Any] | None:
        found = status(platform, batch)
        return found if found["state"] in ("completed", "cancelled", "failed") else None

    return wait_until(look, f"{batch} is over", within)


def results(platform: Platform, batch: str) -> list[dict[str, Any]]:
    """The lines that there are."""
    answer = platform.http.get(f"/v1/batches/{batch}/results")
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


def test_a_file_runs_whole_and_webhooks_hear_of_each_item(batching: Platform, tmp_path: Path) -> None:
    """By the command line; what fails alone fails alone."""
    inputs = [{"value": number} for number in range(30)]
    with receiver(answer(200)) as there:
        webhook = batching.http.post("/v1/webhooks", json={"url": there.url}).json()
        batch = batching.cli("batch", "submit", "bulk.echo", lines_of(tmp_path / "in", inputs), "--wait").stdout.strip()
        wait_until(lambda: len(there.got) >= 30, "every item was told")
        batching.http.delete(f"/v1/webhooks/{webhook['id']}")
    written = tmp_path / "out.jsonl"
    batching.cli("batch", "results", batch, "-o", str(written))
    found = [json.loads(line) for line in written.read_text().splitlines()]

    assert [(one["custom_id"], one["output"]) for one in found] == [(f"row-{n}", n) for n in range(30)]
    assert "30 of 30: 30 succeeded" in batching.cli("batch", "status", batch).stdout
    assert len(set(there.ids)) == 30
    told = {json.loads(body)["data"]["id"] for _, body in there.got}
    assert told == {one["id"] for one in found}


def test_the_duties_tell_how_jobs_webhooks_and_batches_are(batching: Platform) -> None:
    """A process that has the duties says so, and what there is to do."""
    later = {"input": {"value": 1}, "run_at": time.time() + 3_600}
    job = batching.http.post("/v1/functions/bulk.echo/calls", json=later, headers={"Prefer": "respond-async"}).json()

    def shown(line: str) -> bool:
        return line in batching.metrics_by_process()["duties"]

    wait_until(lambda: shown('pilotlight_job_records{state="queued"} 1.0'), "the job is counted", 30.0)
    assert shown('pilotlight_duty_holds{duty="batches"} 1.0')
    assert batching.http.delete(f"/v1/calls/{job['id']}").json()["cancelled"]


def test_a_wrong_line_is_named_before_anything_starts(batching: Platform, tmp_path: Path) -> None:
    """With the field."""
    file = lines_of(tmp_path / "in", [{"value": 1}, {"valve": 2}])
    refused = batching.cli("batch", "submit", "bulk.echo", file, check=False)

    assert refused.returncode == 1
    assert "line 2: input.val" in refused.stderr


def test_a_batch_survives_whoever_drives_runs_and_stores_it(batching: Platform, tmp_path: Path) -> None:
    """Duties, gateway, agent and bus are killed one after the other; every item ends, and is counted once."""
    count = 200
    file = lines_of(tmp_path / "in", [{"value": number} for number in range(count)])
    batch = batching.cli("batch", "submit", "bulk.steady", file).stdout.strip()
    for name in ("duties", "gateway", "agent", "nats"):
        ended = len(results(batching, batch))
        batching.kill(name)
        wait_until(batching.is_ready, "it takes calls again", 60.0)
        wait_until(lambda: len(results(batching, batch)) > min(ended, count - 1), f"it goes on without {name}", 60.0)  # noqa: B023
    done = over(batching, batch)

    assert done["state"] == "completed"
    assert done["counts"]["succeeded"] == count, done
    assert sorted(one["output"] for one in results(batching, batch)) == list(range(count))


def test_cancelling_and_resuming(batching: Platform, tmp_path: Path) -> None:
    """What was not done when it was cancelled is done when it is resumed."""
    count = 60
    file = lines_of(tmp_path / "in", [{"seconds": 0.2}] * count)
    batch = batching.cli("batch", "submit", "bulk.naps", file).stdout.strip()
    wait_until(lambda: len(results(batching, batch)) >= 2, "some have ended", 60.0)
    assert batching.http.post(f"/v1/batches/{batch}/cancel").is_success  # a command takes a while to start
    cancelled = over(batching, batch)
    partial = [one for one in results(batching, batch) if one["state"] == "succeeded"]
    batching.cli("batch", "resume", batch)
    done = over(batching, batch)

    assert cancelled["state"] == "cancelled"
    assert cancelled["counts"]["succeeded"] == len(partial) < count
    assert (done["state"], done["counts"]["succeeded"]) == ("completed", count)


@pytest.mark.variant
def test_a_batch_goes_on_after_everything_was_stopped(batching: Platform, folder: Path, tmp_path: Path) -> None:
    """From what is on disk; the last that is asked of this platform."""
    file = lines_of(tmp_path / "in", [{"value": number} for number in range(60)])
    batch = batching.cli("batch", "submit", "bulk.steady", file).stdout.strip()
    wait_until(lambda: len(results(batching, batch)) >= 1, "some have ended", 60.0)
    assert batching.stop() == 0
    with run_platform(folder, *OPTIONS, env=ENV) as second:
        done = over(second, batch)
        found = results(second, batch)

    assert done["counts"]["succeeded"] == 60
    assert sorted(one["output"] for one in found) == list(range(60))

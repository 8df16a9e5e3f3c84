"""A platform is copied under load, killed with all that it had, and brought back where nothing is."""

from __future__ import annotations

import json
import shutil
import signal
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import run_command
from tests.system.support.ledger import check_no_instant_is_sold_twice, check_nothing_is_in_quarantine, ended, receipts
from tests.system.support.platform import Platform, make_tenant
from tests.system.support.platform import platform as run_platform
from tests.system.support.sample_apps import APPS
from tests.system.support.steady_load import SteadyLoad
from tests.waiting import wait_until

pytestmark = [pytest.mark.variant, pytest.mark.timeout(240)]
OPTIONS = ("--cpu-slots", "4", "--blanks", "1")
LATER, LATER_S = 10, 12.0
DONE = "succeeded"
SECRET = "a value that nobody sees"
HELD = """
import os

from pilotlight import App

app = App("held")


@app.gpu_function(secrets={"TOKEN": "drill-token"}, scaledown_window=0.0, forecast=False)
def length() -> int:
    return len(os.environ["TOKEN"])
"""


@dataclass(frozen=True, kw_only=True)
class Copied:
    """What was so before a copy was made, and the copy."""

    folder: Path
    copy: Path
    key: str
    other_key: str
    """Of another tenant."""
    jobs: dict[str, str]
    """Accepted, ended or not: id -> name."""
    later: dict[str, str]
    """Those of them that had not begun."""
    billed: dict[str, int]
    """Nanoseconds by call."""


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Copied:
    """The platform has gone on after the copy, and then died; nothing of its state is left."""
    folder = tmp_path_factory.mktemp("copied")
    copy = folder / "copy"
    with run_platform(folder, *OPTIONS) as running:
        running.http.put("/v1/secrets/drill-token", json={"value": SECRET}).raise_for_status()
        (folder / "held").mkdir()
        (folder / "held" / "app.py").write_text(HELD)
        running.deploy(folder / "held" / "app.py")
        running.deploy(APPS / "crash" / "app.py")
        other_key = make_tenant(running, "acme")
        with SteadyLoad(urls=running.urls, key=running.key) as load:
            load.wait_for_more()
            answered = set(load.ids)
            wait_until(lambda: answered <= ended(running), "calls are billed", 60.0)
            later = {load.submit_at(time.time() + LATER_S, f"later-{n}"): f"later-{n}" for n in range(LATER)}
            jobs, found = {**load.jobs, **later}, receipts(running)
            made = running.cli("backup", str(copy), "--state-dir", str(running.state), "--json")
            load.wait_for_more()
        assert load.failures == []
        pieces = Counter(piece["kind"] for piece in json.loads(made.stdout)["pieces"])
        assert {pieces[kind] for kind in ("ledger", "blobs", "keys")} == {1}, pieces
        key, state = running.key, running.state
        running.process.send_signal(signal.SIGKILL)
        running.process.wait()
    shutil.rmtree(state)
    billed = {call: found[call] for call in answered}
    return Copied(folder=folder, copy=copy, key=key, other_key=other_key, jobs=jobs, later=later, billed=billed)


@pytest.fixture(scope="module")
def restored(copied: Copied) -> Iterator[Platform]:
    """The platform, started on what was restored."""
    done = run_command(["restore", str(copied.copy), "--state-dir", str(copied.folder / "state")], env={})
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    with run_platform(copied.folder, *OPTIONS) as running:
        yield running


def test_functions_answer_and_keys_hold(copied: Copied, restored: Platform) -> None:
    """Nothing is deployed again, nobody needs another key, and secrets can be opened."""
    assert restored.key == copied.key
    assert restored.output("crash.once", name="restored", seconds=0.0) == "restored"
    assert restored.output("held.length") == len(SECRET)
    with restored.as_holder_of(copied.other_key) as other:
        assert other.get("/v1/apps").status_code == 200


def test_every_job_that_was_accepted_ends_once(copied: Copied, restored: Platform) -> None:
    """Those that had ended have their results; those that ran or waited run."""

    def states() -> Counter[str]:
        return Counter(restored.http.get(f"/v1/calls/{job}").json().get("state") for job in copied.jobs)

    wait_until(lambda: states() == {DONE: len(copied.jobs)}, "all jobs have ended", 90.0)

    def runs() -> Counter[str]:
        return Counter(line["text"].removeprefix("ran ") for line in restored.logs("crash"))

    wait_until(lambda: set(copied.later.values()) <= runs().keys(), "all lines are logged", 60.0)
    found = runs()
    assert {name: found[name] for name in copied.later.values()} == dict.fromkeys(copied.later.values(), 1)


def test_the_bill_goes_on(copied: Copied, restored: Platform) -> None:
    """What was billed is billed once, what comes now is too, and all of it adds up."""
    answer = restored.answer("crash.once", name="billed", seconds=0.0)
    wait_until(lambda: answer["id"] in ended(restored), "the call is billed", 60.0)

    found = receipts(restored)

    assert {call: found.get(call) for call in copied.billed} == copied.billed
    assert found[answer["id"]] == answer["usage"]["ns"]
    for call in (answer["id"], next(iter(copied.billed))):
        assert restored.http.get(f"/v1/calls/{call}/receipt").status_code == 200
    check_no_instant_is_sold_twice(restored)
    check_nothing_is_in_quarantine(restored)
    audit: dict[str, Any] = json.loads(
        restored.cli("ledger", "verify", "--json", "--state-dir", str(restored.state)).stdout
    )
    assert audit.get("discrepancy") is None, audit

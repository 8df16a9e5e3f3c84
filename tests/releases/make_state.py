"""Make a state folder with a release's own tree, to be kept: what runs on it, and what waits in it.

    python -m tests.releases.make_state FOLDER                 # with this tree
    python -m tests.releases.make_state FOLDER --tree OTHER    # with another one

`FOLDER/state` is the state; `FOLDER/told.json` is what the release said of it.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

from tests.releases.old_tree import old_python
from tests.system.support.platform import Platform, make_tenant, platform
from tests.waiting import wait_until

APP = Path(__file__).parent / "apps" / "shelf.py"
OPTIONS = ("--cpu-slots", "3", "--blanks", "1")
ENDED = ("succeeded", "failed", "cancelled", "expired")
CHANGED = "\n\n@app.gpu_function()\ndef fresh() -> int:\n    return 2\n"


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What a release said of its state before it ended."""

    tenants: dict[str, str]
    """The key of each tenant."""
    versions: dict[str, str]
    """`app.function@vN` of all that is deployed, with its id."""
    history: list[dict[str, Any]]
    jobs: dict[str, str]
    """Jobs by id, with their states at the end."""
    usage: dict[str, Any]
    """The bill of the tenant `default`."""
    made_at: float


def make_state(folder: Path, tree: Path | None) -> Told:
    """Run a platform in `folder`, fill it, and end it in the middle of work."""
    python, unsafe = sys.executable, tuple[str, ...]()
    if tree is not None:
        python, unsafe = str(old_python(tree, folder / "venv")), ("--sandbox", "process")
    with platform(folder, *OPTIONS, *unsafe, python=python) as old:
        told = fill(old)
        shutil.rmtree(old.state / "logs", ignore_errors=True)
    return told


def fill(old: Platform) -> Told:
    """Two tenants, an app of two revisions, calls, jobs that have ended, run, wait and have a time, and a bill."""
    rival = make_tenant(old, "rival")
    old.cli("quota", "set", "default", "requests_per_s=500", "burst=1000")
    folder = old.state.parent / "source"
    folder.mkdir()
    path = folder / "app.py"
    path.write_text(APP.read_text())
    old.deploy(path)
    first = [old.output("shelf.plain", text="one"), old.output("shelf.Desk", method="both", number=3)]
    assert first == ["one", 6], first
    path.write_text(APP.read_text() + CHANGED)
    old.deploy(path)
    path.write_text(APP.read_text())
    old.cli("deploy", str(path), "--prune")
    old.output("shelf.asked", text="two", times=2)
    with old.as_holder_of(rival) as other:
        assert other.get("/v1/apps").status_code == 200
    webhook = old.http.post("/v1/webhooks", json={"url": "https://example.com/hook", "label": "kept"})
    assert webhook.status_code == 201, webhook.text
    usage = settled(old)
    jobs = [submit(old, "plain", {"text": "a job"})]
    wait_until(lambda: state_of(old, jobs[0]) == "succeeded", "a job ends")
    jobs += [submit(old, "slow", {"seconds": 3.0}) for _ in range(5)]
    jobs += [submit(old, "plain", {"text": "later"}, run_at=time.time() + 20)]
    jobs += [submit(old, "plain", {"text": "large " * 100_000}, run_at=time.time() + 20)]
    wait_until(lambda: "running" in {state_of(old, job) for job in jobs}, "a job runs")
    return Told(
        tenants={"default": old.key, "rival": rival},
        versions=versions_of(old),
        history=old.http.get("/v1/apps/shelf/history").json()["history"],
        jobs={job: state_of(old, job) for job in jobs},
        usage=usage,
        made_at=time.time(),
    )


def versions_of(running: Platform) -> dict[str, str]:
    """All that is deployed, by number, with its id."""
    found: dict[str, str] = {}
    for app in running.http.get("/v1/apps").json()["apps"]:
        for function in app["functions"]:
            found[function["version"]] = function["version_id"]
    return found


def settled(running: Platform) -> dict[str, Any]:
    """The bill, when nothing runs any more and it stands still."""
    wait_until(lambda: not running.containers(), "everything is idle and gone")
    bills: list[dict[str, Any]] = []

    def still() -> bool:
        bills.append(running.http.get("/v1/usage").json())
        return len(bills) > 3 and bills[-1] == bills[-3]

    wait_until(still, "the bill stands still")
    return bills[-1]


def submit(running: Platform, function: str, arguments: dict[str, Any], **more: Any) -> str:
    answer = running.http.post(
        f"/v1/functions/shelf.{function}/calls", json={"input": arguments, **more}, headers={"Prefer": "respond-async"}
    )
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


def state_of(running: Platform, job: str) -> str:
    return str(running.http.get(f"/v1/calls/{job}").json()["state"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the state goes; it must not exist")
    parser.add_argument("--tree", type=Path, help="the release's tree; this one if not said")
    args = parser.parse_args()
    args.folder.mkdir(parents=True)
    told = make_state(args.folder, args.tree)
    (args.folder / "told.json").write_text(json.dumps(msgspec.to_builtins(told), indent=2) + "\n")


if __name__ == "__main__":
    main()

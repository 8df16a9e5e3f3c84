"""`deploy --rollout`: what was in service stays there until the new version has proven itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from tests.sdk.cli.every_command import APP
from tests.sdk.cli.rollout_answers import ROLLOUT
from tests.sdk.cli.shell import invoke
from tests.sdk.scripted import ScriptedPlatform, answer

DEPLOYS, ROLLOUTS = "/v1/apps/a/deploys", "/v1/apps/a/rollout"


def write_app(folder: Path) -> str:
    file = folder / "app.py"
    file.write_text("from pilotlight import App\n@App('a').gpu_function\ndef f(): ...\n")
    return str(file)


def deployed(*, version: str = "ver_8", changed: bool = True) -> dict[str, Any]:
    function = {"name": "f", "version": "a.f@v8", "version_id": version, "endpoint": "/x", "changed": changed}
    return {"app": "a", "revision": 8, "functions": [function]}


def serving(platform: ScriptedPlatform, *names: str) -> None:
    functions = [APP["functions"][0] | {"name": "f", "version_id": "ver_7"}]  # type: ignore[index]
    platform.will("GET", "/v1/apps", answer({"apps": [APP | {"app": name, "functions": functions} for name in names]}))


def test_its_rollout_begins_and_is_waited_for(platform: ScriptedPlatform, tmp_path: Path) -> None:
    """Exit code 3 on a rollback, with the reason."""
    serving(platform, "a")
    platform.will("POST", DEPLOYS, answer(deployed()))
    platform.will("POST", ROLLOUTS, answer({"rollout": ROLLOUT | {"app": "a"}}, status=201))
    over = ROLLOUT | {"app": "a", "state": "rolled_back", "reason": "The new version is worse."}
    platform.will("GET", ROLLOUTS, answer(over))
    done = invoke("deploy", write_app(tmp_path), "--rollout", "--steps", "10,100", "--every", "30s", "--wait")

    assert done.exit_code == 3, done.stderr
    assert "The new version is worse." in done.stderr
    assert platform.asked(DEPLOYS)[0].json["no_traffic"] is True
    begun = platform.asked(ROLLOUTS)[0].json
    assert (begun["canary"], begun["steps"], begun["every_s"]) == ("8", [10, 100], 30)


def test_an_app_that_is_not_in_service_is_deployed(platform: ScriptedPlatform, tmp_path: Path) -> None:
    """There is nothing to compare it with."""
    serving(platform)
    platform.will("POST", DEPLOYS, answer(deployed()))
    done = invoke("deploy", write_app(tmp_path), "--rollout", "--json")

    assert done.exit_code == 0, done.stderr
    assert "no_traffic" not in platform.asked(DEPLOYS)[0].json
    assert msgspec.json.decode(done.stdout)["rollouts"] == []
    assert "nothing to compare it with" in done.stderr


def test_a_version_that_is_registered_and_not_in_service_is_rolled_out(
    platform: ScriptedPlatform, tmp_path: Path
) -> None:
    """Such as one that was deployed without traffic, or whose rollout a person has aborted."""
    serving(platform, "a")
    platform.will("POST", DEPLOYS, answer(deployed(changed=False)))
    platform.will("POST", ROLLOUTS, answer({"rollout": ROLLOUT | {"app": "a"}}, status=201))
    done = invoke("deploy", write_app(tmp_path), "--rollout")

    assert done.exit_code == 0, done.stderr
    assert [one.json["canary"] for one in platform.asked(ROLLOUTS)] == ["8"]


def test_what_is_in_service_is_not_rolled_out(platform: ScriptedPlatform, tmp_path: Path) -> None:
    serving(platform, "a")
    platform.will("POST", DEPLOYS, answer(deployed(version="ver_7", changed=False)))
    done = invoke("deploy", write_app(tmp_path), "--rollout")

    assert done.exit_code == 0, done.stderr
    assert "unchanged" in done.stderr
    assert platform.asked(ROLLOUTS) == []


def test_nothing_to_wait_for_is_said(platform: ScriptedPlatform, tmp_path: Path) -> None:
    done = invoke("deploy", write_app(tmp_path), "--wait")
    assert done.exit_code != 0
    assert "--rollout" in done.stderr
    assert platform.requests == []

"""Deploying over HTTP: what is missing is uploaded, and nothing else."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from pilotlight.client import default_client, shared_portal
from pilotlight.definitions.artifact_options import Artifact
from pilotlight.definitions.errors import BadInput, Conflict, Misuse
from pilotlight.packing import find_target, load_apps, make_bundle, pack_artifacts, packed_artifacts
from pilotlight.packing.deploys import deploy
from pilotlight.packing.load import LoadedFunction
from tests.sdk.scripted import Answer, Request, ScriptedPlatform, answer, problem

APP = """
from pilotlight import App
app = App("hello")
@app.gpu_function
def greet(name: str = "world") -> str: return name
"""
DEPLOYS = "/v1/apps/hello/deploys"


def deployed(folder: Path, **more: Any) -> Any:
    """Deploy the app in `folder`."""
    target = find_target("app.py", within=folder)
    functions = load_apps(target)["hello"].specs
    return shared_portal().run(deploy(default_client().platform, "hello", functions, make_bundle(target), **more))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "large.bin").write_bytes(b"x" * 700_000)
    (tmp_path / "twin.bin").write_bytes(b"x" * 700_000)
    return tmp_path


def test_missing_blobs_are_uploaded_once(platform: ScriptedPlatform, folder: Path) -> None:
    """The upload reports progress, and the deploy is sent again."""
    stored: dict[str, bytes] = {}

    def store(request: Request) -> Answer:
        stored[request.path.rpartition("/")[2]] = request.body
        assert request.headers["content-length"] == str(len(request.body))
        return answer({}, 201)

    def take(request: Request) -> Answer:
        missing = sorted({entry["sha256"] for entry in request.json["files"]} - stored.keys())
        functions = (
            []
            if missing
            else [
                {"name": "greet", "version": "hello.greet@v1", "version_id": "ver_1", "endpoint": "/x", "changed": True}
            ]
        )
        return answer({"app": "hello", "revision": 1, "missing": missing, "functions": functions})

    platform.does("PUT", "/v1/blobs/", store)
    platform.does("POST", DEPLOYS, take)
    seen: list[tuple[int, int]] = []

    response = deployed(folder, message="first", base="torch", progress=lambda done, total: seen.append((done, total)))
    assert response.functions[0].version == "hello.greet@v1"
    assert {hashlib.sha256(content).hexdigest() for content in stored.values()} == stored.keys()
    assert len(stored) == 2
    assert seen[-1] == (700_000 + len(APP), 700_000 + len(APP))
    request = platform.asked(DEPLOYS)[-1].json
    assert (request["message"], request["base"]) == ("first", "torch")
    assert [entry["path"] for entry in request["files"]] == ["app.py", "large.bin", "twin.bin"]
    assert request["functions"][0]["spec"]["name"] == "greet"


def test_an_upload_is_repeated_and_its_refusal_is_raised(platform: ScriptedPlatform, folder: Path) -> None:
    """The error is no group of errors."""
    digest = hashlib.sha256(APP.encode()).hexdigest()
    platform.will("POST", DEPLOYS, answer({"app": "hello", "revision": 0, "missing": [digest]}))
    path = f"/v1/blobs/{digest}"
    platform.will("PUT", path, problem("overloaded", headers={"retry-after": "0"}), problem("too_large", "no room"))

    with pytest.raises(BadInput, match="no room"):
        deployed(folder)
    assert [request.body for request in platform.asked(path)] == [APP.encode()] * 2


def test_blobs_that_stay_missing_are_an_error(platform: ScriptedPlatform, folder: Path) -> None:
    """The number of rounds is bounded."""
    digest = hashlib.sha256(APP.encode()).hexdigest()
    platform.will("POST", DEPLOYS, answer({"app": "hello", "revision": 0, "missing": [digest]}))
    platform.will("PUT", f"/v1/blobs/{digest}", answer({}))
    with pytest.raises(Conflict, match="again and again"):
        deployed(folder)


@pytest.mark.parametrize("after", [APP + "# more", APP[:-1], "", APP.upper()])
def test_a_file_that_changes_after_packing_is_named(platform: ScriptedPlatform, folder: Path, after: str) -> None:
    """It may grow, shrink or be rewritten."""
    digest = hashlib.sha256(APP.encode()).hexdigest()

    def take(_: Request) -> Answer:
        (folder / "app.py").write_text(after)
        return answer({"app": "hello", "revision": 0, "missing": [digest]})

    platform.does("POST", DEPLOYS, take)
    platform.does("PUT", "/v1/blobs/", lambda _: answer({}, 201))

    with pytest.raises(Misuse, match=r"app\.py has changed while it was uploaded"):
        deployed(folder)


def test_parts_of_artifacts_are_sent_as_blobs(
    platform: ScriptedPlatform, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each part of a large file by itself; a deploy that knows none says none."""
    monkeypatch.setattr(packed_artifacts, "PART_BYTES", 500_000)
    one = LoadedFunction(
        spec=load_apps(find_target("app.py", within=folder))["hello"].specs["greet"],
        artifacts=(Artifact("weights", "tiny", "large.bin"),),
        folder=folder,
    )
    packed = pack_artifacts({"greet": one})
    digests = [part.sha256 for part in packed.entries[0].parts]
    sent: dict[str, int] = {}
    platform.does(
        "PUT", "/v1/blobs/", lambda request: sent.update({request.path[10:]: len(request.body)}) or answer({})
    )
    platform.will(
        "POST", DEPLOYS, answer({"app": "hello", "revision": 0, "missing": digests}),
        answer({"app": "hello", "revision": 1}), answer({"app": "hello", "revision": 2}),
    )  # fmt: skip

    deployed(folder, artifacts=packed)
    deployed(folder)

    assert sent == {digests[0]: 500_000, digests[1]: 200_000}
    first, _, plain = (request.json for request in platform.asked(DEPLOYS))
    assert first["functions"][0]["artifacts"] == ["tiny"]
    assert first["artifacts"][0]["name"] == "tiny"
    assert not {"artifacts", "base", "requirements"} & {
        *plain,
        *plain["functions"][0],
    }  # an older gateway knows them not

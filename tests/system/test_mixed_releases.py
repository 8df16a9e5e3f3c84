"""Processes of two releases beside each other, as in the middle of an upgrade."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.releases.make_state import APP
from tests.releases.old_tree import old_python
from tests.releases.stored_release import RELEASES, StoredRelease
from tests.system.support.ledger import receipts
from tests.system.support.platform import Platform
from tests.system.support.platform import platform as run_platform
from tests.waiting import wait_until

WEIGHTY = """
from pilotlight import App, Artifact

app = App("weighty")


@app.gpu_function(artifacts=[Artifact("weights", "tiny", "model.bin")])
def heavy() -> str:
    return "never"
"""


@pytest.fixture(scope="module", params=RELEASES, ids=lambda release: release.folder.name)
def mixed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """This release, but the only agent is the other's."""
    release: StoredRelease = request.param
    folder = tmp_path_factory.mktemp("mixed")
    tree = release.unpack("source", folder / "tree")
    python = old_python(tree, folder / "venv")
    with run_platform(folder, "--no-agent") as new:
        state = str(new.state)
        command = [
            str(python), "-m", "pilotlight_runtime", "--state-dir", state, "--region", "local", "--zone", "local-a",
            "--name", "agent", "--node", "old", "--cpu-slots", "3", "--blanks", "1", "--sandbox", "process",
            "--blob-url", f"file://{state}/blobs", "--preimport", "none",
        ]  # fmt: skip
        env = {**os.environ, "PILOTLIGHT_NATS_URL": new.nats_url}
        with (folder / "agent.log").open("wb") as log:
            agent = subprocess.Popen(command, env=env, stdout=log, stderr=log)
        try:
            wait_until(
                lambda: new.http.get("/v1/nodes").json()["nodes"] or agent.poll() is not None, "its node is there"
            )
            assert agent.poll() is None, (folder / "agent.log").read_text()
            yield new
        finally:
            agent.terminate()
            agent.wait(30)


LIMITED = """\
from pilotlight import App

app = App("limited")


@app.gpu_function(shm="64MiB")
def roomy() -> str:
    return "there is room"
"""


def test_what_an_older_agent_lacks_is_refused_by_name(mixed: Platform, tmp_path: Path) -> None:
    """A function that names a limit of its sandbox; the deploy says which feature there is not, and what to do."""
    path = tmp_path / "app.py"
    path.write_text(LIMITED)

    refused = " ".join(mixed.refusal(path).split())

    assert "roomy can never run here" in refused
    assert "3 on nodes whose agent is older and cannot do sandbox-limits (upgrade it)" in refused
    path.write_text(LIMITED.replace('App("limited")', 'App("limited", base="torch")').replace('shm="64MiB"', ""))
    assert "there is no base environment torch; there is default" in " ".join(mixed.refusal(path).split())
    path.write_text(LIMITED.replace('shm="64MiB"', ""))
    mixed.deploy(path)
    assert mixed.output("limited.roomy") == "there is room"


def test_an_older_agent_runs_what_is_deployed_now(mixed: Platform, tmp_path: Path) -> None:
    """A function that uses nothing new is signed so that it can; its usage is billed."""
    path = tmp_path / "app.py"
    path.write_text(APP.read_text())
    mixed.deploy(path)

    answer = mixed.answer("shelf.plain", text="by the older one")

    assert answer["output"] == "by the older one"
    assert mixed.output("shelf.Desk", method="both", number=2) == 4
    assert [node["node"] for node in mixed.http.get("/v1/nodes").json()["nodes"]] == ["old"]
    wait_until(lambda: receipts(mixed).get(answer["id"]) == answer["usage"]["ns"], "what it metered is in the ledger")


def test_what_an_older_agent_would_run_without_its_weights_is_refused(mixed: Platform, tmp_path: Path) -> None:
    """At the deploy, by the name of the feature; what is deployed beside it runs."""
    (tmp_path / "model.bin").write_bytes(b"weights")
    (tmp_path / "app.py").write_text(WEIGHTY)

    said = mixed.refusal(tmp_path / "app.py")

    assert "agent is older and cannot do artifacts (upgrade it)" in said
    (tmp_path / "other.py").write_text(APP.read_text())
    mixed.deploy(tmp_path / "other.py")
    assert mixed.output("shelf.plain", text="as ever") == "as ever"

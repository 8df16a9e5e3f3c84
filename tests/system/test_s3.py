"""The platform over S3: nodes have no access to the store, and run what they are told to run."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from pilotlight_core.model.messages.agent_questions import BlobLink, BlobWanted
from pilotlight_core.model.versions.artifacts import PART_BYTES
from tests.security.hostile_node import hostile_node
from tests.system.support.platform import platform
from tests.system.support.sample_apps import EXAMPLES
from tests.system.test_model_artifacts import LAST, write

pytestmark = pytest.mark.system


def test_a_version_in_s3_runs_on_a_node_without_access(tmp_path: Path, s3_endpoint: str) -> None:
    """Its agent has no credentials, and no word of the store's but links; what is not bound there it does not get."""
    store = f"s3://blobs/{tmp_path.name}?endpoint={s3_endpoint}"
    with platform(tmp_path, "--cpu-slots", "2", "--blanks", "1", "--blob-url", store, executed=True) as running:
        running.deploy(EXAMPLES / "hello" / "app.py")
        running.deploy(write(tmp_path / "app", "linked"))

        assert running.output("linked.told")["model"] == hashlib.sha256(bytes(PART_BYTES) + LAST).hexdigest()
        assert running.output("hello.greet", name="S3") == "Hello, S3!"
        environment = Path(f"/proc/{running.pids['agent']}/environ").read_bytes()
        assert b"AWS_" not in environment
        assert b"AWS_" in Path(f"/proc/{running.pids['gateway']}/environ").read_bytes()
        with hostile_node(running, "agent", "local") as node:
            wanted = BlobWanted(container="ctr_of_another", sha256="0" * 64)
            assert node.ask(wanted, "pl.local.node.local.blobs") == BlobLink(reason="not_bound")

"""What a function sees of its artifacts, in containers for real."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import msgspec
import pytest

from pilotlight_core.model.messages.call_messages import is_misconfigured
from pilotlight_core.model.messages.node_messages import ContainerState
from pilotlight_core.model.spec import ArtifactEntry, ArtifactKind, ArtifactPart, FileEntry
from pilotlight_core.model.versions.manifest_codec import needs_of
from pilotlight_core.model.versions.pushed_weights import weights_digest
from tests.builders.specs import function_spec, manifest
from tests.runtime.harness import Harness, Version, harness

READS = b"""
import os
def f():
    folder = os.environ["PILOTLIGHT_MODELS"]
    path = os.path.join(folder, "tiny", "model.bin")
    try:
        open(path, "r+b")
        writable = True
    except OSError:
        writable = False
    return [folder, open(path, "rb").read().decode(), sorted(os.listdir(folder)), writable]
"""


async def with_weights(world: Harness, *contents: bytes) -> Version:
    """A version of `READS` whose weights are one file of these parts."""
    entries = []
    for data in (READS, *contents):
        digest = hashlib.sha256(data).hexdigest()
        await world.blobs.put("acme", digest, data)
        entries.append((digest, len(data)))
    parts = tuple(ArtifactPart("model.bin", *entry) for entry in entries[1:])
    weights = ArtifactEntry(kind=ArtifactKind.WEIGHTS, name="tiny", parts=parts)
    made = manifest(
        function_spec("f"), FileEntry("app.py", *entries[0]), tenant="acme", app="demo", artifacts=(weights,),
        needs=("artifacts",),
    )  # fmt: skip
    assert needs_of(made.spec, made.artifacts) == made.needs
    return await world.store(made)


@pytest.mark.parametrize("sandbox", ["process", "bubblewrap"])
@pytest.mark.parametrize("blanks", [0, 1])
async def test_a_function_reads_its_weights_and_cannot_change_them(
    server_url: str, tmp_path: Path, sandbox: str, blanks: int
) -> None:
    """In a sandbox that starts for it, and in a blank that ran before; the second container fetches nothing."""
    async with harness(server_url, tmp_path, sandbox=sandbox, blanks=blanks) as world:
        await world.report(lambda report: report.blanks.get("default", 0) == blanks)
        version = await with_weights(world, b"one, ", b"two")

        folder, text, names, writable = await world.run(await world.bind(version)).output()

        assert (folder == "/models") is (sandbox == "bubblewrap")
        assert (text, names) == ("one, two", ["tiny"])
        assert not writable or sandbox == "process"  # which has no walls against the agent's own user
        for part in version.manifest.artifacts[0].parts:
            await world.blobs.delete("acme", part.sha256)
        assert (await world.run(await world.bind(version, "cpu-1")).output())[1] == "one, two"


async def test_a_node_tells_of_weights_that_were_pushed(server_url: str, tmp_path: Path) -> None:
    """As it stands in the signed manifest; parts that do not have its digest are no such weights."""
    async with harness(server_url, tmp_path) as world:
        version = await with_weights(world, b"one, ", b"two")
        digest = weights_digest(version.manifest.artifacts[0].parts)
        for said in (digest, "0" * 64):
            weights = msgspec.structs.replace(version.manifest.artifacts[0], digest=said)
            pushed = msgspec.structs.replace(version.manifest, artifacts=(weights,), needs=("artifacts", "weights"))
            state = ContainerState.READY if said == digest else ContainerState.GONE
            container = await world.bind(await world.store(pushed), f"cpu-{int(said != digest)}", state=state)
        assert "have other parts than their digest says" in world.credits[container][-1].reason

        told = await world.report(lambda report: bool(report.weights and report.weights[0].resident))

        assert [(one.tenant, one.digest, one.size, one.resident) for one in told.weights] == [("acme", digest, 8, 8)]


async def test_a_damaged_part_is_refused_by_name(server_url: str, tmp_path: Path) -> None:
    """The container does not start, and says which part of which file it is."""
    async with harness(server_url, tmp_path) as world:
        version = await with_weights(world, b"one, ", b"two")
        part = world.blobs.path("acme", version.manifest.artifacts[0].parts[1].sha256)
        part.chmod(0o644)
        part.write_bytes(b"TWO")

        container = await world.bind(version, state=ContainerState.GONE)

        gone = world.credits[container][-1]
        assert is_misconfigured(gone.error)
        assert "part 2 of 2 of tiny/model.bin in the blob store is not what was signed" in gone.reason


async def test_a_version_that_does_not_fit_on_the_disk_is_refused(
    server_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That is for the operator to mend, and said with both sizes."""
    async with harness(server_url, tmp_path) as world:
        version = await with_weights(world, b"one, ", b"two")
        usage = type(shutil.disk_usage(tmp_path))
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(1000, 945, 55))

        container = await world.bind(version, state=ContainerState.GONE)

        gone = world.credits[container][-1]
        assert is_misconfigured(gone.error)
        assert "bytes of files that are not on this node, whose disk has room for 5." in gone.reason

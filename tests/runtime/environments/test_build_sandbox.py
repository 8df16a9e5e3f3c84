"""One job of a builder that is not to be trusted: how it ends. With real walls: `tests/security/test_builder.py`."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from pilotlight_runtime.builder.build_frames import BuildEnd, BuildFrame, BuildJob, BuiltPiece, next_job, send_frame
from pilotlight_runtime.egress.proxy_supervisor import ProxySupervisor
from pilotlight_runtime.environments import build_sandbox
from pilotlight_runtime.environments.base_facts import BuildBase
from pilotlight_runtime.environments.build_sandbox import BuildFailed, BuildSandbox, BuildTools
from pilotlight_runtime.environments.package_index import read_index
from pilotlight_runtime.sandbox.fake_launcher import FakeLauncher
from pilotlight_runtime.sandbox.sandbox_errors import SandboxNotStarted
from pilotlight_runtime.sandbox.sandbox_spec import NETWORK, Mount, SandboxSpec
from tests.waiting import until

BASE = BuildBase(python=Path("/base/bin/python"), read_only=(Mount(source=Path("/base"), target=Path("/base")),))
OWN = BuildBase(python=Path("/own/bin/python"), read_only=(Mount(source=Path("/own"), target=Path("/own")),))
Say = Callable[[BuildJob], list[BuildFrame]]


class Builder:
    """A builder in a fake sandbox, which says what a test wants of a job; with nothing to say it hangs."""

    def __init__(self, folder: Path, say: Say, **tools: int) -> None:
        self.jobs: list[BuildJob] = []
        self._say = say
        self.launcher = FakeLauncher(self._work)
        self.folder = folder / "sandboxes"
        self.ways_out = ProxySupervisor()
        made_of = BuildTools(
            launcher=self.launcher, own=OWN, uv=Path("/usr/bin/uv"), index=read_index("https://u:p@index.example.com/s/"),
            folder=self.folder, most_bytes=2**20, **tools,
        )  # fmt: skip
        self.sandbox = BuildSandbox(made_of, self.ways_out)

    async def _work(self, _: SandboxSpec, own: socket.socket) -> int:
        job = await asyncio.to_thread(next_job, own)
        self.jobs.append(job)
        said = self._say(job)
        if not said:
            await asyncio.Event().wait()
        for each in said:
            await asyncio.to_thread(send_frame, own, each)
        return 0

    def check_is_over(self) -> None:
        """Nothing of a job is left."""
        assert self.launcher.running == []
        assert self.ways_out.open_ways == 0
        assert list(self.folder.iterdir()) == []


async def test_a_lock_is_what_the_builder_says(tmp_path: Path) -> None:
    """Its sandbox has the base environments and a way out, and neither code nor models."""
    builder = Builder(tmp_path, lambda _: [BuildEnd(lock="a==1", bases=("b",))])

    assert await builder.sandbox.lock("acme", BASE, ("a",)) == BuildEnd(lock="a==1", bases=("b",))
    (spec,), (job,) = builder.launcher.started, builder.jobs
    assert (job.requirements, job.python, job.network) == (("a",), "/base/bin/python", str(NETWORK))
    assert [str(mount.target) for mount in spec.read_only] == ["/own", "/base", "/usr/bin/uv"]
    assert (spec.models_dir, spec.packages_dir, spec.env) == (None, None, {})
    builder.check_is_over()


async def test_files_of_a_build_are_written(tmp_path: Path) -> None:
    """As many as it says."""
    builder = Builder(tmp_path, lambda _: [BuiltPiece(path="a.py", data=b"x", is_last=True), BuildEnd()])
    (tmp_path / "into").mkdir()

    files = await builder.sandbox.build("acme", BASE, "a==1", tmp_path / "into")

    assert (files.files, files.bytes) == (1, 1)
    assert (tmp_path / "into" / "a.py").read_bytes() == b"x"
    builder.check_is_over()


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ([BuildEnd(error="no u:p@index.example.com/s/ here")], "no .*here"),
        ([BuiltPiece(path="../a", data=b"", is_last=True)], "leads elsewhere"),
        ([BuiltPiece(path="a", data=b"x" * (2**20 + 1), is_last=True)], "larger"),
        ([BuiltPiece(path="a", data=b"", is_last=False), BuildEnd()], "not whole"),
        ([BuiltPiece(path="a", data=b"", is_last=True)], "gone"),
    ],
)  # fmt: skip
async def test_a_build_that_goes_wrong_is_the_tenants_to_know(tmp_path: Path, said: list[BuildFrame], why: str) -> None:
    """In words; it takes its sandbox along."""
    builder = Builder(tmp_path, lambda _: said)
    (tmp_path / "into").mkdir()

    with pytest.raises(BuildFailed, match=why) as failed:
        await builder.sandbox.build("acme", BASE, "a==1", tmp_path / "into")

    assert failed.value.is_tenants
    assert "index.example.com" not in str(failed.value)
    builder.check_is_over()


async def test_no_more_run_than_there_is_memory_for(tmp_path: Path) -> None:
    """Locks and builds together; the next one begins when one has ended, however that did."""
    builder = Builder(tmp_path, lambda _: [], at_once=2)
    running = [asyncio.ensure_future(builder.sandbox.lock(tenant, BASE, ("a",))) for tenant in ("a", "b", "c")]
    await until(lambda: len(builder.jobs) == 2)
    assert len(builder.launcher.running) == 2
    running[0].cancel()
    await until(lambda: len(builder.jobs) == 3)
    for each in running:
        each.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    builder.check_is_over()


async def test_a_lock_brings_no_files(tmp_path: Path) -> None:
    """Nobody has asked for them."""
    builder = Builder(tmp_path, lambda _: [BuiltPiece(path="a", data=b"", is_last=True)])

    with pytest.raises(BuildFailed, match="nobody asked for"):
        await builder.sandbox.lock("acme", BASE, ("a",))


async def test_a_builder_that_hangs_ends_with_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or with who waits for it."""
    builder = Builder(tmp_path, lambda _: [])
    monkeypatch.setattr(build_sandbox, "LOCK_S", 0.05)
    monkeypatch.setattr(build_sandbox, "BUILD_S", 0.05)
    with pytest.raises(BuildFailed, match=r"did not come within 0\.05 s") as failed:
        await builder.sandbox.lock("acme", BASE, ("a",))
    assert not failed.value.is_tenants
    (tmp_path / "into").mkdir()
    with pytest.raises(BuildFailed, match=r"did not come within 0\.05 s") as failed:
        await builder.sandbox.build("acme", BASE, "a==1", tmp_path / "into")
    assert failed.value.is_tenants
    builder.check_is_over()

    monkeypatch.setattr(build_sandbox, "LOCK_S", 60.0)
    waiting = asyncio.ensure_future(builder.sandbox.lock("acme", BASE, ("a",)))
    await until(lambda: len(builder.jobs) == 3)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    builder.check_is_over()


async def test_an_index_that_does_not_answer_is_not_the_tenants_fault(tmp_path: Path) -> None:
    """It is told so, without where the index is."""
    said = "Failed to fetch: https://u:p@index.example.com/s/a/"
    builder = Builder(tmp_path, lambda _: [BuildEnd(error=said, is_unanswered=True)])

    with pytest.raises(BuildFailed, match="the package index does not answer: Failed to fetch") as failed:
        await builder.sandbox.lock("acme", BASE, ("a",))

    assert not failed.value.is_tenants
    assert "index.example.com" not in str(failed.value)
    builder.check_is_over()


async def test_a_sandbox_that_does_not_start_is_not_the_tenants_fault(tmp_path: Path) -> None:
    """It is told nothing of it."""
    builder = Builder(tmp_path, lambda _: [])
    builder.launcher.fail_next = SandboxNotStarted("no uids")

    with pytest.raises(BuildFailed, match="no uids") as failed:
        await builder.sandbox.lock("acme", BASE, ("a",))

    assert not failed.value.is_tenants
    builder.check_is_over()

"""One job of a builder, from its sandbox to its answer.

The sandbox is as those of functions: without a network, without files but those of base environments, with a /tmp in
memory that ends with it. Its only way out is a proxy of its own, which connects to the operator's index. What is built
comes over its socket, and is written here, so that no folder of the host is ever open to it.
"""

from __future__ import annotations

import asyncio
import shutil
import socket
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import structlog

from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.logs import LogLine
from pilotlight_runtime.builder.build_frames import BadBuild, BuildEnd, BuildJob, next_answer, send_frame
from pilotlight_runtime.egress.proxy_messages import OpenWay
from pilotlight_runtime.egress.proxy_supervisor import ProxySupervisor
from pilotlight_runtime.environments.base_facts import BuildBase, merged_mounts
from pilotlight_runtime.environments.build_turns import AT_ONCE
from pilotlight_runtime.environments.built_files import BuiltFiles
from pilotlight_runtime.environments.package_index import PackageIndex
from pilotlight_runtime.logs.log_tap import LogTap
from pilotlight_runtime.sandbox.sandbox_errors import SandboxError
from pilotlight_runtime.sandbox.sandbox_port import Launcher, Sandbox, SandboxExit
from pilotlight_runtime.sandbox.sandbox_spec import NETWORK, Mount, ResourceLimits, SandboxSpec

log = structlog.get_logger(__name__)

BUILDER_ARGV = ("-I", "-m", "pilotlight_runtime.builder")
LOCK_S = 60.0
BUILD_S = 600.0
BESIDE_FILES = 2**30
"""Bytes of memory for its processes, beside the files in its /tmp."""
PIDS = 256
CPU_MILLIS = 2000
OPEN_FILES = 4096
CERTIFICATES = Path("/run/index-certificates.pem")
ANYWHERE = "0.0.0.0/0,::/0"
"""Of the builders' proxy: where the index is, is the operator's own word."""


MOST_BUILDERS = 2 * AT_ONCE
"""Of locks and builds."""


def builder_memory(most_bytes: int) -> int:
    """Bytes that one builder may use, with an environment of at most so many."""
    return most_bytes + BESIDE_FILES


def builders_memory(most_bytes: int) -> int:
    """Bytes that all builders of a node may use at once, where the reserve has room for all."""
    return MOST_BUILDERS * builder_memory(most_bytes)


class BuildFailed(Exception):
    """There is no lock, or no environment; the message is the resolver's, `is_tenants` whether tenants mend it."""

    def __init__(self, words: str, *, is_tenants: bool = True) -> None:
        super().__init__(words)
        self.is_tenants = is_tenants


@dataclass(frozen=True, kw_only=True)
class BuildTools:
    """What a builder is made of."""

    launcher: Launcher
    own: BuildBase
    """The agent's own environment, in which it runs."""
    uv: Path
    index: PackageIndex
    folder: Path
    """Of sandboxes."""
    most_bytes: int
    """Of one environment."""
    at_once: int = MOST_BUILDERS
    """Builders for which there is memory."""


class BuildSandbox:
    """Runs jobs of builders, whose ways out `ways_out` opens."""

    def __init__(self, tools: BuildTools, ways_out: ProxySupervisor) -> None:
        self._tools = tools
        self._ways_out = ways_out
        self._room = asyncio.Semaphore(tools.at_once)

    @property
    def at_once(self) -> int:
        """Builders that run at a time."""
        return self._tools.at_once

    @property
    def most_bytes(self) -> int:
        """Of one environment."""
        return self._tools.most_bytes

    async def lock(self, tenant: str, base: BuildBase, requirements: tuple[str, ...], pins: str = "") -> BuildEnd:
        """What requirements come to over a base. Raises BuildFailed."""
        return await self._run(tenant, base, self._job(base, requirements=requirements, pins=pins), None, LOCK_S)

    async def build(self, tenant: str, base: BuildBase, lock: str, into: Path) -> BuiltFiles:
        """Write the locked packages below `into`; how much that is. Raises BuildFailed and OSError."""
        files = BuiltFiles(into, most_bytes=self._tools.most_bytes)
        with closing(files):
            await self._run(tenant, base, self._job(base, lock=lock), files, BUILD_S)
        return files

    def _job(self, base: BuildBase, *, requirements: tuple[str, ...] = (), pins: str = "", lock: str = "") -> BuildJob:
        index = self._tools.index
        return BuildJob(
            uv=str(self._tools.uv), python=str(base.python), index=index.url, network=str(NETWORK),
            certificates=str(CERTIFICATES) if index.certificates else "", requirements=requirements, pins=pins,
            lock=lock,
        )  # fmt: skip

    async def _run(
        self, tenant: str, base: BuildBase, job: BuildJob, files: BuiltFiles | None, within_s: float
    ) -> BuildEnd:
        async with self._room:
            return await self._run_builder(tenant, base, job, files, within_s)

    async def _run_builder(
        self, tenant: str, base: BuildBase, job: BuildJob, files: BuiltFiles | None, within_s: float
    ) -> BuildEnd:
        name = f"p-{token(12)}"
        folder = self._tools.folder / name
        for part in ("app", "network"):
            (folder / part).mkdir(parents=True)
        way = OpenWay(
            container=name, tenant=tenant, function=f"{tenant}:packages", targets=self._tools.index.targets,
            is_index=True,
        )  # fmt: skip
        try:
            self._ways_out.open(way, folder / "network")
            try:
                sandbox = await self._tools.launcher.start(self._spec(name, folder, base))
            except SandboxError as error:
                raise BuildFailed(f"the builder could not be started: {error}", is_tenants=False) from None
            return await self._converse(sandbox, job, files, within_s)
        finally:
            self._ways_out.close(name)
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    def _spec(self, name: str, folder: Path, base: BuildBase) -> SandboxSpec:
        tools, more = self._tools, []
        if tools.index.certificates:
            more.append(Mount(source=Path(tools.index.certificates), target=CERTIFICATES))
        mounts = merged_mounts(tools.own.read_only, base.read_only)
        if not any(tools.uv.is_relative_to(mount.target) for mount in mounts):
            more.append(Mount(source=tools.uv, target=tools.uv))
        return SandboxSpec(
            name=name,
            python=tools.own.python,
            argv=BUILDER_ARGV,
            code_dir=folder / "app",
            network_dir=folder / "network",
            read_only=(*mounts, *more),
            device_nodes=(),
            env={},
            limits=ResourceLimits(
                memory_bytes=builder_memory(tools.most_bytes),
                pids=PIDS,
                cpu_millis=CPU_MILLIS,
                tmp_bytes=tools.most_bytes,
                shm_bytes=2**20,
                open_files=OPEN_FILES,
                file_bytes=tools.most_bytes,
            ),
            uid=None,
        )

    async def _converse(self, sandbox: Sandbox, job: BuildJob, files: BuiltFiles | None, within_s: float) -> BuildEnd:
        tap = LogTap(stdout_fd=sandbox.stdout_fd, stderr_fd=sandbox.stderr_fd, container=sandbox.name, sink=_log_line)
        end: BuildEnd | Exception | None = None
        try:
            # Its thread reads until the socket ends, which the kill sees to.
            async with asyncio.TaskGroup() as group:
                talk = group.create_task(asyncio.to_thread(_talk, sandbox.socket, job, files))
                try:
                    with suppress(TimeoutError):
                        async with asyncio.timeout(within_s):
                            end = await asyncio.shield(talk)
                finally:
                    ended = None if isinstance(end, BuildEnd) else await _ended(sandbox, end)
                    sandbox.kill()
                    with suppress(OSError):
                        sandbox.socket.shutdown(socket.SHUT_RDWR)
        finally:
            tap.close()
            await sandbox.cleanup()
        if isinstance(end, BuildEnd):
            if end.error:
                words = self._tools.index.without_address(end.error)
                if end.is_unanswered:
                    raise BuildFailed(f"the package index does not answer: {words}", is_tenants=False)
                raise BuildFailed(words)
            return end
        raise self._failure(end, ended, within_s, is_lock=files is None)

    def _failure(
        self, end: Exception | None, ended: SandboxExit | None, within_s: float, *, is_lock: bool
    ) -> Exception:
        if end is None:
            # To lock takes seconds, unless the index is slow; to build takes what the packages are worth.
            return BuildFailed(f"the packages did not come within {within_s:g} s", is_tenants=not is_lock)
        if isinstance(end, OSError):
            return BuildFailed(f"the packages could not be kept: {end}", is_tenants=False)
        if ended is not None and (ended.reason == "memory" or ended.oom):
            return BuildFailed(f"the packages need more memory than {self._tools.most_bytes >> 20} MiB")
        return BuildFailed(str(end) if ended is None else f"the builder ended: {ended.reason} ({end})")


async def _ended(sandbox: Sandbox, end: BuildEnd | Exception | None) -> SandboxExit | None:
    """How a sandbox ended that has gone by itself; None: it still runs."""
    if not isinstance(end, BadBuild):
        return None
    with suppress(TimeoutError):
        async with asyncio.timeout(1.0):
            return await sandbox.wait()
    return None


def _talk(to: socket.socket, job: BuildJob, files: BuiltFiles | None) -> BuildEnd | Exception:
    """Give a builder its job and take what it sends; never raises, since nobody may be left to catch it."""
    try:
        send_frame(to, job)
        while True:
            answer = next_answer(to)
            if isinstance(answer, BuildEnd):
                if files is not None and not answer.error:
                    files.finish()
                return answer
            if files is None:
                return BadBuild("the builder sends files that nobody asked for")
            files.add(answer)
    except (BadBuild, OSError, ValueError) as error:
        return error


def _log_line(line: LogLine) -> None:
    log.warning("a builder says", sandbox=line.container, line=line.text)

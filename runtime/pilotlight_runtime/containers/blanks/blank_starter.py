"""Starting sandboxes with a guest in them."""

from __future__ import annotations

import asyncio
import dataclasses
from dataclasses import dataclass
from pathlib import Path

import structlog

from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.logs import LogLine
from pilotlight_runtime.containers.blanks.base_environment import GUEST_ARGV, PREIMPORT, BaseEnvironment
from pilotlight_runtime.containers.blanks.blank import Blank
from pilotlight_runtime.containers.blanks.resource_limits import keeps_file_systems
from pilotlight_runtime.devices.device_port import DeviceAccess
from pilotlight_runtime.logs.log_tap import LogTap
from pilotlight_runtime.sandbox.sandbox_port import Launcher
from pilotlight_runtime.sandbox.sandbox_spec import (
    APP,
    COMPILE_INTO,
    COMPILED,
    NETWORK,
    PACKAGES,
    ResourceLimits,
    SandboxSpec,
)

log = structlog.get_logger(__name__)

CORE_MILLIS = 1000


@dataclass(frozen=True, kw_only=True)
class BlankStarter:
    """Starts blanks of one base environment, each with its folders below `folder`, and watches them in `group`."""

    launcher: Launcher
    base: BaseEnvironment
    folder: Path
    group: asyncio.TaskGroup
    limits: ResourceLimits
    """Of those that are started ahead."""

    @property
    def first_limits(self) -> ResourceLimits:
        """Of those that an agent makes before any container can start: they import as fast as the host can."""
        return dataclasses.replace(self.limits, promised_cpu_millis=CORE_MILLIS)

    def can_limit_later(self, limits: ResourceLimits) -> bool:
        """Whether a blank that was started ahead can get these limits: rlimits are set at the start alone."""
        guarantees = self.launcher.guarantees()
        if guarantees.memory == "rlimit" or (guarantees.pids == "rlimit" and limits.pids != self.limits.pids):
            return False
        return keeps_file_systems(limits, self.limits)

    def limit(self, blank: Blank, limits: ResourceLimits) -> bool:
        """Give a blank its container's limits; False, and the blank is ended, if it uses more already."""
        try:
            blank.sandbox.limit(limits)
        except OSError:
            self.group.create_task(blank.destroy())
            return False
        return True

    async def start(self, limits: ResourceLimits, access: DeviceAccess | None = None, *, ahead: bool = False) -> Blank:
        """Start a blank that sees the devices of `access`; it is not ready yet.

        `ahead`: no container waits for it, so it makes the costly imports.

        Raises:
            SandboxError: if it could not be started.
        """
        access = access or DeviceAccess()
        name = f"b-{token(12)}"
        folder = self.folder / name
        (folder / "app").mkdir(parents=True)
        (folder / "models").mkdir()
        (folder / "network").mkdir()
        (folder / "compiled").mkdir()
        (folder / "packages").mkdir()
        sandbox = await self.launcher.start(
            SandboxSpec(
                name=name,
                python=self.base.python,
                argv=GUEST_ARGV,
                code_dir=folder / "app",
                models_dir=folder / "models",
                network_dir=folder / "network",
                compiled_dir=folder / "compiled",
                packages_dir=folder / "packages",
                read_only=(*self.base.read_only, *access.read_only),
                device_nodes=access.nodes,
                env={**self.base.env, **access.env} | ({} if ahead else {PREIMPORT: ""}),
                limits=limits,
                uid=None,
            )
        )
        tap = LogTap(stdout_fd=sandbox.stdout_fd, stderr_fd=sandbox.stderr_fd, container=name, sink=_log_line)
        # Plain processes have the host's file system, not one of their own.
        walled = self.launcher.name == "bubblewrap"
        root, network = (APP, NETWORK) if walled else (folder / "app", folder / "network")
        blank = Blank(sandbox, folder=folder, root=root, network=network, tap=tap)
        if walled:
            blank.compiled_inside, blank.compile_into = COMPILED, COMPILE_INTO
        blank.packages_inside = PACKAGES if walled else folder / "packages"
        self.group.create_task(blank.watch())
        return blank


def _log_line(line: LogLine) -> None:
    log.warning("a sandbox says", sandbox=line.container, line=line.text)

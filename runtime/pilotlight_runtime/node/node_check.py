"""What this node guarantees: starts sandboxes that try what must not work, and inspects both sides.

    python -m pilotlight_runtime.node.node_check [--json] [--sandbox bubblewrap|process]

Exits with 1 when a default guarantee is missing. Checks of the GPUs come from the devices, as `extra`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from pilotlight_core.model.messages.node_messages import SliceKind
from pilotlight_runtime.devices.device_port import DeviceAccess
from pilotlight_runtime.devices.nvidia.gpu_check import gpu_rows
from pilotlight_runtime.devices.nvidia.gpu_fitness import fitness
from pilotlight_runtime.devices.nvidia.nvml_devices import GpuOffer, NvmlDevices
from pilotlight_runtime.node.guarantee_check import GuaranteeCheck
from pilotlight_runtime.sandbox.interpreter import interpreter_mounts
from pilotlight_runtime.sandbox.launchers import launcher
from pilotlight_runtime.sandbox.sandbox_errors import SandboxError
from pilotlight_runtime.sandbox.sandbox_port import Launcher, Sandbox
from pilotlight_runtime.sandbox.sandbox_spec import BASE_ENV, ResourceLimits, SandboxSpec

MIB = 1 << 20
LIMITS = ResourceLimits(
    memory_bytes=96 * MIB, pids=16, cpu_millis=1000, tmp_bytes=8 * MIB, shm_bytes=8 * MIB, open_files=64,
    file_bytes=64 * MIB,
)  # fmt: skip
PROBE_S = 20.0
"""A probe takes some 50 ms; a node on which it takes this long cannot serve."""
PROBE = Path(__file__).parents[1] / "sandbox" / "sandbox_probe.py"
HOG = f"bytearray({2 * LIMITS.memory_bytes})"
"""Allocates and touches twice its memory limit."""
CUDA = """import ctypes, os, socket
count = ctypes.c_int()
try:
    cuda = ctypes.CDLL("libcuda.so.1")
    told = f"{cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count))} {count.value}"
except OSError as error:
    told = f"{error}"
socket.socket(fileno=int(os.environ["PL_FD"])).sendall(told.encode() + b"\\n")
"""
"""Opens the GPU as every program does, and tells CUDA's error (0: none) and how many devices it sees."""
CUDA_LIMITS = replace(LIMITS, memory_bytes=2048 * MIB, pids=64, open_files=1024)
CUDA_S = 60.0
"""A driver that no process holds open takes some seconds a GPU."""
PLAIN_DEVICES = {
    *("console", "core", "fd", "full", "null", "ptmx", "pts", "random", "shm", "tty", "urandom", "zero"),
    *("stdin", "stdout", "stderr"),
}
"""Those of bubblewrap's `--dev`."""
NO_DEVICE = DeviceAccess()
NodeCheckRow = tuple[str, bool, str, str]
"""name, ok, detail, consequence."""


async def check(
    with_launcher: Launcher,
    *,
    python: Path | None = None,
    gpu: DeviceAccess | None = None,
    extra: Sequence[GuaranteeCheck] = (),
) -> list[GuaranteeCheck]:
    """Try every default guarantee of `with_launcher` on this node; usually well under a second.

    `python` is the interpreter to probe with (default: this one), `gpu` what a container on a GPU of this node sees of
    it. A sandbox that does not start is a failed check, not an error.
    """
    tried = python or Path(sys.executable)
    try:
        async with asyncio.timeout(PROBE_S):
            with _code_dir() as code_dir:
                probe = _Probe(with_launcher, tried, code_dir)
                seen, uids = await probe.inspect()
                hog = await probe.hog()
    except (SandboxError, TimeoutError, OSError) as error:
        why = str(error) or f"no answer within {PROBE_S:.0f} s"
        return [_failed("sandbox starts", why, "no container can start on this node"), *extra]
    checks = judge(seen, uids, hog, cpu=with_launcher.guarantees().cpu == "cgroup")
    if gpu is not None:
        with _code_dir() as code_dir:
            checks.append(judge_gpu(await _Probe(with_launcher, tried, code_dir).open_gpu(gpu)))
    return [*checks, *extra]


@contextmanager
def _code_dir() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="pilotlight-check-") as folder:
        code_dir = Path(folder)
        code_dir.chmod(0o755)
        yield code_dir


class _Probe:
    def __init__(self, with_launcher: Launcher, python: Path, code_dir: Path) -> None:
        self._launcher = with_launcher
        self._python = python
        self._code_dir = code_dir

    async def inspect(self) -> tuple[dict[str, Any], frozenset[int]]:
        """What the probe found inside, and the host uids of its processes."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            arguments = (listener.getsockname()[1], 2 * LIMITS.tmp_bytes, 4 * LIMITS.pids)
            sandbox = await self._start(PROBE.read_text(), *map(str, arguments))
            try:
                line = await _read_line(sandbox)
                if not line:
                    raise SandboxError(await _last_words(sandbox))
                return msgspec.json.decode(line), frozenset(map(_uid, sandbox.pids()))
            finally:
                await sandbox.cleanup()

    async def hog(self) -> str:
        sandbox = await self._start(HOG)
        try:
            return (await sandbox.wait()).reason
        finally:
            await sandbox.cleanup()

    async def open_gpu(self, access: DeviceAccess) -> str:
        """What `CUDA` told; else why it told nothing."""
        try:
            async with asyncio.timeout(CUDA_S):
                sandbox = await self._start(CUDA, access=access, limits=CUDA_LIMITS)
                try:
                    return (await _read_line(sandbox)).decode().strip() or await _last_words(sandbox)
                finally:
                    await sandbox.cleanup()
        except (SandboxError, TimeoutError, OSError) as error:
            return str(error) or f"no answer within {CUDA_S:.0f} s"

    async def _start(
        self, code: str, *arguments: str, access: DeviceAccess = NO_DEVICE, limits: ResourceLimits = LIMITS
    ) -> Sandbox:
        return await self._launcher.start(
            SandboxSpec(
                name=f"node-check-{os.getpid()}",
                python=self._python,
                argv=("-I", "-S", "-c", code, *arguments),
                code_dir=self._code_dir,
                read_only=(*interpreter_mounts(self._python), *access.read_only),
                device_nodes=access.nodes,
                env=access.env,
                limits=limits,
                uid=None,
            )
        )


async def _read_line(sandbox: Sandbox) -> bytes:
    sandbox.socket.settimeout(0)
    loop, line = asyncio.get_running_loop(), b""
    while not line.endswith(b"\n"):
        chunk = await loop.sock_recv(sandbox.socket, 1 << 16)
        if not chunk:
            return b""
        line += chunk
    return line


async def _last_words(sandbox: Sandbox) -> str:
    ended = await sandbox.wait()
    try:
        words = os.read(sandbox.stderr_fd, 4096).decode(errors="replace").strip()
    except BlockingIOError:
        words = ""
    return words or f"it ended before it said anything: {ended}"


def _uid(pid: int) -> int:
    return Path(f"/proc/{pid}").stat().st_uid


def judge(seen: dict[str, Any], uids: frozenset[int], hog: str, *, cpu: bool) -> list[GuaranteeCheck]:
    """The checks, from the probe's findings, the uids that the host saw, and the end of the memory hog."""
    rows = [*_reach(seen), *_privileges(seen, uids), *_limits(seen, hog, cpu=cpu)]
    return [
        GuaranteeCheck(name=name, ok=ok, detail=detail, consequence=consequence)
        for name, ok, detail, consequence in rows
    ]


def judge_gpu(told: str) -> GuaranteeCheck:
    """The check of a GPU, from what `CUDA` told."""
    code, _, count = told.partition(" ")
    ok = (code, count) == ("0", "1")
    known = code.isdigit() and count.isdigit()
    detail = f"CUDA's error {code}; {count} devices seen" if known else told
    consequence = "functions with a GPU start, and cannot use it"
    return GuaranteeCheck(
        name="gpu in a sandbox", ok=ok, detail="opened, alone" if ok else detail, consequence=consequence
    )


def _reach(seen: dict[str, Any]) -> Iterator[NodeCheckRow]:
    interfaces, connected, vsock = seen["interfaces"], not seen["connect"], not seen["vsock"]
    yield (
        "no network",
        interfaces == ["lo"] and not connected and not vsock,
        f"interfaces {_list(interfaces)}; host {_open(connected)}, hypervisor {_open(vsock)}",
        "tenant code reaches the platform, other tenants and the internet",
    )
    written = [place for place, error in seen["writes"].items() if not error]
    yield (
        "read-only root",
        not written,
        f"could write to {_list(written)}" if written else f"{len(seen['writes'])} places tried, all refused",
        "tenant code changes what other containers run",
    )
    yield (
        "other processes invisible",
        len(seen["processes"]) <= 2,
        f"{len(seen['processes'])} processes seen",
        "containers see one another's command lines and environments",
    )
    strange = sorted(set(seen["devices"]) - PLAIN_DEVICES)
    yield (
        "devices of others invisible",
        not strange,
        f"{len(strange)} seen, such as {_list(strange[:3])}" if strange else "none but the plain ones",
        "containers use devices they were not given",
    )
    leaked = sorted(set(seen["environment"]) - set(BASE_ENV) - {"PL_FD", "PL_APP", "PWD"})
    yield (
        "clean environment",
        not leaked,
        f"{len(leaked)} variables of the agent are visible" if leaked else "nothing of the agent's",
        "the platform's credentials reach tenant code",
    )


def _privileges(seen: dict[str, Any], uids: frozenset[int]) -> Iterator[NodeCheckRow]:
    status = seen["status"]
    yield (
        "own host uid",
        bool(uids) and not uids & {0, os.geteuid()},
        f"the host sees uid {_list(uids)}",
        "code that breaks out of a container runs as the agent's user on the host",
    )
    capabilities = [name for name in ("CapEff", "CapPrm", "CapBnd") if int(status.get(name, "1"), 16)]
    yield (
        "no privileges to gain",
        status.get("NoNewPrivs") == "1" and not capabilities,
        f"NoNewPrivs {status.get('NoNewPrivs')}; capabilities {_list(capabilities)}",
        "a set-uid program makes tenant code root",
    )
    yield (
        "system calls filtered",
        status.get("Seccomp") == "2" and seen["unshare"] == "EPERM",
        f"seccomp mode {status.get('Seccomp')}; new user namespace: {seen['unshare'] or 'made'}",
        "tenant code reaches far more of the kernel",
    )


def _limits(seen: dict[str, Any], hog: str, *, cpu: bool) -> Iterator[NodeCheckRow]:
    yield (
        "memory limit",
        hog == "memory",
        f"a process that took twice its limit ended as: {hog}",
        "one container takes its neighbours' memory",
    )
    yield (
        "process limit",
        seen["children"] < LIMITS.pids,
        f"{seen['children']} children could run, the limit is {LIMITS.pids}",
        "one fork bomb stops the node",
    )
    yield (
        "cpu limit",
        cpu,
        "cpu cgroup" if cpu else "the agent may not use the cpu cgroup",
        "a busy container slows its neighbours",
    )
    yield (
        "capped /tmp",
        seen["tmp_bytes"] <= LIMITS.tmp_bytes,
        f"{seen['tmp_bytes'] // MIB} MiB fitted, the limit is {LIMITS.tmp_bytes // MIB}",
        "one container fills the node's disk",
    )


def _open(reached: object) -> str:
    return "reached" if reached else "refused"


def _list(items: Iterable[object]) -> str:
    return ", ".join(sorted(map(str, items))) or "none"


def _failed(name: str, detail: str, consequence: str) -> GuaranteeCheck:
    return GuaranteeCheck(name=name, ok=False, detail=detail, consequence=consequence)


def table(checks: Sequence[GuaranteeCheck]) -> str:
    """The checks as aligned lines, with the consequences of failed ones."""
    width = max(len(one.name) for one in checks)
    lines = [f"{'ok  ' if one.ok else 'FAIL'}  {one.name:<{width}}  {one.detail}" for one in checks]
    for index in reversed(range(len(checks))):
        if not checks[index].ok:
            lines.insert(index + 1, f"      {'':<{width}}  -> {checks[index].consequence}")
    return "\n".join(lines) + "\n"


async def _check_all(chosen: Launcher) -> list[GuaranteeCheck]:
    async with NvmlDevices(offer=GpuOffer(check=fitness)) as gpus:
        extra = [
            GuaranteeCheck(name=name, ok=ok, detail=seen, consequence=then) for name, ok, seen, then in gpu_rows(gpus)
        ]
        parts = [part for part in gpus.inventory() if part.kind is not SliceKind.CPU]
        return await check(chosen, gpu=gpus.access(parts[0].id) if parts else None, extra=extra)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="pilotlight_runtime.node.node_check", description="What this node guarantees."
    )
    parser.add_argument("--json", action="store_true", help="print the checks as JSON")
    parser.add_argument("--sandbox", default="bubblewrap", help="bubblewrap (the default) or process")
    options = parser.parse_args(arguments)
    try:
        chosen = launcher(options.sandbox)
    except SandboxError as error:
        checks = [_failed("sandbox starts", str(error), "no container can start on this node")]
    else:
        try:
            checks = asyncio.run(_check_all(chosen))
        finally:
            chosen.close()
    sys.stdout.write(msgspec.json.encode(checks).decode() + "\n" if options.json else table(checks))
    return 0 if all(one.ok for one in checks) else 1


if __name__ == "__main__":
    sys.exit(main())

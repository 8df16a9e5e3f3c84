"""A small agent that starts one sandbox, says its pids, and waits to be killed. Run by test_agent_death."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from pilotlight_runtime.sandbox.interpreter import interpreter_mounts
from pilotlight_runtime.sandbox.launchers import launcher
from pilotlight_runtime.sandbox.sandbox_spec import ResourceLimits, SandboxSpec

CODE = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.write(int(os.environ["PL_FD"]), b"!")
    time.sleep(1000)
time.sleep(1000)
"""


async def main(kind: str, code_dir: Path) -> None:
    python = Path(sys.prefix) / "bin" / "python"
    sandbox = await launcher(kind).start(
        SandboxSpec(
            name="doomed",
            python=python,
            argv=("-I", "-S", "-c", CODE),
            code_dir=code_dir,
            read_only=interpreter_mounts(python),
            device_nodes=(),
            env={},
            limits=ResourceLimits(
                memory_bytes=1 << 28,
                pids=16,
                cpu_millis=1000,
                tmp_bytes=1 << 20,
                shm_bytes=1 << 20,
                open_files=64,
                file_bytes=1 << 20,
            ),
            uid=None,
        )
    )
    sandbox.socket.recv(1)
    print(*sandbox.pids(), flush=True)
    await sandbox.wait()


asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
